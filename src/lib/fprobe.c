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
#include <stdlib.h>
#include <string.h>

#include "lib/gather.h"
#include "lib/jump.h"
#include "lib/lib.h"

static struct ukp_fprobe *dead; /* unregistered, calls still on their way */

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
	size_t i;

	for (i = 0; i < f->used; i++)
		exits_free(&f->place[i].how);
	calls_free(&f->calls);
	free(f->place);
	free(f);
}

/* Nobody finds f any more; calls may be on their way. */
static void bury(struct ukp_fprobe *f)
{
	struct ukp_fprobe **q = &dead;
	size_t i = 0;

	while (i < f->used && f->place[i].how.by != PLAN_BY_EXIT)
		i++;
	if (i < f->used)
		exits_forget((uint64_t)f);
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
	site_count_followers(p->site, &p->how, -1);
	site_update(p->site, &ignored);
	exits_unlink(&p->how);
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

static int link_place(struct ukp_fprobe *f, struct found *found, struct err *err)
{
	struct ukp_fplace *p = &f->place[f->used];
	const uint64_t addr = found->addr;
	struct lib_site *s;
	int ret = site_get(addr, false, &s, err);

	if (ret)
		return ret;
	/* The site has what the file has. */
	if (!s->armed && !jump_text_is(addr, s->site->orig, s->site->len))
		return err_set(err, -EINVAL, "the bytes at %#lx differ from the file's", addr);
	f->used++;
	*p = (struct ukp_fplace){ .f = f, .how = found->how };
	found->how = (struct lib_returns){ .nr = 0 };
	ret = exits_link(&p->how, (uint64_t)f, true, err);
	if (ret)
		return ret;
	site_count_followers(s, &p->how, 1);
	p->site = s;
	p->next = s->fprobes;
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
		ret = link_place(f, &g->found[i], err);
		if (ret == -EINVAL && some) {
			gather_refuse(g, "its code in memory is not that of its file");
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

static int register_locked(struct ukp_fprobe **f, struct fprobe *fp, const struct gather_wanted *w,
                           struct err *err)
{
	struct gather g = { .nr = 0 };
	struct sym_proc *sym;
	int ret = check(fp, err);

	if (!ret)
		ret = own_sym(&sym, err);
	if (!ret)
		ret = kprobe_follow_modules(sym, err);
	if (!ret)
		ret = gather(&g, sym, fp, w, err);
	if (!ret) {
		fp->nmissed = 0;
		ret = plant(f, fp, &g, w->filter != NULL, err);
	}
	gather_free(&g);
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

static int register_wanted(struct fprobe *fp, const struct gather_wanted *w)
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
	struct gather_wanted w = { .filter = filter, .notfilter = notfilter };

	if (!fp || !filter)
		return err_set(lib_err(), -EINVAL, "no fprobe or no filter");
	return register_wanted(fp, &w);
}

int register_fprobe_ips(struct fprobe *fp, unsigned long *addrs, int num)
{
	struct gather_wanted w = { .ips = addrs, .num = num };

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
	struct gather_wanted w = { .syms = syms, .num = num };

	if (!fp || !syms || num <= 0)
		return err_set(lib_err(), -EINVAL, "no fprobe or no symbols");
	qsort(syms, (size_t)num, sizeof(*syms), by_name);
	return register_wanted(fp, &w);
}

int ukp_fprobe_mechanism(struct fprobe *fp, unsigned long ip, char *buf, size_t len)
{
	struct err *err = lib_err();
	const struct ukp_fprobe *f;
	size_t i = 0;
	int ret = lib_lock(false, err);

	if (ret)
		return ret;
	f = fprobe_is_registered(fp) ? fp->ukp_fprobe : NULL;
	while (f && i < f->used && (!f->place[i].site || f->place[i].site->addr != ip))
		i++;
	if (!f || i == f->used || !fp->exit_handler)
		ret = err_set(err, -EINVAL, "the fprobe follows no calls of %#lx", ip);
	else
		ret = exits_describe(f->place[i].site, &f->place[i].how, buf, len);
	lib_unlock();
	return ret;
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
