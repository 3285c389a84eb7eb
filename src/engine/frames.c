/* SPDX-License-Identifier: MIT */
/*
 * The table, and the way of a record through it.
 *
 * What a scan reads of a record may be of its next life.  The word tells: gen
 * has grown then, so the compare-exchange fails and the scan goes on.
 */
#include "engine/frames.h"

#include "engine/arch.h"
#include "engine/rethook.h"

#ifndef UKP_STEP
#define UKP_STEP() ((void)0)
#endif

#define STATE(word) ((word)&0xff)
#define TAG_MASK 0xffffff00u
#define SWEEP_EVERY 16 /* uses of a record */

/* Part of a hit's one way through, whoever else calls it. */
#define INLINE static inline __attribute__((always_inline))

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

INLINE uint64_t hash(uint64_t frame, uint64_t key)
{
	uint64_t h = (frame >> 3 ^ key << 7) * 0x9e3779b97f4a7c15ull;

	return h ^ h >> 32;
}

/* The lower half of a live word, by which a scan compares. */
static uint32_t live_half(uint64_t h)
{
	return ((uint32_t)h & TAG_MASK) | UKP_FRAME_LIVE;
}

static uint64_t live_word(uint64_t h, uint32_t gen)
{
	return (uint64_t)gen << 32 | live_half(h);
}

/* The first one, then the others: what the hash names behind the first few, and the next. */
INLINE struct ukp_frames_bucket *bucket_of(struct ukp_frames *t, uint64_t h, unsigned int probe)
{
	uint64_t i = h >> 24;

	if (!probe)
		return &t->bucket[i & t->near];
	i = (i + probe + 1 - t->others) & t->mask;
	return &t->bucket[i <= t->near && t->near < t->mask ? i + t->near + 1 : i];
}

static struct ukp_instance *records(const struct ukp_frames *t)
{
	return (struct ukp_instance *)((char *)t + t->off_records);
}

static struct ukp_instance *record_of(const struct ukp_frames *t, const uint64_t *word)
{
	return records(t) + (word - t->bucket[0].word);
}

static uint64_t *word_of(struct ukp_frames *t, const struct ukp_instance *inst)
{
	return &t->bucket[0].word[inst - records(t)];
}

static bool is_key(const struct ukp_instance *inst, uint64_t frame, uint64_t key)
{
	return __atomic_load_n(&inst->frame, __ATOMIC_RELAXED) == frame &&
	       __atomic_load_n(&inst->key, __ATOMIC_RELAXED) == key;
}

/* True: the record is ours. */
static bool claim_word(uint64_t *at, uint64_t word)
{
	UKP_STEP();
	/* Acquire: what its last owner did to the record comes before us. */
	return __atomic_compare_exchange_n(at, &word, UKP_FRAME_CLAIMED, 0, __ATOMIC_ACQUIRE,
	                                   __ATOMIC_RELAXED);
}

/* The lower half, little-endian: a part of what is written as a whole. */
static uint32_t half_of(const uint64_t *at)
{
	typedef uint32_t __attribute__((may_alias)) half;

	return __atomic_load_n((const half *)at, __ATOMIC_RELAXED);
}

/* The key's record in one bucket, claimed. */
INLINE struct ukp_instance *find(struct ukp_frames *t, struct ukp_frames_bucket *b, uint64_t h,
                                 uint64_t frame, uint64_t key)
{
	const uint32_t half = live_half(h);

	for (uint64_t *at = b->word; at < b->word + UKP_FRAMES_WORDS; at++) {
		uint64_t word;

		UKP_STEP();
		if (half_of(at) != half)
			continue;
		UKP_STEP();
		/* Acquire: the record was written before the word. */
		word = __atomic_load_n(at, __ATOMIC_ACQUIRE);
		if ((uint32_t)word != half)
			continue;
		UKP_STEP();
		if (is_key(record_of(t, at), frame, key) && claim_word(at, word))
			return record_of(t, at);
	}
	return NULL;
}

/* Acquire: who finds a word elsewhere has seen this before it was put there. */
static unsigned int probes(const struct ukp_frames *t)
{
	return __atomic_load_n(&t->spilled, __ATOMIC_ACQUIRE) ? 1 + t->others : 1;
}

