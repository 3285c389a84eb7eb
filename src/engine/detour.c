/* SPDX-License-Identifier: MIT */
/*
 * The jump form: the probed place jumps to a detour, which saves the registers
 * and calls this.  No signal frame, so nothing is known of the thread's mask:
 * reads are guarded by our fault handlers as they are at returns.
 */
#include "engine/arch.h"
#include "engine/rethook.h"

static inline int detour_hit(struct ukp_hit *hit, struct pt_regs *regs, struct ukp_site *site)
{
	struct ukp_ctl *ctl = ukp_engine_ctl();

	ukp_hit_init(hit, ctl, site, regs, UKP_HIT_JUMP | (ukp_hit_alive(ctl) ? 0 : UKP_HIT_CHILD));
	hit->cpu = ukp_arch_cpu(ctl);
	return ukp_hit_run(hit);
}

int ukp_detour_hit(struct pt_regs *regs, struct ukp_site *site)
{
	struct ukp_hit hit;

	return detour_hit(&hit, regs, site);
}

int ukp_detour_entry(struct pt_regs *regs, struct ukp_site *site)
{
	struct ukp_hit hit;

	if (detour_hit(&hit, regs, site))
		return 1;
	return hit.stub ? ukp_rethook_call_own(&hit) : 0;
}
