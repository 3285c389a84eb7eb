/* SPDX-License-Identifier: MIT */
/*
 * Which pieces of our code is any thread still to come back to?  Asked of code that
 * nothing leads to any more, so the answer no holds for good.
 *
 * Looked at are all registers and, on each stack from a little below its pointer on, all
 * words: saved contexts, return addresses, what a handler has kept.  A number that only
 * looks like an address counts as one.  Stacks that a signal has left for an alternate
 * one are found by the context that it saved.  What is not seen is a context that no
 * thread's stack has.
 */
#ifndef UKP_SESSION_REFS_H
#define UKP_SESSION_REFS_H

#include "session/target.h"

struct ref_range {
	uint64_t start, end; /* the end counts, too */
	void *of;
	bool found;
};

/*
 * While held.  Sorts them; -EAGAIN: a stack is too large to be looked at, or there are too
 * many: nothing is known then.
 */
int refs_look(struct target *t, struct ref_range *v, size_t n);

#endif
