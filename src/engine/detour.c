/* SPDX-License-Identifier: MIT */
/*
 * The jump form: the probed place jumps to a detour, which saves the registers
 * and calls this.  No signal frame, so nothing is known of the thread's mask:
 * reads are guarded by our fault handlers as they are at returns.
 */
#include "engine/arch.h"
#include "engine/rethook.h"

static inline int detour_hit(struct ukp_ctl *ctl, struct pt_regs *regs, struct ukp_site *site)
{
	struct ukp_hit hit;

	hit.ctl = ctl;
	hit.site = site;
	hit.inst = NULL;
	hit.regs = regs;
	hit.fpstate = NULL;
	hit.tsc = 0;
	hit.cpu = ukp_arch_cpu(ctl);
	hit.flags = UKP_HIT_JUMP | (ukp_hit_alive(ctl) ? 0 : UKP_HIT_CHILD);
	return ukp_hit_run(&hit);
}

int ukp_detour_hit(struct pt_regs *regs, struct ukp_site *site)
{
	return detour_hit(ukp_engine_ctl(), regs, site);
}

int ukp_detour_entry(struct pt_regs *regs, struct ukp_site *site)
{
	struct ukp_ctl *ctl = ukp_engine_ctl();
	uint64_t before;
	bool no_stack = ukp_arch_copy(&before, (void *)regs->sp, 8);

	if (detour_hit(ctl, regs, site))
		return 1;
	return no_stack ? 0 : ukp_rethook_call(ctl, regs, before);
}
