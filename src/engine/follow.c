/* SPDX-License-Identifier: MIT */
/*
 * Calls that are followed, by the mechanism that the entry's action names: the
 * pair of entry and exit, whose records are in the table of frames; or by a stub
 * (rethook.c).
 */
#include "engine/follow.h"

#include "engine/arch.h"
#include "engine/frames_in.h"
#include "engine/rethook.h"

#define SWEEP_EVERY 16 /* uses of a record */

/* Part of a hit's one way through, whoever else calls it. */
#define INLINE static inline __attribute__((always_inline))

static struct ukp_frames *frames(const struct ukp_ctl *ctl)
{
	struct ukp_priv *priv = (struct ukp_priv *)ctl->priv;

	return (struct ukp_frames *)((char *)priv + priv->off_frames);
}

/* The owner of a stub, or NULL. */
INLINE const struct ukp_instance *stub_owner(const struct ukp_ctl *ctl, uint64_t addr)
{
	struct ukp_priv *priv = (struct ukp_priv *)ctl->priv;
	uint32_t index = ukp_rethook_index(ctl, addr);

	return index == UINT32_MAX
	               ? NULL
	               : (struct ukp_instance *)((char *)priv + priv->off_instances) + index;
}

/* Where the function will return to: a stub on the frame's word stands for its owner's address. */
INLINE bool return_address(struct ukp_hit *hit, uint64_t *addr)
{
	const struct ukp_instance *owner;

	if (__builtin_expect(hit->flags & UKP_HIT_NOREAD, 0))
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

	ukp_hit_init(&gone, hit->ctl, NULL, hit->regs, UKP_HIT_UNWOUND);
	gone.inst = inst;
	gone.fpstate = hit->fpstate;
	gone.tsc = hit->tsc;
	gone.cpu = hit->cpu;
	((ukp_action_fn)inst->fn)(&gone, inst->ctx);
}

/* A record that is being made. */
struct making {
	uint64_t *at; /* its word */
	uint64_t h;   /* the hash of its key */
	struct ukp_instance *inst;
};

/*
 * True: counted in hits, if that isn't NULL.  Locked instructions stand side by side:
 * what is loaded between two of them waits for both.
 */
INLINE bool begin_record(struct ukp_hit *hit, ukp_action_fn fn, uint64_t ctx, uint64_t key,
                         uint64_t *hits, enum ukp_miss *why, struct making *m)
{
	struct ukp_frames *t = frames(hit->ctl);
	const uint64_t frame = hit->regs->sp;
	struct ukp_instance *inst;
	uint64_t addr;
	bool stale;

	*why = UKP_MISS_FRAME;
	if (!return_address(hit, &addr))
		return false;
	*why = UKP_MISS_ARENA;
	m->h = frames_hash(frame, key);
	m->at = frames_claim(t, m->h, frame, key, &stale);
	if (!m->at)
		return false;
	if (hits)
		ukp_count(hits);
	m->inst = inst = frames_record(t, m->at);
	if (__builtin_expect(stale, 0))
		drop(hit, inst);
	/* Relaxed: a scan may look at a record that isn't in the table any more. */
	__atomic_store_n(&inst->ret_addr, addr, __ATOMIC_RELAXED);
	__atomic_store_n(&inst->frame, frame, __ATOMIC_RELAXED);
	__atomic_store_n(&inst->key, key, __ATOMIC_RELAXED);
	inst->fn = (uint64_t)fn;
	inst->ctx = ctx;
	inst->func = hit->site->addr;
	inst->tsc = hit->tsc;
	inst->flags = hit->flags;
	return true;
}

