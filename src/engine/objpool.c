/* SPDX-License-Identifier: MIT */
/*
 * A sharded stack of free indices.  A pop reads next[] of an index that
 * another may have popped meanwhile; what it read is then of no use.  Its
 * cmpxchg fails: the head differs, or the same index came back by a push, and
 * pushes change the tag.
 */
#include "engine/objpool.h"

#include "engine/arch.h"

#ifndef UKP_STEP
#define UKP_STEP() ((void)0)
#endif

#define TAG(head) ((head) >> 32)
#define TOP(head) ((uint32_t)(head)) /* index + 1 */

void ukp_objpool_init(struct ukp_objpool *p, uint32_t n, uint32_t nr_shards)
{
	p->n = n;
	p->nr_shards = nr_shards;
	p->off_next = sizeof(*p) + (uint64_t)nr_shards * sizeof(p->shards[0]);
	p->fresh = 0;
	for (uint32_t i = 0; i < nr_shards; i++)
		p->shards[i].head = 0;
}

static uint32_t *next_of(struct ukp_objpool *p, uint32_t index)
{
	return (uint32_t *)((unsigned char *)p + p->off_next) + index;
}

/*
 * The top of one stack; NONE if it is empty.  *seen adds up the tags of the heads
 * that were found empty.
 */
static inline __attribute__((always_inline)) uint32_t pop_stack(struct ukp_objpool *p, uint64_t *at,
                                                                uint64_t *seen)
{
	uint64_t head, below;

	UKP_STEP();
	head = __atomic_load_n(at, __ATOMIC_ACQUIRE);
	while (TOP(head)) {
		UKP_STEP();
		below = __atomic_load_n(next_of(p, TOP(head) - 1), __ATOMIC_RELAXED);
		UKP_STEP();
		/* Acquire: what the last owner did to its index comes before us. */
		if (__atomic_compare_exchange_n(at, &head, TAG(head) << 32 | below, 0,
		                                __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
			return TOP(head) - 1;
	}
	*seen += TAG(head);
	return UKP_OBJPOOL_NONE;
}

static uint32_t pop_shard(struct ukp_objpool *p, uint32_t shard, uint64_t *seen)
{
	return pop_stack(p, &p->shards[shard].head, seen);
}

static uint32_t pop_fresh(struct ukp_objpool *p)
{
	uint64_t index;

	UKP_STEP();
	if (__atomic_load_n(&p->fresh, __ATOMIC_RELAXED) >= p->n)
		return UKP_OBJPOOL_NONE;
	UKP_STEP();
	index = __atomic_fetch_add(&p->fresh, 1, __ATOMIC_RELAXED);
	return index < p->n ? (uint32_t)index : UKP_OBJPOOL_NONE;
}

/* Everywhere, the own shard first; *seen as above. */
static uint32_t search(struct ukp_objpool *p, uint32_t own, uint64_t *seen)
{
	uint32_t index = pop_shard(p, own, seen);

	if (index == UKP_OBJPOOL_NONE)
		index = pop_fresh(p);
	for (uint32_t i = 1; index == UKP_OBJPOOL_NONE && i < p->nr_shards; i++)
		index = pop_shard(p, (own + i) % p->nr_shards, seen);
	return index;
}

/* The shard had none: everywhere. */
static __attribute__((noinline)) uint32_t pop_anywhere(struct ukp_objpool *p, uint32_t own)
{
	uint64_t before = UINT64_MAX;

	/*
	 * An index may have moved from a shard that was still to be looked at to
	 * one that had been.  All tags the same twice: between the two looks, all
	 * stacks were empty at once.
	 */
	for (int i = 0; i < UKP_OBJPOOL_ROUNDS; i++) {
		uint64_t seen = 0;
		uint32_t index = search(p, own, &seen);

		if (index != UKP_OBJPOOL_NONE)
			return index;
		if (seen == before)
			break;
		before = seen;
	}
	return UKP_OBJPOOL_NONE;
}

uint32_t ukp_objpool_pop(struct ukp_objpool *p, uint32_t cpu)
{
	const uint32_t own = ukp_shard(cpu, p->nr_shards);
	uint64_t seen = 0;
	uint32_t index = pop_shard(p, own, &seen);

	return index != UKP_OBJPOOL_NONE ? index : pop_anywhere(p, own);
}

uint32_t ukp_objpool_pop_own(struct ukp_objpool *p, uint32_t cpu)
{
	uint64_t seen = 0;

	return pop_shard(p, ukp_shard(cpu, p->nr_shards), &seen);
}

uint32_t ukp_objpool_pop_from(struct ukp_objpool *p, uint64_t *at)
{
	uint64_t seen = 0;

	return pop_stack(p, at, &seen);
}

void ukp_objpool_push_to(struct ukp_objpool *p, uint64_t *at, uint32_t index)
{
	uint64_t head;

	UKP_STEP();
	head = __atomic_load_n(at, __ATOMIC_RELAXED);
	do {
		UKP_STEP();
		__atomic_store_n(next_of(p, index), TOP(head), __ATOMIC_RELAXED);
		UKP_STEP();
	} while (!__atomic_compare_exchange_n(at, &head, (TAG(head) + 1) << 32 | (index + 1), 0,
	                                      __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

void ukp_objpool_push(struct ukp_objpool *p, uint32_t cpu, uint32_t index)
{
	ukp_objpool_push_to(p, &p->shards[ukp_shard(cpu, p->nr_shards)].head, index);
}
