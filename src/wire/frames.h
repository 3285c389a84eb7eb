/* SPDX-License-Identifier: MIT */
/*
 * Which call is at home in a frame: a table of instances for the mechanism that
 * leaves the stack alone.
 *
 *	key	inst->frame and inst->ctx: who asked, and where the call's return
 *		address lies
 *	word	gen << 40 | tag << 24 | index + 1;  0: free
 *
 *   struct ukp_frames | bucket 0: 8 words | bucket 1 | ...
 *
 * A key's words are in the bucket that its hash names or in the next one.  Each
 * word stands for itself: it goes from 0 to a record and from that record to 0,
 * both by compare-exchange, and whoever makes it 0 has the instance.  gen is the
 * instance's count of uses, so that a word that looks the same is the same (but
 * for 2^24 uses during one compare-exchange).
 */
#ifndef UKP_WIRE_FRAMES_H
#define UKP_WIRE_FRAMES_H

#include <stdint.h>

#define UKP_FRAMES_WORDS 8 /* a cache line */
#define UKP_FRAMES_PROBES 2

struct ukp_frames_bucket {
	uint64_t word[UKP_FRAMES_WORDS];
};

struct ukp_frames {
	uint32_t mask; /* buckets - 1 */
	uint32_t reserved;
	uint64_t pad[7];
	struct ukp_frames_bucket bucket[];
};

/* For n instances: at most two in a bucket, on average. */
static inline uint32_t ukp_frames_buckets(uint32_t n)
{
	uint32_t buckets = UKP_FRAMES_PROBES;

	while (buckets < n / 2)
		buckets *= 2;
	return buckets;
}

static inline uint64_t ukp_frames_size(uint32_t n)
{
	return sizeof(struct ukp_frames) +
	       (uint64_t)ukp_frames_buckets(n) * sizeof(struct ukp_frames_bucket);
}

#endif