/* Behind the first bucket: rare. */
static __attribute__((noinline)) struct ukp_instance *find_further(struct ukp_frames *t, uint64_t h,
                                                                   uint64_t frame, uint64_t key)
{
	struct ukp_instance *inst = NULL;

	for (unsigned int i = 1; !inst && i < probes(t); i++)
		inst = find(t, bucket_of(t, h, i), h, frame, key);
	return inst;
}

INLINE struct ukp_instance *take(struct ukp_frames *t, uint64_t frame, uint64_t key)
{
	const uint64_t h = hash(frame, key);
	struct ukp_instance *inst = find(t, bucket_of(t, h, 0), h, frame, key);

	return inst || probes(t) == 1 ? inst : find_further(t, h, frame, key);
}

struct ukp_instance *ukp_frames_take(struct ukp_frames *t, uint64_t frame, uint64_t key)
{
	return take(t, frame, key);
}

/* Mostly: a few calls are on their way, and they have other buckets. */
INLINE bool is_empty(const struct ukp_frames_bucket *b)
{
	const uint64_t *w = b->word;

	_Static_assert(UKP_FRAMES_WORDS == 8, "all are looked at, without a loop");
	UKP_STEP();
#define SEEN(i) __atomic_load_n(&w[i], __ATOMIC_RELAXED)
	return !(SEEN(0) | SEEN(1) | SEEN(2) | SEEN(3) | SEEN(4) | SEEN(5) | SEEN(6) | SEEN(7));
#undef SEEN
}

static struct ukp_instance *claim_free(struct ukp_frames *t, struct ukp_frames_bucket *b)
{
	for (uint64_t *at = b->word; at < b->word + UKP_FRAMES_WORDS; at++) {
		UKP_STEP();
		if (!__atomic_load_n(at, __ATOMIC_RELAXED) && claim_word(at, 0))
			return record_of(t, at);
	}
	return NULL;
}

static __attribute__((noinline)) struct ukp_instance *claim_further(struct ukp_frames *t,
                                                                    uint64_t h)
{
	struct ukp_instance *inst = NULL;

	/* Before the word, see probes(). */
	__atomic_store_n(&t->spilled, 1, __ATOMIC_RELEASE);
	for (unsigned int i = 1; !inst && i <= t->others; i++)
		inst = claim_free(t, bucket_of(t, h, i));
	return inst;
}

static __attribute__((noinline)) struct ukp_instance *
claim_among_others(struct ukp_frames *t, uint64_t h, uint64_t frame, uint64_t key, bool *stale)
{
	struct ukp_frames_bucket *first = bucket_of(t, h, 0);
	struct ukp_instance *inst = find(t, first, h, frame, key);

	if (!inst && probes(t) > 1)
		inst = find_further(t, h, frame, key);
	*stale = inst != NULL;
	if (inst)
		return inst;
	inst = claim_free(t, first);
	return inst ? inst : claim_further(t, h);
}

/* A bucket that was empty had no record of that key, and only its owner makes one. */
INLINE struct ukp_instance *claim(struct ukp_frames *t, uint64_t frame, uint64_t key, bool *stale)
{
	const uint64_t h = hash(frame, key);
	struct ukp_frames_bucket *b = bucket_of(t, h, 0);

	if (probes(t) == 1 && is_empty(b) && claim_word(b->word, 0)) {
		*stale = false;
		return record_of(t, b->word);
	}
	return claim_among_others(t, h, frame, key, stale);
}

struct ukp_instance *ukp_frames_claim(struct ukp_frames *t, uint64_t frame, uint64_t key,
                                      bool *stale)
{
	return claim(t, frame, key, stale);
}

INLINE void publish(struct ukp_frames *t, struct ukp_instance *inst)
{
	UKP_STEP();
	/* Release: the record is complete before it can be found. */
	__atomic_store_n(word_of(t, inst), live_word(hash(inst->frame, inst->key), ++inst->gen),
	                 __ATOMIC_RELEASE);
}

void ukp_frames_publish(struct ukp_frames *t, struct ukp_instance *inst)
{
	publish(t, inst);
}

void ukp_frames_free(struct ukp_frames *t, struct ukp_instance *inst)
{
	UKP_STEP();
	/* Release: we are done with the record before it can have another owner. */
	__atomic_store_n(word_of(t, inst), UKP_FRAME_FREE, __ATOMIC_RELEASE);
}

