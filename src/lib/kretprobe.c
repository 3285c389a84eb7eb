/* SPDX-License-Identifier: MIT */
/*
 * kretprobes: a kprobe at an entry whose work is to hook the return.
 *
 * Calls on their way point to a struct ukp_kret, which therefore outlives its
 * kretprobe until the last of them is back; then the next registration or
 * unregistration frees it.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/lib.h"
#include "patch/deny.h"

static struct ukp_kret *dead;   /* unregistered, calls still on their way */
static struct ukp_kret *failed; /* of a registration: a thread may be at its exits */

static void free_kret(struct ukp_kret *k)
{
	if (k) {
		calls_free(&k->calls);
		exits_free(&k->how);
	}
	free(k);
}

/* Called after lib_wait(): no entry can make another call active. */
static void reap(void)
{
	struct ukp_kret **q = &dead, *k;

	while ((k = *q)) {
		/* Acquire: whoever was last is done with it. */
		if (__atomic_load_n(&k->calls.active, __ATOMIC_ACQUIRE)) {
			q = &k->next_dead;
			continue;
		}
		*q = k->next_dead;
		free_kret(k);
	}
}

static struct ukp_kret *new_kret(struct kretprobe *rp, const struct lib_returns *how)
{
	struct ukp_kret *k = calloc(1, sizeof(*k));

	if (k && calls_init(&k->calls, sizeof(struct kretprobe_instance) + rp->data_size,
	                    rp->maxactive)) {
		free(k);
		return NULL;
	}
	if (k) {
		k->rp = k->of = rp;
		k->how = *how;
	}
	return k;
}

/* The checks that come before those of a kprobe. */
static int check(struct kretprobe *rp, struct sym_proc *sym, bool checked, struct lib_returns *how,
                 struct err *err)
{
	const struct lib_site *s;
	const char *denied;
	struct err why;
	bool entry;
	uint64_t addr;
	int ret;

	ret = name_address(sym, rp->kp.addr, rp->kp.symbol_name, rp->kp.offset, &addr, &entry, err);
	if (ret)
		return ret;
	if (!entry)
		return err_set(err, -EINVAL, "%#lx is no function's entry", addr);
	s = site_find(addr);
	if (s && site_has(s, &rp->kp))
		return err_set(err, -EINVAL, "the probe is registered already");
	denied = checked ? NULL : deny_check(sym, addr, false, NULL);
	if (denied)
		return kprobe_refuse(&rp->kp, addr, denied, err);
	denied = checked ? NULL : deny_check(sym, addr, true, NULL);
	ret = exits_choose(sym, addr, rp->kp.flags, denied, NULL, how, &why);
	if (ret)
		return ret == -EINVAL ? kprobe_refuse(&rp->kp, addr, why.text, err)
		                      : err_set(err, ret, "%s", why.text);
	if (rp->data_size > KRETPROBE_MAX_DATA_SIZE) {
		exits_free(how);
		return err_set(err, -E2BIG, "data_size is more than %d", KRETPROBE_MAX_DATA_SIZE);
	}
	return 0;
}

/* The exits first: of a call that is followed, none may be missed. */
static int plant(struct kretprobe *rp, struct sym_proc *sym, bool checked, struct err *err)
{
	struct ukp_kret *k = rp->kp.ukp_ret;
	struct err why;
	int ret = 0;

	if (k->how.nr)
		ret = kprobe_follow_modules(sym, err);
	if (!ret)
		ret = exits_link(&k->how, (uint64_t)k, false, err);
	if (ret)
		return ret;
	ret = kprobe_register_locked(&rp->kp, sym, checked, err);
	if (ret) {
		why = *err;
		exits_unlink(&k->how);
		*err = why;
	}
	return ret;
}

static int register_locked(struct kretprobe *rp, struct sym_proc *sym, bool checked,
                           struct err *err)
{
	struct lib_returns how;
	int ret;

	if (!rp->kp.addr == !rp->kp.symbol_name)
		return err_set(err, -EINVAL, "exactly one of addr and symbol_name must be set");
	ret = check(rp, sym, checked, &how, err);
	if (ret)
		return ret;
	rp->kp.pre_handler = NULL;
	rp->kp.post_handler = NULL;
	rp->nmissed = 0;
	rp->kp.ukp_ret = new_kret(rp, &how);
	if (!rp->kp.ukp_ret) {
		exits_free(&how);
		return err_set(err, -ENOMEM, "out of memory");
	}
	ret = plant(rp, sym, checked, err);
	if (ret) {
		rp->kp.ukp_ret->rp = NULL;
		rp->kp.ukp_ret->next_dead = failed;
		failed = rp->kp.ukp_ret;
		rp->kp.ukp_ret = NULL;
	}
	return ret;
}

