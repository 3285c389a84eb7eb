/* SPDX-License-Identifier: MIT */
/*
 * Nodes of <ukprobes/rethook.h> and their calls.
 *
 * A node is given back inside a guard, and rethook_free() clears handler, waits
 * for all guards and then drains the pool: so none is pushed behind it.  Whose
 * reference is the last puts the rethook on the list of the dead: freeing takes
 * a system call, which isn't for here.
 */
#include <errno.h>

#include "engine/arch.h"
#include "engine/rethook.h"
#include "lib/hit/pool.h"
#include "lib/hit/rethook.h"

static struct rethook *dead;

static rethook_handler_t handler_of(const struct rethook *rh)
{
	return __atomic_load_n(&rh->handler, __ATOMIC_ACQUIRE);
}

struct rethook_node *node_get(struct rethook *rh)
{
	struct rethook_node *node = handler_of(rh) ? pool_pop(&rh->pool) : NULL;

	if (node)
		node->rethook = rh;
	return node;
}

static void put_references(struct rethook *rh, unsigned int n)
{
	struct rethook *head;

	if (!pool_put(&rh->pool, n))
		return;
	head = __atomic_load_n(&dead, __ATOMIC_RELAXED);
	do {
		rh->ukp_next_dead = head;
	} while (!__atomic_compare_exchange_n(&dead, &head, rh, false, __ATOMIC_RELEASE,
	                                      __ATOMIC_RELAXED));
}

void rethook_drain(struct rethook *rh)
{
	unsigned int n = 1; /* its own */

	while (pool_pop(&rh->pool))
		n++;
	put_references(rh, n);
}

struct rethook *rethook_take_dead(void)
{
	/* Acquire: what the last users of them did comes before they are freed. */
	return __atomic_exchange_n(&dead, NULL, __ATOMIC_ACQUIRE);
}

void node_put(struct rethook_node *node)
{
	struct rethook *rh = node->rethook;

	if (handler_of(rh))
		pool_push(&rh->pool, node);
	else
		put_references(rh, 1);
}

struct returning {
	struct rethook_node *node;
	struct ukp_hit *hit;
	rethook_handler_t handler;
	struct guard *guard; /* NULL: there is none */
};

static void call_handler(void *arg, const void *saved)
{
	struct returning *r = arg;
	struct pt_regs *regs = r->hit->regs;
	struct lib_result result = { NULL, regs, r->hit->fpstate, saved };
	const struct where where = where_is(regs);

	if (r->guard)
		guard_push_result(r->guard, &result);
	r->handler(r->node, r->node->rethook->data, r->node->ret_addr, regs);
	if (r->guard)
		guard_pop_result(r->guard, &result);
	where_was(regs, where);
}

static int on_return(struct ukp_hit *hit, uint64_t ctx)
{
	struct rethook_node *node = (struct rethook_node *)ctx;
	struct returning r = { .node = node, .hit = hit };
	struct guard g;
	enum guard_state state = guard_on_kind(&g, GUARD_RETHOOK);

	r.guard = state == GUARD_ON || state == GUARD_NESTED ? &g : NULL;
	/* Inside the guard: rethook_free() waits for it. */
	r.handler = handler_of(node->rethook);
	node->ret_addr = hit->inst->ret_addr;
	if (r.handler && !(hit->flags & UKP_HIT_UNWOUND))
		ukp_vec_call(call_handler, &r);
	node_put(node);
	if (state == GUARD_ON)
		guard_off(&g);
	return 0;
}

int node_hook(struct rethook_node *node, struct pt_regs *regs)
{
	struct ukp_instance *inst;
	struct ukp_hit hit;
	enum ukp_miss why;

	ukp_hit_init(&hit, ukp_engine_ctl(), NULL, regs, 0);
	hit.cpu = ukp_arch_cpu(hit.ctl);
	inst = ukp_rethook_get(&hit, on_return, (uint64_t)node, &why);
	if (!inst) {
		node_put(node);
		return why == UKP_MISS_ARENA ? -ENOSPC : -EFAULT;
	}
	node->ret_addr = inst->ret_addr;
	node->frame = inst->frame;
	ukp_rethook_hook(&hit, inst);
	return 0;
}
