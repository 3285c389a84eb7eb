/* SPDX-License-Identifier: MIT */
/*
 * One function: its body, part by part, and the ways out of it.
 *
 * The first thing that isn't as it must be ends the search: then nothing is
 * known but why.
 */
#include "plan/exits_in.h"

#include <errno.h>
#include <stdlib.h>

#define DWARF_RSP 7
#define WORD 8

struct body {
	struct exits_maker *k;
	struct plan_function *fn;
	size_t region[BODY_REGIONS];
	unsigned int nr;
	bool away;   /* leaves by an indirect jump */
	bool no_cfi; /* at one of its exits */
	bool no_memory;
};

static void give_up(struct body *b, enum plan_exits_why why, uint64_t where)
{
	if (b->fn->why)
		return;
	b->fn->why = (uint8_t)why;
	b->fn->where = where;
}

/* A hostile module may have each of its functions share all of its parts. */
static bool spend(struct body *b, uint64_t effort)
{
	if (effort > b->k->effort) {
		give_up(b, PLAN_EXITS_EFFORT, 0);
		return false;
	}
	b->k->effort -= effort;
	return true;
}

static bool has_region(const struct body *b, size_t region)
{
	for (unsigned int i = 0; i < b->nr; i++)
		if (b->region[i] == region)
			return true;
	return false;
}

static bool is_inside(const struct body *b, uint64_t addr)
{
	size_t region = exits_region(b->k->t, addr);

	return region != SIZE_MAX && has_region(b, region);
}

static void add_region(struct body *b, size_t region, uint64_t where)
{
	const struct plan_region *r = &b->k->t->region[region];

	if (r->flags & PLAN_REGION_BROKEN)
		give_up(b, PLAN_EXITS_BROKEN, r->start);
	else if (b->nr == BODY_REGIONS)
		give_up(b, PLAN_EXITS_SHARES, where);
	else
		b->region[b->nr++] = region;
	if (b->nr > 1)
		b->fn->flags |= PLAN_FN_PARTS;
}

/*
 * Is nothing on the stack but the return address?  If not, that is the end of it.
 * Without CFI that is asked once the body is complete.
 */
static bool is_bare(struct body *b, uint64_t pc)
{
	const struct plan_exits_request *req = b->k->req;
	unsigned int reg;
	int64_t off;

	if (!req->cfa || !req->cfa(b->k->m->arg, pc, &reg, &off)) {
		b->no_cfi = true;
		return true;
	}
	if (reg == DWARF_RSP && off == WORD)
		return true;
	give_up(b, PLAN_EXITS_DEPTH, pc);
	return false;
}

static void add_way(struct body *b, const struct step *s, enum plan_way_kind kind)
{
	const struct plan_way_out w = {
		.addr = s->addr,
		.target = kind == PLAN_WAY_TAIL ? s->target : 0,
		.pops = s->pops,
		.kind = (uint8_t)kind,
		.len = s->len,
		.conditional = s->kind == STEP_BRANCH,
	};
	struct plan_exits *x = b->k->x;

	if (!is_bare(b, s->addr))
		return;
	if (x->nr_ways == x->room_ways) {
		size_t room = x->room_ways ? 2 * x->room_ways : 256;
		struct plan_way_out *grown = realloc(x->way, room * sizeof(*grown));

		if (!grown) {
			b->no_memory = true;
			return;
		}
		x->way = grown;
		x->room_ways = room;
	}
	x->way[x->nr_ways++] = w;
	b->fn->nr_exits++;
	b->fn->nr_tails += kind != PLAN_WAY_RET;
	b->away |= kind == PLAN_WAY_TAIL_INDIRECT;
}

