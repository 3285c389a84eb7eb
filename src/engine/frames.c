/* SPDX-License-Identifier: MIT */
/*
 * The table, and the way of a record through it.
 *
 * What a scan reads of an instance may be of its next life.  The word tells:
 * gen has grown then, so the compare-exchange fails and the scan goes on.
 */
#include "engine/frames.h"

#include "engine/arch.h"
#include "engine/objpool.h"
#include "engine/rethook.h"

#ifndef UKP_STEP
#define UKP_STEP() ((void)0)
#endif

#define INDEX(word) ((uint32_t)((word)&0xffffff) - 1)
#define TAG(word) ((uint16_t)((word) >> 24))

void ukp_frames_init(struct ukp_frames *t, uint32_t n)
{
	t->mask = ukp_frames_buckets(n) - 1;
}

static uint64_t hash(uint64_t frame, uint64_t ctx)
{
	uint64_t h = (frame >> 3 ^ ctx << 7) * 0x9e3779b97f4a7c15ull;

	return h ^ h >> 32;
}

static uint64_t *word_at(struct ukp_frames *t, uint64_t h, unsigned int i)
{
	uint64_t b = ((h >> 16) + i / UKP_FRAMES_WORDS) & t->mask;

	return &t->bucket[b].word[i % UKP_FRAMES_WORDS];
}

static bool is_key(const struct ukp_instance *inst, uint64_t frame, uint64_t ctx)
{
	return __atomic_load_n(&inst->frame, __ATOMIC_RELAXED) == frame &&
	       __atomic_load_n(&inst->ctx, __ATOMIC_RELAXED) == ctx;
}

