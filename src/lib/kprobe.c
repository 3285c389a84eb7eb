/* SPDX-License-Identifier: MIT */
/*
 * Registering and unregistering, with the checks in the kernel's order
 * (register_kprobe() of kernel/kprobes.c).
 *
 * One mutex keeps all lists.  It is never held while waiting for handlers: one
 * of them may be waiting for it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/jump.h"
#include "lib/lib.h"
#include "lib/opt.h"
#include "patch/place.h"

#define CALLER_FLAGS (KPROBE_FLAG_DISABLED | UKP_NOVEC | UKP_ANY_TEXT | UKP_BY_MASK)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* From before it locks until after it has unlocked: both functions may be probed. */
static __thread bool inside;

static __thread struct err last;

struct err *lib_err(void)
{
	last.code = 0;
	last.text[0] = 0;
	return &last;
}

const char *ukp_kprobe_error(void)
{
	return last.text;
}

bool lib_in_handler(void)
{
	bool on;

	guard_running(&on);
	return on;
}

int lib_lock(bool handlers_may, struct err *err)
{
	if (ukp_lib_ctl && !ukp_hit_alive(ukp_lib_ctl)) {
		name_unbind();
		return err_set(err, -EOPNOTSUPP, "probes are the parent's, this is a forked child");
	}
	if (lib_in_handler()) {
		if (!handlers_may)
			return err_set(err, -EBUSY, "called from a probe handler");
		if (__atomic_load_n(&inside, __ATOMIC_RELAXED))
			return err_set(err, -EBUSY, "called from a handler inside a registration");
	}
	__atomic_store_n(&inside, true, __ATOMIC_RELAXED);
	pthread_mutex_lock(&lock);
	return 0;
}

void lib_unlock(void)
{
	own_sync();
	opt_start();
	pthread_mutex_unlock(&lock);
	name_unbind();
	__atomic_store_n(&inside, false, __ATOMIC_RELAXED);
}

static void rest(void)
{
	struct timespec t = { .tv_nsec = 20000 };

	nanosleep(&t, NULL);
}

void lib_wait(void)
{
	guard_wait(rest);
}

/* Someone else's breakpoint, or a rewritten page, is not ours to cover. */
int kprobe_check_memory(struct sym_proc *sym, uint64_t addr, struct err *err)
{
	uint8_t code[UKP_INSN_MAX];
	const struct lib_site *s = site_find(addr);
	size_t len;

	if (s && s->armed)
		return 0;
	len = place_length(sym, addr, code);
	if (len && jump_text_is(addr, code, len))
		return 0;
	return err_set(err, -EINVAL, "the bytes at %#lx differ from the file's", addr);
}

int kprobe_follow_modules(struct sym_proc *sym, struct err *err)
{
	static size_t modules;
	int ret = own_init(err);

	if (ret || modules == sym_nr_modules(sym))
		return ret;
	modules = sym_nr_modules(sym);
	return site_plant_internal(err);
}

static int plant(struct kprobe *p, struct sym_proc *sym, uint64_t addr, bool checked,
                 struct err *err)
{
	struct lib_site *s = NULL;
	/* Exit sites leave return addresses alone. */
	bool changes = p->ukp_ret && p->ukp_ret->how.by != PLAN_BY_EXIT;
	bool live = own_live_is_asked(p, sym, addr), post = p->post_handler && !p->ukp_ret;
	int ret = 0;

	if (live)
		ret = own_live_check(p, sym, addr, err);
	else if (!checked)
		ret = place_check(sym, addr, changes, NULL, -1, err);
	if (!ret && !live)
		ret = kprobe_check_memory(sym, addr, err);
	if (!ret)
		ret = kprobe_follow_modules(sym, err);
	if (!ret)
		ret = live ? site_get_live(addr, post, &s, err) : site_get(addr, post, &s, err);
	return ret ? ret : site_link(s, p, err);
}

int kprobe_refuse(const struct kprobe *p, uint64_t addr, const char *why, struct err *err)
{
	if (!p->symbol_name)
		return err_set(err, -EINVAL, "%#lx can't be probed: %s", addr, why);
	if (!p->offset)
		return err_set(err, -EINVAL, "%s can't be probed: %s", p->symbol_name, why);
	return err_set(err, -EINVAL, "%s+%#x can't be probed: %s", p->symbol_name, p->offset, why);
}

int kprobe_register_locked(struct kprobe *p, struct sym_proc *sym, bool checked, struct err *err)
{
	kprobe_opcode_t *before = p->addr;
	const struct lib_site *s;
	const char *why;
	uint64_t addr;
	bool entry;
	int ret;

	ret = name_address(sym, p->addr, p->symbol_name, p->offset, &addr, &entry, err);
	/* In what no file has, no function is known either. */
	if (ret && p->addr) {
		addr = (uint64_t)p->addr + p->offset;
		entry = false;
		ret = own_live_is_asked(p, sym, addr) ? 0 : ret;
	}
	if (ret)
		return ret;
	s = site_find(addr);
	if (s && site_has(s, p))
		return err_set(err, -EINVAL, "the probe is registered already");
	p->flags &= CALLER_FLAGS;
	p->nmissed = 0;
	why = checked ? NULL : name_denied(sym, addr);
	if (why)
		return kprobe_refuse(p, addr, why, err);
	if (entry)
		p->flags |= KPROBE_FLAG_ON_FUNC_ENTRY;
	p->addr = (kprobe_opcode_t *)addr;
	ret = plant(p, sym, addr, checked, err);
	if (ret)
		p->addr = before;
	return ret;
}

