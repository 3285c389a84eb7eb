/* SPDX-License-Identifier: MIT */
/* Finding calls that won't come back, and what their indices are good for then. */
#include "engine/orphans.h"

#include "engine/arch.h"
#include "engine/objpool.h"
#include "engine/rethook.h"

#define TRIES 8              /* from where a return address is looked for */
#define UNVEILED (64u << 10) /* of a stack; nobody says where it ends */
#define DEEPER (64u << 10)
#define AT_ONCE 64 /* words of a stack */

/* The stack of a return address; NULL: there is none, or no room for one. */
static uint64_t *stack_of(const struct ukp_ctl *ctl, uint64_t ret_addr, bool make)
{
	const uint64_t h = ret_addr * 0x9e3779b97f4a7c15ull >> 32;

	for (unsigned int i = 0; i < TRIES; i++) {
		struct ukp_bound *b = &ukp_priv_of(ctl)->bound[(h + i) % UKP_NR_BOUND];
		uint64_t key = __atomic_load_n(&b->ret_addr, __ATOMIC_RELAXED);

		if (!key && make)
			__atomic_compare_exchange_n(&b->ret_addr, &key, ret_addr, 0,
			                            __ATOMIC_RELAXED, __ATOMIC_RELAXED);
		if (key == ret_addr || (!key && make))
			return &b->head;
		if (!key)
			break;
	}
	return NULL;
}

bool ukp_orphans_may_bind(const struct ukp_ctl *ctl, uint64_t ret_addr)
{
	return stack_of(ctl, ret_addr, true);
}

void ukp_orphans_put(const struct ukp_ctl *ctl, struct ukp_instance *inst)
{
	ukp_objpool_push_to(ukp_rethook_pool(ctl), stack_of(ctl, inst->ret_addr, false),
	                    (uint32_t)(inst - ukp_rethook_instances(ctl)));
}

static uint32_t nr_used(const struct ukp_ctl *ctl)
{
	/* It may run past the end by the number of threads that found none. */
	uint64_t n = __atomic_load_n(&ukp_rethook_pool(ctl)->fresh, __ATOMIC_ACQUIRE);

	return n < ctl->nr_instances ? (uint32_t)n : ctl->nr_instances;
}

/*
 * The next n looks, by their number.  Who meets others here looks where they do, which
 * does no harm.
 */
static uint32_t look_from(const struct ukp_ctl *ctl, unsigned int n)
{
	uint64_t *looked = &ukp_priv_of(ctl)->looked,
		 from = __atomic_load_n(looked, __ATOMIC_RELAXED);

	__atomic_store_n(looked, from + n, __ATOMIC_RELAXED);
	return (uint32_t)from;
}

/*
 * Where a look goes: by the golden ratio some looks are spread evenly over all, for the
 * calls of a thread lie side by side, and twice as many as there are miss none.
 */
static uint32_t place_of(uint32_t look, uint32_t used)
{
	return (uint32_t)((uint64_t)(look * 0x9e3779b1u) * used >> 32);
}

/* Deeper: whose frame is up to so many bytes below sp is taken for lost in any case. */
static void end(struct ukp_hit *hit, unsigned int n, uint64_t deeper)
{
	struct ukp_instance *all = ukp_rethook_instances(hit->ctl);
	const uint32_t used = nr_used(hit->ctl);
	const uint64_t thread = hit->flags & UKP_HIT_NOREAD ? 0 : ukp_arch_thread();
	uint32_t look, i;

	if (!thread || !used)
		return;
	for (look = look_from(hit->ctl, n); n--; look++) {
		i = place_of(look, used);
		if (all[i].state == UKP_INST_LIVE && all[i].thread == thread &&
		    (hit->regs->sp - all[i].frame - 1 < deeper ||
		     ukp_rethook_is_lost(hit, &all[i])))
			ukp_rethook_bind(hit, &all[i]);
	}
}

void ukp_orphans_room(struct ukp_hit *hit, unsigned int n)
{
	end(hit, n, DEEPER);
}

static void unveil(const struct ukp_ctl *ctl, uint64_t *at, uint64_t word)
{
	const uint32_t index = ukp_rethook_index(ctl, word);

	/* Only that: what a stub's call has pushed is on its way back through us. */
	if (index != UINT32_MAX && word == ukp_ctl_stub(ctl, index) &&
	    ukp_rethook_instances(ctl)[index].bound)
		*(volatile uint64_t *)at = ukp_rethook_instances(ctl)[index].ret_addr;
}

void ukp_orphans_unveil(struct ukp_hit *hit, uint64_t sp)
{
	uint64_t word[AT_ONCE], at;
	size_t n = AT_ONCE, i;

	if (hit->flags & UKP_HIT_NOREAD || !ukp_orphans_any(hit->ctl))
		return;
	for (at = sp; n == AT_ONCE && at - sp < UNVEILED; at += sizeof(word)) {
		n -= (ukp_arch_copy(word, (void *)at, sizeof(word)) + 7) / 8;
		for (i = 0; i < n; i++)
			unveil(hit->ctl, (uint64_t *)at + i, word[i]);
	}
}

uint32_t ukp_orphans_take(struct ukp_hit *hit, uint64_t ret_addr)
{
	struct ukp_objpool *p = ukp_rethook_pool(hit->ctl);
	uint64_t *at = stack_of(hit->ctl, ret_addr, false);
	uint32_t index;

	if (!at)
		return UKP_OBJPOOL_NONE;
	index = ukp_objpool_pop_from(p, at);
	if (index != UKP_OBJPOOL_NONE)
		return index;
	end(hit, UKP_ORPHANS_LOOK, 0);
	return ukp_objpool_pop_from(p, at);
}

/* Some looks, n in all at most, until one is found. */
static uint32_t search(struct ukp_hit *hit, uint64_t ret_addr, uint32_t n)
{
	uint32_t index = UKP_OBJPOOL_NONE;
	uint64_t *at;

	for (; n >= UKP_ORPHANS_LOOK && index == UKP_OBJPOOL_NONE; n -= UKP_ORPHANS_LOOK) {
		end(hit, UKP_ORPHANS_LOOK, 0);
		at = stack_of(hit->ctl, ret_addr, false);
		if (at)
			index = ukp_objpool_pop_from(ukp_rethook_pool(hit->ctl), at);
	}
	return index;
}

/*
 * Each thread finds its own, and of these those of one place serve.  With many threads
 * and places that leave calls a few looks mostly find none, and there would be no end
 * to fresh indices.  So they are followed by many, but where those were for nothing.
 */
uint32_t ukp_orphans_find(struct ukp_hit *hit, uint64_t ret_addr)
{
	uint64_t *spared = &ukp_priv_of(hit->ctl)->spared, n;
	uint32_t index;

	if (ukp_rethook_pool(hit->ctl)->fresh < UKP_ORPHANS_FROM)
		return UKP_OBJPOOL_NONE;
	index = search(hit, ret_addr, UKP_ORPHANS_LOOK);
	if (index != UKP_OBJPOOL_NONE || !ukp_orphans_any(hit->ctl))
		return index;
	n = __atomic_load_n(spared, __ATOMIC_RELAXED);
	if (!n) {
		n = nr_used(hit->ctl);
		index = search(hit, ret_addr,
		               n < UKP_ORPHANS_MOST ? (uint32_t)n : UKP_ORPHANS_MOST);
		n = index == UKP_OBJPOOL_NONE ? UKP_ORPHANS_SPARED : 1;
	}
	__atomic_store_n(spared, n - 1, __ATOMIC_RELAXED);
	return index;
}
