/* SPDX-License-Identifier: MIT */
/*
 * All other threads of one's own process stand still for a moment.
 *
 * Threads can't trace threads of their own process.  So a helper is made: a
 * process of its own that shares our memory and descriptors (clone() with
 * CLONE_VM, without SIGCHLD: nobody's wait() sees it) and nothing of libc.  It
 * seizes all threads but the one that waits for it, calls fn, which may look at
 * them and move them, and lets all go by ending.  If it is killed they go, too.
 *
 *	thread of ours			helper
 *	ukp_clone_call()
 *	state = GO, wakes		seize, interrupt, collect, until nobody is new
 *	waits for state 0		fn(s)
 *					detach all, exit: the kernel clears state
 *
 * While threads stand still they may hold any lock: nothing here takes one,
 * allocates, or calls libc; the folder lies in the section of hits, so no probe
 * stands in it either.
 */
#ifndef UKP_LIB_STILL_STILL_H
#define UKP_LIB_STILL_STILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ukprobes/pt_regs.h"

#pragma GCC visibility push(hidden)

/* What PTRACE_GETREGS gives. */
struct still_regs {
	struct pt_regs r;
	uint64_t rest[6]; /* bases and selectors */
};

enum still_thread_state { STILL_RUNNING, STILL_STOPPED, STILL_GONE };

struct still_thread {
	int32_t tid;
	uint8_t state; /* enum still_thread_state */
	bool changed;  /* regs are to be written back */
	struct still_regs regs;
};

enum still_state { STILL_WAIT = 1, STILL_GO };

enum still_result {
	STILL_OK,
	STILL_LATER,  /* a thread sleeps uninterruptibly, or didn't stop in time */
	STILL_MANY,   /* more threads than there is room for */
	STILL_TRACED, /* the kernel doesn't let us trace them, or somebody does already */
	STILL_LOST,   /* the folder doesn't show our own threads */
	STILL_DIED,   /* the helper was killed */
};

struct still {
	uint32_t state;          /* 0: the helper has ended (the kernel writes it) */
	int32_t result;          /* enum still_result */
	int32_t tid;             /* who waits: not stopped */
	int32_t task_fd;         /* /proc/self/task */
	const uint8_t *restarts; /* bit n: call n would say EINTR to a thread that was stopped */
	uint32_t nr_restarts;
	void (*fn)(struct still *s);
	void *arg;
	struct still_thread *thread;
	uint32_t nr, max;
};

/* The helper's whole life. */
void ukp_still_main(void *s);
/* Waits the SIGTRAP of an int3 to be delivered to this thread? */
bool ukp_still_trapped(const struct still_thread *t);

/*
 * fn(arg) in a process with our memory, on that stack; state is cleared and woken
 * at its end.  Its pid, or -errno.
 */
long ukp_clone_call(unsigned long flags, void *stack_top, void (*fn)(void *arg), void *arg,
                    uint32_t *state);

#pragma GCC visibility pop

#endif
