/* SPDX-License-Identifier: MIT */
/*
 * The text of a stopped target as it was, from what its control area says was
 * changed.  Neighbouring pages are read at once, put right here, and written at
 * once, from the first changed byte to the last: the threads stand still for it.
 * Where that fails (a library has just gone), a run is halved, down to a single
 * place.
 */
#include <stdlib.h>
#include <string.h>

#include "session/leave.h"
#include "wire/live.h"

#define PAGE 4096ull
#define RUN_MAX (256u << 10)
#define PLACE_MAX 5 /* bytes: a jump */

struct place {
	uint64_t addr;
	uint8_t len;
	uint8_t ours[PLACE_MAX]; /* what is put back where it still stands */
	uint8_t orig[PLACE_MAX];
};

struct restore {
	struct leave *l;
	struct place *v;
	size_t nr, room;
	uint8_t *mem, *file;
};

static uint64_t page_of(uint64_t addr)
{
	return addr & ~(PAGE - 1);
}

/*
 * The file has the truth.  Where it is gone (replaced on disk), what lies in the
 * target is better than a breakpoint that kills it.
 */
static void fix(const struct place *p, uint8_t *now, const uint8_t *file)
{
	if (!memcmp(now, p->ours, p->len))
		memcpy(now, file ? file : p->orig, p->len);
}

static void restore_one(struct restore *r, const struct place *p)
{
	uint8_t now[PLACE_MAX], was[PLACE_MAX], file[PLACE_MAX];

	if (inject_read(r->l->inject, p->addr, was, p->len))
		return;
	memcpy(now, was, p->len);
	fix(p, now, sym_original(r->l->sym, p->addr, file, p->len) ? NULL : file);
	if (memcmp(now, was, p->len))
		inject_write(r->l->inject, p->addr, now, p->len);
}

/* From the first byte that changes to the last; false: it can't be read or written whole. */
static bool restore_pages(struct restore *r, const struct place *v, size_t n)
{
	uint64_t start = page_of(v[0].addr), end = v[n - 1].addr + v[n - 1].len;
	size_t first = SIZE_MAX, last = 0, i;
	bool whole, known;

	if (inject_read(r->l->inject, start, r->mem, end - start))
		return false;
	whole = !sym_original(r->l->sym, start, r->file, end - start);
	for (i = 0; i < n; i++) {
		size_t at = v[i].addr - start;
		uint8_t was[PLACE_MAX];

		memcpy(was, r->mem + at, v[i].len);
		/* One that is in no file must not take the others' truth from them. */
		known = whole || !sym_original(r->l->sym, v[i].addr, r->file + at, v[i].len);
		fix(&v[i], r->mem + at, known ? r->file + at : NULL);
		if (!memcmp(was, r->mem + at, v[i].len))
			continue;
		first = at < first ? at : first;
		last = at + v[i].len > last ? at + v[i].len : last;
	}
	return first >= last ||
	       !inject_write(r->l->inject, start + first, r->mem + first, last - first);
}

/* After a write that failed midway the halves find what is done. */
static void restore_run(struct restore *r, const struct place *v, size_t n)
{
	if (n == 1) {
		restore_one(r, v);
	} else if (!r->mem || !r->file || !restore_pages(r, v, n)) {
		restore_run(r, v, n / 2);
		restore_run(r, v + n / 2, n - n / 2);
	}
}