/* True: the record is ours now. */
static bool take_word(uint64_t *at, uint64_t word)
{
	UKP_STEP();
	/* Acquire: what its owner wrote into the instance comes before us. */
	return __atomic_compare_exchange_n(at, &word, 0, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

uint32_t ukp_frames_take(struct ukp_frames *t, struct ukp_instance *all, uint64_t frame,
                         uint64_t ctx)
{
	const uint64_t h = hash(frame, ctx);

	for (unsigned int i = 0; i < UKP_FRAMES_PROBES * UKP_FRAMES_WORDS; i++) {
		uint64_t *at = word_at(t, h, i), word;

		UKP_STEP();
		/* Acquire: the instance's key was written before the word. */
		word = __atomic_load_n(at, __ATOMIC_ACQUIRE);
		if (!word || TAG(word) != (uint16_t)h)
			continue;
		UKP_STEP();
		if (is_key(&all[INDEX(word)], frame, ctx) && take_word(at, word))
			return INDEX(word);
	}
	return UKP_FRAMES_NONE;
}

static bool put_word(struct ukp_frames *t, uint64_t h, uint64_t word)
{
	for (unsigned int i = 0; i < UKP_FRAMES_PROBES * UKP_FRAMES_WORDS; i++) {
		uint64_t *at = word_at(t, h, i), free = 0;

		UKP_STEP();
		if (__atomic_load_n(at, __ATOMIC_RELAXED))
			continue;
		UKP_STEP();
		/* Release: the instance is complete before it can be found. */
		if (__atomic_compare_exchange_n(at, &free, word, 0, __ATOMIC_RELEASE,
		                                __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

bool ukp_frames_add(struct ukp_frames *t, struct ukp_instance *all, uint32_t index, uint32_t *stale)
{
	struct ukp_instance *inst = &all[index];
	const uint64_t h = hash(inst->frame, inst->ctx);

	*stale = ukp_frames_take(t, all, inst->frame, inst->ctx);
	inst->gen++;
	return put_word(t, h, (uint64_t)inst->gen << 40 | (h & 0xffff) << 24 | (index + 1));
}

uint32_t ukp_frames_sweep(struct ukp_frames *t, struct ukp_instance *all, uint64_t where,
                          bool (*is_dead)(const struct ukp_instance *inst, void *arg), void *arg)
{
	struct ukp_frames_bucket *b = &t->bucket[hash(where, 0) >> 16 & t->mask];

	for (unsigned int i = 0; i < UKP_FRAMES_WORDS; i++) {
		uint64_t word;

		UKP_STEP();
		word = __atomic_load_n(&b->word[i], __ATOMIC_ACQUIRE);
		if (!word)
			continue;
		UKP_STEP();
		if (is_dead(&all[INDEX(word)], arg) && take_word(&b->word[i], word))
			return INDEX(word);
	}
	return UKP_FRAMES_NONE;
}

/* --- the records --------------------------------------------------------------- */

static struct ukp_priv *priv_of(const struct ukp_ctl *ctl)
{
	return (struct ukp_priv *)ctl->priv;
}

static struct ukp_instance *instances(const struct ukp_ctl *ctl)
{
	return (struct ukp_instance *)((char *)priv_of(ctl) + priv_of(ctl)->off_instances);
}

static struct ukp_objpool *pool(const struct ukp_ctl *ctl)
{
	return (struct ukp_objpool *)((char *)priv_of(ctl) + priv_of(ctl)->off_pool);
}

static struct ukp_frames *frames(const struct ukp_ctl *ctl)
{
	return (struct ukp_frames *)((char *)priv_of(ctl) + priv_of(ctl)->off_frames);
}

/* Where the function will return to: a stub on the frame's word stands for its owner's address. */
static bool return_address(struct ukp_hit *hit, uint64_t *addr)
{
	uint32_t owner;

	if (hit->flags & UKP_HIT_NOREAD)
		*addr = *(uint64_t *)hit->regs->sp;
	else if (ukp_arch_copy(addr, (void *)hit->regs->sp, 8))
		return false;
	owner = ukp_rethook_index(hit->ctl, *addr);
	if (owner != UINT32_MAX)
		*addr = instances(hit->ctl)[owner].ret_addr;
	return true;
}

struct ukp_instance *ukp_frame_get(struct ukp_hit *hit, ukp_action_fn fn, uint64_t ctx,
                                   enum ukp_miss *why)
{
	struct ukp_instance *inst;
	uint32_t index;
	uint64_t addr;

	*why = UKP_MISS_FRAME;
	if (!return_address(hit, &addr))
		return NULL;
	*why = UKP_MISS_ARENA;
	index = ukp_objpool_pop(pool(hit->ctl), hit->cpu);
	if (index == UKP_OBJPOOL_NONE)
		return NULL;
	inst = &instances(hit->ctl)[index];
	inst->ret_addr = addr;
	/* Relaxed: a scan may look at an instance that isn't in the table any more. */
	__atomic_store_n(&inst->frame, hit->regs->sp, __ATOMIC_RELAXED);
	__atomic_store_n(&inst->ctx, ctx, __ATOMIC_RELAXED);
	inst->fn = (uint64_t)fn;
	inst->func = hit->site->addr;
	inst->tsc = hit->tsc;
	inst->thread = 0;
	inst->chain = 0;
	inst->flags = hit->flags;
	return inst;
}

/* A call that won't come to its exit. */
static void drop(struct ukp_hit *hit, uint32_t index)
{
	struct ukp_instance *inst = &instances(hit->ctl)[index];
	struct ukp_hit gone = { .ctl = hit->ctl,
		                .inst = inst,
		                .regs = hit->regs,
		                .tsc = hit->tsc,
		                .cpu = hit->cpu,
		                .flags = UKP_HIT_UNWOUND };

	((ukp_action_fn)inst->fn)(&gone, inst->ctx);
	ukp_rethook_put(hit->ctl, inst);
}

/*
 * The word of a live call holds its return address from the entry to the exit,
 * or a stub that somebody else has put there meanwhile.
 */
static bool is_dead(const struct ukp_instance *inst, void *arg)
{
	const struct ukp_ctl *ctl = arg;
	const uint64_t frame = __atomic_load_n(&inst->frame, __ATOMIC_RELAXED);
	uint64_t word;

	if (ukp_arch_copy(&word, (void *)frame, 8))
		return true;
	return word != __atomic_load_n(&inst->ret_addr, __ATOMIC_RELAXED) &&
	       ukp_rethook_index(ctl, word) == UINT32_MAX;
}

bool ukp_frame_hook(struct ukp_hit *hit, struct ukp_instance *inst)
{
	struct ukp_instance *all = instances(hit->ctl);
	struct ukp_frames *t = frames(hit->ctl);
	uint32_t stale;
	bool added;

	__atomic_store_n(&inst->state, UKP_INST_EXIT, __ATOMIC_RELEASE);
	added = ukp_frames_add(t, all, (uint32_t)(inst - all), &stale);
	if (!added)
		ukp_rethook_put(hit->ctl, inst);
	if (stale == UKP_FRAMES_NONE && !(hit->flags & UKP_HIT_NOREAD))
		stale = ukp_frames_sweep(t, all, hit->tsc, is_dead, hit->ctl);
	if (stale != UKP_FRAMES_NONE)
		drop(hit, stale);
	return added;
}

int ukp_exit_hit(struct ukp_hit *hit, uint64_t ctx)
{
	struct ukp_instance *all = instances(hit->ctl), *inst;
	const uint64_t ip = hit->regs->ip, sp = hit->regs->sp;
	const uint32_t index = ukp_frames_take(frames(hit->ctl), all, sp, ctx);

	if (index == UKP_FRAMES_NONE)
		return 0;
	inst = &all[index];
	hit->inst = inst;
	hit->regs->ip = inst->ret_addr;
	hit->regs->sp = sp + 8;
	((ukp_action_fn)inst->fn)(hit, inst->ctx);
	hit->regs->ip = ip;
	hit->regs->sp = sp;
	hit->inst = NULL;
	ukp_rethook_put(hit->ctl, inst);
	return 0;
}
