/* SPDX-License-Identifier: MIT */
/*
 * The jump form, made in the background: the kernel's optimizer for probes.
 *
 * Breakpoints land first.  A thread computes the target set of each module that
 * has probes; then, while the threads of the program stand still, jumps replace
 * the breakpoints where it is safe.  Before anything else changes in the target,
 * jumps are taken back to breakpoints, so that no other part has to know them;
 * afterwards they come again.  But those that no breakpoint can stand in for stay,
 * unless who changes something has probes there or near: their sites are jumped all
 * the while, and whoever reads text takes them off (optimize_undo()).
 */
#ifndef UKP_SESSION_OPTIMIZE_H
#define UKP_SESSION_OPTIMIZE_H

#include "session/target.h"

/* Unless the environment says that it isn't. */
bool optimize_allowed(void);
int optimize_open(struct target *t);
void optimize_close(struct target *t);
/*
 * Do users' probes get jumps?  Our own at sigaction() and pthread_sigmask() have
 * them in any case: programs call these with all signals blocked, where a breakpoint kills.
 */
bool optimize_is_on(const struct target *t);

/* Readable when a target set is ready. */
int optimize_fd(const struct target *t);
/* Ask for the target sets of all modules with probes; they may be there already. */
void optimize_kick(struct target *t);
/* One more is ready. */
void optimize_ready(struct target *t);

/* The same, and waits for those of places where only a jump can stand: at most ms. */
void optimize_await(struct target *t, unsigned int ms);
/* Is there such a place, wanted, without its jump and without a reason why not? */
bool optimize_owes(const struct target *t);

enum optimize_left {
	OPTIMIZE_DONE,
	OPTIMIZE_MORE,  /* another stop brings more of them */
	OPTIMIZE_LATER, /* a thread was in the way */
};

/* Put jumps where they may be, as many as one short stop allows. */
enum optimize_left optimize_on(struct target *t);
/*
 * Back to breakpoints, everywhere.  Our own jumps that keep the program alive under those
 * (jump_only.c) stay.
 */
int optimize_off(struct target *t, struct err *err);
/* These, too: no breakpoint of anybody's is in, or none will be after this stop. */
int optimize_leave(struct target *t, struct err *err);
/* The same for what c is about to change or to add. */
int optimize_off_for(struct target *t, const struct chan *c, struct err *err);
/* Text that was read, without the jumps that are in it. */
void optimize_undo(const struct target *t, uint64_t addr, uint8_t *buf, size_t len);
/* "jump", or "int3" or "none", and why; lives until the next call. */
const char *optimize_form(const struct target *t, const struct site *s);
/*
 * "[OPTIMIZED]", "[FTRACE]" (a jump in nops that a compiler left for it),
 * "[WAITING]" (only a jump can stand there, and none does) or "".
 */
const char *optimize_mark(const struct site *s);
/* Is pc in a detour, and where does it come out? */
bool optimize_leads(const struct target *t, uint64_t pc, uint64_t *to);

#endif