static int by_addr(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void restore_all(struct restore *r)
{
	size_t i = 0, k;

	if (r->nr)
		qsort(r->v, r->nr, sizeof(*r->v), by_addr);
	for (; i < r->nr; i = k) {
		uint64_t start = page_of(r->v[i].addr);

		for (k = i + 1; k < r->nr; k++)
			if (page_of(r->v[k].addr) - page_of(r->v[k - 1].addr) > PAGE ||
			    page_of(r->v[k].addr) - start >= RUN_MAX)
				break;
		restore_run(r, r->v + i, k - i);
	}
	r->nr = 0;
}

/* No more than fit into the area, whose lists may go in circles or say a thing twice. */
static bool add(struct restore *r, const struct place *p)
{
	if (r->nr >= r->l->len / sizeof(struct ukp_site))
		return false;
	if (r->nr == r->room) {
		size_t room = r->room ? r->room * 2 : 1024;
		struct place *more = realloc(r->v, room * sizeof(*more));

		/* Without memory what there is, and then the rest. */
		if (!more && !r->room) {
			restore_one(r, p);
			return true;
		}
		if (!more)
			restore_all(r);
		r->v = more ? more : r->v;
		r->room = more ? room : r->room;
	}
	r->v[r->nr++] = *p;
	return true;
}

/* Jumps are taken out whole. */
static void add_windows(struct restore *r)
{
	struct detour_walk w = { 0 };
	struct ukp_detour d;

	while (leave_next_detour(r->l, &w, &d)) {
		struct place p = { .addr = d.addr, .len = sizeof(d.jump) };

		/* Its place was just to be used again. */
		if (!d.addr || !d.size)
			continue;
		memcpy(p.ours, d.jump, sizeof(d.jump));
		memcpy(p.orig, d.orig, sizeof(d.jump));
		if (!add(r, &p))
			break;
	}
}

static void add_sites(struct restore *r)
{
	const struct ukp_site *s;
	uint32_t i = 0;

	while ((s = leave_next_site(r->l, &i))) {
		struct place p = { s->addr, 1, { 0xcc }, { s->orig[0] } };

		if (!(s->flags & (UKP_SITE_JUMP_ONLY | UKP_SITE_LIVE)) && !add(r, &p))
			break;
	}
}

static enum ukp_live look(const struct leave *l, const struct ukp_site *s)
{
	const unsigned int n = ukp_live_bytes(s->addr, s->len);
	uint8_t now[UKP_LIVE_MAX];

	if (n > sizeof(now) || inject_read(l->inject, s->addr, now, n))
		return UKP_LIVE_GONE;
	return ukp_live_judge(s, now, n);
}

/* n of one address, the newest first: told as the engine tells them. */
static void restore_live_one(const struct leave *l, const struct ukp_site *const *v, size_t n)
{
	enum ukp_live found = UKP_LIVE_GONE;
	const struct ukp_site *best = NULL;
	size_t i;

	for (i = 0; i < n; i++) {
		enum ukp_live is = look(l, v[i]);

		if (is < found) {
			found = is;
			best = v[i];
		}
	}
	if (best)
		inject_write(l->inject, best->addr, best->orig, 1);
}

/* Of one address, the newer one is further back in the area. */
static int site_down(const void *a, const void *b)
{
	const struct ukp_site *x = *(struct ukp_site *const *)a, *y = *(struct ukp_site *const *)b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? 1 : -1;
	return x < y ? 1 : x > y ? -1 : 0;
}

/*
 * Text that the program may have rewritten (live.c): from the last to the first, so
 * that breakpoints behind one are out when its surroundings are looked at.
 */
static void restore_live(struct leave *l)
{
	const size_t max = l->len / sizeof(struct ukp_site);
	const struct ukp_site *s, **v = NULL;
	size_t n = 0, i, k;
	uint32_t at = 0;

	while (n < max && (s = leave_next_site(l, &at))) {
		if (!(s->flags & UKP_SITE_LIVE))
			continue;
		v = v ? v : malloc(max * sizeof(*v));
		if (!v)
			restore_live_one(l, &s, 1);
		else
			v[n++] = s;
	}
	if (n)
		qsort(v, n, sizeof(*v), site_down);
	for (i = 0; i < n; i = k) {
		for (k = i + 1; k < n && v[k]->addr == v[i]->addr; k++)
			;
		restore_live_one(l, v + i, k - i);
	}
	free(v);
}

void leave_text(struct leave *l)
{
	struct restore r = { .l = l };

	r.mem = malloc(RUN_MAX + PAGE + PLACE_MAX);
	r.file = malloc(RUN_MAX + PAGE + PLACE_MAX);
	/* First: in a jump there is no breakpoint, but maybe a byte that looks like one. */
	add_windows(&r);
	restore_all(&r);
	add_sites(&r);
	restore_all(&r);
	restore_live(l);
	free(r.mem);
	free(r.file);
	free(r.v);
}
