/* SPDX-License-Identifier: MIT */
/*
 * Instances of calls that won't come back: left by longjmp, by the end of their
 * thread, or on the stack of a coroutine that nobody enters again.
 *
 * Nobody says so when it happens.  What shows it is the frame's word: once the
 * stack is used again it holds something else.  That is no proof, for a coroutine
 * whose stack was copied away looks the same and comes back, stub and all.  So
 * an index that was taken from a call by this sign is *bound* for good: it is given
 * only to calls that have the same return address.  Who comes back to its stub goes
 * where it came from then, whoever has it meanwhile or whether anybody has.
 * What a wrong guess costs is the report of a return, which is a miss:
 *
 *	UKP_INST_LIVE, the word is another's	ended (UKP_HIT_UNWOUND) and bound
 *	bound, free				waits for a call from the same place
 *	bound, live				may be taken for that call by one that comes back
 *
 * A program that leaves calls again and again does so from the same places: the
 * indices that are out are some times as many as it has had under way at once, some
 * dozens for each thread and place that leaves calls.
 *
 * Concurrent, in signal handlers and abandoned in the middle: as objpool.h.  Calls
 * of other threads are left alone, but for those whose thread pointer is one's own
 * by now.
 */
#ifndef UKP_ENGINE_ORPHANS_H
#define UKP_ENGINE_ORPHANS_H

#include "engine/hit.h"

/* All of it is internal to the image that links it. */
#pragma GCC visibility push(hidden)

/* While fewer indices than this have been out nobody looks for orphans. */
#define UKP_ORPHANS_FROM 1024
/* Instances that one call looks at that finds none, so that one in so many is enough. */
#define UKP_ORPHANS_LOOK 8
/*
 * As many are looked at, at most, before one is taken that was never out, in a program
 * that leaves calls; when that was for nothing so many are taken without.
 */
#define UKP_ORPHANS_MOST 16384
#define UKP_ORPHANS_SPARED 64

/* Has any index been bound? */
static inline bool ukp_orphans_any(const struct ukp_ctl *ctl)
{
	return __atomic_load_n(&((struct ukp_priv *)ctl->priv)->any_bound, __ATOMIC_RELAXED);
}

/*
 * An index for a call that returns there; UKP_OBJPOOL_NONE.  To be asked, if there
 * are any, before the others: those would be bound as well, one by one.
 */
uint32_t ukp_orphans_take(struct ukp_hit *hit, uint64_t ret_addr);
/* The same when there is no other at hand, before one is taken that was never out. */
uint32_t ukp_orphans_find(struct ukp_hit *hit, uint64_t ret_addr);
/*
 * At an entry, where there is no room else: of the next n instances those whose call
 * won't come back are ended.  So are those that are a little deeper on the stack, which
 * may be another's: whose return is missed then, this call or that, is all the same.
 */
void ukp_orphans_room(struct ukp_hit *hit, unsigned int n);
/*
 * The stubs of lost ones that a stack has from sp on, within some pages, become
 * return addresses: an unwinder comes, and who was taken for lost may have come back.
 */
void ukp_orphans_unveil(struct ukp_hit *hit, uint64_t sp);
/* Could one be bound to that?  There is an end to return addresses, too. */
bool ukp_orphans_may_bind(const struct ukp_ctl *ctl, uint64_t ret_addr);
/* A bound one that is free again. */
void ukp_orphans_put(const struct ukp_ctl *ctl, struct ukp_instance *inst);

#pragma GCC visibility pop

#endif
