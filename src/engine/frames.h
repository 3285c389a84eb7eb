/* SPDX-License-Identifier: MIT */
/*
 * Calls by their frames, for exit sites: the entry leaves a record, the exit
 * finds it by the stack pointer, which is the same there.  Nothing on the stack
 * changes and no thread is asked for, so a call may end in another thread than
 * it began in.
 *
 *	inst = ukp_frame_get()		at the entry, may fail: a miss
 *	fill inst->data
 *	ukp_frame_hook(inst)		or ukp_frame_put(inst): declined
 *	...				ukp_exit_hit() is the action at each exit
 *					site: inst->fn(hit, inst->ctx)
 *
 * A key tells probes of one call apart; one key has no two functions that may be
 * in the same frame at a time.  It is the action's ctx, where that is such.
 *
 * A call that is left by longjmp, an exception or the end of its thread leaves
 * its record behind.  It is dropped, with UKP_HIT_UNWOUND, when a new call has
 * its frame, or when a look at some bucket of the table, which an entry takes
 * now and then, finds that the stack word doesn't hold its return address any
 * more.  So there are never more of them than stack words that are as they were
 * left.
 *
 *                        concurrent   in a signal handler   abandoned in the middle
 *   ukp_frames_claim     any number   yes, nested too       at most its record is gone
 *   ukp_frames_publish   its owner                          its record is gone
 *   ukp_frames_take      any number   yes, nested too       at most its record is gone
 *   ukp_frames_sweep     any number   yes, nested too       at most its record is gone
 *   ukp_frames_free      its owner                          its record is gone
 *   ukp_frames_init      alone, before the table is seen by anybody
 *
 * Guaranteed:
 *   - A record has one owner at a time: whom claim, take or sweep gave it, until
 *     publish or free.
 *   - While nobody claims the same key, a take finds what was published before.
 *   - Lock-free: who has to try again does so because somebody else succeeded.
 */
#ifndef UKP_ENGINE_FRAMES_H
#define UKP_ENGINE_FRAMES_H

#include "engine/hit.h"
#include "wire/frames.h"

/* All of it is internal to the image that links it. */
#pragma GCC visibility push(hidden)

/* Bytes for the table and its records. */
uint64_t ukp_frames_size(uint32_t n);
/* In zeroed memory of that size. */
void ukp_frames_init(struct ukp_frames *t, uint32_t n);

/*
 * A record for a key; NULL: its buckets are full.  *stale: it is still that of
 * an earlier call with that key, which didn't come to its end; else all but its
 * gen is garbage.
 */
struct ukp_instance *ukp_frames_claim(struct ukp_frames *t, uint64_t frame, uint64_t key,
                                      bool *stale);
/* With frame and key set, as they were claimed. */
void ukp_frames_publish(struct ukp_frames *t, struct ukp_instance *inst);
/* The record of a key; NULL: there is none. */
struct ukp_instance *ukp_frames_take(struct ukp_frames *t, uint64_t frame, uint64_t key);
/*
 * A record that is dead, of one bucket (any number names one); NULL: none there
 * is.  is_dead() may see a record that has another life meanwhile; its answer
 * counts for nothing then.
 */
struct ukp_instance *ukp_frames_sweep(struct ukp_frames *t, uint64_t where,
                                      bool (*is_dead)(const struct ukp_instance *inst, void *arg),
                                      void *arg);
void ukp_frames_free(struct ukp_frames *t, struct ukp_instance *inst);

/* A record for the call whose entry this hit is.  NULL, with the reason. */
struct ukp_instance *ukp_frame_get_by(struct ukp_hit *hit, ukp_action_fn fn, uint64_t ctx,
                                      uint64_t key, enum ukp_miss *why);

static inline struct ukp_instance *ukp_frame_get(struct ukp_hit *hit, ukp_action_fn fn,
                                                 uint64_t ctx, enum ukp_miss *why)
{
	return ukp_frame_get_by(hit, fn, ctx, ctx, why);
}

void ukp_frame_hook(struct ukp_hit *hit, struct ukp_instance *inst);
void ukp_frame_put(struct ukp_ctl *ctl, struct ukp_instance *inst);
/*
 * Drops what which() names, in n of the buckets that there can be something in, or
 * all of them if those are less, from the one that where names (any number names
 * one).  which() may see a record that has another life meanwhile;
 * its answer counts for nothing then.
 */
void ukp_frames_drop(struct ukp_hit *hit, uint64_t where, uint64_t n,
                     bool (*which)(const struct ukp_instance *inst, void *arg), void *arg);
/* Does its word show that it won't come to its exit?  For ukp_frames_drop(), with the control area.
 */
bool ukp_frame_is_dead(const struct ukp_instance *inst, void *ctl);
/* The number of a record; UINT32_MAX: it is an instance with a stub. */
uint32_t ukp_frame_index(const struct ukp_ctl *ctl, const struct ukp_instance *inst);

/* The record that an earlier call has left in the hit's frame, if there is one, is dropped. */
void ukp_frame_drop(struct ukp_hit *hit, uint64_t key);

/*
 * The action at an exit site; key is that of the entry's record.  The record's
 * action sees ip and sp as they are after the return, and may change the other
 * registers.  Without a record nothing happens: its entry was no hit, or a miss.
 */
int ukp_exit_hit(struct ukp_hit *hit, uint64_t key);

#pragma GCC visibility pop

#endif