/* To somewhere within the function, or out of it. */
static void jumps(struct body *b, const struct step *s)
{
	const size_t region = exits_region(b->k->t, s->target);

	if (s->target == b->fn->start)
		b->fn->flags |= PLAN_FN_LOOPS;
	if (region != SIZE_MAX && has_region(b, region))
		return;
	if (region == SIZE_MAX || exits_is_start(b->k->m, s->target))
		add_way(b, s, PLAN_WAY_TAIL);
	else if (b->k->t->region[region].flags & PLAN_REGION_PART)
		add_region(b, region, s->addr);
	else
		give_up(b, PLAN_EXITS_SHARES, s->addr);
}

/* Another part, by a table or for the unwinder. */
static void leads(struct body *b, uint64_t target, uint64_t where)
{
	const size_t region = exits_region(b->k->t, target);

	if (region != SIZE_MAX && has_region(b, region))
		return;
	if (region != SIZE_MAX && b->k->t->region[region].flags & PLAN_REGION_PART)
		add_region(b, region, where);
	else
		give_up(b, PLAN_EXITS_SHARES, where);
}

static void jumps_away(struct body *b, const struct step *s)
{
	size_t n;
	const struct plan_exit *e = plan_targets_exits(b->k->t, s->addr, s->addr + 1, &n);

	if (!n || e->kind == PLAN_EXIT_PART)
		b->fn->flags |= PLAN_FN_SWITCH;
	for (size_t i = 0; i < n; i++) {
		if (e[i].kind == PLAN_EXIT_PART)
			leads(b, e[i].target, s->addr);
		else if (e[i].kind == PLAN_EXIT_TAIL && !s->computed)
			add_way(b, s, PLAN_WAY_TAIL_INDIRECT);
		else
			give_up(b, PLAN_EXITS_INDIRECT, s->addr);
	}
}

/* Only through the register that the CFA counts from; that is how compilers get there. */
static void look_at_operand(struct body *b, const struct step *s)
{
	const struct plan_exits_request *req = b->k->req;
	unsigned int reg;
	int64_t off;

	if (s->base < 0 || b->fn->flags & PLAN_FN_TOUCHES || !req->cfa)
		return;
	if (req->cfa(b->k->m->arg, s->addr, &reg, &off) && (int)reg == s->base &&
	    s->disp == off - WORD)
		b->fn->flags |= PLAN_FN_TOUCHES;
}

static void visit(struct body *b, const struct step *s)
{
	look_at_operand(b, s);
	switch (s->kind) {
	case STEP_JUMP:
	case STEP_BRANCH:
		jumps(b, s);
		break;
	case STEP_JUMP_AWAY:
		jumps_away(b, s);
		break;
	case STEP_RET:
		add_way(b, s, PLAN_WAY_RET);
		break;
	case STEP_FAR:
		give_up(b, PLAN_EXITS_FAR, s->addr);
		break;
	}
}

static bool goes_on(const struct step *s)
{
	return s->kind == STEP_ON || s->kind == STEP_BRANCH || s->kind == STEP_CALL ||
	       s->kind == STEP_CALL_AWAY;
}

/*
 * Instruction by instruction.  What stands behind one that doesn't go on is
 * reached only where something leads there, so filler at the end falls into
 * nothing.  A call that is the last instruction doesn't come back.
 */
static void walk(struct body *b, const struct plan_region *r)
{
	struct step_memory mem = { 0 };
	struct step s = { .kind = STEP_ON };
	bool live = true;
	size_t avail;
	const uint8_t *code = exits_code(b->k->m, r->start, &avail);

	if (!spend(b, r->end - r->start))
		return;
	for (uint64_t at = r->start; at < r->end && !b->fn->why && !b->no_memory; at += s.len) {
		if (!exits_step(code + (at - r->start), (size_t)(r->end - at), at, b->k->m->fixed,
		                &mem, &s)) {
			give_up(b, PLAN_EXITS_BROKEN, at);
			return;
		}
		live |= plan_targets_any(b->k->t, at, at + 1);
		visit(b, &s);
		live &= goes_on(&s);
	}
	if (live && s.kind != STEP_CALL && s.kind != STEP_CALL_AWAY)
		give_up(b, PLAN_EXITS_FALLS, s.addr);
}

