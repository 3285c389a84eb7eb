/* SPDX-License-Identifier: MIT */
/* From a module's facts to the planner's target set. */
#include "patch/target_set.h"

#include <stdlib.h>

static size_t read_data(void *arg, uint64_t addr, void *buf, size_t len)
{
	return sym_facts_read(arg, addr, buf, len);
}

static bool bare_stack(void *arg, uint64_t pc)
{
	return sym_facts_bare_stack(arg, pc);
}

static struct plan_targets *compute(struct sym_facts *f)
{
	struct plan_module pm = { .nr_code = f->nr_code,
		                  .nr_funcs = f->nr_funcs,
		                  .nr_relocs = f->nr_relocs,
		                  .extra = f->extra,
		                  .nr_extra = f->nr_extra,
		                  .fixed = f->fixed,
		                  .read = read_data,
		                  .bare_stack = bare_stack,
		                  .arg = f };
	struct plan_code *code = calloc(f->nr_code + 1, sizeof(*code));
	struct plan_bounds *func = calloc(f->nr_funcs + 1, sizeof(*func));
	struct plan_reloc *reloc = calloc(f->nr_relocs + 1, sizeof(*reloc));
	struct plan_targets *targets = NULL;
	size_t i;

	if (code && func && reloc) {
		for (i = 0; i < f->nr_code; i++)
			code[i] = (struct plan_code){ f->code[i].addr, f->code[i].bytes,
				                      f->code[i].size };
		for (i = 0; i < f->nr_funcs; i++)
			func[i] = (struct plan_bounds){ f->func[i].start, f->func[i].end,
				                        f->func[i].part, f->func[i].named };
		for (i = 0; i < f->nr_relocs; i++)
			reloc[i] = (struct plan_reloc){ f->reloc[i].place, f->reloc[i].target };
		pm.code = code;
		pm.func = func;
		pm.reloc = reloc;
		if (plan_targets_new(&targets, &pm))
			targets = NULL;
	}
	free(code);
	free(func);
	free(reloc);
	return targets;
}

struct plan_targets *target_set_make(struct sym_facts *facts)
{
	struct plan_targets *targets = NULL;

	if (!sym_facts_load(facts, NULL))
		targets = compute(facts);
	sym_facts_free(facts);
	return targets;
}
