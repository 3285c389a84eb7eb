/* SPDX-License-Identifier: MIT */
/*
 * Taking and returning indices of a pool (wire/objpool.h), without locks.
 *
 *                       concurrent   in a signal handler   abandoned in the middle
 *   ukp_objpool_pop     any number   yes, nested too       at most its index is gone
 *   ukp_objpool_push    any number   yes, nested too       at most its index is gone
 *   ..._from, _to       the same
 *   ukp_objpool_init    alone, before the pool is seen by anybody
 *
 * Guaranteed:
 *   - An index is out to one owner at a time, so never more than n are out.
 *   - A push always succeeds.
 *   - A pop fails only if at one moment during it no index was free, or if
 *     others changed the pool during each of its UKP_OBJPOOL_ROUNDS searches.
 *     Alone, or with pops only, it never fails while one is free.
 *   - A push followed by a pop on the same shard, with nothing between, gives
 *     the same index: it is warm in that CPU's cache.
 *   - Lock-free: who has to try again does so because somebody else succeeded.
 * An index is free for a new owner as soon as push has begun: its owner is
 * done with what it stands for by then.
 */
#ifndef UKP_ENGINE_OBJPOOL_H
#define UKP_ENGINE_OBJPOOL_H

#include <stdint.h>

#include "wire/objpool.h"

#define UKP_OBJPOOL_ROUNDS 8
#define UKP_OBJPOOL_NONE UINT32_MAX

/* Makes a full pool in zeroed memory of ukp_objpool_size() bytes; n <= UKP_OBJPOOL_MAX. */
void ukp_objpool_init(struct ukp_objpool *p, uint32_t n, uint32_t nr_shards);

/* cpu: any number; it chooses the shard. */
uint32_t ukp_objpool_pop(struct ukp_objpool *p, uint32_t cpu);
void ukp_objpool_push(struct ukp_objpool *p, uint32_t cpu, uint32_t index);

/* Indices that are kept apart: a stack of its own, whose head is the caller's; 0: empty. */
uint32_t ukp_objpool_pop_from(struct ukp_objpool *p, uint64_t *at);
void ukp_objpool_push_to(struct ukp_objpool *p, uint64_t *at, uint32_t index);

#endif
