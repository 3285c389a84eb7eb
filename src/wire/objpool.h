/* SPDX-License-Identifier: MIT */
/*
 * A pool of the indices 0..n-1 in memory that broker and target share at
 * different addresses: numbers only, no pointers.  What an index stands for is
 * the user's.
 *
 *   struct ukp_objpool | shards | next[n]
 *
 *   fresh   indices from here on were never out: they need no initialisation,
 *           so pages of next[] are touched by frees only.  May pass n by the
 *           number of threads that found the pool empty at once
 *   head    tag << 32 | index + 1 of the top of a stack (0: empty).  The tag
 *           grows with each push, so a head that looks the same is the same
 *           (but for 2^32 pushes to one shard during one pop)
 *   next    index + 1 of the one below, valid while the index is in a stack
 */
#ifndef UKP_WIRE_OBJPOOL_H
#define UKP_WIRE_OBJPOOL_H

#include <stdint.h>

#define UKP_OBJPOOL_MAX (1u << 24)

struct ukp_objshard {
	uint64_t head;
	uint64_t pad[7]; /* a cache line each */
};

struct ukp_objpool {
	uint32_t n;
	uint32_t nr_shards;
	uint64_t off_next; /* from here */
	uint64_t pad[6];
	uint64_t fresh;
	uint64_t pad2[7];
	struct ukp_objshard shards[];
};

static inline uint64_t ukp_objpool_size(uint32_t n, uint32_t nr_shards)
{
	return sizeof(struct ukp_objpool) + (uint64_t)nr_shards * sizeof(struct ukp_objshard) +
	       (((uint64_t)n * sizeof(uint32_t) + 63) & ~63ull);
}

#endif
