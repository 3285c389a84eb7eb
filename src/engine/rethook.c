/* SPDX-License-Identifier: MIT */
/*
 * Instances and their way from an entry to a return.
 *
 * Order matters only against the broker, which looks while all threads stand
 * still and none is inside the agent: so an instance is complete and LIVE
 * before the frame's word names it, and free after the word was used.
 */
#include "engine/rethook.h"

#include "engine/arch.h"
#include "engine/objpool_in.h"
#include "engine/orphans.h"

/* Part of a hit's one way through, whoever else calls it. */
#define INLINE static inline __attribute__((always_inline))

uint32_t ukp_rethook_index_near(const struct ukp_ctl *ctl, uint64_t off)
{
	uint64_t index = off / UKP_STUB_SIZE;

	if (off >= ctl->stub_chunk)
		index = off / ctl->stub_chunk * ctl->stubs_per_chunk +
		        off % ctl->stub_chunk / UKP_STUB_SIZE;
	return index >= ctl->nr_instances ? UINT32_MAX : (uint32_t)index;
}

struct ukp_instance *ukp_rethook_owner(const struct ukp_ctl *ctl, uint64_t frame, uint64_t word)
{
	uint32_t index = ukp_rethook_index(ctl, word);
	struct ukp_instance *inst = index == UINT32_MAX ? NULL : &ukp_rethook_instances(ctl)[index];

	/* A copied stack shows stubs of another life: keep off. */
	return inst && inst->state == UKP_INST_LIVE && inst->frame == frame ? inst : NULL;
}

/* The frame's word: what the call pushed, or a stub that is already there. */
INLINE bool read_frame(struct ukp_hit *hit, uint64_t *word)
{
	if (__builtin_expect(hit->flags & UKP_HIT_NOREAD, 0)) {
		*word = *(uint64_t *)hit->regs->sp;
		return true;
	}
	return !ukp_arch_copy(word, (void *)hit->regs->sp, 8);
}

/* Fresh indices only when no orphan's serves, so that there is an end to them. */
static __attribute__((noinline)) uint32_t take_rare(struct ukp_hit *hit, uint64_t ret_addr)
{
	uint32_t index = ukp_orphans_find(hit, ret_addr);

	return index != UKP_OBJPOOL_NONE ? index
	                                 : ukp_objpool_pop(ukp_rethook_pool(hit->ctl), hit->cpu);
}

INLINE uint32_t take_index(struct ukp_hit *hit, uint64_t ret_addr)
{
	struct ukp_objpool *p = ukp_rethook_pool(hit->ctl);
	uint64_t seen = 0;
	uint32_t index;

	if (__builtin_expect(ukp_orphans_any(hit->ctl), 0)) {
		index = ukp_orphans_take(hit, ret_addr);
		if (index != UKP_OBJPOOL_NONE)
			return index;
	}
	/* Of what has been out before, on this CPU. */
	index = pool_pop(p, pool_own(p, hit->cpu), &seen);
	return __builtin_expect(index != UKP_OBJPOOL_NONE, 1) ? index : take_rare(hit, ret_addr);
}

/* Where the call returns to, behind whose stub stands there already; false: it can't be said. */
static __attribute__((noinline)) bool behind_stub(const struct ukp_hit *hit, uint64_t *word)
{
	const struct ukp_instance *owner = ukp_rethook_owner(hit->ctl, hit->regs->sp, *word);

	if (owner)
		*word = owner->ret_addr;
	return owner;
}

/* more: flags of the instance, UKP_INST_*. */
INLINE struct ukp_instance *get(struct ukp_hit *hit, ukp_action_fn fn, uint64_t ctx, uint32_t more,
                                uint32_t *index, enum ukp_miss *why)
{
	struct ukp_instance *inst;
	uint64_t word;

	*why = UKP_MISS_FRAME;
	if (!read_frame(hit, &word))
		return NULL;
	if (__builtin_expect(ukp_rethook_index(hit->ctl, word) != UINT32_MAX, 0) &&
	    !behind_stub(hit, &word))
		return NULL;
	*why = UKP_MISS_ARENA;
	*index = take_index(hit, word);
	if (*index == UKP_OBJPOOL_NONE)
		return NULL;
	inst = &ukp_rethook_instances(hit->ctl)[*index];
	inst->ret_addr = word;
	inst->frame = hit->regs->sp;
	inst->fn = (uint64_t)fn;
	inst->ctx = ctx;
	inst->func = hit->site ? hit->site->addr : 0;
	inst->tsc = hit->tsc;
	inst->thread = __builtin_expect(hit->flags & UKP_HIT_NOREAD, 0) ? 0 : ukp_arch_thread();
	inst->flags = hit->flags | more | ukp_hit_process(hit->ctl) << UKP_INST_PROCESS_SHIFT;
	inst->chain = 0;
	return inst;
}

