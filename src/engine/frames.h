/* SPDX-License-Identifier: MIT */
/*
 * Calls by their frames, for exit sites: the entry leaves a record, the exit
 * finds it by the stack pointer, which is the same there.  Nothing on the stack
 * changes and no thread is asked for, so a call may end in another thread than
 * it began in.
 *
 *	inst = ukp_frame_get()		at the entry, may fail: a miss
 *	fill inst->data
 *	ukp_frame_hook(inst)		or ukp_rethook_put(inst): declined
 *	...				ukp_exit_hit() is the action at each exit
 *					site: inst->fn(hit, inst->ctx)
 *
 * A call that is left by longjmp, an exception or the end of its thread leaves
 * its record behind.  It is dropped, with UKP_HIT_UNWOUND, when a new call has
 * its frame, or when a look at some bucket of the table, which each entry takes,
 * finds that the stack word doesn't hold its return address any more.  So there
 * are never more of them than stack words that are as they were left.
 *
 *                        concurrent   in a signal handler   abandoned in the middle
 *   ukp_frames_add       any number   yes, nested too       at most its index is gone
 *   ukp_frames_take      any number   yes, nested too       at most its index is gone
 *   ukp_frames_sweep     any number   yes, nested too       at most its index is gone
 *   ukp_frames_init      alone, before the table is seen by anybody
 *
 * Guaranteed:
 *   - A record comes out once: by take, by sweep, or as stale by add.
 *   - While nobody adds the same key, a take finds what was added before it.
 *   - Lock-free: who has to try again does so because somebody else succeeded.
 */
#ifndef UKP_ENGINE_FRAMES_H
#define UKP_ENGINE_FRAMES_H

#include "engine/hit.h"
#include "wire/frames.h"

/* All of it is internal to the image that links it. */
#pragma GCC visibility push(hidden)

#define UKP_FRAMES_NONE UINT32_MAX

/* In zeroed memory of ukp_frames_size() bytes. */
void ukp_frames_init(struct ukp_frames *t, uint32_t n);

/*
 * The call at all[index].frame, for all[index].ctx, has begun.  *stale: the
 * record of an earlier call there, which is the caller's now, or NONE.  False:
 * no room in its buckets.
 */
bool ukp_frames_add(struct ukp_frames *t, struct ukp_instance *all, uint32_t index,
                    uint32_t *stale);
/* Takes the record of a key out; NONE: there is none. */
uint32_t ukp_frames_take(struct ukp_frames *t, struct ukp_instance *all, uint64_t frame,
                         uint64_t ctx);
/*
 * Takes a record out that is dead, of one bucket (any number names one); NONE:
 * none there is.  is_dead() may see an instance that is somebody else's
 * meanwhile; its answer counts for nothing then.
 */
uint32_t ukp_frames_sweep(struct ukp_frames *t, struct ukp_instance *all, uint64_t where,
                          bool (*is_dead)(const struct ukp_instance *inst, void *arg), void *arg);

/* A record for the call whose entry this hit is.  NULL, with the reason. */
struct ukp_instance *ukp_frame_get(struct ukp_hit *hit, ukp_action_fn fn, uint64_t ctx,
                                   enum ukp_miss *why);
/* False: no room in the table; the record is freed and the call a miss (ARENA). */
bool ukp_frame_hook(struct ukp_hit *hit, struct ukp_instance *inst);

/*
 * The action at an exit site; ctx is that of the entry's record.  The record's
 * action sees ip and sp as they are after the return, and may change the other
 * registers.  Without a record nothing happens: its entry was no hit, or a miss.
 */
int ukp_exit_hit(struct ukp_hit *hit, uint64_t ctx);

#pragma GCC visibility pop

#endif
