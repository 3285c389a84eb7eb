/* SPDX-License-Identifier: MIT */
/* A sharded stack of free indices: what of it is rare; the rest is in objpool_in.h. */
#include "engine/objpool_in.h"

void ukp_objpool_init(struct ukp_objpool *p, uint32_t n, uint32_t nr_shards)
{
	p->n = n;
	p->nr_shards = nr_shards;
	p->off_next = sizeof(*p) + (uint64_t)nr_shards * sizeof(p->shards[0]);
	p->fresh = 0;
	for (uint32_t i = 0; i < nr_shards; i++)
		p->shards[i].head = 0;
}

static uint32_t pop_shard(struct ukp_objpool *p, uint32_t shard, uint64_t *seen)
{
	return pool_pop(p, &p->shards[shard].head, seen);
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

uint32_t ukp_objpool_pop_from(struct ukp_objpool *p, uint64_t *at)
{
	uint64_t seen = 0;

	return pool_pop(p, at, &seen);
}

void ukp_objpool_push_to(struct ukp_objpool *p, uint64_t *at, uint32_t index)
{
	pool_push(p, at, index);
}

void ukp_objpool_push(struct ukp_objpool *p, uint32_t cpu, uint32_t index)
{
	pool_push(p, pool_own(p, cpu), index);
}