static struct ukp_instance *sweep(struct ukp_frames *t, struct ukp_frames_bucket *b,
                                  bool (*is_dead)(const struct ukp_instance *inst, void *arg),
                                  void *arg)
{
	for (unsigned int i = 0; i < UKP_FRAMES_WORDS; i++) {
		uint64_t *at = &b->word[i], word;

		UKP_STEP();
		word = __atomic_load_n(at, __ATOMIC_ACQUIRE);
		if (STATE(word) != UKP_FRAME_LIVE)
			continue;
		UKP_STEP();
		if (is_dead(record_of(t, at), arg) && claim_word(at, word))
			return record_of(t, at);
	}
	return NULL;
}

struct ukp_instance *ukp_frames_sweep(struct ukp_frames *t, uint64_t where,
                                      bool (*is_dead)(const struct ukp_instance *inst, void *arg),
                                      void *arg)
{
	const uint64_t h = hash(where, 0);

	/* Half of the looks are where most records are. */
	return sweep(t, bucket_of(t, h, probes(t) > 1 ? h >> 20 & 1 : 0), is_dead, arg);
}

/* --- the pair --------------------------------------------------------------------- */

static struct ukp_frames *frames(const struct ukp_ctl *ctl)
{
	struct ukp_priv *priv = (struct ukp_priv *)ctl->priv;

	return (struct ukp_frames *)((char *)priv + priv->off_frames);
}

/* The owner of a stub, or NULL. */
static const struct ukp_instance *stub_owner(const struct ukp_ctl *ctl, uint64_t addr)
{
	struct ukp_priv *priv = (struct ukp_priv *)ctl->priv;
	uint32_t index = ukp_rethook_index(ctl, addr);

	return index == UINT32_MAX
	               ? NULL
	               : (struct ukp_instance *)((char *)priv + priv->off_instances) + index;
}

/* Where the function will return to: a stub on the frame's word stands for its owner's address. */
static bool return_address(struct ukp_hit *hit, uint64_t *addr)
{
	const struct ukp_instance *owner;

	if (hit->flags & UKP_HIT_NOREAD)
		*addr = *(uint64_t *)hit->regs->sp;
	else if (ukp_arch_copy(addr, (void *)hit->regs->sp, 8))
		return false;
	owner = stub_owner(hit->ctl, *addr);
	if (owner)
		*addr = owner->ret_addr;
	return true;
}

/* A call that won't come to its exit; the record is ours. */
static __attribute__((noinline)) void drop(struct ukp_hit *hit, struct ukp_instance *inst)
{
	struct ukp_hit gone;

	gone.ctl = hit->ctl;
	gone.site = NULL;
	gone.inst = inst;
	gone.regs = hit->regs;
	gone.fpstate = hit->fpstate;
	gone.tsc = hit->tsc;
	gone.cpu = hit->cpu;
	gone.flags = UKP_HIT_UNWOUND;
	((ukp_action_fn)inst->fn)(&gone, inst->ctx);
}

struct ukp_instance *ukp_frame_get_by(struct ukp_hit *hit, ukp_action_fn fn, uint64_t ctx,
                                      uint64_t key, enum ukp_miss *why)
{
	struct ukp_instance *inst;
	uint64_t addr;
	bool stale;

	*why = UKP_MISS_FRAME;
	if (!return_address(hit, &addr))
		return NULL;
	*why = UKP_MISS_ARENA;
	inst = claim(frames(hit->ctl), hit->regs->sp, key, &stale);
	if (!inst)
		return NULL;
	if (__builtin_expect(stale, 0))
		drop(hit, inst);
	/* Relaxed: a scan may look at a record that isn't in the table any more. */
	__atomic_store_n(&inst->ret_addr, addr, __ATOMIC_RELAXED);
	__atomic_store_n(&inst->frame, hit->regs->sp, __ATOMIC_RELAXED);
	__atomic_store_n(&inst->key, key, __ATOMIC_RELAXED);
	inst->fn = (uint64_t)fn;
	inst->ctx = ctx;
	inst->func = hit->site->addr;
	inst->tsc = hit->tsc;
	inst->flags = hit->flags;
	return inst;
}

