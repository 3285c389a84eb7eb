/* SPDX-License-Identifier: MIT */
/* The table, and what of a record's way through it is rare; the rest is in frames_in.h. */
#include "engine/frames_in.h"

#define STATE(word) ((word)&0xff)

uint64_t ukp_frames_size(uint32_t n)
{
	return sizeof(struct ukp_frames) +
	       ukp_frames_buckets(n) * (sizeof(struct ukp_frames_bucket) +
	                                (uint64_t)UKP_FRAMES_WORDS * sizeof(struct ukp_instance));
}

void ukp_frames_init(struct ukp_frames *t, uint32_t n)
{
	t->mask = ukp_frames_buckets(n) - 1;
	t->near = t->mask < UKP_FRAMES_NEAR - 1 ? t->mask : UKP_FRAMES_NEAR - 1;
	t->others = t->near < t->mask ? 2 : 1;
	t->off_records = sizeof(*t) + ((uint64_t)t->mask + 1) * sizeof(t->bucket[0]);
}

static uint64_t *word_of(struct ukp_frames *t, const struct ukp_instance *inst)
{
	return &t->bucket[0].word[inst - frames_records(t)];
}

static struct ukp_instance *record_at(const struct ukp_frames *t, const uint64_t *at)
{
	return at ? frames_record(t, at) : NULL;
}

uint64_t *ukp_frames_find_further(struct ukp_frames *t, uint64_t h, uint64_t frame, uint64_t key)
{
	struct ukp_instance *inst;
	uint64_t *at = NULL;

	for (unsigned int i = 1; !at && i < frames_probes(t); i++)
		at = frames_find(t, frames_bucket(t, h, i), h, frame, key, &inst);
	return at;
}

struct ukp_instance *ukp_frames_take(struct ukp_frames *t, uint64_t frame, uint64_t key)
{
	struct ukp_instance *inst;

	return frames_take(t, frame, key, &inst) ? inst : NULL;
}

static uint64_t *claim_free(struct ukp_frames_bucket *b)
{
	for (uint64_t *at = b->word; at < b->word + UKP_FRAMES_WORDS; at++) {
		UKP_STEP();
		if (!__atomic_load_n(at, __ATOMIC_RELAXED) && frames_claim_word(at, 0))
			return at;
	}
	return NULL;
}

static uint64_t *claim_further(struct ukp_frames *t, uint64_t h)
{
	uint64_t *at = NULL;

	/* Before the word, see frames_probes(). */
	__atomic_store_n(&t->spilled, 1, __ATOMIC_RELEASE);
	for (unsigned int i = 1; !at && i <= t->others; i++)
		at = claim_free(frames_bucket(t, h, i));
	return at;
}

uint64_t *ukp_frames_claim_among_others(struct ukp_frames *t, uint64_t h, uint64_t frame,
                                        uint64_t key, bool *stale)
{
	struct ukp_frames_bucket *first = frames_bucket(t, h, 0);
	struct ukp_instance *inst;
	uint64_t *at = frames_find(t, first, h, frame, key, &inst);

	if (!at && frames_probes(t) > 1)
		at = ukp_frames_find_further(t, h, frame, key);
	*stale = at != NULL;
	if (at)
		return at;
	at = claim_free(first);
	return at ? at : claim_further(t, h);
}

struct ukp_instance *ukp_frames_claim(struct ukp_frames *t, uint64_t frame, uint64_t key,
                                      bool *stale)
{
	return record_at(t, frames_claim(t, frames_hash(frame, key), frame, key, stale));
}

void ukp_frames_publish(struct ukp_frames *t, struct ukp_instance *inst)
{
	frames_publish(word_of(t, inst), frames_hash(inst->frame, inst->key), inst);
}

void ukp_frames_free(struct ukp_frames *t, struct ukp_instance *inst)
{
	frames_free(word_of(t, inst));
}

struct ukp_instance *
ukp_frames_sweep_bucket(struct ukp_frames *t, struct ukp_frames_bucket *b,
                        bool (*is_dead)(const struct ukp_instance *inst, void *arg), void *arg)
{
	for (unsigned int i = 0; i < UKP_FRAMES_WORDS; i++) {
		uint64_t *at = &b->word[i], word;

		UKP_STEP();
		word = __atomic_load_n(at, __ATOMIC_ACQUIRE);
		if (STATE(word) != UKP_FRAME_LIVE)
			continue;
		UKP_STEP();
		if (is_dead(frames_record(t, at), arg) && frames_claim_word(at, word))
			return frames_record(t, at);
	}
	return NULL;
}

struct ukp_instance *ukp_frames_sweep(struct ukp_frames *t, uint64_t where,
                                      bool (*is_dead)(const struct ukp_instance *inst, void *arg),
                                      void *arg)
{
	const uint64_t h = frames_hash(where, 0);

	/* Half of the looks are where most records are. */
	return ukp_frames_sweep_bucket(
		t, frames_bucket(t, h, frames_probes(t) > 1 ? h >> 20 & 1 : 0), is_dead, arg);
}
