/* SPDX-License-Identifier: MIT */
/*
 * Following single calls to their return, chosen while they are entered: what
 * kretprobes and fprobes are made of.
 *
 *	struct call {
 *		struct rethook_node node;	the first member
 *		unsigned long arg;
 *	};
 *	static void back(struct rethook_node *n, void *data, unsigned long ret_addr,
 *			 struct pt_regs *regs);
 *
 *	struct rethook *rh = rethook_alloc(NULL, back, sizeof(struct call), 100);
 *	...
 *	struct rethook_node *n = rethook_try_get(rh);	in a handler at a function's entry
 *	if (n) {
 *		((struct call *)n)->arg = regs_get_kernel_argument(regs, 0);
 *		rethook_hook(n, regs, true);
 *	}
 *	...
 *	rethook_free(rh);
 *
 * Follows include/linux/rethook.h of Linux 6.12.  What differs is marked "here:".
 *
 * Ownership: the library owns struct rethook and the nodes.  A node is the
 * taker's from rethook_try_get() until rethook_hook() or rethook_recycle(), and
 * the handler's until it returns.
 *
 * Errors: error pointers as the kernel's, IS_ERR() and PTR_ERR() are below;
 * ukp_kprobe_error() has the sentence.
 *
 * Context: rethook_alloc() and rethook_free() may sleep, allocate and take
 * locks.  All else makes no system call, takes no lock and may be called in
 * probe and signal handlers.
 */
#ifndef UKPROBES_RETHOOK_H
#define UKPROBES_RETHOOK_H

#include <stdbool.h>

#include <ukprobes/objpool.h>
#include <ukprobes/pt_regs.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct task_struct;
struct llist_node;
struct rethook_node;

/*
 * The function has returned: regs->ip is the return address, regs->sp as after
 * the ret, what is written to regs->ax is what the caller gets; to ip and sp, it
 * has no effect.  Vector registers, errno and flags are kept for the program.
 *
 * A function that is called here and hooked as well has its handler run, too,
 * inside this one.
 */
typedef void (*rethook_handler_t)(struct rethook_node *rhn, void *data, unsigned long ret_addr,
                                  struct pt_regs *regs);

struct rethook {
	void *data;
	rethook_handler_t handler; /* NULL: stopped */
	struct objpool_head pool;

	/* The library's own. */
	struct rethook *ukp_next_dead;
};

/* The head of each node; what is behind it, up to the size that was asked for, is the user's. */
struct rethook_node {
	struct rethook *rethook;
	unsigned long ret_addr; /* where the function returns to; valid once it is hooked */
	unsigned long frame;    /* address of the stack word that held it */
};

/*
 * num nodes of size bytes, so that num calls can be followed at a time.
 *
 *	-EINVAL	no handler, num <= 0, or size < sizeof(struct rethook_node)
 *	-ENOMEM
 *	here: those of register_kprobe() about signals and memory, for the first
 *	use of the library: -EBUSY, -EOPNOTSUPP
 */
struct rethook *rethook_alloc(void *data, rethook_handler_t handler, int size, int num);
/* No handler starts any more; calls on their way return unreported. */
void rethook_stop(struct rethook *rh);
/*
 * rethook_stop(), and waits until no handler of it runs (here), but not when
 * called from a handler.  The memory goes when the last call is back; rh must not be used again.
 */
void rethook_free(struct rethook *rh);

/* A node, or NULL: all are in use, or it is stopped. */
struct rethook_node *rethook_try_get(struct rethook *rh);
/* Gives back a node that was not hooked. */
void rethook_recycle(struct rethook_node *node);
/*
 * Follows the call whose entry regs are of: regs->sp is the address of its
 * return address.  So in a kprobe's or fprobe's handler at a function's entry,
 * in the calling thread.  mcount is ignored.
 *
 * Here: 0, or the call isn't followed and the node is given back: -ENOSPC (2^20
 * calls are being followed), -EFAULT (that stack word can't be used: it
 * belongs to a copied stack).
 */
int rethook_hook(struct rethook_node *node, struct pt_regs *regs, bool mcount);

/* Whether addr, found on a stack, stands for a return address that was replaced. */
bool is_rethook_trampoline(unsigned long addr);
/*
 * The true return address in the stack word at frame, which holds one that was
 * replaced; 0: it doesn't.  For who walks a stack.
 *
 * tsk must be NULL: the calling thread (here: or any stack that stands still).
 * *cur is set as the kernel does, and need not be kept (here).
 */
unsigned long rethook_find_ret_addr(struct task_struct *tsk, unsigned long frame,
                                    struct llist_node **cur);
/*
 * Here: ends all calls that this thread is in on its own stack: before it leaves
 * by a way that never returns, or after a longjmp.  Calls that were jumped over
 * get free; those that are to return still do, unreported.  Kretprobes and
 * fprobes count them in nmissed.  Does nothing on an alternate or a
 * coroutine's stack, and must not be called in a thread with coroutines
 * that keep copies of its stack.  tsk must be NULL.
 */
void rethook_flush_task(struct task_struct *tsk);

#ifndef MAX_ERRNO
#define MAX_ERRNO 4095

static inline bool IS_ERR(const void *ptr)
{
	return (unsigned long)ptr >= (unsigned long)-MAX_ERRNO;
}

static inline long PTR_ERR(const void *ptr)
{
	return (long)ptr;
}

static inline void *ERR_PTR(long error)
{
	return (void *)error;
}

static inline bool IS_ERR_OR_NULL(const void *ptr)
{
	return !ptr || IS_ERR(ptr);
}
#endif

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
