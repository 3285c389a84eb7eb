/* SPDX-License-Identifier: MIT */
/*
 * Is it safe to write jumps over these windows?
 *
 * Traps in the windows go on in the detours' copies already, so nobody enters
 * any more.  Who may be inside still, found while all threads stand:
 *
 * - a thread between two instructions of a window: it is moved to the copy, to
 *   the entry of that instruction's probe if it has one
 * - a thread in a slot (the short way of before) that leads into a window: moved
 *   likewise
 * - a saved context on a stack (signal frame, interrupt frame of ours) that leads
 *   there; a thread in our code that has such an address in a register or near its
 *   stack pointer: the window is stuck, the caller tries again
 *
 * A hit that has not chosen yet where to go on will see the detour when it does,
 * so its ip says nothing; one that has is marked before it chooses (LIB_MOVED, the
 * frame's si_code).
 *
 * Contexts that a program keeps elsewhere (a ucontext in the heap, the stack of a
 * coroutine that was left from within a signal handler) are not found.
 */
#ifndef UKP_LIB_STILL_SETTLE_H
#define UKP_LIB_STILL_SETTLE_H

#include "lib/hit/hit.h"
#include "lib/still/still.h"
#include "wire/detour.h"

#pragma GCC visibility push(hidden)

struct settle_window {
	const struct ukp_detour *d;
	bool stuck; /* out */
};

struct settle_range {
	uint64_t start, end;
};

#define SETTLE_BUF (64u << 10)

struct settle {
	struct settle_window *window; /* ascending, no two overlap */
	uint32_t nr;
	const struct settle_range *stack; /* writable mappings, ascending */
	uint32_t nr_stacks;
	uint64_t hit_start, hit_end; /* what runs on hits */
	uint64_t *buf;               /* SETTLE_BUF bytes */
	int mem_fd;
	uint32_t moved; /* out */
};

/* In the helper: s->arg is a struct settle. */
void ukp_settle(struct still *s);

#pragma GCC visibility pop

#endif
