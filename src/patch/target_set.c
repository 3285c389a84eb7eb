/* SPDX-License-Identifier: MIT */
/* From a module's facts to the planner's target set and exits. */
#include "patch/target_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t read_data(void *arg, uint64_t addr, void *buf, size_t len)
{
	return sym_facts_read(arg, addr, buf, len);
}

static bool bare_stack(void *arg, uint64_t pc)
{
	return sym_facts_bare_stack(arg, pc);
}

static bool cfa(void *arg, uint64_t pc, unsigned int *reg, int64_t *off)
{
	return sym_facts_cfa(arg, pc, reg, off);
}

int target_set_module(struct plan_module *m, struct sym_facts *f)
{
	struct plan_code *code = calloc(f->nr_code + 1, sizeof(*code));
	struct plan_bounds *func = calloc(f->nr_funcs + 1, sizeof(*func));
	struct plan_reloc *reloc = calloc(f->nr_relocs + 1, sizeof(*reloc));
	size_t i;

	*m = (struct plan_module){ .code = code,
		                   .nr_code = f->nr_code,
		                   .func = func,
		                   .nr_funcs = f->nr_funcs,
		                   .reloc = reloc,
		                   .nr_relocs = f->nr_relocs,
		                   .extra = f->extra,
		                   .nr_extra = f->nr_extra,
		                   .fixed = f->fixed,
		                   .read = read_data,
		                   .bare_stack = bare_stack,
		                   .arg = f };
	if (!code || !func || !reloc) {
		target_set_module_free(m);
		return -ENOMEM;
	}
	for (i = 0; i < f->nr_code; i++)
		code[i] = (struct plan_code){ f->code[i].addr, f->code[i].bytes, f->code[i].size };
	for (i = 0; i < f->nr_funcs; i++)
		func[i] = (struct plan_bounds){ f->func[i].start, f->func[i].end, f->func[i].part,
			                        f->func[i].named };
	for (i = 0; i < f->nr_relocs; i++)
		reloc[i] = (struct plan_reloc){ f->reloc[i].place, f->reloc[i].target };
	return 0;
}

void target_set_module_free(struct plan_module *m)
{
	free((void *)m->code);
	free((void *)m->func);
	free((void *)m->reloc);
}

struct plan_exits *target_set_exits_of(const struct plan_module *m, const struct plan_targets *t)
{
	const struct sym_facts *f = m->arg;
	struct plan_pad *pad = calloc(f->nr_pads + 1, sizeof(*pad));
	struct plan_exits_request req = {
		.targets = t, .module = m, .pad = pad, .nr_pads = f->nr_pads, .cfa = cfa
	};
	struct plan_exits *exits = NULL;
	size_t i;

	for (i = 0; pad && i < f->nr_pads; i++)
		pad[i] = (struct plan_pad){ f->pad[i].func, f->pad[i].addr };
	if (!pad || plan_exits_new(&exits, &req))
		exits = NULL;
	free(pad);
	return exits;
}

/* What of the two is asked for and not there yet. */
static void compute(struct sym_facts *facts, struct plan_targets **targets,
                    struct plan_exits **exits)
{
	struct plan_module m;

	if (target_set_module(&m, facts))
		return;
	if (!*targets && plan_targets_new(targets, &m))
		*targets = NULL;
	if (exits && *targets)
		*exits = target_set_exits_of(&m, *targets);
	target_set_module_free(&m);
}

struct plan_targets *target_set_make(struct sym_facts *facts)
{
	struct plan_targets *targets = NULL;

	if (!sym_facts_load(facts, NULL))
		compute(facts, &targets, NULL);
	sym_facts_free(facts);
	return targets;
}

/* Where the unwinder goes on, parts of the function may have tables of their own. */
static bool has_pads(const struct sym_facts *f, uint64_t from, uint64_t to)
{
	size_t i;

	for (i = 0; i < f->nr_pads; i++)
		if (f->pad[i].func >= from && f->pad[i].func < to)
			return true;
	return false;
}

static struct plan_targets *near_one(const struct plan_module *m, uint64_t addr)
{
	struct plan_targets *t;
	uint64_t from, to;

	if (plan_targets_near(&t, m, addr))
		return NULL;
	plan_targets_range(t, &from, &to);
	if (!has_pads(m->arg, from, to))
		return t;
	plan_targets_free(t);
	return NULL;
}

void target_set_near(struct sym_facts *facts, const uint64_t *addr, size_t n,
                     struct plan_targets **to, struct plan_targets **whole)
{
	struct plan_module m;
	size_t i;

	*whole = NULL;
	memset(to, 0, n * sizeof(*to));
	if (!sym_facts_load(facts, NULL) && !target_set_module(&m, facts)) {
		for (i = 0; i < n; i++)
			to[i] = near_one(&m, addr[i]);
		for (i = 0; i < n && to[i]; i++)
			;
		if (i < n && plan_targets_new(whole, &m))
			*whole = NULL;
		target_set_module_free(&m);
	}
	sym_facts_free(facts);
}

struct plan_exits *target_set_exits(struct sym_facts *facts, struct plan_targets **targets)
{
	struct plan_exits *exits = NULL;

	if (!sym_facts_load(facts, NULL))
		compute(facts, targets, &exits);
	sym_facts_free(facts);
	return exits;
}
