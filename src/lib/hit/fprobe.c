/* SPDX-License-Identifier: MIT */
/*
 * fprobes on a hit, with what counts as a miss as in the kernel's fprobe.c: a
 * disabled one counts nothing, a declined call neither.
 */
#include "engine/arch.h"
#include "engine/rethook.h"
#include "lib/hit/fprobe.h"

struct kprobe kprobe_busy;

static bool disabled(const struct fprobe *fp)
{
	return __atomic_load_n(&fp->flags, __ATOMIC_RELAXED) & FPROBE_FL_DISABLED;
}

/* Where the call returns to, through hooks of others. */
static unsigned long return_address(struct ukp_hit *hit)
{
	struct ukp_instance *owner;
	uint64_t word = 0;

	if (hit->flags & UKP_HIT_NOREAD)
		word = *(uint64_t *)hit->regs->sp;
	else
		ukp_arch_copy(&word, (void *)hit->regs->sp, 8);
	owner = ukp_rethook_owner(hit->ctl, hit->regs->sp, word);
	return owner ? owner->ret_addr : word;
}

struct entering {
	struct fprobe *fp;
	struct ukp_hit *hit;
	unsigned long ret_ip;
	void *data;
	int ret;
};

static void run_entry(void *arg, const void *saved)
{
	struct entering *e = arg;

	e->ret = e->fp->entry_handler(e->fp, e->hit->site->addr, e->ret_ip, e->hit->regs, e->data);
}

static int call_entry(struct fprobe *fp, struct ukp_hit *hit, unsigned long ret_ip, void *data)
{
	struct entering e = { fp, hit, ret_ip, data, 0 };
	unsigned long ip = hit->regs->ip;

	if (!fp->entry_handler)
		return 0;
	/* At a breakpoint the signal frame has vector state. */
	if ((hit->flags & UKP_HIT_JUMP) && !(fp->flags & UKP_NOVEC))
		ukp_vec_call(run_entry, &e);
	else
		run_entry(&e, NULL);
	hit->regs->ip = ip;
	return e.ret;
}

int ukp_fprobe_return(struct ukp_hit *hit, uint64_t ctx);

/* False: a miss. */
static bool follow(struct ukp_fplace *p, struct fprobe *fp, struct ukp_hit *hit)
{
	struct ukp_calls *calls = &p->f->calls;
	struct ukp_instance *inst;
	void *data = NULL;

	inst = calls_follow(hit, calls, &p->how, ukp_fprobe_return, (uint64_t)p->f);
	if (!inst)
		return false;
	if (fp->entry_data_size)
		data = calls_data(hit->ctl, calls, inst);
	if (call_entry(fp, hit, inst->ret_addr, data))
		calls_decline(hit, calls, &p->how, inst);
	else
		calls_hook(hit, &p->how, inst);
	return true;
}

static bool enter(struct ukp_fplace *p, struct fprobe *fp, struct ukp_hit *hit)
{
	if (fp->exit_handler)
		return follow(p, fp, hit);
	call_entry(fp, hit, return_address(hit), NULL);
	return true;
}

static bool enter_shared(struct ukp_fplace *p, struct fprobe *fp, struct ukp_hit *hit)
{
	struct guard g;
	bool ret;

	if (guard_on(&g) != GUARD_ON)
		return false;
	guard_set_running(&g, &kprobe_busy);
	ret = enter(p, fp, hit);
	guard_off(&g);
	return ret;
}

static void at_place(struct ukp_fplace *p, struct ukp_hit *hit, bool may)
{
	struct fprobe *fp = __atomic_load_n(&p->f->fp, __ATOMIC_ACQUIRE);

	if (!fp || disabled(fp))
		return;
	if (may)
		may = fp->flags & FPROBE_FL_KPROBE_SHARED ? enter_shared(p, fp, hit)
		                                          : enter(p, fp, hit);
	if (may)
		return;
	calls_missed(hit, &p->how, (uint64_t)p->f);
	ukp_count(&fp->nmissed);
}

void ukp_lib_fprobes(struct ukp_hit *hit, struct lib_site *s)
{
	struct ukp_fplace *p;
	struct guard g;
	enum guard_state state = guard_on_kind(&g, GUARD_FPROBE);

	/* Without a guard of this thread's, those in the list may go at any moment. */
	if (state == GUARD_FULL) {
		ukp_count(&hit->site->nmissed);
		return;
	}
	/* Acquire: a place is complete before it is linked. */
	for (p = __atomic_load_n(&s->fprobes, __ATOMIC_ACQUIRE); p;
	     p = __atomic_load_n(&p->next, __ATOMIC_ACQUIRE))
		at_place(p, hit, state == GUARD_ON);
	if (state == GUARD_ON)
		guard_off(&g);
}

struct returning {
	struct fprobe *fp;
	struct ukp_hit *hit;
	void *data;
	struct guard *guard;
};

static void call_exit(struct returning *r)
{
	const struct where where = where_is(r->hit->regs);

	r->fp->exit_handler(r->fp, r->hit->inst->func, where.ip, r->hit->regs, r->data);
	where_was(r->hit->regs, where);
}

static void call_with_result(void *arg, const void *saved)
{
	struct returning *r = arg;
	struct lib_result result = { NULL, r->hit->regs, r->hit->fpstate, saved };

	guard_push_result(r->guard, &result);
	call_exit(r);
	guard_pop_result(r->guard, &result);
}

static void run_exit(struct returning *r)
{
	if (r->fp->flags & UKP_NOVEC)
		call_exit(r);
	else
		ukp_vec_call(call_with_result, r);
}

static bool run_exit_shared(struct returning *r)
{
	struct guard g;

	if (guard_on(&g) != GUARD_ON)
		return false;
	guard_set_running(&g, &kprobe_busy);
	run_exit(r);
	guard_off(&g);
	return true;
}

static void leave(struct ukp_fprobe *f, struct fprobe *fp, struct ukp_hit *hit, struct guard *g,
                  bool may)
{
	struct returning r = { fp, hit, NULL, g };

	if (hit->flags & UKP_HIT_UNWOUND) {
		ukp_count(&fp->nmissed);
		return;
	}
	if (disabled(fp))
		return;
	if (fp->entry_data_size)
		r.data = calls_data(hit->ctl, &f->calls, hit->inst);
	if (may && (fp->flags & FPROBE_FL_KPROBE_SHARED))
		may = run_exit_shared(&r);
	else if (may)
		run_exit(&r);
	if (!may)
		ukp_count(&fp->nmissed);
}

int ukp_fprobe_return(struct ukp_hit *hit, uint64_t ctx)
{
	struct ukp_fprobe *f = (struct ukp_fprobe *)ctx;
	struct fprobe *fp;
	struct guard g;
	enum guard_state state = guard_on_kind(&g, GUARD_FPROBE);

	fp = state == GUARD_FULL || state == GUARD_QUIET
	             ? NULL
	             : __atomic_load_n(&f->fp, __ATOMIC_ACQUIRE);
	if (fp)
		leave(f, fp, hit, &g, state == GUARD_ON);
	if (state == GUARD_ON)
		guard_off(&g);
	calls_give(&f->calls);
	return 0;
}
