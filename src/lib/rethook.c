/* SPDX-License-Identifier: MIT */
/*
 * <ukprobes/rethook.h>: making and ending rethooks, and what walks a stack.
 * Those that died on a hit are freed here, at the next chance.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "engine/arch.h"
#include "engine/rethook.h"
#include "lib/hit/rethook.h"
#include "lib/lib.h"

static void reap(void)
{
	struct rethook *rh = rethook_take_dead(), *next;

	for (; rh; rh = next) {
		next = rh->ukp_next_dead;
		objpool_free(&rh->pool);
		free(rh);
	}
}

static int start_engine(struct err *err)
{
	struct sym_proc *sym;
	int ret = lib_lock(false, err);

	if (ret)
		return ret;
	ret = own_sym(&sym, err);
	if (!ret)
		ret = own_init(err);
	lib_unlock();
	return ret;
}

struct rethook *rethook_alloc(void *data, rethook_handler_t handler, int size, int num)
{
	struct err *err = lib_err();
	struct rethook *rh;
	int ret;

	if (!handler || num <= 0 || size < (int)sizeof(struct rethook_node))
		return ERR_PTR(
			err_set(err, -EINVAL, "no handler, no nodes, or nodes without their head"));
	ret = start_engine(err);
	if (ret)
		return ERR_PTR(ret);
	reap();
	rh = calloc(1, sizeof(*rh));
	if (!rh)
		return ERR_PTR(err_set(err, -ENOMEM, "out of memory"));
	rh->data = data;
	ret = objpool_init(&rh->pool, num, size, GFP_KERNEL, NULL, NULL, NULL);
	if (ret) {
		free(rh);
		return ERR_PTR(err_set(err, ret, "%d nodes of %d bytes: %s", num, size,
		                       ret == -ENOMEM ? "out of memory" : "too many or too large"));
	}
	/* Release: a handler that sees it sees the pool. */
	__atomic_store_n(&rh->handler, handler, __ATOMIC_RELEASE);
	return rh;
}

void rethook_stop(struct rethook *rh)
{
	__atomic_store_n(&rh->handler, NULL, __ATOMIC_RELEASE);
}

void rethook_free(struct rethook *rh)
{
	rethook_stop(rh);
	if (lib_in_handler()) {
		rethook_drain(rh);
		return;
	}
	lib_wait();
	rethook_drain(rh);
	reap();
}

struct rethook_node *rethook_try_get(struct rethook *rh)
{
	return node_get(rh);
}

void rethook_recycle(struct rethook_node *node)
{
	node_put(node);
}

int rethook_hook(struct rethook_node *node, struct pt_regs *regs, bool mcount)
{
	return node_hook(node, regs);
}

bool is_rethook_trampoline(unsigned long addr)
{
	return ukp_lib_ctl && ukp_rethook_index(ukp_lib_ctl, addr) != UINT32_MAX;
}

unsigned long rethook_find_ret_addr(struct task_struct *tsk, unsigned long frame,
                                    struct llist_node **cur)
{
	struct ukp_instance *inst = NULL;

	if (!cur || tsk || !ukp_lib_ctl)
		return 0;
	inst = ukp_rethook_owner(ukp_lib_ctl, frame, *(unsigned long *)frame);
	*cur = (struct llist_node *)inst;
	return inst ? inst->ret_addr : 0;
}

void rethook_flush_task(struct task_struct *tsk)
{
	uint64_t sp = (uint64_t)__builtin_frame_address(0), low;
	struct pt_regs regs = { .sp = sp };
	struct ukp_hit hit = { .ctl = ukp_lib_ctl, .regs = &regs };
	pthread_attr_t attr;
	size_t size;
	void *stack;

	if (tsk || !hit.ctl || !ukp_hit_alive(hit.ctl) || pthread_getattr_np(pthread_self(), &attr))
		return;
	pthread_attr_getstack(&attr, &stack, &size);
	pthread_attr_destroy(&attr);
	low = (uint64_t)stack;
	if (sp < low || sp - low >= size)
		return;
	hit.cpu = ukp_arch_cpu(hit.ctl);
	ukp_rethook_flush(&hit, low, low + size, sp);
	exits_flush(low, low + size);
}
