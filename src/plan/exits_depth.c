/* SPDX-License-Identifier: MIT */
/*
 * How much is on the stack, counted along the instructions: for functions that
 * no CFI describes.
 *
 * Each instruction of the body gets the depth with which it is reached: 0 is
 * that of the entry, with the return address on top.  Depths flow forward, also
 * over calls, which leave the stack and rbp as they were; where two ways differ
 * the depth is unknown, and stays so.  What only a switch leads to has the depth
 * of the switch, if all of them have the same.
 */
#include "plan/exits_in.h"

#include <errno.h>
#include <stdlib.h>

#define UNSEEN INT32_MIN
#define UNKNOWN INT32_MAX
#define PASSES 16
#define DWARF_RBP 6
#define DWARF_RSP 7

/* The entry's stack pointer less the one now, or less the frame pointer. */
struct depth {
	int32_t sp, fp;
};

struct exits_depth {
	const struct exits_maker *k;
	const size_t *region;
	unsigned int nr;
	struct depth *at[BODY_REGIONS]; /* by byte of each region */
	struct depth at_switch;
	bool changed;
};

static struct depth *depth_of(const struct exits_depth *d, uint64_t addr)
{
	for (unsigned int i = 0; i < d->nr; i++) {
		const struct plan_region *r = &d->k->t->region[d->region[i]];

		if (addr >= r->start && addr < r->end)
			return &d->at[i][addr - r->start];
	}
	return NULL;
}

static void join(int32_t *to, int32_t from, bool *changed)
{
	if (*to == from || *to == UNKNOWN)
		return;
	*to = *to == UNSEEN ? from : UNKNOWN;
	*changed = true;
}

static void reach(struct exits_depth *d, uint64_t addr, const struct depth *from)
{
	struct depth *to = depth_of(d, addr);

	if (!to)
		return;
	join(&to->sp, from->sp, &d->changed);
	join(&to->fp, from->fp, &d->changed);
}

static int32_t moved(uint8_t kind, int32_t by, int32_t kept, const struct depth *before)
{
	const int32_t from = kind == STACK_BY_SP   ? before->sp
	                     : kind == STACK_BY_FP ? before->fp
	                     : kind == STACK_KEPT  ? kept
	                                           : UNKNOWN;
	int32_t to;

	if (kind == STACK_KEPT || from == UNKNOWN)
		return from;
	return __builtin_sub_overflow(from, by, &to) || to == UNSEEN ? UNKNOWN : to;
}

/* One pass over a region, in the order of addresses. */
static void pass(struct exits_depth *d, unsigned int i)
{
	const struct plan_region *r = &d->k->t->region[d->region[i]];
	struct step_memory mem = { 0 };
	struct step s;
	size_t avail;
	const uint8_t *code = exits_code(d->k->m, r->start, &avail);

	for (uint64_t at = r->start; at < r->end; at += s.len) {
		const struct depth before = d->at[i][at - r->start];
		struct depth after;

		if (!exits_step(code + (at - r->start), (size_t)(r->end - at), at, d->k->m->fixed,
		                &mem, &s))
			return;
		if (before.sp == UNSEEN)
			continue;
		after.sp = moved(s.sp, s.sp_by, before.sp, &before);
		after.fp = moved(s.fp, s.fp_by, before.fp, &before);
		if (s.kind == STEP_JUMP || s.kind == STEP_BRANCH)
			reach(d, s.target, &after);
		if (s.kind == STEP_JUMP_AWAY) {
			join(&d->at_switch.sp, after.sp, &d->changed);
			join(&d->at_switch.fp, after.fp, &d->changed);
		}
		if (s.kind == STEP_ON || s.kind == STEP_BRANCH || s.kind == STEP_CALL ||
		    s.kind == STEP_CALL_AWAY)
			reach(d, at + s.len, &after);
	}
}

/* What nothing has reached but a switch may. */
static void from_switches(struct exits_depth *d)
{
	for (unsigned int i = 0; i < d->nr && d->at_switch.sp != UNSEEN; i++) {
		const struct plan_region *r = &d->k->t->region[d->region[i]];

		for (uint64_t at = r->start; at < r->end; at++)
			if (d->at[i][at - r->start].sp == UNSEEN &&
			    plan_targets_any(d->k->t, at, at + 1))
				reach(d, at, &d->at_switch);
	}
}

static bool settle(struct exits_depth *d)
{
	for (int n = 0; n < PASSES; n++) {
		d->changed = false;
		for (unsigned int i = 0; i < d->nr; i++)
			pass(d, i);
		if (!d->changed)
			from_switches(d);
		if (!d->changed)
			return true;
	}
	return false;
}

int exits_depth_new(struct exits_depth **ret, const struct exits_maker *k, uint64_t start,
                    const size_t *region, unsigned int nr)
{
	struct exits_depth *d = calloc(1, sizeof(*d));
	const struct depth entry = { 0, UNKNOWN };

	*ret = d;
	if (!d)
		return -ENOMEM;
	d->k = k;
	d->region = region;
	d->at_switch = (struct depth){ UNSEEN, UNSEEN };
	for (d->nr = 0; d->nr < nr; d->nr++) {
		const struct plan_region *r = &k->t->region[region[d->nr]];
		const size_t size = (size_t)(r->end - r->start);
		struct depth *at = malloc(size * sizeof(*at));

		if (!at)
			return -ENOMEM;
		for (size_t i = 0; i < size; i++)
			at[i] = (struct depth){ UNSEEN, UNSEEN };
		d->at[d->nr] = at;
	}
	reach(d, start, &entry);
	if (!settle(d))
		d->nr = 0; /* then nothing is known */
	return 0;
}

void exits_depth_free(struct exits_depth *d)
{
	for (unsigned int i = 0; d && i < BODY_REGIONS; i++)
		free(d->at[i]);
	free(d);
}

bool exits_depth_at(const struct exits_depth *d, uint64_t addr, int64_t *depth)
{
	const struct depth *at = depth_of(d, addr);

	if (!at || at->sp == UNSEEN || at->sp == UNKNOWN)
		return false;
	*depth = at->sp;
	return true;
}

bool exits_has_cfi(const struct exits_maker *k, uint64_t pc)
{
	unsigned int reg;
	int64_t off;

	return k->req->cfa && k->req->cfa(k->m->arg, pc, &reg, &off);
}

static bool is_return_address(const struct exits_depth *d, const struct step *s)
{
	const struct depth *at = depth_of(d, s->addr);
	const int32_t from = !at                    ? UNKNOWN
	                     : s->base == DWARF_RSP ? at->sp
	                     : s->base == DWARF_RBP ? at->fp
	                                            : UNKNOWN;

	return from != UNKNOWN && from != UNSEEN && s->disp == from;
}

bool exits_depth_touches(const struct exits_depth *d)
{
	for (unsigned int i = 0; i < d->nr; i++) {
		const struct plan_region *r = &d->k->t->region[d->region[i]];
		struct step_memory mem = { 0 };
		struct step s;
		size_t avail;
		const uint8_t *code = exits_code(d->k->m, r->start, &avail);

		for (uint64_t at = r->start;
		     at < r->end && exits_step(code + (at - r->start), (size_t)(r->end - at), at,
		                               d->k->m->fixed, &mem, &s);
		     at += s.len)
			if (s.base >= 0 && !exits_has_cfi(d->k, at) && is_return_address(d, &s))
				return true;
	}
	return false;
}
