/* SPDX-License-Identifier: MIT */
/*
 * Definitions that mean many places: the functions that a glob matches, or their
 * code, of which each instruction is meant.
 *
 * Errors of f are fprobe's: what matches nothing is -EINVAL, "Failed to
 * register probe event".
 */
#include "lang/private.h"

#include <string.h>

struct walk {
	lang_func_fn fn;
	void *arg;
	const struct sym_module *module;
	uint64_t last; /* address: symbols come by address, aliases follow each other */
	size_t nr;
};

static int on_func(const struct sym_symbol *func, void *arg)
{
	struct walk *w = arg;

	if (w->nr && w->module == func->module && w->last == func->addr)
		return 0;
	w->module = func->module;
	w->last = func->addr;
	w->nr++;
	return w->fn(func, w->arg);
}

static int no_match(const struct lang_place *pl, struct sym_proc *proc, struct sym_module *m,
                    struct err *err)
{
	char list[512] = "";

	if (!strpbrk(pl->sym, "*?["))
		lang_near(proc, m, pl->sym, list, sizeof(list));
	return lang_fail(err, -EINVAL, LANG_FAIL_REG_PROBE, pl->column,
	                 "no function %s '%.128s'%s%.128s%s",
	                 strpbrk(pl->sym, "*?[") ? "matches" : "is called", pl->sym,
	                 m ? " in " : "", m ? sym_module_name(m) : "", list);
}

bool lang_is_glob(const struct lang_def *def)
{
	return def->many == LANG_FUNCS ||
	       (def->many == LANG_INSNS && strpbrk(def->place.sym, "*?["));
}

int lang_resolve_all(const struct lang_def *def, struct sym_proc *proc, lang_func_fn fn, void *arg,
                     struct err *err)
{
	const struct lang_place *pl = &def->place;
	struct walk w = { .fn = fn, .arg = arg };
	struct sym_symbol func;
	struct sym_module *m;
	uint64_t addr;
	int ret;

	if (!lang_is_glob(def)) {
		ret = lang_resolve(def, proc, &addr, &func, err);
		return ret ? ret : fn(&func, arg);
	}
	ret = lang_find_module(pl, proc, &m, err);
	if (!ret)
		ret = strcmp(pl->sym, "*") ? sym_for_each_func(proc, m, pl->sym, on_func, &w)
		                           : sym_for_each_entry(proc, m, on_func, &w);
	return ret || w.nr ? ret : no_match(pl, proc, m, err);
}

struct ranges {
	lang_code_fn fn;
	void *arg;
	const struct sym_module *module;
	uint64_t upto;
	size_t nr;
};

static int on_range(uint64_t start, uint64_t end, void *arg)
{
	struct ranges *r = arg;

	r->nr++;
	return r->fn(start, end, r->arg);
}

/* Functions may overlap; each byte is handed on once. */
static int on_code(const struct sym_symbol *func, void *arg)
{
	uint64_t start = func->addr, end = func->addr + func->size;
	struct ranges *r = arg;

	if (r->module != func->module)
		r->upto = 0;
	r->module = func->module;
	if (!func->size)
		end = start + 1; /* at least the first instruction */
	if (start < r->upto)
		start = r->upto;
	if (start >= end)
		return 0;
	r->upto = end;
	return on_range(start, end, arg);
}

int lang_resolve_code(const struct lang_def *def, struct sym_proc *proc, lang_code_fn fn, void *arg,
                      struct err *err)
{
	const struct lang_place *pl = &def->place;
	struct ranges r = { .fn = fn, .arg = arg };
	struct sym_module *m;
	int ret;

	if (!lang_is_glob(def) || strcmp(pl->sym, "*"))
		return lang_resolve_all(def, proc, on_code, &r, err);
	ret = lang_find_module(pl, proc, &m, err);
	if (!ret)
		ret = sym_for_each_range(proc, m, on_range, &r);
	return ret || r.nr ? ret : no_match(pl, proc, m, err);
}

const char *lang_no_entry(const struct lang_def *def, const struct sym_symbol *func)
{
	/* An unwinder's own functions have no names, mostly, and would read ours. */
	if (def->ret && !*func->name)
		return "it has no name, and may be one that looks at its return address";
	if (func->ifunc)
		return "it only chooses an implementation when it is bound";
	if (lang_is_cold(func->name))
		return "it is a part of a function that is jumped to";
	return NULL;
}
