/* SPDX-License-Identifier: MIT */
/*
 * What a hit does with a pool (objpool.h), mostly: inline, for a call and its return
 * take as long as twenty other instructions.
 *
 * A pop reads next[] of an index that another may have popped meanwhile; what it
 * read is then of no use.  Its cmpxchg fails: the head differs, or the same index
 * came back by a push, and pushes change the tag.
 */
#ifndef UKP_ENGINE_OBJPOOL_IN_H
#define UKP_ENGINE_OBJPOOL_IN_H

#include "engine/arch.h"
#include "engine/objpool.h"

/* Before each access to shared memory: the model test stops there. */
#ifndef UKP_STEP
#define UKP_STEP() ((void)0)
#endif

#define POOL_INLINE static inline __attribute__((always_inline))
#define POOL_TAG(head) ((head) >> 32)
#define POOL_TOP(head) ((uint32_t)(head)) /* index + 1 */

POOL_INLINE uint32_t *pool_next(struct ukp_objpool *p, uint32_t index)
{
	return (uint32_t *)((unsigned char *)p + p->off_next) + index;
}

/* Of a CPU. */
POOL_INLINE uint64_t *pool_own(struct ukp_objpool *p, uint32_t cpu)
{
	return &p->shards[ukp_shard(cpu, p->nr_shards)].head;
}

/*
 * The top of one stack; NONE if it is empty.  *seen adds up the tags of the heads
 * that were found empty.
 */
POOL_INLINE uint32_t pool_pop(struct ukp_objpool *p, uint64_t *at, uint64_t *seen)
{
	uint64_t head, below;

	UKP_STEP();
	head = __atomic_load_n(at, __ATOMIC_ACQUIRE);
	while (POOL_TOP(head)) {
		UKP_STEP();
		below = __atomic_load_n(pool_next(p, POOL_TOP(head) - 1), __ATOMIC_RELAXED);
		UKP_STEP();
		/* Acquire: what the last owner did to its index comes before us. */
		if (__atomic_compare_exchange_n(at, &head, POOL_TAG(head) << 32 | below, 0,
		                                __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
			return POOL_TOP(head) - 1;
	}
	*seen += POOL_TAG(head);
	return UKP_OBJPOOL_NONE;
}

POOL_INLINE void pool_push(struct ukp_objpool *p, uint64_t *at, uint32_t index)
{
	uint64_t head;

	UKP_STEP();
	head = __atomic_load_n(at, __ATOMIC_RELAXED);
	do {
		UKP_STEP();
		__atomic_store_n(pool_next(p, index), POOL_TOP(head), __ATOMIC_RELAXED);
		UKP_STEP();
	} while (!__atomic_compare_exchange_n(at, &head, (POOL_TAG(head) + 1) << 32 | (index + 1),
	                                      0, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

#endif
