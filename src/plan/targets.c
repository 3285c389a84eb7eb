/* SPDX-License-Identifier: MIT */
/* The target set: bitmaps over the text, regions by address, exits by address. */
#include "plan/scan.h"

#include <errno.h>
#include <stdlib.h>

static size_t words(uint64_t start, uint64_t end)
{
	return (size_t)((end - start + 63) / 64);
}

static struct targets_text *text_of(const struct plan_targets *t, uint64_t addr)
{
	size_t low = 0, high = t->nr_text;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (addr >= t->text[mid].end)
			low = mid + 1;
		else
			high = mid;
	}
	return low < t->nr_text && addr >= t->text[low].start ? &t->text[low] : NULL;
}

static bool test(const uint64_t *map, uint64_t bit)
{
	return map[bit / 64] >> (bit % 64) & 1;
}

static void set(uint64_t *map, uint64_t bit)
{
	map[bit / 64] |= UINT64_C(1) << (bit % 64);
}

bool targets_in_text(const struct plan_targets *t, uint64_t addr)
{
	return text_of(t, addr);
}

void targets_add(struct plan_targets *t, uint64_t addr)
{
	struct targets_text *x = text_of(t, addr);

	if (x)
		set(x->target, addr - x->start);
}

void targets_add_boundary(struct plan_targets *t, uint64_t addr)
{
	struct targets_text *x = text_of(t, addr);

	if (x)
		set(x->boundary, addr - x->start);
}

void targets_add_exit(struct plan_targets *t, const struct plan_exit *e)
{
	if (t->nr_exits == t->room_exits) {
		size_t room = t->room_exits ? 2 * t->room_exits : 256;
		struct plan_exit *grown = realloc(t->exit, room * sizeof(*grown));

		if (!grown) {
			t->failed = true;
			return;
		}
		t->exit = grown;
		t->room_exits = room;
	}
	t->exit[t->nr_exits++] = *e;
}

/* How many bounds start at or below addr. */
static size_t bounds_below(const struct plan_module *m, uint64_t addr)
{
	size_t low = 0, high = m->nr_funcs;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (m->func[mid].start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

const struct plan_bounds *bounds_at(const struct plan_module *m, uint64_t addr)
{
	size_t i = bounds_below(m, addr);

	return i && m->func[i - 1].start == addr ? &m->func[i - 1] : NULL;
}

const struct plan_bounds *bounds_around(const struct plan_module *m, uint64_t addr)
{
	size_t i = bounds_below(m, addr);

	for (unsigned int back = 0; i-- && back < 8; back++)
		if (addr < m->func[i].end)
			return &m->func[i];
	return NULL;
}

bool plan_targets_any(const struct plan_targets *t, uint64_t from, uint64_t to)
{
	for (; from < to; from++) {
		const struct targets_text *x = text_of(t, from);

		if (x && test(x->target, from - x->start))
			return true;
	}
	return false;
}

bool plan_targets_boundary(const struct plan_targets *t, uint64_t addr)
{
	const struct targets_text *x = text_of(t, addr);

	return x && test(x->boundary, addr - x->start);
}

size_t targets_region(const struct plan_targets *t, uint64_t addr)
{
	size_t low = 0, high = t->nr_regions;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (addr >= t->region[mid].end)
			low = mid + 1;
		else
			high = mid;
	}
	return low < t->nr_regions && addr >= t->region[low].start ? low : SIZE_MAX;
}

const struct plan_region *plan_targets_region(const struct plan_targets *t, uint64_t addr)
{
	size_t i = targets_region(t, addr);

	return i == SIZE_MAX ? NULL : &t->region[i];
}

const struct plan_exit *plan_targets_exits(const struct plan_targets *t, uint64_t start,
                                           uint64_t end, size_t *n)
{
	size_t low = 0, high = t->nr_exits, i;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t->exit[mid].addr < start)
			low = mid + 1;
		else
			high = mid;
	}
	for (i = low; i < t->nr_exits && t->exit[i].addr < end; i++)
		;
	*n = i - low;
	return *n ? t->exit + low : NULL;
}

void plan_targets_range(const struct plan_targets *t, uint64_t *from, uint64_t *to)
{
	*from = t->from;
	*to = t->to;
}

size_t plan_targets_bytes(const struct plan_targets *t)
{
	size_t n = sizeof(*t) + t->nr_regions * sizeof(*t->region) +
	           t->room_exits * sizeof(*t->exit) + t->nr_text * sizeof(*t->text);

	for (size_t i = 0; i < t->nr_text; i++)
		n += 16 * words(t->text[i].start, t->text[i].end);
	return n;
}

static bool in_order(const struct plan_module *m)
{
	for (size_t i = 0; i < m->nr_code; i++)
		if (m->code[i].size > UINT64_MAX - m->code[i].addr ||
		    (i && m->code[i].addr < m->code[i - 1].addr + m->code[i - 1].size))
			return false;
	for (size_t i = 1; i < m->nr_funcs; i++)
		if (m->func[i].start < m->func[i - 1].start)
			return false;
	for (size_t i = 1; i < m->nr_relocs; i++)
		if (m->reloc[i].place < m->reloc[i - 1].place)
			return false;
	return true;
}

static int make_text(struct plan_targets *t, const struct plan_module *m)
{
	t->text = calloc(m->nr_code ? m->nr_code : 1, sizeof(*t->text));
	if (!t->text)
		return -ENOMEM;
	for (size_t i = 0; i < m->nr_code; i++) {
		const struct plan_code *c = &m->code[i];
		struct targets_text *x = &t->text[t->nr_text];

		if (!c->size)
			continue;
		x->start = c->addr;
		x->end = c->addr + c->size;
		x->target = calloc(words(x->start, x->end), 8);
		x->boundary = calloc(words(x->start, x->end), 8);
		t->nr_text++;
		if (!x->target || !x->boundary)
			return -ENOMEM;
	}
	return 0;
}

