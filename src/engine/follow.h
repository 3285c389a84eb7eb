/* SPDX-License-Identifier: MIT */
/*
 * A call followed from its entry to its return, whatever catches that: a slot
 * or a call in place (rethook.h), or the records of exit sites (frames.h).
 *
 * The entry's action says which.  With UKP_ACTION_FRAMES its calls have records,
 * whose key is the action itself: each probe of each function has its own.  The
 * mark may come and go while calls are on their way; each ends as it began.
 */
#ifndef UKP_ENGINE_FOLLOW_H
#define UKP_ENGINE_FOLLOW_H

#include "engine/hit.h"

/* All of it is internal to the image that links it. */
#pragma GCC visibility push(hidden)

/*
 * From here on the call whose entry this hit is is followed; data is its first word.
 * It is counted in stat before that.  False: not followed, which is counted, too.
 */
bool ukp_follow(struct ukp_hit *hit, ukp_action_fn fn, uint64_t ctx, uint64_t data,
                struct ukp_stat *stat);
/* In two steps, and not counted: a record, to be filled and hooked.  NULL, with the reason. */
struct ukp_instance *ukp_follow_get(struct ukp_hit *hit, ukp_action_fn fn, uint64_t ctx,
                                    enum ukp_miss *why);
void ukp_follow_hook(struct ukp_hit *hit, struct ukp_instance *inst);

#pragma GCC visibility pop

#endif
