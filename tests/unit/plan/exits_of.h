/* SPDX-License-Identifier: MIT */
/* The exits of all functions of a file, from its facts as the product reads them. */
#ifndef TESTS_PLAN_EXITS_OF_H
#define TESTS_PLAN_EXITS_OF_H

#include "unit/sym/facts_help.h"

#include "plan/exits.h"

struct exits_of {
	struct sym_facts *facts;
	struct plan_module m;
	struct plan_targets *targets;
	struct plan_exits *x;
};

HELP size_t exits_read(void *arg, uint64_t addr, void *buf, size_t len)
{
	return sym_facts_read(arg, addr, buf, len);
}

HELP bool exits_bare(void *arg, uint64_t pc)
{
	return sym_facts_bare_stack(arg, pc);
}

HELP bool exits_cfa(void *arg, uint64_t pc, unsigned int *reg, int64_t *off)
{
	return sym_facts_cfa(arg, pc, reg, off);
}

/* The facts' arrays have the planner's layout but not its types. */
#define EXITS_COPY(to, from, n, ...)                                                    \
	do {                                                                            \
		(to) = calloc((n) + 1, sizeof(*(to)));                                  \
		assert_non_null(to);                                                    \
		for (size_t i = 0; i < (n); i++)                                        \
			memcpy((void *)&(to)[i], &(from)[i], sizeof((to)[i]));          \
		_Static_assert(sizeof((to)[0]) == sizeof((from)[0]), "another layout"); \
	} while (0)

/* False: no such file. */
HELP bool exits_of(struct exits_of *e, const char *path)
{
	struct plan_code *code;
	struct plan_bounds *func;
	struct plan_reloc *reloc;
	struct plan_pad *pad;
	struct plan_exits_request req = { .cfa = exits_cfa };

	memset(e, 0, sizeof(*e));
	e->facts = facts_of(path);
	if (!e->facts)
		return false;
	EXITS_COPY(code, e->facts->code, e->facts->nr_code);
	EXITS_COPY(func, e->facts->func, e->facts->nr_funcs);
	EXITS_COPY(reloc, e->facts->reloc, e->facts->nr_relocs);
	EXITS_COPY(pad, e->facts->pad, e->facts->nr_pads);
	e->m = (struct plan_module){
		.code = code,
		.nr_code = e->facts->nr_code,
		.func = func,
		.nr_funcs = e->facts->nr_funcs,
		.reloc = reloc,
		.nr_relocs = e->facts->nr_relocs,
		.extra = e->facts->extra,
		.nr_extra = e->facts->nr_extra,
		.fixed = e->facts->fixed,
		.read = exits_read,
		.bare_stack = exits_bare,
		.arg = e->facts,
	};
	assert_int_equal(plan_targets_new(&e->targets, &e->m), 0);
	req.targets = e->targets;
	req.module = &e->m;
	req.pad = pad;
	req.nr_pads = e->facts->nr_pads;
	assert_int_equal(plan_exits_new(&e->x, &req), 0);
	free(pad);
	return true;
}

/* enum plan_window_why of a jump at a function's start */
HELP uint8_t exits_entry(const struct exits_of *e, uint64_t addr)
{
	struct plan_window_request req = { .targets = e->targets, .addr = addr };
	struct plan_window w;

	for (size_t i = 0; i < e->m.nr_code; i++) {
		const struct plan_code *c = &e->m.code[i];

		if (addr - c->addr >= c->size)
			continue;
		req.code = c->bytes + (addr - c->addr);
		req.avail = c->size - (size_t)(addr - c->addr);
		if (req.avail > PLAN_WINDOW_MAX)
			req.avail = PLAN_WINDOW_MAX;
	}
	plan_window(&req, &w);
	return w.why;
}

HELP void exits_done(struct exits_of *e)
{
	plan_exits_free(e->x);
	plan_targets_free(e->targets);
	free((void *)e->m.code);
	free((void *)e->m.func);
	free((void *)e->m.reloc);
	sym_facts_free(e->facts);
}

#endif
