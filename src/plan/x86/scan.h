/* SPDX-License-Identifier: MIT */
/* A pass over the instructions of a region, and what it remembers for indirect jumps. */
#ifndef UKP_PLAN_X86_SCAN_H
#define UKP_PLAN_X86_SCAN_H

#include "plan/scan.h"
#include "plan/x86/brief.h"

#define SCAN_HISTORY 64 /* a power of two */

/* An address in a register: of a switch's table, perhaps. */
struct scan_lea {
	uint64_t addr;
	uint8_t reg;
};

/* What reading the tables of one register gave. */
struct scan_taken {
	uint64_t at;
	size_t leas; /* that have been looked at */
	unsigned int size, nearest;
	bool tail;
};

struct scan {
	struct plan_targets *t;
	const struct plan_module *m;
	struct plan_region *r;
	struct brief history[SCAN_HISTORY];
	size_t seen; /* instructions of the region; the last one is history[(seen - 1) % ...] */
	struct scan_lea *lea;
	size_t nr_leas, room_leas;
	struct scan_taken taken[16];
};

/* The instruction that many before the last one; NULL: forgotten or none. */
static inline const struct brief *scan_back(const struct scan *s, size_t back)
{
	if (back >= SCAN_HISTORY || back >= s->seen)
		return NULL;
	return &s->history[(s->seen - 1 - back) % SCAN_HISTORY];
}

enum jump_kind {
	JUMP_UNKNOWN,
	JUMP_SWITCH, /* its targets are in the set */
	JUMP_TAIL,   /* leaves the function */
};

/* Where does the last instruction, an indirect jump, lead? */
enum jump_kind scan_indirect(struct scan *s);

#endif