struct ukp_instance *ukp_rethook_get(struct ukp_hit *hit, ukp_action_fn fn, uint64_t ctx,
                                     enum ukp_miss *why)
{
	uint32_t index;

	return get(hit, fn, ctx, 0, &index, why);
}

/* For signal handlers of this thread: nothing is moved over it. */
static void set_flags(struct ukp_instance *inst, uint32_t flags)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&inst->flags, flags, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

INLINE uint32_t index_of(const struct ukp_ctl *ctl, const struct ukp_instance *inst)
{
	return (uint32_t)(inst - ukp_rethook_instances(ctl));
}

INLINE void put(const struct ukp_ctl *ctl, struct ukp_instance *inst, uint32_t index, uint32_t cpu)
{
	struct ukp_objpool *p = ukp_rethook_pool(ctl);

	__atomic_store_n(&inst->state, UKP_INST_FREE, __ATOMIC_RELEASE);
	if (__builtin_expect(inst->bound, 0))
		ukp_orphans_put(ctl, inst);
	else
		pool_push(p, pool_own(p, cpu), index);
}

void ukp_rethook_put(struct ukp_ctl *ctl, struct ukp_instance *inst)
{
	put(ctl, inst, index_of(ctl, inst), ukp_arch_cpu(ctl));
}

/*
 * From here on the call is the caller's to end.  False: it isn't under way any more,
 * or a signal handler of this thread has come between.
 */
static bool claim(struct ukp_instance *owner)
{
	return owner->state == UKP_INST_LIVE && ukp_arch_set_bit(&owner->flags, 31);
}

/*
 * Run and free the whole frame's records, claimed: the chain, newest first, then the
 * owner.  Those that began before this process was forked are its parent's.
 */
INLINE void finish(struct ukp_hit *hit, struct ukp_instance *owner, uint32_t index)
{
	struct ukp_instance *all = ukp_rethook_instances(hit->ctl), *inst;
	const uint32_t process = ukp_hit_process(hit->ctl);
	uint32_t next = owner->chain, i;

	do {
		i = next ? next - 1 : index;
		inst = &all[i];
		next = inst == owner ? 0 : inst->chain;
		hit->inst = inst;
		/* The thread may be stopped behind it, and looked at. */
		set_flags(inst, inst->flags | UKP_INST_RETURNING);
		hit->flags = (hit->flags & UKP_HIT_UNWOUND) | (inst->flags & UKP_HIT_NOREAD);
		if ((inst->flags >> UKP_INST_PROCESS_SHIFT & UKP_INST_PROCESS) == process)
			((ukp_action_fn)inst->fn)(hit, inst->ctx);
		put(hit->ctl, inst, i, hit->cpu);
	} while (inst != owner);
}

/* A call whose return won't be seen. */
static __attribute__((noinline)) void unwind(const struct ukp_hit *hit, struct ukp_instance *owner)
{
	struct ukp_hit drop;

	ukp_hit_init(&drop, hit->ctl, NULL, hit->regs, UKP_HIT_UNWOUND);
	drop.tsc = hit->tsc;
	drop.cpu = hit->cpu;
	finish(&drop, owner, index_of(hit->ctl, owner));
}

/*
 * The frame as it is now: since ukp_rethook_get() a handler may have hooked it,
 * unwound it, or given it another return address.  False: it can't be hooked.
 */
static bool look_again(struct ukp_hit *hit, struct ukp_instance *inst, struct ukp_instance **owner)
{
	uint64_t word = *(volatile uint64_t *)inst->frame;

	*owner = ukp_rethook_owner(hit->ctl, inst->frame, word);
	if (word == inst->ret_addr || ukp_rethook_index(hit->ctl, word) != UINT32_MAX)
		return true;
	if (inst->bound)
		return false;
	inst->ret_addr = word;
	return true;
}

/*
 * Nobody's stub stands there, and the instance is complete, with UKP_INST_COMING: from
 * here on signal handlers may end the call.
 */