/* Where the unwinder may enter on behalf of what begins in a region. */
static void follow_pads(struct body *b, const struct plan_region *r)
{
	const struct plan_exits_request *req = b->k->req;
	size_t low = 0, high = req->nr_pads;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (req->pad[mid].func < r->start)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < req->nr_pads && req->pad[low].func < r->end; low++)
		leads(b, req->pad[low].addr, req->pad[low].addr);
}

/*
 * Is it only the body that enters a function, by jumps?  Then its returns are
 * the body's.  In a stripped file a cold part may look so.  That it has no name
 * means that no other module knows it.
 */
static bool is_private(struct body *b, const struct plan_region *r)
{
	const struct exits_maker *k = b->k;
	const struct plan_bounds *f = bounds_at(k->m, r->start);

	if (!f || f->part || f->named || f->start == b->fn->start || r->flags ||
	    (f + 1 < k->m->func + k->m->nr_funcs && f[1].start < r->end))
		return false;
	for (size_t i = exits_index_find(k, r->start); i < k->nr_in && k->in[i].target < r->end;
	     i++) {
		const struct way_in *w = &k->in[i];
		const bool own = w->from >= r->start && w->from < r->end;

		if (!spend(b, 1))
			return false;
		if (w->kind == WAY_IN_PAD && own)
			continue;
		if (w->kind != WAY_IN_JUMP || !(own || is_inside(b, w->from)))
			return false;
	}
	return true;
}

/* Jumps to what turned out to be of the body. */
static void drop_inner_ways(struct body *b)
{
	struct plan_exits *x = b->k->x;
	size_t to = b->fn->first;

	for (size_t i = to; i < x->nr_ways; i++) {
		if (x->way[i].kind != PLAN_WAY_TAIL || !is_inside(b, x->way[i].target)) {
			x->way[to++] = x->way[i];
			continue;
		}
		b->fn->nr_exits--;
		b->fn->nr_tails--;
	}
	x->nr_ways = to;
}

/* Takes in what only the body jumps to; false: there is nothing such. */
static bool absorb(struct body *b)
{
	const struct exits_maker *k = b->k;
	const unsigned int before = b->nr;

	for (size_t i = b->fn->first; i < k->x->nr_ways && !b->fn->why; i++) {
		const struct plan_way_out *w = &k->x->way[i];
		size_t region;

		if (w->kind != PLAN_WAY_TAIL)
			continue;
		region = exits_region(k->t, w->target);
		if (region != SIZE_MAX && !has_region(b, region) &&
		    w->target == k->t->region[region].start && is_private(b, &k->t->region[region]))
			add_region(b, region, w->addr);
	}
	if (b->nr > before)
		drop_inner_ways(b);
	return b->nr > before;
}

/* Does anything but the function itself enter it behind its start? */
static void check_ways_in(struct body *b, const struct plan_region *r)
{
	const struct exits_maker *k = b->k;

	for (size_t i = exits_index_find(k, r->start); i < k->nr_in && k->in[i].target < r->end;
	     i++) {
		const struct way_in *w = &k->in[i];

		if (w->target == b->fn->start)
			continue;
		if (!spend(b, 1))
			return;
		switch (w->kind) {
		case WAY_IN_JUMP:
		case WAY_IN_PAD:
			if (!is_inside(b, w->from))
				give_up(b, PLAN_EXITS_ENTERED, w->from);
			break;
		case WAY_IN_CALL:
			give_up(b, PLAN_EXITS_ENTERED, w->from);
			break;
		case WAY_IN_ADDRESS:
			give_up(b, PLAN_EXITS_LABEL, w->target);
			break;
		case WAY_IN_DATA: /* of a switch's table, unless there is none */
			if (!(b->fn->flags & PLAN_FN_SWITCH) || b->away)
				give_up(b, PLAN_EXITS_LABEL, w->target);
			break;
		}
	}
}