static void unlink_all(struct kretprobe **rps, int num)
{
	int i;

	for (i = 0; i < num; i++) {
		struct ukp_kret *k = rps[i]->kp.ukp_ret;

		if (!kprobe_unlink_locked(&rps[i]->kp)) {
			rps[i]->kp.addr = NULL;
			continue;
		}
		/* First: a call without its exit would count as one that was left. */
		__atomic_store_n(&k->rp, NULL, __ATOMIC_RELEASE);
		exits_unlink(&k->how);
		/* Not freed before the wait: entries that run now may still hook. */
		k->next_dead = NULL;
		rps[i]->kp.ukp_reserved[0] = (unsigned long)k;
	}
}

static void bury_all(struct kretprobe **rps, int num)
{
	int i;

	for (i = 0; i < num; i++) {
		struct ukp_kret *k = (struct ukp_kret *)rps[i]->kp.ukp_reserved[0];

		if (!k)
			continue;
		rps[i]->kp.ukp_reserved[0] = 0;
		/* Relaxed: whoever has made it active has been waited for. */
		if (k->how.by == PLAN_BY_EXIT &&
		    __atomic_load_n(&k->calls.active, __ATOMIC_RELAXED))
			exits_forget((uint64_t)k);
		k->next_dead = dead;
		dead = k;
	}
	reap();
}

void unregister_kretprobes(struct kretprobe **rps, int num)
{
	struct err *err = lib_err();
	int i;

	if (num <= 0)
		return;
	for (i = 0; i < num; i++)
		rps[i]->kp.ukp_reserved[0] = 0;
	if (lib_lock(true, err)) {
		for (i = 0; err->code == -EBUSY && i < num; i++)
			__atomic_fetch_or(&rps[i]->kp.flags, KPROBE_FLAG_DISABLED,
			                  __ATOMIC_RELAXED);
		return;
	}
	own_batch_begin();
	unlink_all(rps, num);
	own_batch_end();
	lib_unlock();
	/* From a handler what calls point to is kept for ever. */
	if (lib_in_handler())
		return;
	lib_wait();
	if (lib_lock(true, err))
		return;
	bury_all(rps, num);
	lib_unlock();
}

void unregister_kretprobe(struct kretprobe *rp)
{
	unregister_kretprobes(&rp, 1);
}

static bool *check_all(struct sym_proc *sym, struct kretprobe **rps, int num)
{
	struct kprobe **kps = calloc((size_t)num, sizeof(*kps));
	bool *fine = NULL;
	int i;

	for (i = 0; kps && i < num; i++)
		kps[i] = &rps[i]->kp;
	if (kps)
		fine = bulk_check(sym, kps, (size_t)num, true);
	free(kps);
	return fine;
}

/* How many are planted now; ret: 0, or the error of the next. */
static int plant_all(struct kretprobe **rps, int num, int *ret, struct err *err)
{
	struct sym_proc *sym;
	bool *fine;
	int i;

	*ret = own_sym(&sym, err);
	if (*ret)
		return 0;
	fine = check_all(sym, rps, num);
	own_batch_begin();
	for (i = 0; i < num && !*ret; i++)
		*ret = register_locked(rps[i], sym, fine && fine[i], err);
	own_batch_end();
	free(fine);
	return *ret ? i - 1 : i;
}

static void bury_failed(void)
{
	struct err ignored = ERR_INIT;
	struct ukp_kret *k, *next;

	lib_wait();
	if (lib_lock(true, &ignored))
		return;
	for (k = failed; k; k = next) {
		next = k->next_dead;
		k->next_dead = dead;
		dead = k;
	}
	failed = NULL;
	reap();
	lib_unlock();
}

int register_kretprobes(struct kretprobe **rps, int num)
{
	struct err *err = lib_err(), why;
	int ret = 0, done, i;

	if (num <= 0)
		return err_set(err, -EINVAL, "no probes");
	for (i = 0; i < num && !ret; i++)
		ret = name_bind(rps[i]->kp.symbol_name, err);
	if (!ret)
		ret = lib_lock(false, err);
	if (ret)
		return ret;
	reap();
	done = plant_all(rps, num, &ret, err);
	lib_unlock();
	if (ret) {
		why = *err;
		unregister_kretprobes(rps, done);
		bury_failed();
		*err = why;
	}
	return ret;
}

int register_kretprobe(struct kretprobe *rp)
{
	return register_kretprobes(&rp, 1);
}

struct kretprobe *get_kretprobe(struct kretprobe_instance *ri)
{
	return ri->rph->of;
}

int ukp_kretprobe_mechanism(const struct kretprobe *rp, char *buf, size_t len)
{
	struct err *err = lib_err();
	const struct lib_site *s;
	int ret = lib_lock(false, err);

	if (ret)
		return ret;
	s = site_find((uint64_t)rp->kp.addr);
	if (!s || !site_has(s, &rp->kp)) {
		ret = err_set(err, -EINVAL, "the probe is not registered");
	} else {
		ret = exits_describe(s, &rp->kp.ukp_ret->how, buf, len);
	}
	lib_unlock();
	return ret;
}