struct ukp_instance *ukp_frame_get_by(struct ukp_hit *hit, ukp_action_fn fn, uint64_t ctx,
                                      uint64_t key, enum ukp_miss *why)
{
	struct making m;

	return begin_record(hit, fn, ctx, key, NULL, why, &m) ? m.inst : NULL;
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

/* Now and then an entry looks for calls that won't come to their exits. */
INLINE void published(struct ukp_hit *hit, const struct ukp_instance *inst)
{
	if (__builtin_expect(!(inst->gen % SWEEP_EVERY), 0) && !(hit->flags & UKP_HIT_NOREAD))
		look_around(hit, inst);
}

void ukp_frame_hook(struct ukp_hit *hit, struct ukp_instance *inst)
{
	ukp_frames_publish(frames(hit->ctl), inst);
	published(hit, inst);
}

void ukp_frames_drop(struct ukp_hit *hit, uint64_t where, uint64_t n,
                     bool (*which)(const struct ukp_instance *inst, void *arg), void *arg)
{
	struct ukp_frames *t = frames(hit->ctl);
	const uint64_t last = frames_probes(t) > 1 ? t->mask : t->near;
	struct ukp_instance *inst;

	for (n = n <= last ? n : last + 1; n--; where++)
		while ((inst = ukp_frames_sweep_bucket(t, &t->bucket[where & last], which, arg))) {
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
	off = (uint64_t)inst - (uint64_t)frames_records(t);
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
INLINE uint64_t pops(const struct ukp_site *site)
{
	const uint8_t *code = site->orig + (site->orig[0] == 0xf2 || site->orig[0] == 0xf3);

	if (__builtin_expect(site->orig[0] == 0xc3, 1))
		return 0;
	return code[0] == 0xc2 ? code[1] | (uint64_t)code[2] << 8 : 0;
}

int ukp_exit_hit(struct ukp_hit *hit, uint64_t key)
{
	struct ukp_frames *t = frames(hit->ctl);
	const uint64_t ip = hit->regs->ip, sp = hit->regs->sp;
	struct ukp_instance *inst;
	uint64_t *at = frames_take(t, sp, key, &inst);

	if (!at)
		return 0;
	hit->inst = inst;
	hit->regs->ip = inst->ret_addr;
	hit->regs->sp = sp + 8 + pops(hit->site);
	((ukp_action_fn)inst->fn)(hit, inst->ctx);
	hit->regs->ip = ip;
	hit->regs->sp = sp;
	hit->inst = NULL;
	frames_free(at);
	return 0;
}

/* --- by the mechanism of the action ------------------------------------------------ */

/*
 * Chosen once a call: it may change while one is on its way.  True: by exit sites.
 */
INLINE bool choose(struct ukp_hit *hit)
{
	/* Acquire: who finds the mark finds the exit sites, too. */
	uint32_t flags = __atomic_load_n(&hit->action->flags, __ATOMIC_ACQUIRE);

	_Static_assert(UKP_HIT_FRAMES == UKP_ACTION_FRAMES << 2, "moved as one");
	_Static_assert(UKP_HIT_SLOT == UKP_ACTION_SLOT << 2, "moved as one");
	hit->flags = (hit->flags & ~(UKP_HIT_FRAMES | UKP_HIT_SLOT)) |
	             (flags & (UKP_ACTION_FRAMES | UKP_ACTION_SLOT)) << 2;
	return flags & UKP_ACTION_FRAMES;
}

/* There may be a record of a call that began before the mark went. */
static bool may_have_record(const struct ukp_hit *hit)
{
	return __builtin_expect(
		__atomic_load_n(&hit->action->flags, __ATOMIC_RELAXED) & UKP_ACTION_EXITS, 0);
}

static __attribute__((noinline)) bool follow_by_record(struct ukp_hit *hit, ukp_action_fn fn,
                                                       uint64_t ctx, uint64_t data,
                                                       struct ukp_stat *stat)
{
	enum ukp_miss why;
	struct making m;

	if (!begin_record(hit, fn, ctx, (uint64_t)hit->action, &stat->hits, &why, &m))
		return ukp_hit_missed(stat, why);
	m.inst->data[0] = data;
	frames_publish(m.at, m.h, m.inst);
	published(hit, m.inst);
	return true;
}

static __attribute__((noinline)) bool drop_and_follow(struct ukp_hit *hit, ukp_action_fn fn,
                                                      uint64_t ctx, uint64_t data,
                                                      struct ukp_stat *stat)
{
	ukp_frame_drop(hit, (uint64_t)hit->action);
	return ukp_rethook_follow(hit, fn, ctx, data, stat);
}

bool ukp_follow(struct ukp_hit *hit, ukp_action_fn fn, uint64_t ctx, uint64_t data,
                struct ukp_stat *stat)
{
	if (choose(hit))
		return follow_by_record(hit, fn, ctx, data, stat);
	if (may_have_record(hit))
		return drop_and_follow(hit, fn, ctx, data, stat);
	return ukp_rethook_follow(hit, fn, ctx, data, stat);
}

struct ukp_instance *ukp_follow_get(struct ukp_hit *hit, ukp_action_fn fn, uint64_t ctx,
                                    enum ukp_miss *why)
{
	if (choose(hit))
		return ukp_frame_get_by(hit, fn, ctx, (uint64_t)hit->action, why);
	if (may_have_record(hit))
		ukp_frame_drop(hit, (uint64_t)hit->action);
	return ukp_rethook_get(hit, fn, ctx, why);
}

void ukp_follow_hook(struct ukp_hit *hit, struct ukp_instance *inst)
{
	if (hit->flags & UKP_HIT_FRAMES)
		ukp_frame_hook(hit, inst);
	else
		ukp_rethook_hook(hit, inst);
}
