/* SPDX-License-Identifier: MIT */
/* All functions of a module, one after the other, and what is kept of them. */
#include "plan/exits_in.h"

#include <errno.h>
#include <stdlib.h>

const char *plan_exits_reason(enum plan_exits_why why)
{
	switch (why) {
	case PLAN_EXITS_OK:
		return "all exits are known";
	case PLAN_EXITS_BROKEN:
		return "it can't be decoded throughout";
	case PLAN_EXITS_OVERLAP:
		return "its bounds and another function's overlap";
	case PLAN_EXITS_INDIRECT:
		return "it has an indirect jump whose targets aren't known";
	case PLAN_EXITS_LABEL:
		return "the address of a place inside of it is kept somewhere";
	case PLAN_EXITS_ENTERED:
		return "other code enters it behind its start";
	case PLAN_EXITS_SHARES:
		return "it goes on in the middle of another function";
	case PLAN_EXITS_FALLS:
		return "it runs into what follows it";
	case PLAN_EXITS_NO_CFI:
		return "it leaves where nothing tells what is on the stack";
	case PLAN_EXITS_DEPTH:
		return "it leaves with another stack depth than it was entered with";
	case PLAN_EXITS_FAR:
		return "it has a far or interrupt return";
	case PLAN_EXITS_EFFORT:
		return "its module has too many parts that functions share";
	case PLAN_EXITS_NONE:
		return "it never comes back";
	case PLAN_EXITS_REASONS:
		break;
	}
	return "unknown reason";
}

static bool in_order(const struct plan_exits_request *req)
{
	for (size_t i = 1; i < req->nr_pads; i++)
		if (req->pad[i].func < req->pad[i - 1].func)
			return false;
	return true;
}

/* Does another function begin or end within the region? */
static bool is_shared(const struct plan_module *m, const struct plan_bounds *f,
                      const struct plan_region *r)
{
	return f->start != r->start || (f + 1 < m->func + m->nr_funcs && f[1].start < r->end);
}

static int all_functions(struct exits_maker *k)
{
	const struct plan_module *m = k->m;
	struct plan_exits *x = k->x;
	int r = 0;

	x->fn = calloc(m->nr_funcs ? m->nr_funcs : 1, sizeof(*x->fn));
	if (!x->fn)
		return -ENOMEM;
	for (size_t i = 0; i < m->nr_funcs && !r; i++) {
		const struct plan_bounds *f = &m->func[i];
		const size_t region = exits_region(k->t, f->start);
		struct plan_function *fn = &x->fn[x->nr_fns];

		if (f->part || region == SIZE_MAX || f->end <= f->start ||
		    (x->nr_fns && fn[-1].start == f->start))
			continue;
		fn->start = fn->entry = f->start;
		x->nr_fns++;
		if (is_shared(m, f, &k->t->region[region]))
			fn->why = PLAN_EXITS_OVERLAP;
		else
			r = exits_function(k, fn, region);
	}
	return r;
}

int plan_exits_new(struct plan_exits **ret, const struct plan_exits_request *req)
{
	struct exits_maker k = { .req = req, .t = req->targets, .m = req->module };
	int r;

	*ret = NULL;
	if (!in_order(req))
		return -EINVAL;
	for (size_t i = 0; i < k.m->nr_code; i++)
		k.effort += 16 * (uint64_t)k.m->code[i].size;
	k.x = calloc(1, sizeof(*k.x));
	r = k.x ? exits_index(&k) : -ENOMEM;
	if (!r)
		r = all_functions(&k);
	free(k.in);
	if (r)
		plan_exits_free(k.x);
	else
		*ret = k.x;
	return r;
}

void plan_exits_free(struct plan_exits *x)
{
	if (!x)
		return;
	free(x->fn);
	free(x->way);
	free(x->range);
	free(x);
}

const struct plan_function *plan_exits_all(const struct plan_exits *x, size_t *n)
{
	*n = x->nr_fns;
	return x->fn;
}

const struct plan_function *plan_exits_find(const struct plan_exits *x, uint64_t start)
{
	size_t low = 0, high = x->nr_fns;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (x->fn[mid].start < start)
			low = mid + 1;
		else
			high = mid;
	}
	return low < x->nr_fns && x->fn[low].start == start ? &x->fn[low] : NULL;
}

const struct plan_way_out *plan_exits_ways(const struct plan_exits *x,
                                           const struct plan_function *fn)
{
	return fn->nr_exits ? x->way + fn->first : NULL;
}

const struct plan_range *plan_exits_body(const struct plan_exits *x, const struct plan_function *fn)
{
	return fn->nr_ranges ? x->range + fn->first_range : NULL;
}

size_t plan_exits_bytes(const struct plan_exits *x)
{
	return sizeof(*x) + x->nr_fns * sizeof(*x->fn) + x->room_ways * sizeof(*x->way) +
	       x->room_ranges * sizeof(*x->range);
}
