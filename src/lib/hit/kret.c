/* SPDX-License-Identifier: MIT */
/* The two halves of a kretprobe. */
#include "lib/hit/hit.h"

static void miss(struct kretprobe *rp)
{
	__atomic_fetch_add(&rp->nmissed, 1, __ATOMIC_RELAXED);
}

void ukp_lib_entry(struct ukp_hit *hit, struct kprobe *p)
{
	struct kretprobe *rp = (struct kretprobe *)p; /* kp is its first member */
	struct ukp_kret *k = p->ukp_ret;
	struct kretprobe_instance *ri;
	struct ukp_instance *inst;

	inst = calls_follow(hit, &k->calls, &k->how, ukp_lib_return, (uint64_t)k);
	if (!inst) {
		miss(rp);
		return;
	}
	ri = calls_data(hit->ctl, &k->calls, inst);
	ri->rph = k;
	ri->ret_addr = (kprobe_opcode_t *)inst->ret_addr;
	ri->fp = (void *)inst->frame;
	if (rp->entry_handler && rp->entry_handler(ri, hit->regs)) {
		calls_decline(hit, &k->calls, &k->how, inst);
		return;
	}
	calls_hook(hit, &k->how, inst);
}

struct returning {
	struct kretprobe *rp;
	struct kretprobe_instance *ri;
	struct ukp_hit *hit;
	struct guard *guard;
};

static void call_handler(struct returning *r)
{
	const struct where where = where_is(r->hit->regs);

	r->rp->handler(r->ri, r->hit->regs);
	where_was(r->hit->regs, where);
}

static void call_with_result(void *arg, const void *saved)
{
	struct returning *r = arg;
	struct lib_result result = { NULL, r->hit->regs, r->hit->fpstate, saved };

	guard_push_result(r->guard, &result);
	call_handler(r);
	guard_pop_result(r->guard, &result);
}

static void run(struct ukp_hit *hit, struct ukp_kret *k, struct kretprobe *rp, struct guard *g)
{
	struct returning r = { rp, calls_data(hit->ctl, &k->calls, hit->inst), hit, g };

	if (hit->flags & UKP_HIT_UNWOUND)
		miss(rp);
	else if (rp->handler && (rp->kp.flags & UKP_NOVEC))
		call_handler(&r);
	else if (rp->handler)
		ukp_vec_call(call_with_result, &r);
}

int ukp_lib_return(struct ukp_hit *hit, uint64_t ctx)
{
	struct ukp_kret *k = (struct ukp_kret *)ctx;
	struct kretprobe *rp;
	struct guard g;
	enum guard_state state = guard_on(&g);

	/* Nested: this thread's guard is on already, and keeps rp. */
	rp = state == GUARD_FULL || state == GUARD_QUIET
	             ? NULL
	             : __atomic_load_n(&k->rp, __ATOMIC_ACQUIRE);
	if (rp) {
		if (state == GUARD_ON)
			guard_set_running(&g, &rp->kp);
		run(hit, k, rp, &g);
	}
	if (state == GUARD_ON)
		guard_off(&g);
	calls_give(&k->calls);
	return 0;
}
