/* SPDX-License-Identifier: MIT */
/* The exits of all functions of a file, from its facts as the product reads them. */
#ifndef TESTS_PLAN_EXITS_OF_H
#define TESTS_PLAN_EXITS_OF_H

#include "unit/sym/facts_help.h"

#include "patch/target_set.h"

struct exits_of {
	struct sym_facts *facts;
	struct plan_module m;
	struct plan_targets *targets;
	struct plan_exits *x;
};

/* False: no such file. */
HELP bool exits_of(struct exits_of *e, const char *path)
{
	memset(e, 0, sizeof(*e));
	e->facts = facts_of(path);
	if (!e->facts)
		return false;
	assert_int_equal(target_set_module(&e->m, e->facts), 0);
	assert_int_equal(plan_targets_new(&e->targets, &e->m), 0);
	e->x = target_set_exits_of(&e->m, e->targets);
	assert_non_null(e->x);
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
	target_set_module_free(&e->m);
	sym_facts_free(e->facts);
}

#endif
