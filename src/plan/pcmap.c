/* SPDX-License-Identifier: MIT */
/*
 * From a pc inside generated code to what the original thread would have.
 * Calls nothing and touches only its arguments: it is used in signal handlers
 * and on sites that lie in memory shared with a target.
 */
#include "plan/plan.h"

bool plan_original(const struct ukp_site *site, uint64_t pc, uint64_t sp, uint64_t *orig_pc,
                   uint64_t *orig_sp)
{
	unsigned int npc = site->npc < UKP_SITE_PCS ? site->npc : UKP_SITE_PCS;

	if (pc - site->slot >= UKP_SLOT_SIZE)
		return false;
	for (unsigned int i = 0; i < npc; i++) {
		const struct ukp_pc *p = &site->pc[i];

		if (pc - site->slot != p->off)
			continue;
		*orig_pc = site->addr + (uint64_t)(int64_t)p->delta;
		*orig_sp = sp + (uint64_t)(int64_t)p->sp_adj;
		return true;
	}
	return false;
}
