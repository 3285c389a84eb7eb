/* SPDX-License-Identifier: MIT */
/*
 * All that may enter a function of a module elsewhere than at its start, in one
 * pass over its text.  Jumps within a region are left out: they are the
 * function's own.
 */
#include "plan/exits_in.h"

#include <errno.h>
#include <stdlib.h>

#include "base/pause.h"

size_t exits_region(const struct plan_targets *t, uint64_t addr)
{
	const struct plan_region *r = plan_targets_region(t, addr);

	return r ? (size_t)(r - t->region) : SIZE_MAX;
}

const uint8_t *exits_code(const struct plan_module *m, uint64_t addr, size_t *avail)
{
	size_t low = 0, high = m->nr_code;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (addr >= m->code[mid].addr + m->code[mid].size)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == m->nr_code || addr < m->code[low].addr)
		return NULL;
	*avail = m->code[low].size - (size_t)(addr - m->code[low].addr);
	return m->code[low].bytes + (addr - m->code[low].addr);
}

bool exits_is_start(const struct plan_module *m, uint64_t addr)
{
	const struct plan_bounds *f = bounds_at(m, addr);

	return f && !f->part;
}

static int add(struct exits_maker *k, enum way_in_kind kind, uint64_t from, uint64_t target)
{
	const struct plan_bounds *f = bounds_at(k->m, target);

	if (!plan_targets_region(k->t, target) || (f && !f->part && f->named))
		return 0;
	if (k->nr_in == k->room_in) {
		size_t room = k->room_in ? 2 * k->room_in : 256;
		struct way_in *grown = realloc(k->in, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		k->in = grown;
		k->room_in = room;
	}
	k->in[k->nr_in++] = (struct way_in){ target, from, (uint8_t)kind };
	return 0;
}

static int note_step(struct exits_maker *k, const struct step *s, size_t region)
{
	int r = 0;

	if (s->made)
		r = add(k, WAY_IN_ADDRESS, s->addr, s->made);
	if (!r && s->kind == STEP_CALL)
		r = add(k, WAY_IN_CALL, s->addr, s->target);
	if (!r && (s->kind == STEP_JUMP || s->kind == STEP_BRANCH) &&
	    (region == SIZE_MAX || exits_region(k->t, s->target) != region))
		r = add(k, WAY_IN_JUMP, s->addr, s->target);
	return r;
}

/* region: SIZE_MAX for code that belongs to none */
static int note_run(struct exits_maker *k, uint64_t start, uint64_t end, size_t region)
{
	struct step_memory mem = { 0 };
	const uint8_t *code;
	size_t avail;
	int r = 0;

	if (start >= end)
		return 0;
	code = exits_code(k->m, start, &avail);
	for (uint64_t at = start; code && at < end && !r;) {
		struct step s;

		if (!exits_step(code + (at - start), (size_t)(end - at), at, k->m->fixed, &mem,
		                &s)) {
			at++;
			continue;
		}
		r = note_step(k, &s, region);
		at += s.len;
	}
	return r;
}

static int by_target(const void *a, const void *b)
{
	const struct way_in *x = a, *y = b;

	pause_point();
	if (x->target != y->target)
		return x->target < y->target ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

int exits_index(struct exits_maker *k)
{
	const struct plan_module *m = k->m;
	size_t g = 0;
	int r = 0;

	for (size_t i = 0; i < m->nr_code && !r; i++) {
		uint64_t at = m->code[i].addr, end = at + m->code[i].size;

		for (; g < k->t->nr_regions && k->t->region[g].start < end && !r; g++) {
			const struct plan_region *here = &k->t->region[g];

			r = note_run(k, at, here->start, SIZE_MAX);
			if (!r)
				r = note_run(k, here->start, here->end, g);
			at = here->end;
		}
		if (!r)
			r = note_run(k, at, end, SIZE_MAX);
	}
	for (size_t i = 0; i < m->nr_relocs && !r; i++)
		r = add(k, WAY_IN_DATA, m->reloc[i].place, m->reloc[i].target);
	for (size_t i = 0; i < k->req->nr_pads && !r; i++)
		r = add(k, WAY_IN_PAD, k->req->pad[i].func, k->req->pad[i].addr);
	if (!r && k->nr_in)
		qsort(k->in, k->nr_in, sizeof(*k->in), by_target);
	return r;
}

size_t exits_index_find(const struct exits_maker *k, uint64_t addr)
{
	size_t low = 0, high = k->nr_in;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (k->in[mid].target < addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}
