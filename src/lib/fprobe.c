/* SPDX-License-Identifier: MIT */
/*
 * fprobes: one struct ukp_fprobe with a place in the list of each site.
 *
 * Thousands at once stay linear: one look at the mappings, one survey
 * (patch/survey.h), one batch of writes.  Handlers start with the last place:
 * until then the fprobe's places are there and lead to nothing.
 */
#include "lib/hit/fprobe.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "lib/jump.h"
#include "lib/lib.h"
#include "patch/survey.h"

static struct ukp_fprobe *dead; /* unregistered, calls still on their way */

/* A glob, of all modules or one. */
struct filter {
	struct sym_module *module;
	const char *glob;
};

struct gather {
	struct sym_proc *sym;
	struct survey *survey;
	struct filter not ; /* glob NULL: none */
	uint64_t *addr;
	size_t nr, room;
	size_t refused;
	const char *why; /* of the first refused */
};

static bool is_registered(const struct fprobe *fp)
{
	const struct ukp_fprobe *f = __atomic_load_n(&fp->ukp_fprobe, __ATOMIC_ACQUIRE);

	return f && __atomic_load_n(&f->fp, __ATOMIC_RELAXED) == fp;
}

bool fprobe_is_registered(struct fprobe *fp)
{
	return fp && is_registered(fp);
}

size_t ukp_fprobe_functions(struct fprobe *fp)
{
	return fprobe_is_registered(fp) ? fp->ukp_fprobe->nr : 0;
}

static void free_fprobe(struct ukp_fprobe *f)
{
	calls_free(&f->calls);
	free(f->place);
	free(f);
}

/* Nobody finds f any more; calls may be on their way. */
static void bury(struct ukp_fprobe *f)
{
	struct ukp_fprobe **q = &dead;

	f->next_dead = dead;
	dead = f;
	while ((f = *q)) {
		/* Acquire: whoever was last is done with it. */
		if (__atomic_load_n(&f->calls.active, __ATOMIC_ACQUIRE)) {
			q = &f->next_dead;
			continue;
		}
		*q = f->next_dead;
		free_fprobe(f);
	}
}

/* --- which functions ---------------------------------------------------------- */