static int by_addr(const void *a, const void *b)
{
	const struct plan_way_out *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int by_start(const void *a, const void *b)
{
	const struct plan_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* The depths that no CFI tells, by counting. */
static int check_depths(struct body *b)
{
	const struct plan_way_out *way = b->k->x->way + b->fn->first;
	struct exits_depth *d;
	int64_t depth;
	int r = exits_depth_new(&d, b->k, b->fn->start, b->region, b->nr);

	for (uint32_t i = 0; !r && i < b->fn->nr_exits; i++) {
		if (exits_has_cfi(b->k, way[i].addr))
			continue;
		if (!exits_depth_at(d, way[i].addr, &depth))
			give_up(b, PLAN_EXITS_NO_CFI, way[i].addr);
		else if (depth)
			give_up(b, PLAN_EXITS_DEPTH, way[i].addr);
	}
	if (!r && !b->fn->why && exits_depth_touches(d))
		b->fn->flags |= PLAN_FN_TOUCHES;
	exits_depth_free(d);
	return r;
}

static int add_ranges(struct body *b)
{
	struct plan_exits *x = b->k->x;

	if (x->nr_ranges + b->nr > x->room_ranges) {
		size_t room = 2 * x->room_ranges + 256;
		struct plan_range *grown = realloc(x->range, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		x->range = grown;
		x->room_ranges = room;
	}
	for (unsigned int i = 0; i < b->nr; i++)
		x->range[x->nr_ranges + i] =
			(struct plan_range){ b->k->t->region[b->region[i]].start,
			                     b->k->t->region[b->region[i]].end };
	qsort(x->range + x->nr_ranges, b->nr, sizeof(*x->range), by_start);
	b->fn->first_range = (uint32_t)x->nr_ranges;
	b->fn->nr_ranges = b->nr;
	x->nr_ranges += b->nr;
	return 0;
}

static void move_entry(struct body *b)
{
	uint64_t entry;

	if (!(b->fn->flags & PLAN_FN_LOOPS) || b->nr != 1 || b->fn->flags & PLAN_FN_SWITCH)
		return;
	entry = exits_behind_check(b->k, &b->k->t->region[b->region[0]]);
	if (!entry)
		return;
	b->fn->entry = entry;
	b->fn->flags &= (uint8_t)~PLAN_FN_LOOPS;
}

static int keep(struct body *b)
{
	struct plan_way_out *way;

	if (!b->fn->nr_exits) {
		b->fn->why = PLAN_EXITS_NONE;
		return add_ranges(b);
	}
	way = b->k->x->way + b->fn->first;
	qsort(way, b->fn->nr_exits, sizeof(*way), by_addr);
	move_entry(b);
	b->fn->nr_no_room = exits_room(b->k, b->fn->entry, way, b->fn->nr_exits);
	return add_ranges(b);
}

static void forget(struct body *b)
{
	b->k->x->nr_ways = b->fn->first;
	b->fn->nr_exits = b->fn->nr_tails = 0;
}

int exits_function(struct exits_maker *k, struct plan_function *fn, size_t region)
{
	struct body b = { .k = k, .fn = fn };

	unsigned int done = 0;

	fn->first = (uint32_t)k->x->nr_ways;
	add_region(&b, region, fn->start);
	do {
		for (; done < b.nr && !fn->why && !b.no_memory; done++) {
			const struct plan_region *r = &k->t->region[b.region[done]];

			walk(&b, r);
			follow_pads(&b, r);
			if (r->flags & PLAN_REGION_INDIRECT)
				give_up(&b, PLAN_EXITS_INDIRECT, 0);
		}
	} while (!fn->why && !b.no_memory && absorb(&b));
	for (unsigned int i = 0; i < b.nr && !fn->why; i++)
		check_ways_in(&b, &k->t->region[b.region[i]]);
	if (b.no_memory || (!fn->why && b.no_cfi && check_depths(&b)))
		return -ENOMEM;
	if (!fn->why)
		return keep(&b);
	forget(&b);
	return 0;
}