INLINE void place(struct ukp_hit *hit, struct ukp_instance *inst, uint32_t index)
{
	hit->stub_inst = inst;
	hit->stub = ukp_ctl_stub(hit->ctl, index);
	__atomic_store_n(&inst->state, UKP_INST_LIVE, __ATOMIC_RELEASE);
	*(volatile uint64_t *)inst->frame = hit->stub;
	set_flags(inst, inst->flags & ~UKP_INST_COMING);
}

void ukp_rethook_hook(struct ukp_hit *hit, struct ukp_instance *inst)
{
	const uint32_t index = index_of(hit->ctl, inst);
	struct ukp_instance *owner;

	if (!look_again(hit, inst, &owner)) {
		unwind(hit, inst);
		return;
	}
	if (!owner) {
		set_flags(inst, inst->flags | UKP_INST_COMING);
		place(hit, inst, index);
		return;
	}
	set_flags(inst, inst->flags & ~UKP_INST_COMING);
	inst->chain = owner->chain;
	__atomic_store_n(&inst->state, UKP_INST_CHAIN, __ATOMIC_RELEASE);
	__atomic_store_n(&owner->chain, index + 1, __ATOMIC_RELEASE);
}

bool ukp_rethook_follow(struct ukp_hit *hit, ukp_action_fn fn, uint64_t ctx, uint64_t data,
                        struct ukp_stat *stat)
{
	enum ukp_miss why;
	uint32_t index;
	struct ukp_instance *inst = get(hit, fn, ctx, UKP_INST_COMING, &index, &why);

	if (!inst)
		return ukp_hit_missed(stat, why);
	ukp_count(&stat->hits);
	inst->data[0] = data;
	/* A return address is no stub, so this is nobody's. */
	if (__builtin_expect(*(volatile uint64_t *)inst->frame == inst->ret_addr, 1))
		place(hit, inst, index);
	else
		ukp_rethook_hook(hit, inst);
	return true;
}

/*
 * Signal handlers of this thread may look at the frame at any moment, and may end
 * the call.  Whoever finds the return address there leaves the call alone, and it
 * is put there in one instruction.
 */
static int call_in_place(struct pt_regs *regs, struct ukp_instance *owner, uint64_t stub)
{
	if (owner->flags & UKP_HIT_SLOT)
		return 0;
	set_flags(owner, owner->flags | UKP_INST_CALLED | UKP_INST_COMING);
	if (!ukp_arch_swap((uint64_t *)regs->sp, stub, owner->ret_addr))
		return 0;
	regs->ss = stub - UKP_STUB_WAY_IN;
	return -1;
}

int ukp_rethook_call_own(const struct ukp_hit *hit)
{
	struct ukp_instance *inst = hit->stub_inst;

	/* Since it was put there a signal handler may have ended the call. */
	if (*(volatile uint64_t *)hit->regs->sp != hit->stub || inst->state != UKP_INST_LIVE ||
	    inst->frame != hit->regs->sp)
		return 0;
	return call_in_place(hit->regs, inst, hit->stub);
}

int ukp_rethook_call(const struct ukp_ctl *ctl, struct pt_regs *regs, uint64_t before)
{
	uint64_t word = *(volatile uint64_t *)regs->sp;
	struct ukp_instance *owner;

	if (word == before)
		return 0;
	owner = ukp_rethook_owner(ctl, regs->sp, word);
	return owner ? call_in_place(regs, owner, word) : 0;
}

/*
 * From here on the frame's word says that its call is returning: the stub's call
 * has pushed that, behind the stub.  False: a signal handler has ended the call
 * since the function has left, and given the word its return address.
 *
 * With ret imm16 the word lies where our registers are by now, and nobody can have
 * found it since.
 */
static bool begin_return(struct ukp_instance *owner, uint64_t frame, uint64_t pushed)
{
	if (ukp_arch_swap((uint64_t *)frame, pushed - UKP_STUB_CALL, pushed))
		return true;
	return owner->state == UKP_INST_LIVE && frame - owner->frame - 1 < UINT16_MAX;
}