static int add(struct gather *g, uint64_t addr)
{
	if (g->nr == g->room) {
		size_t room = g->room ? g->room * 2 : 64;
		uint64_t *more = realloc(g->addr, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		g->addr = more;
		g->room = room;
	}
	g->addr[g->nr++] = addr;
	return 0;
}

static void refuse(struct gather *g, const char *why)
{
	if (!g->refused++)
		g->why = why;
}

static const char *refusal(struct gather *g, uint64_t addr)
{
	const char *why = name_denied_here(g->sym, addr);

	return why ? why : survey_check(g->survey, addr);
}

static bool matches(const struct filter *f, const struct sym_symbol *s)
{
	return f->glob && (!f->module || f->module == s->module) && !fnmatch(f->glob, s->name, 0);
}

static int take_func(const struct sym_symbol *func, void *arg)
{
	struct gather *g = arg;
	const char *why;

	if (func->ifunc || matches(&g->not, func))
		return 0;
	why = refusal(g, func->addr);
	if (!why)
		return add(g, func->addr);
	refuse(g, why);
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

static int gather_globs(struct gather *g, const char *filter, const char *notfilter,
                        struct err *err)
{
	struct filter f;
	size_t i;
	int ret = parse(&f, g->sym, filter, err);

	if (!ret && notfilter)
		ret = parse(&g->not, g->sym, notfilter, err);
	for (i = 0; i < sym_nr_modules(g->sym) && !ret; i++) {
		struct sym_module *m = sym_module_at(g->sym, i);

		if (f.module ? m != f.module : m == ourselves(g->sym))
			continue;
		if (sym_for_each_func(g->sym, m, f.glob, take_func, g))
			ret = err_set(err, -ENOMEM, "out of memory");
	}
	if (!ret && !g->nr)
		ret = err_set(err, -EINVAL, "no function matches '%s'%s%s", filter,
		              g->refused ? " and can be probed: " : "", g->refused ? g->why : "");
	return ret;
}

static int gather_one(struct gather *g, unsigned long ip, const char *name, struct err *err)
{
	uint64_t addr;
	const char *why;
	bool entry;
	int ret = name_address(g->sym, (kprobe_opcode_t *)ip, name, 0, &addr, &entry, err);

	if (ret == -ENOENT && !name)
		err->code = ret = -EINVAL;
	if (ret)
		return ret;
	why = entry ? refusal(g, addr) : "it is no function's entry";
	if (why)
		return err_set(err, -EINVAL, "no fprobe at %#lx: %s", addr, why);
	return add(g, addr) ? err_set(err, -ENOMEM, "out of memory") : 0;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* What several names stand for is one function. */
static void sort(struct gather *g)
{
	size_t i, n = 0;

	qsort(g->addr, g->nr, sizeof(*g->addr), by_value);
	for (i = 0; i < g->nr; i++)
		if (!n || g->addr[n - 1] != g->addr[i])
			g->addr[n++] = g->addr[i];
	g->nr = n;
}

/* --- planting ------------------------------------------------------------------- */

static void unlink_place(struct ukp_fplace *p)
{
	struct err ignored = ERR_INIT;
	struct ukp_fplace **q;

	if (!p->site)
		return;
	for (q = &p->site->fprobes; *q != p; q = &(*q)->next)
		;
	/* A thread that is at p still finds its way to the next. */
	__atomic_store_n(q, p->next, __ATOMIC_RELEASE);
	site_update(p->site, &ignored);
	p->site = NULL;
}

static void unlink_all(struct ukp_fprobe *f)
{
	size_t i;

	own_batch_begin();
	for (i = 0; i < f->used; i++)
		unlink_place(&f->place[i]);
	own_batch_end();
}

static int link_place(struct ukp_fprobe *f, uint64_t addr, struct err *err)
{
	struct ukp_fplace *p = &f->place[f->used];
	struct lib_site *s;
	int ret = site_get(addr, false, &s, err);

	if (ret)
		return ret;
	/* The site has what the file has. */
	if (!s->armed && !jump_text_is(addr, s->site->orig, s->site->len))
		return err_set(err, -EINVAL, "the bytes at %#lx differ from the file's", addr);
	f->used++;
	*p = (struct ukp_fplace){ .next = s->fprobes, .f = f, .site = s };
	__atomic_store_n(&s->fprobes, p, __ATOMIC_RELEASE);
	ret = site_update(s, err);
	if (ret)
		unlink_place(p);
	else
		f->nr++;
	return ret;
}

static int new_fprobe(struct ukp_fprobe **ret, const struct fprobe *fp, size_t places)
{
	struct ukp_fprobe *f = calloc(1, sizeof(*f));

	*ret = f;
	if (!f)
		return -ENOMEM;
	f->place = calloc(places, sizeof(*f->place));
	if (f->place &&
	    !calls_init(&f->calls, fp->exit_handler ? fp->entry_data_size : 0, fp->nr_maxactive))
		return 0;
	free(f->place);
	free(f);
	return -ENOMEM;
}

/* some: what can't be had is left out.  On failure *ret_f may still be to be buried. */
static int plant(struct ukp_fprobe **ret_f, struct fprobe *fp, struct gather *g, bool some,
                 struct err *err)
{
	struct ukp_fprobe *f;
	size_t i;
	int ret = 0;

	if (new_fprobe(&f, fp, g->nr))
		return err_set(err, -ENOMEM, "out of memory");
	*ret_f = f;
	own_batch_begin();
	for (i = 0; i < g->nr && !ret; i++) {
		ret = link_place(f, g->addr[i], err);
		if (ret == -EINVAL && some) {
			refuse(g, "its code in memory is not that of its file");
			ret = 0;
		}
	}
	own_batch_end();
	if (!ret && !f->nr)
		ret = err_set(err, -EINVAL, "no function can be probed: %s", g->why);
	if (ret) {
		unlink_all(f);
		return ret;
	}
	if (g->refused)
		err_set(err, 0, "%zu functions can't be probed; the first: %s", g->refused, g->why);
	else
		err->text[0] = 0;
	/* From here on handlers run. */
	__atomic_store_n(&f->fp, fp, __ATOMIC_RELEASE);
	__atomic_store_n(&fp->ukp_fprobe, f, __ATOMIC_RELEASE);
	return 0;
}

static int check(const struct fprobe *fp, struct err *err)
{
	if (is_registered(fp))
		return err_set(err, -EEXIST, "the fprobe is registered already");
	if (fp->nr_maxactive < 0)
		return err_set(err, -EINVAL, "nr_maxactive is negative");
	if (fp->entry_data_size > FPROBE_MAX_DATA_SIZE)
		return err_set(err, -E2BIG, "entry_data_size is more than %d",
		               FPROBE_MAX_DATA_SIZE);
	return 0;
}

/* What is to be probed: two globs, or num addresses or names. */
struct wanted {
	const char *filter, *notfilter;
	const unsigned long *ips;
	const char **syms;
	int num;
};

static int gather(struct gather *g, const struct fprobe *fp, const struct wanted *w,
                  struct err *err)
{
	int i, ret = 0;

	if (survey_open(&g->survey, g->sym, fp->exit_handler != NULL))
		return err_set(err, -ENOMEM, "out of memory");
	if (w->filter)
		ret = gather_globs(g, w->filter, w->notfilter, err);
	for (i = 0; i < w->num && !ret; i++)
		ret = gather_one(g, w->ips ? w->ips[i] : 0, w->syms ? w->syms[i] : NULL, err);
	survey_close(g->survey);
	if (!ret)
		sort(g);
	return ret;
}

static int register_locked(struct ukp_fprobe **f, struct fprobe *fp, const struct wanted *w,
                           struct err *err)
{
	struct gather g = { .nr = 0 };
	int ret = check(fp, err);

	if (!ret)
		ret = own_sym(&g.sym, err);
	if (!ret)
		ret = kprobe_follow_modules(g.sym, err);
	if (!ret)
		ret = gather(&g, fp, w, err);
	if (!ret) {
		fp->nmissed = 0;
		ret = plant(f, fp, &g, w->filter != NULL, err);
	}
	free(g.addr);
	return ret;
}

/* Waits for who may have found f in a list. */
static void wait_and_bury(struct ukp_fprobe *f)
{
	struct err ignored = ERR_INIT;

	lib_wait();
	/* In a child that was forked meanwhile it stays. */
	if (lib_lock(true, &ignored))
		return;
	bury(f);
	lib_unlock();
}

static int register_wanted(struct fprobe *fp, const struct wanted *w)
{
	struct err *err = lib_err();
	struct ukp_fprobe *f = NULL;
	int i, ret = 0;

	for (i = 0; w->syms && i < w->num && !ret; i++)
		ret = name_bind(w->syms[i], err);
	if (!ret)
		ret = lib_lock(false, err);
	if (ret)
		return ret;
	ret = register_locked(&f, fp, w, err);
	lib_unlock();
	if (ret && f)
		wait_and_bury(f);
	return ret;
}

int register_fprobe(struct fprobe *fp, const char *filter, const char *notfilter)
{
	struct wanted w = { .filter = filter, .notfilter = notfilter };

	if (!fp || !filter)
		return err_set(lib_err(), -EINVAL, "no fprobe or no filter");
	return register_wanted(fp, &w);
}

int register_fprobe_ips(struct fprobe *fp, unsigned long *addrs, int num)
{
	struct wanted w = { .ips = addrs, .num = num };

	if (!fp || !addrs || num <= 0)
		return err_set(lib_err(), -EINVAL, "no fprobe or no addresses");
	return register_wanted(fp, &w);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int register_fprobe_syms(struct fprobe *fp, const char **syms, int num)
{
	struct wanted w = { .syms = syms, .num = num };

	if (!fp || !syms || num <= 0)
		return err_set(lib_err(), -EINVAL, "no fprobe or no symbols");
	qsort(syms, (size_t)num, sizeof(*syms), by_name);
	return register_wanted(fp, &w);
}

int unregister_fprobe(struct fprobe *fp)
{
	struct err *err = lib_err();
	struct ukp_fprobe *f;
	int ret = lib_lock(true, err);

	if (ret)
		return ret;
	if (!fp || !is_registered(fp)) {
		lib_unlock();
		return err_set(err, -EINVAL, "the fprobe is not registered");
	}
	f = fp->ukp_fprobe;
	__atomic_store_n(&f->fp, NULL, __ATOMIC_RELEASE);
	__atomic_store_n(&fp->ukp_fprobe, NULL, __ATOMIC_RELEASE);
	unlink_all(f);
	lib_unlock();
	/* From a handler there is no waiting: f is kept for ever. */
	if (!lib_in_handler())
		wait_and_bury(f);
	return 0;
}
