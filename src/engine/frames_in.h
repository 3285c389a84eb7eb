/* SPDX-License-Identifier: MIT */
/*
 * What a hit does with the table of frames (frames.h), mostly: inline, for a call
 * and its return take as long as twenty other instructions.  A word's place says
 * where its record is, and the other way round.
 *
 * What a scan reads of a record may be of its next life.  The word tells: gen
 * has grown then, so the compare-exchange fails and the scan goes on.
 */
#ifndef UKP_ENGINE_FRAMES_IN_H
#define UKP_ENGINE_FRAMES_IN_H

#include "engine/arch.h"
#include "engine/frames.h"

/* Before each access to shared memory: the model test stops there. */
#ifndef UKP_STEP
#define UKP_STEP() ((void)0)
#endif

#define FRAMES_TAG_MASK 0xffffff00u
#define FRAMES_LIKELY(x) __builtin_expect(!!(x), 1)
#define FRAMES_INLINE static inline __attribute__((always_inline))

#pragma GCC visibility push(hidden)

/* Behind the first bucket, or where that isn't empty.  The word's place; NULL: no record. */
uint64_t *ukp_frames_find_further(struct ukp_frames *t, uint64_t h, uint64_t frame, uint64_t key);
uint64_t *ukp_frames_claim_among_others(struct ukp_frames *t, uint64_t h, uint64_t frame,
                                        uint64_t key, bool *stale);
/* ukp_frames_sweep() of a bucket that is known. */
struct ukp_instance *
ukp_frames_sweep_bucket(struct ukp_frames *t, struct ukp_frames_bucket *b,
                        bool (*is_dead)(const struct ukp_instance *inst, void *arg), void *arg);

FRAMES_INLINE uint64_t frames_hash(uint64_t frame, uint64_t key)
{
	uint64_t h = (frame >> 3 ^ key << 7) * 0x9e3779b97f4a7c15ull;

	return h ^ h >> 32;
}

/* The lower half of a live word, by which a scan compares. */
FRAMES_INLINE uint32_t frames_live_half(uint64_t h)
{
	return ((uint32_t)h & FRAMES_TAG_MASK) | UKP_FRAME_LIVE;
}

/* The first one, then the others: what the hash names behind the first few, and the next. */
FRAMES_INLINE struct ukp_frames_bucket *frames_bucket(struct ukp_frames *t, uint64_t h,
                                                      unsigned int probe)
{
	uint64_t i = h >> 24;

	if (!probe)
		return &t->bucket[i & t->near];
	i = (i + probe + 1 - t->others) & t->mask;
	return &t->bucket[i <= t->near && t->near < t->mask ? i + t->near + 1 : i];
}

FRAMES_INLINE struct ukp_instance *frames_records(const struct ukp_frames *t)
{
	return (struct ukp_instance *)((char *)t + t->off_records);
}

FRAMES_INLINE struct ukp_instance *frames_record(const struct ukp_frames *t, const uint64_t *word)
{
	return frames_records(t) + (word - t->bucket[0].word);
}

FRAMES_INLINE bool frames_is_key(const struct ukp_instance *inst, uint64_t frame, uint64_t key)
{
	return __atomic_load_n(&inst->frame, __ATOMIC_RELAXED) == frame &&
	       __atomic_load_n(&inst->key, __ATOMIC_RELAXED) == key;
}

/* True: the record is ours. */
FRAMES_INLINE bool frames_claim_word(uint64_t *at, uint64_t word)
{
	UKP_STEP();
	/* Acquire: what its last owner did to the record comes before us. */
	return __atomic_compare_exchange_n(at, &word, UKP_FRAME_CLAIMED, 0, __ATOMIC_ACQUIRE,
	                                   __ATOMIC_RELAXED);
}

/* The lower half, little-endian: a part of what is written as a whole. */
FRAMES_INLINE uint32_t frames_half(const uint64_t *at)
{
	typedef uint32_t __attribute__((may_alias)) half;

	return __atomic_load_n((const half *)at, __ATOMIC_RELAXED);
}

/* The key's word in one bucket, its record claimed. */
FRAMES_INLINE uint64_t *frames_find(struct ukp_frames *t, struct ukp_frames_bucket *b, uint64_t h,
                                    uint64_t frame, uint64_t key, struct ukp_instance **inst)
{
	const uint32_t half = frames_live_half(h);

	for (uint64_t *at = b->word; at < b->word + UKP_FRAMES_WORDS; at++) {
		uint64_t word;

		UKP_STEP();
		if (frames_half(at) != half)
			continue;
		UKP_STEP();
		/* Acquire: the record was written before the word. */
		word = __atomic_load_n(at, __ATOMIC_ACQUIRE);
		if ((uint32_t)word != half)
			continue;
		UKP_STEP();
		*inst = frames_record(t, at);
		if (frames_is_key(*inst, frame, key) && frames_claim_word(at, word))
			return at;
	}
	return NULL;
}

/* How many buckets.  Acquire: who finds a word elsewhere has seen this before it was put there. */
FRAMES_INLINE unsigned int frames_probes(const struct ukp_frames *t)
{
	return __builtin_expect(__atomic_load_n(&t->spilled, __ATOMIC_ACQUIRE), 0) ? 1 + t->others
	                                                                           : 1;
}

FRAMES_INLINE uint64_t *frames_take(struct ukp_frames *t, uint64_t frame, uint64_t key,
                                    struct ukp_instance **inst)
{
	const uint64_t h = frames_hash(frame, key);
	uint64_t *at = frames_find(t, frames_bucket(t, h, 0), h, frame, key, inst);

	if (__builtin_expect(!at, 0) && frames_probes(t) > 1) {
		at = ukp_frames_find_further(t, h, frame, key);
		*inst = at ? frames_record(t, at) : NULL;
	}
	return at;
}

/* Mostly: a few calls are on their way, and they have other buckets. */
FRAMES_INLINE bool frames_is_empty(const struct ukp_frames_bucket *b)
{
	_Static_assert(UKP_FRAMES_WORDS == 8, "all are looked at");
	UKP_STEP();
	return !ukp_arch_any8(b->word);
}

/* A bucket that was empty had no record of that key, and only its owner makes one. */
FRAMES_INLINE uint64_t *frames_claim(struct ukp_frames *t, uint64_t h, uint64_t frame, uint64_t key,
                                     bool *stale)
{
	struct ukp_frames_bucket *b = frames_bucket(t, h, 0);

	if (FRAMES_LIKELY(frames_probes(t) == 1) && FRAMES_LIKELY(frames_is_empty(b)) &&
	    FRAMES_LIKELY(frames_claim_word(b->word, 0))) {
		*stale = false;
		return b->word;
	}
	return ukp_frames_claim_among_others(t, h, frame, key, stale);
}

/* h: the hash of inst's frame and key. */
FRAMES_INLINE void frames_publish(uint64_t *at, uint64_t h, struct ukp_instance *inst)
{
	UKP_STEP();
	/* Release: the record is complete before it can be found. */
	__atomic_store_n(at, (uint64_t)++inst->gen << 32 | frames_live_half(h), __ATOMIC_RELEASE);
}

FRAMES_INLINE void frames_free(uint64_t *at)
{
	UKP_STEP();
	/* Release: we are done with the record before it can have another owner. */
	__atomic_store_n(at, UKP_FRAME_FREE, __ATOMIC_RELEASE);
}

#pragma GCC visibility pop

#endif
