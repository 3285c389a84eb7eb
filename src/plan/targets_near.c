/* SPDX-License-Identifier: MIT */
/*
 * The targets of one region.  Whoever needs a single jump in a large library would
 * wait for all of it to be decoded otherwise.
 *
 * What may lead into the middle of a region, and how it is found:
 *
 *	a branch with 8 bits		from 130 bytes away at most: that is decoded
 *	a branch or lea with 32 bits	by its bytes, wherever such lie, be they an
 *					instruction or parts of several
 *	an address as an immediate	by its bytes, where a module isn't relocated
 *	relocations, landing pads	are listed
 *	a table, a jump by register	in the region: decoded; elsewhere only in a part
 *					of its function, and branches tie parts to it
 *
 * Where any of this comes from far away, or the region has parts, the set of the
 * whole module is asked instead.
 */
#include <errno.h>
#include <string.h>

#include "base/pause.h"
#include "plan/scan.h"

/* From the start of a short branch to the farthest byte that it reaches. */
#define SHORT_REACH 130

/* Bytes, in a loop that takes a nanosecond for each. */
#define SCANNED_AT_ONCE 4096

/* Of what follows a function, so much is known as well: a jump may take padding. */
#define PADDING 16

/* The region, the end of what is known, and what is decoded for it: whole regions and gaps. */
struct range {
	uint64_t start, end, known;
	uint64_t from, to;
	const struct plan_code *code;
	bool fixed; /* immediates may be addresses */
};

static int find_range(struct range *r, const struct plan_module *m, uint64_t addr)
{
	struct plan_targets *t;
	size_t i, first, last;
	int ret = targets_begin(&t, m);

	if (ret)
		return ret;
	i = first = last = targets_region(t, addr);
	for (r->code = m->code; i != SIZE_MAX && addr - r->code->addr >= r->code->size;)
		r->code++;
	if (i != SIZE_MAX) {
		*r = (struct range){ t->region[i].start,
			             t->region[i].end,
			             t->region[i].end + PADDING,
			             r->code->addr,
			             r->code->addr + r->code->size,
			             r->code,
			             m->fixed };
		if (r->known > r->to)
			r->known = r->to;
		if (i + 1 < t->nr_regions && r->known > t->region[i + 1].start)
			r->known = t->region[i + 1].start;
		while (first && t->region[first - 1].end > r->from &&
		       r->start - t->region[first - 1].end < SHORT_REACH)
			first--;
		while (last + 1 < t->nr_regions && t->region[last + 1].start < r->to &&
		       t->region[last + 1].start - r->end < SHORT_REACH)
			last++;
		if (first && t->region[first - 1].end > r->from)
			r->from = t->region[first - 1].end;
		if (last + 1 < t->nr_regions && t->region[last + 1].start < r->to)
			r->to = t->region[last + 1].start;
	}
	plan_targets_free(t);
	return i == SIZE_MAX ? -EAGAIN : 0;
}

/* May bytes of which these n are the last be followed by a displacement to code? */
static bool is_opcode(const uint8_t *end, size_t n)
{
	const uint8_t last = n ? end[-1] : 0, before = n > 1 ? end[-2] : 0;

	return last == 0xe8 || last == 0xe9 ||              /* call, jmp */
	       (before == 0x0f && (last & 0xf0) == 0x80) || /* jcc */
	       (before == 0x8d && (last & 0xc7) == 0x05) || /* lea of rip + */
	       (before == 0xc7 && last == 0xf8);            /* xbegin */
}

/* Does anything that begins in [from, to) lead behind the region's start? */
static bool leads_in(const struct plan_code *c, uint64_t from, uint64_t to, const struct range *r)
{
	const uint32_t len = (uint32_t)(r->known - r->start - 1);
	const uint8_t *b = c->bytes + (from - c->addr);
	/* From where it counts to the first byte in question; modulo 2^32, as text is smaller. */
	uint32_t far = (uint32_t)(from + 4 - r->start - 1), disp;
	uint64_t n;

	if (to > c->addr + c->size)
		to = c->addr + c->size;
	for (n = to - from; n >= 4; n--, b++, far++) {
		if (!(n % SCANNED_AT_ONCE))
			pause_point();
		memcpy(&disp, b, sizeof(disp));
		if (disp + far < len && is_opcode(b, (size_t)(b - c->bytes)))
			return true;
		if (r->fixed && disp - (uint32_t)(r->start + 1) < len)
			return true;
	}
	return false;
}

static bool entered_from_afar(const struct plan_module *m, const struct range *r)
{
	size_t i;

	for (i = 0; i < m->nr_code; i++) {
		const struct plan_code *c = &m->code[i];

		/* A displacement may begin outside what is decoded, and end in it. */
		if (c != r->code ? leads_in(c, c->addr, c->addr + c->size, r)
		                 : leads_in(c, c->addr, r->from + 3, r) ||
		                           leads_in(c, r->to, c->addr + c->size, r))
			return true;
	}
	return false;
}

/* Is it a whole function that nothing is unknown of? */
static bool is_alone(const struct plan_targets *t, const struct plan_module *m,
                     const struct range *r)
{
	const struct plan_region *g = plan_targets_region(t, r->start);
	const struct plan_exit *e;
	size_t n, i;

	if (!g || g->start != r->start || g->end != r->end || g->flags)
		return false;
	e = plan_targets_exits(t, r->start, r->end, &n);
	for (i = 0; i < n; i++) {
		const struct plan_bounds *f = bounds_at(m, e[i].target);

		if (e[i].kind == PLAN_EXIT_PART || e[i].kind == PLAN_EXIT_INDIRECT)
			return false;
		/* Where it leads lies outside what was decoded, mostly. */
		if (e[i].target && (f ? f->part : bounds_around(m, e[i].target) != NULL))
			return false;
	}
	return true;
}

/* The rest counts as entered; nothing else is a function. */
static void keep_only(struct plan_targets *t, const struct range *r)
{
	uint64_t at;

	for (at = r->from; at < r->to; at++)
		if (at < r->start || at >= r->known)
			targets_add(t, at);
	t->region[0] = *plan_targets_region(t, r->start);
	t->nr_regions = 1;
	t->from = r->start;
	t->to = r->known;
}

int plan_targets_near(struct plan_targets **ret, const struct plan_module *m, uint64_t addr)
{
	struct plan_module few = *m;
	struct plan_code code;
	struct range r;
	int err = find_range(&r, m, addr);

	*ret = NULL;
	if (err)
		return err;
	/* Immediates of four bytes: others would be looked for in vain. */
	if ((m->fixed && r.to > UINT32_MAX) || entered_from_afar(m, &r))
		return -EAGAIN;
	code = (struct plan_code){ r.from, r.code->bytes + (r.from - r.code->addr), r.to - r.from };
	few.code = &code;
	few.nr_code = 1;
	for (; few.nr_funcs && few.func->start < r.from; few.nr_funcs--)
		few.func++;
	while (few.nr_funcs && few.func[few.nr_funcs - 1].start >= r.to)
		few.nr_funcs--;
	err = plan_targets_new(ret, &few);
	if (err)
		return err;
	if (is_alone(*ret, m, &r)) {
		keep_only(*ret, &r);
		return 0;
	}
	plan_targets_free(*ret);
	*ret = NULL;
	return -EAGAIN;
}
