/* SPDX-License-Identifier: MIT */
/*
 * Which call is at home in a frame: records for the mechanism that leaves the
 * stack alone.
 *
 *	key	inst->frame and inst->key: where the call's return address lies,
 *		and who asked
 *	word	gen << 32 | tag << 8 | state;  0: free.  The word at a place
 *		stands for the record at the same place, an instance.
 *
 *   struct ukp_frames | bucket 0: 8 words | bucket 1 | ... | records
 *
 * A key's words are in the bucket that its hash names among the first few, so
 * that a few calls at a time use few pages; if that was full, in the one that it
 * names among the others, or the next one.  Who makes a free or LIVE word
 * CLAIMED, by compare-exchange, has the record and alone writes the word until it
 * is LIVE again, or free.  gen is the record's count of uses, so that a LIVE word
 * that looks the same is the same (but for 2^32 uses during one compare-exchange).
 */
#ifndef UKP_WIRE_FRAMES_H
#define UKP_WIRE_FRAMES_H

#include <stdint.h>

#define UKP_FRAMES_WORDS 8 /* a cache line */
#define UKP_FRAMES_NEAR 64 /* buckets that come first */

enum {
	UKP_FRAME_FREE,
	UKP_FRAME_CLAIMED,
	UKP_FRAME_LIVE,
};

struct ukp_frames_bucket {
	uint64_t word[UKP_FRAMES_WORDS];
};

struct ukp_frames {
	uint32_t mask;    /* buckets - 1 */
	uint32_t spilled; /* a word has been put elsewhere than where it belongs; stays */
	uint64_t off_records;
	uint32_t near;   /* of the mask: buckets that come first - 1 */
	uint32_t others; /* where a word may be else: so many buckets */
	uint64_t pad[5];
	struct ukp_frames_bucket bucket[];
};

/* So that n records find room but by great ill luck: four in a bucket, on average. */
static inline uint32_t ukp_frames_buckets(uint32_t n)
{
	uint32_t buckets = 2;

	while (buckets < n / 4)
		buckets *= 2;
	return buckets;
}

#endif
