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
	struct pt_regs *regs;
};

static void call_handler(void *arg)
{
	struct returning *r = arg;
	const struct where where = where_is(r->regs);

	r->rp->handler(r->ri, r->regs);
	where_was(r->regs, where);
}

static void run(struct ukp_hit *hit, struct ukp_kret *k, struct kretprobe *rp)
{
	struct returning r = { rp, calls_data(hit->ctl, &k->calls, hit->inst), hit->regs };

	if (hit->flags & UKP_HIT_UNWOUND)
		miss(rp);
	else if (rp->handler && (rp->kp.flags & UKP_NOVEC))
		call_handler(&r);
	else if (rp->handler)
		ukp_vec_call(call_handler, &r);
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
		run(hit, k, rp);
	}
	if (state == GUARD_ON)
		guard_off(&g);
	calls_give(&k->calls);
	return 0;
}
