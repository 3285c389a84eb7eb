/* SPDX-License-Identifier: MIT */
/* Calls that an action of a site follows, by the mechanism that the action names. */
#include "engine/follow.h"

#include "engine/frames.h"
#include "engine/rethook.h"

/* Chosen once a call: it may change while one is on its way. */
static void choose(struct ukp_hit *hit)
{
	/* Acquire: who finds the mark finds the exit sites, too. */
	uint32_t flags = __atomic_load_n(&hit->action->flags, __ATOMIC_ACQUIRE);

	hit->flags &= ~(UKP_HIT_FRAMES | UKP_HIT_SLOT);
	if (flags & UKP_ACTION_SLOT)
		hit->flags |= UKP_HIT_SLOT;
	if (flags & UKP_ACTION_FRAMES)
		hit->flags |= UKP_HIT_FRAMES;
	else if (flags & UKP_ACTION_EXITS)
		ukp_frame_drop(hit, (uint64_t)hit->action);
}

struct ukp_instance *ukp_follow_get(struct ukp_hit *hit, ukp_action_fn fn, uint64_t ctx,
                                    enum ukp_miss *why)
{
	choose(hit);
	if (hit->flags & UKP_HIT_FRAMES)
		return ukp_frame_get_by(hit, fn, ctx, (uint64_t)hit->action, why);
	return ukp_rethook_get(hit, fn, ctx, why);
}

void ukp_follow_hook(struct ukp_hit *hit, struct ukp_instance *inst)
{
	if (hit->flags & UKP_HIT_FRAMES)
		ukp_frame_hook(hit, inst);
	else
		ukp_rethook_hook(hit, inst);
}