/* Bounds that overlap become one region; one that leaves its text is cut. */
static int make_regions(struct plan_targets *t, const struct plan_module *m)
{
	t->region = calloc(m->nr_funcs ? m->nr_funcs : 1, sizeof(*t->region));
	if (!t->region)
		return -ENOMEM;
	for (size_t i = 0; i < m->nr_funcs; i++) {
		const struct plan_bounds *f = &m->func[i];
		const struct targets_text *x = text_of(t, f->start);
		struct plan_region *last = t->nr_regions ? &t->region[t->nr_regions - 1] : NULL;
		uint64_t end;

		if (!x || f->end <= f->start)
			continue;
		end = f->end < x->end ? f->end : x->end;
		if (!f->part)
			targets_add(t, f->start);
		if (last && f->start < last->end) {
			if (end > last->end)
				last->end = end;
			if (!f->part)
				last->flags &= ~(uint32_t)PLAN_REGION_PART;
			continue;
		}
		t->region[t->nr_regions++] =
			(struct plan_region){ f->start, end, f->part ? PLAN_REGION_PART : 0 };
	}
	return 0;
}

static void scan_all(struct plan_targets *t, const struct plan_module *m, struct scan *s)
{
	size_t r = 0;

	for (size_t i = 0; i < m->nr_code; i++) {
		const struct plan_code *c = &m->code[i];
		uint64_t at = c->addr, end = c->addr + c->size;

		for (; r < t->nr_regions && t->region[r].start < end; r++) {
			struct plan_region *g = &t->region[r];

			scan_gap(s, at, g->start, c->bytes + (at - c->addr));
			scan_region(s, g, c->bytes + (g->start - c->addr));
			at = g->end;
		}
		scan_gap(s, at, end, c->bytes + (at - c->addr));
	}
}

/* A function start that the run of instructions passes over: there are two ways to read it. */
static void find_ambiguous(struct plan_targets *t, const struct plan_module *m)
{
	for (size_t i = 0, r = 0; i < m->nr_funcs; i++) {
		const struct plan_bounds *f = &m->func[i];

		while (r < t->nr_regions && f->start >= t->region[r].end)
			r++;
		if (r < t->nr_regions && f->start >= t->region[r].start &&
		    !plan_targets_boundary(t, f->start))
			t->region[r].flags |= PLAN_REGION_BROKEN;
	}
}

static size_t find_root(size_t *up, size_t i)
{
	while (up[i] != i)
		i = up[i] = up[up[i]];
	return i;
}

/*
 * An indirect jump may lead into any part of its function: regions that jumps
 * tie to each other share the flag.  A part that nothing is known to enter may
 * be anybody's.
 */
static int share_indirect(struct plan_targets *t)
{
	size_t n = t->nr_regions, *up = malloc((n ? n : 1) * sizeof(*up));
	bool any = false;

	if (!up)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		up[i] = i;
	for (size_t i = 0; i < t->nr_exits; i++) {
		size_t a, b;

		if (t->exit[i].kind != PLAN_EXIT_PART)
			continue;
		a = targets_region(t, t->exit[i].addr);
		b = targets_region(t, t->exit[i].target);
		if (a != SIZE_MAX && b != SIZE_MAX)
			up[find_root(up, a)] = find_root(up, b);
	}
	for (size_t i = 0; i < n; i++) {
		any |= t->region[i].flags & PLAN_REGION_INDIRECT;
		t->region[find_root(up, i)].flags |= t->region[i].flags & PLAN_REGION_INDIRECT;
	}
	for (size_t i = 0; i < n; i++) {
		size_t root = find_root(up, i);
		bool orphan = any && (t->region[i].flags & PLAN_REGION_PART) &&
		              !plan_targets_any(t, t->region[i].start, t->region[i].end);

		if (t->region[root].flags & PLAN_REGION_INDIRECT || orphan)
			t->region[i].flags |= PLAN_REGION_INDIRECT;
	}
	free(up);
	return 0;
}

/* The set before anything is decoded: starts of functions, relocations, what the caller adds. */
int targets_begin(struct plan_targets **ret, const struct plan_module *m)
{
	struct plan_targets *t;

	*ret = NULL;
	if (!in_order(m))
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t || make_text(t, m) || make_regions(t, m)) {
		plan_targets_free(t);
		return -ENOMEM;
	}
	t->to = UINT64_MAX;
	for (size_t i = 0; i < m->nr_relocs; i++)
		targets_add(t, m->reloc[i].target);
	for (size_t i = 0; i < m->nr_extra; i++)
		targets_add(t, m->extra[i]);
	*ret = t;
	return 0;
}

int plan_targets_new(struct plan_targets **ret, const struct plan_module *m)
{
	struct plan_targets *t;
	struct scan *s;
	int r = targets_begin(&t, m);

	*ret = NULL;
	if (r)
		return r;
	s = scan_new(t, m);
	for (size_t i = 0; i < t->nr_text; i++)
		t->tables += t->text[i].end - t->text[i].start;
	if (s) {
		scan_all(t, m, s);
		find_ambiguous(t, m);
	}
	if (!s || share_indirect(t) || t->failed) {
		plan_targets_free(t);
		t = NULL;
	}
	scan_free(s);
	*ret = t;
	return t ? 0 : -ENOMEM;
}

void plan_targets_free(struct plan_targets *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->nr_text; i++) {
		free(t->text[i].target);
		free(t->text[i].boundary);
	}
	free(t->text);
	free(t->region);
	free(t->exit);
	free(t);
}
