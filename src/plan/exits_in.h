/* SPDX-License-Identifier: MIT */
/* What the makers of plan/exits.h share. */
#ifndef UKP_PLAN_EXITS_IN_H
#define UKP_PLAN_EXITS_IN_H

#include "plan/exits.h"
#include "plan/scan.h"

/* --- the CPU's part (x86/exits.c) ----------------------------------------- */

enum step_kind {
	STEP_ON, /* to the next instruction, whatever else it does */
	STEP_JUMP,
	STEP_BRANCH,    /* jumps or goes on */
	STEP_CALL,      /* to target */
	STEP_CALL_AWAY, /* to what an operand has */
	STEP_JUMP_AWAY,
	STEP_RET,
	STEP_STOP, /* never goes on */
	STEP_FAR,
};

/* What becomes of the stack pointer, or of the frame pointer. */
enum step_stack {
	STACK_KEPT,
	STACK_BY_SP, /* the stack pointer's value + by */
	STACK_BY_FP, /* the frame pointer's value + by */
	STACK_LOST,
};

struct step {
	uint64_t addr, target;
	uint64_t made; /* an address that it makes without going there; 0: none */
	int64_t disp;  /* of its memory operand */
	uint16_t pops; /* RET */
	uint8_t len;
	uint8_t kind;   /* enum step_kind */
	int8_t base;    /* of a memory operand base + disp, in DWARF's numbers; -1: has none */
	uint8_t sp, fp; /* enum step_stack */
	int32_t sp_by, fp_by;
	bool computed; /* JUMP_AWAY: the address comes from arithmetic */
};

/* What the walk over one run of instructions remembers; zero at its start. */
struct step_memory {
	uint16_t computed; /* registers that have results of arithmetic */
};

/* False: undecodable.  fixed: as in struct plan_module. */
bool exits_step(const uint8_t *code, size_t avail, uint64_t addr, bool fixed,
                struct step_memory *mem, struct step *s);

/* Fills in what s does to the stack; part of exits_step(). */
struct brief;
void exits_step_stack(const struct brief *b, const uint8_t *code, struct step *s);

/* --- ways into functions, for a whole module (exits_index.c) --------------- */

enum way_in_kind {
	WAY_IN_JUMP,
	WAY_IN_CALL,
	WAY_IN_ADDRESS, /* made by an instruction */
	WAY_IN_DATA,    /* in a relocated word; from: the word */
	WAY_IN_PAD,     /* from: the start of its FDE */
};

/* Into a function behind its start, into a part, or at the start of what has no name. */
struct way_in {
	uint64_t target, from;
	uint8_t kind;
};

struct exits_maker {
	const struct plan_exits_request *req;
	const struct plan_targets *t;
	const struct plan_module *m;
	struct way_in *in; /* by target */
	size_t nr_in, room_in;
	uint64_t effort; /* bytes and ways in that may still be looked at */
	struct plan_exits *x;
};

/* -ENOMEM */
int exits_index(struct exits_maker *k);
/* The first one whose target is at or behind addr. */
size_t exits_index_find(const struct exits_maker *k, uint64_t addr);

/* SIZE_MAX: in no region */
size_t exits_region(const struct plan_targets *t, uint64_t addr);
/* The file's bytes at addr, NULL: none. */
const uint8_t *exits_code(const struct plan_module *m, uint64_t addr, size_t *avail);
/* Does a function, that is no part, start there? */
bool exits_is_start(const struct plan_module *m, uint64_t addr);

/* --- one function (exits_body.c) ------------------------------------------- */

#define BODY_REGIONS 64

/* --- depths (exits_depth.c) -------------------------------------------------- */

struct exits_depth;
/* Of a body that begins at start.  -ENOMEM; to be freed then, too. */
int exits_depth_new(struct exits_depth **ret, const struct exits_maker *k, uint64_t start,
                    const size_t *region, unsigned int nr);
void exits_depth_free(struct exits_depth *d);
/* False: not known, or never reached. */
bool exits_depth_at(const struct exits_depth *d, uint64_t addr, int64_t *depth);
/* Is the return address anywhere an operand, where there is no CFI? */
bool exits_depth_touches(const struct exits_depth *d);
bool exits_has_cfi(const struct exits_maker *k, uint64_t pc);

struct plan_exits {
	struct plan_function *fn;
	size_t nr_fns;
	struct plan_way_out *way;
	size_t nr_ways, room_ways;
	struct plan_range *range;
	size_t nr_ranges, room_ranges;
};

/* The entry of a function that begins again behind a check; 0: it isn't one (exits_check.c). */
uint64_t exits_behind_check(const struct exits_maker *k, const struct plan_region *r);
/* Finds a window for each exit of the function with that entry; how many have none (exits_room.c).
 */
uint32_t exits_room(const struct exits_maker *k, uint64_t start, struct plan_way_out *way,
                    uint32_t n);
/* Finds out about the function at fn->start, which begins in a region.  -ENOMEM */
int exits_function(struct exits_maker *k, struct plan_function *fn, size_t region);

#endif
