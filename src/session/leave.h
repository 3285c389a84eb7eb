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

/* How many instances may be in use, and where they lie; 0: none. */
uint32_t leave_instances(struct inject *t, const struct ukp_ctl *c, uint64_t *base);
/* copies.c: no word of the target's leads to a stub any more. */
void leave_copies(struct leave *l);
/* leave_signals.c: while calls can be made. */
void leave_signals(struct leave *l);
/* The same: what threads are about to set by calls.  While none can be made by us. */
void leave_arguments(struct leave *l);
/* The sites in the area from *i on; NULL at the end. */
const struct ukp_site *leave_next_site(struct leave *l, uint32_t *i);
/* The detours in the area, copied but for their maps. */
struct detour_walk {
	uint32_t off; /* of the last one */
	uint32_t next;
	size_t nr;
};
bool leave_next_detour(struct leave *l, struct detour_walk *w, struct ukp_detour *d);
/* restore.c: the bytes that were probed, as they were. */
void leave_text(struct leave *l);
/*
 * Is any thread inside our code?  Those that can be moved to the original code
 * are, unless they are to stay: only while the text has its own bytes, for at a
 * breakpoint they would be counted once more.  With stay, only the engine and
 * what calls it count.
 */
bool leave_busy(struct leave *l);
/* Is this one?  As above. */
bool leave_inside(struct leave *l, size_t thread);
/* Does it run the handler of a breakpoint of ours? */
bool leave_in_trap(struct target *t, size_t thread);
/* The engine of a target that runs on, looked at with stay. */
struct leave leave_looking(struct target *t);
/*
 * While held, and our own probes are in: until a stop in which nobody is inside, or on the
 * way there.  Returns 0 also where that doesn't come, after PATIENCE_MS.
 */
int leave_settle(struct target *t, struct err *err);

#endif
