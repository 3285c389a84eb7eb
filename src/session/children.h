/* SPDX-License-Identifier: MIT */
/*
 * Children that a target has forked while probes were in: they have a copy of the
 * text with its breakpoints, and run through them without effect.  Known by the
 * control area, which they share, at the address where their parent has it.
 */
#ifndef UKP_SESSION_CHILDREN_H
#define UKP_SESSION_CHILDREN_H

#include "base/err.h"
#include "sym/sym.h"

struct family {
	uint64_t start, end; /* of the control area's mapping; 0: none */
	uint64_t inode;
	uint64_t born; /* seconds of CLOCK_BOOTTIME: it is no older */
};

/* As long as one of them still has it: the area at address ctl, or, 0, the only one. */
void family_find(struct family *f, struct sym_proc *sym, uint64_t ctl);
/*
 * Takes the probes out of all processes that have it.  -EAGAIN, -EBUSY, ...: what
 * was in the way with the last one where it failed, and how to try again.
 */
int family_cure(const struct family *f, struct err *err);
/*
 * Is there one, but for the target itself?  One that can't be looked at is, unless it is
 * older than the area: of two, for a child that ends when it has forked another.
 */
bool family_grows(const struct family *f, pid_t target);

#endif
