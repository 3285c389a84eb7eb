/* SPDX-License-Identifier: MIT */
/*
 * What leave.c and inside.c share: an agent in a stopped process, as its
 * control area describes it.
 */
#ifndef UKP_SESSION_LEAVE_H
#define UKP_SESSION_LEAVE_H

#include "session/target.h"
#include "wire/detour.h"

struct leave {
	struct inject *inject;
	struct sym_proc *sym;
	const struct ukp_ctl *ctl;
	const void *area; /* what offsets count from */
	size_t len;
	uint64_t text_start, text_end;
	uint64_t stubs_start, stubs_end;
	uint64_t chain_return;
	bool stay; /* breakpoints are in: nobody is moved, slots and copies are no matter */
	unsigned int stuck; /* threads in our code at the last look */
};

struct detour_copy {
	struct {
		struct ukp_detour d;
		struct ukp_detour_pc pc[256];
	} detour;
	struct ukp_detour_shape shape;
};

/* The sites in the area from *i on; NULL at the end. */
const struct ukp_site *leave_next_site(struct leave *l, uint32_t *i);
/* A private copy of what the area has of a site's detour; what is cut off counts as nothing. */
bool leave_copy_detour(struct leave *l, const struct ukp_site *s, struct detour_copy *c);
/*
 * Is any thread inside our code?  Those that can be moved to the original code
 * are, unless they are to stay: only while the text has its own bytes, for at a
 * breakpoint they would be counted once more.  With stay, only the engine and
 * what calls it count.
 */
bool leave_busy(struct leave *l);

#endif