/* The one check that needs no symbols. */
static int check_named(const kprobe_opcode_t *addr, const char *name, struct err *err)
{
	if (!addr == !name)
		return err_set(err, -EINVAL,
		               "exactly one of addr and symbol_name must be set "
		               "(addr stays set after unregistering)");
	return 0;
}

static int register_one(struct kprobe *p, struct sym_proc *sym, bool checked, struct err *err)
{
	int ret = check_named(p->addr, p->symbol_name, err);

	if (ret)
		return ret;
	p->ukp_ret = NULL;
	return kprobe_register_locked(p, sym, checked, err);
}

/* All or none; *done: how many must be waited for, as they were there for a moment. */
static int register_all(struct kprobe **kps, int num, int *done, struct err *err)
{
	struct sym_proc *sym;
	bool *fine;
	int i, ret = own_sym(&sym, err);

	*done = 0;
	if (ret)
		return ret;
	fine = bulk_check(sym, kps, (size_t)num, false);
	own_batch_begin();
	for (i = 0; i < num && !ret; i++)
		ret = register_one(kps[i], sym, fine && fine[i], err);
	*done = ret ? i - 1 : 0;
	for (i = 0; i < *done; i++)
		kprobe_unlink_locked(kps[i]);
	own_batch_end();
	free(fine);
	return ret;
}

int register_kprobes(struct kprobe **kps, int num)
{
	struct err *err = lib_err();
	int ret = 0, done, i;

	if (num <= 0)
		return err_set(err, -EINVAL, "no probes");
	for (i = 0; i < num && !ret; i++)
		ret = name_bind(kps[i]->symbol_name, err);
	if (!ret)
		ret = lib_lock(false, err);
	if (ret)
		return ret;
	ret = register_all(kps, num, &done, err);
	lib_unlock();
	if (done)
		lib_wait();
	return ret;
}

int register_kprobe(struct kprobe *p)
{
	struct err *err = lib_err();
	struct sym_proc *sym;
	int ret = check_named(p->addr, p->symbol_name, err);

	if (!ret)
		ret = name_bind(p->symbol_name, err);
	if (!ret)
		ret = lib_lock(false, err);
	if (ret)
		return ret;
	ret = own_sym(&sym, err);
	if (!ret)
		ret = register_one(p, sym, false, err);
	lib_unlock();
	return ret;
}

bool kprobe_unlink_locked(struct kprobe *p)
{
	struct lib_site *s = site_find((uint64_t)p->addr);

	if (!s || !site_has(s, p))
		return false;
	site_unlink(s, p);
	return true;
}

void unregister_kprobes(struct kprobe **kps, int num)
{
	struct err *err = lib_err();
	int i;

	if (num <= 0)
		return;
	if (lib_lock(true, err)) {
		/* A handler inside our own registration: it can only be made still. */
		for (i = 0; err->code == -EBUSY && i < num; i++)
			__atomic_fetch_or(&kps[i]->flags, KPROBE_FLAG_DISABLED, __ATOMIC_RELAXED);
		return;
	}
	own_batch_begin();
	for (i = 0; i < num; i++)
		if (!kprobe_unlink_locked(kps[i]))
			kps[i]->addr = NULL;
	own_batch_end();
	lib_unlock();
	if (!lib_in_handler())
		lib_wait();
}

void unregister_kprobe(struct kprobe *p)
{
	unregister_kprobes(&p, 1);
}

static int set_enabled(struct kprobe *kp, bool on)
{
	struct err *err = lib_err();
	struct lib_site *s;
	int ret = lib_lock(false, err);

	if (ret)
		return ret;
	s = site_find((uint64_t)kp->addr);
	if (!s || !site_has(s, kp) || (on && (kp->flags & KPROBE_FLAG_GONE))) {
		ret = err_set(err, -EINVAL, "the probe is not registered");
	} else {
		if (on)
			__atomic_fetch_and(&kp->flags, ~KPROBE_FLAG_DISABLED, __ATOMIC_RELAXED);
		else
			__atomic_fetch_or(&kp->flags, KPROBE_FLAG_DISABLED, __ATOMIC_RELAXED);
		ret = site_update(s, err);
	}
	lib_unlock();
	return ret;
}

int enable_kprobe(struct kprobe *kp)
{
	return set_enabled(kp, true);
}

int disable_kprobe(struct kprobe *kp)
{
	return set_enabled(kp, false);
}

struct kprobe *get_kprobe(void *addr)
{
	struct lib_site *s = site_find((uint64_t)addr);

	return s ? __atomic_load_n(&s->probes, __ATOMIC_ACQUIRE) : NULL;
}

struct kprobe *kprobe_running(void)
{
	bool on;

	return guard_running(&on);
}

void kprobe_busy_begin(void)
{
	guard_set_busy(&kprobe_busy);
}

void kprobe_busy_end(void)
{
	guard_clear_busy(&kprobe_busy);
}

int kprobe_on_func_entry(kprobe_opcode_t *addr, const char *sym, unsigned long offset)
{
	struct err *err = lib_err();
	struct sym_proc *proc;
	bool entry = false;
	uint64_t at;
	int ret = check_named(addr, sym, err);

	if (!ret)
		ret = name_bind(sym, err);
	if (!ret)
		ret = lib_lock(false, err);
	if (ret)
		return ret;
	ret = own_sym(&proc, err);
	if (!ret)
		ret = name_address(proc, addr, sym, offset, &at, &entry, err);
	if (!ret && !entry)
		ret = err_set(err, -EINVAL, "%#lx is no function's entry", at);
	lib_unlock();
	return ret;
}