/*
 * The word of a live call holds its return address from the entry to the exit,
 * or a stub that somebody else has put there meanwhile, or what is about to be
 * called in place.
 */
bool ukp_frame_is_dead(const struct ukp_instance *inst, void *ctl)
{
	const uint64_t frame = __atomic_load_n(&inst->frame, __ATOMIC_RELAXED);
	uint64_t word;

	if (ukp_arch_copy(&word, (void *)frame, 8))
		return true;
	return word != __atomic_load_n(&inst->ret_addr, __ATOMIC_RELAXED) &&
	       !stub_owner(ctl, word) && !ukp_in_slots(ctl, word);
}

static __attribute__((noinline)) void look_around(struct ukp_hit *hit,
                                                  const struct ukp_instance *inst)
{
	struct ukp_frames *t = frames(hit->ctl);
	struct ukp_instance *dead = ukp_frames_sweep(t, (uint64_t)inst->gen << 8 ^ inst->frame,
	                                             ukp_frame_is_dead, hit->ctl);

	if (dead) {
		drop(hit, dead);
		ukp_frames_free(t, dead);
	}
}

void ukp_frame_hook(struct ukp_hit *hit, struct ukp_instance *inst)
{
	struct ukp_frames *t = frames(hit->ctl);

	publish(t, inst);
	if (!(inst->gen % SWEEP_EVERY) && !(hit->flags & UKP_HIT_NOREAD))
		look_around(hit, inst);
}

void ukp_frames_drop(struct ukp_hit *hit, uint64_t where, uint64_t n,
                     bool (*which)(const struct ukp_instance *inst, void *arg), void *arg)
{
	struct ukp_frames *t = frames(hit->ctl);
	const uint64_t last = probes(t) > 1 ? t->mask : t->near;
	struct ukp_instance *inst;

	for (n = n <= last ? n : last + 1; n--; where++)
		while ((inst = sweep(t, &t->bucket[where & last], which, arg))) {
			drop(hit, inst);
			ukp_frames_free(t, inst);
		}
}

uint32_t ukp_frame_index(const struct ukp_ctl *ctl, const struct ukp_instance *inst)
{
	const struct ukp_priv *priv = (struct ukp_priv *)ctl->priv;
	const struct ukp_frames *t = frames(ctl);
	uint64_t off;

	if (!priv->off_frames)
		return UINT32_MAX;
	off = (uint64_t)inst - (uint64_t)records(t);
	if (off >= ((uint64_t)t->mask + 1) * UKP_FRAMES_WORDS * sizeof(*inst))
		return UINT32_MAX;
	return (uint32_t)(off / sizeof(*inst));
}

void ukp_frame_put(struct ukp_ctl *ctl, struct ukp_instance *inst)
{
	ukp_frames_free(frames(ctl), inst);
}

void ukp_frame_drop(struct ukp_hit *hit, uint64_t key)
{
	struct ukp_frames *t = frames(hit->ctl);
	struct ukp_instance *inst = ukp_frames_take(t, hit->regs->sp, key);

	if (inst) {
		drop(hit, inst);
		ukp_frames_free(t, inst);
	}
}

/* What a return takes along beside its address: ret imm16, perhaps behind a prefix. */
static uint64_t pops(const struct ukp_site *site)
{
	const uint8_t *code = site->orig + (site->orig[0] == 0xf2 || site->orig[0] == 0xf3);

	return code[0] == 0xc2 ? code[1] | (uint64_t)code[2] << 8 : 0;
}

int ukp_exit_hit(struct ukp_hit *hit, uint64_t key)
{
	struct ukp_frames *t = frames(hit->ctl);
	const uint64_t ip = hit->regs->ip, sp = hit->regs->sp;
	struct ukp_instance *inst = take(t, sp, key);

	if (!inst)
		return 0;
	hit->inst = inst;
	hit->regs->ip = inst->ret_addr;
	hit->regs->sp = sp + 8 + pops(hit->site);
	((ukp_action_fn)inst->fn)(hit, inst->ctx);
	hit->regs->ip = ip;
	hit->regs->sp = sp;
	hit->inst = NULL;
	ukp_frames_free(t, inst);
	return 0;
}