bool ukp_return(struct pt_regs *regs, uint64_t pushed)
{
	struct ukp_ctl *ctl = ukp_engine_ctl();
	const uint32_t index = ukp_rethook_index_near(ctl, pushed - ctl->stubs);
	struct ukp_instance *owner = &ukp_rethook_instances(ctl)[index];
	const uint64_t frame = regs->sp - 8;
	struct ukp_hit hit;
	bool called;

	if (__builtin_expect(!begin_return(owner, frame, pushed), 0)) {
		regs->ip = *(uint64_t *)frame;
		return false;
	}
	regs->ip = owner->ret_addr;
	/* One that was taken for lost: only where it goes is known (engine/orphans.h). */
	if (!claim(owner))
		return false;
	ukp_hit_init(&hit, ctl, NULL, regs, 0);
	hit.cpu = ukp_arch_cpu(ctl);
	called = owner->flags & UKP_INST_CALLED;
	finish(&hit, owner, index);
	return called;
}

enum { CALL_LIVE, CALL_DEAD, CALL_GONE, CALL_COMING, CALL_RETURNING };

static int call_state(const struct ukp_ctl *ctl, const struct ukp_instance *inst, uint32_t i,
                      uint64_t sp)
{
	uint64_t word;

	if (inst->frame < sp)
		return CALL_DEAD;
	/* A coroutine's stack may be gone. */
	if (ukp_arch_copy(&word, (void *)inst->frame, 8))
		return CALL_GONE;
	if (word == ukp_ctl_stub(ctl, i))
		return CALL_LIVE;
	if (inst->flags & UKP_INST_COMING && (word == inst->ret_addr || ukp_in_slots(ctl, word)))
		return CALL_COMING;
	return ukp_rethook_index(ctl, word) == i ? CALL_RETURNING : CALL_DEAD;
}

void ukp_rethook_flush(struct ukp_hit *hit, uint64_t from, uint64_t to, uint64_t sp)
{
	struct ukp_ctl *ctl = hit->ctl;
	struct ukp_instance *all = ukp_rethook_instances(ctl);
	uint64_t thread = hit->flags & UKP_HIT_NOREAD ? 0 : ukp_arch_thread();
	uint64_t n = __atomic_load_n(&ukp_rethook_pool(ctl)->fresh, __ATOMIC_ACQUIRE);
	uint32_t i;
	int state;

	/* fresh may run past the end by the number of threads that found none. */
	for (i = 0; i < n && i < ctl->nr_instances && thread; i++) {
		struct ukp_instance *inst = &all[i];

		if (inst->state != UKP_INST_LIVE || inst->thread != thread || inst->frame < from ||
		    inst->frame >= to)
			continue;
		state = call_state(ctl, inst, i, sp);
		if (state == CALL_GONE)
			/* It would fault each time. */
			ukp_rethook_bind(hit, inst);
		if (state == CALL_GONE || state == CALL_COMING || state == CALL_RETURNING ||
		    (state == CALL_DEAD && from >= sp))
			continue;
		if (!claim(inst))
			continue;
		if (state == CALL_LIVE)
			*(volatile uint64_t *)inst->frame = inst->ret_addr;
		unwind(hit, inst);
	}
}

/*
 * Called in place, it looks for good as if it were about to be.  But the frame that
 * is entered right now is nobody's whose stub isn't there.
 */
bool ukp_rethook_is_lost(const struct ukp_hit *hit, const struct ukp_instance *inst)
{
	const uint32_t i = (uint32_t)(inst - ukp_rethook_instances(hit->ctl));
	const int state = call_state(hit->ctl, inst, i, 0);

	return state == CALL_DEAD || state == CALL_GONE ||
	       (state == CALL_COMING && inst->frame == hit->regs->sp);
}

void ukp_rethook_bind(struct ukp_hit *hit, struct ukp_instance *inst)
{
	if (!ukp_orphans_may_bind(hit->ctl, inst->ret_addr) || !claim(inst))
		return;
	inst->bound = 1;
	((struct ukp_priv *)hit->ctl->priv)->any_bound = 1;
	unwind(hit, inst);
}

/*
 * The unwinder is about to walk this thread's stack: give it the true return
 * addresses of all frames that are still to come.
 */
int ukp_unwind_hit(struct ukp_hit *hit, uint64_t ctx)
{
	ukp_rethook_flush(hit, hit->regs->sp, UINT64_MAX, hit->regs->sp);
	ukp_orphans_unveil(hit, hit->regs->sp);
	return 0;
}

/* Put in the place of an instance's action when its client has left. */
int ukp_mute_return(struct ukp_hit *hit, uint64_t ctx)
{
	return 0;
}
