/* SPDX-License-Identifier: MIT */
/*
 * From globs, names and addresses to functions: one survey (patch/survey.h) over
 * all of them, and a second one where calls are followed, for what may be probed
 * but keeps its return address.
 */
#include "lib/gather.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patch/survey.h"

/* A glob, of all modules or one. */
struct filter {
	struct sym_module *module;
	const char *glob;
};

struct gathering {
	struct gather *g;
	struct sym_proc *sym;
	struct survey *entries;
	struct survey *returns; /* NULL: calls aren't followed */
	struct filter not ;     /* glob NULL: none */
	unsigned int flags;
};

static int add(struct gather *g, struct found *f)
{
	if (g->nr == g->room) {
		size_t room = g->room ? g->room * 2 : 64;
		struct found *more = realloc(g->found, room * sizeof(*more));

		if (!more) {
			exits_free(&f->how);
			return -ENOMEM;
		}
		g->found = more;
		g->room = room;
	}
	g->found[g->nr++] = *f;
	return 0;
}

void gather_refuse(struct gather *g, const char *why)
{
	if (!g->refused++)
		snprintf(g->why, sizeof(g->why), "%s", why);
}

/* NULL: f can be probed, and f->how is known.  Good until the next question. */
static const char *refusal(struct gathering *t, struct found *f)
{
	static struct err err;
	const char *why = name_denied_here(t->sym, f->addr), *must = NULL;

	if (!why && t->returns)
		must = survey_check(t->returns, f->addr, NULL);
	/* What return probes may have, others may, too. */
	if (!why && (must || !t->returns))
		why = survey_check(t->entries, f->addr, NULL);
	if (!why && t->returns &&
	    exits_choose(t->sym, f->addr, t->flags, must, t->entries, &f->how, &err))
		why = err.text;
	return why;
}

static bool matches(const struct filter *f, const struct sym_symbol *s)
{
	return f->glob && (!f->module || f->module == s->module) && !fnmatch(f->glob, s->name, 0);
}

static int take_func(const struct sym_symbol *func, void *arg)
{
	struct found f = { .addr = func->addr };
	struct gathering *t = arg;
	const char *why;

	if (func->ifunc || matches(&t->not, func))
		return 0;
	why = refusal(t, &f);
	if (!why)
		return add(t->g, &f);
	gather_refuse(t->g, why);
	return 0;
}

static int parse(struct filter *f, struct sym_proc *sym, const char *text, struct err *err)
{
	const char *colon = strchr(text, ':');
	char *module;

	f->glob = colon ? colon + 1 : text;
	f->module = NULL;
	if (!colon)
		return 0;
	module = strndup(text, (size_t)(colon - text));
	f->module = module ? sym_module_find(sym, module) : NULL;
	free(module);
	return f->module ? 0 : err_set(err, -ENOENT, "no module of '%s' is mapped", text);
}

/* Our own, if it is a library: its functions are called while places change. */
static struct sym_module *ourselves(struct sym_proc *sym)
{
	struct sym_module *m = sym_module_of(sym, (uint64_t)register_fprobe);

	return m && !sym_module_is_exe(m) ? m : NULL;
}

static int by_globs(struct gathering *t, const char *filter, const char *notfilter, struct err *err)
{
	const struct gather *g = t->g;
	struct filter f;
	size_t i;
	int ret = parse(&f, t->sym, filter, err);

	if (!ret && notfilter)
		ret = parse(&t->not, t->sym, notfilter, err);
	for (i = 0; i < sym_nr_modules(t->sym) && !ret; i++) {
		struct sym_module *m = sym_module_at(t->sym, i);

		if (f.module ? m != f.module : m == ourselves(t->sym))
			continue;
		if (sym_for_each_func(t->sym, m, f.glob, take_func, t))
			ret = err_set(err, -ENOMEM, "out of memory");
	}
	if (!ret && !g->nr)
		ret = err_set(err, -EINVAL, "no function matches '%s'%s%s", filter,
		              g->refused ? " and can be probed: " : "", g->why);
	return ret;
}

static int one(struct gathering *t, unsigned long ip, const char *name, struct err *err)
{
	struct found f = { .addr = 0 };
	const char *why;
	bool entry;
	int ret = name_address(t->sym, (kprobe_opcode_t *)ip, name, 0, &f.addr, &entry, err);

	if (ret == -ENOENT && !name)
		err->code = ret = -EINVAL;
	if (ret)
		return ret;
	why = entry ? refusal(t, &f) : "it is no function's entry";
	if (why)
		return err_set(err, -EINVAL, "no fprobe at %#lx: %s", f.addr, why);
	return add(t->g, &f) ? err_set(err, -ENOMEM, "out of memory") : 0;
}

static int by_addr(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* What several names stand for is one function. */
static void sort(struct gather *g)
{
	size_t i, n = 0;

	if (g->nr)
		qsort(g->found, g->nr, sizeof(*g->found), by_addr);
	for (i = 0; i < g->nr; i++)
		if (!n || g->found[n - 1].addr != g->found[i].addr)
			g->found[n++] = g->found[i];
		else
			exits_free(&g->found[i].how);
	g->nr = n;
}

static int open_surveys(struct gathering *t, bool follow)
{
	int ret = survey_open(&t->entries, t->sym, false);

	return !ret && follow ? survey_open(&t->returns, t->sym, true) : ret;
}

int gather(struct gather *g, struct sym_proc *sym, const struct fprobe *fp,
           const struct gather_wanted *w, struct err *err)
{
	struct gathering t = { .g = g, .sym = sym, .flags = fp->flags };
	int i, ret = 0;

	if (open_surveys(&t, fp->exit_handler != NULL))
		ret = err_set(err, -ENOMEM, "out of memory");
	if (!ret && w->filter)
		ret = by_globs(&t, w->filter, w->notfilter, err);
	for (i = 0; i < w->num && !ret; i++)
		ret = one(&t, w->ips ? w->ips[i] : 0, w->syms ? w->syms[i] : NULL, err);
	survey_close(t.entries);
	survey_close(t.returns);
	sort(g);
	return ret;
}

void gather_free(struct gather *g)
{
	size_t i;

	for (i = 0; i < g->nr; i++)
		exits_free(&g->found[i].how);
	free(g->found);
}
