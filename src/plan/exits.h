/* SPDX-License-Identifier: MIT */
/*
 * How the functions of a module come back: every instruction by which an
 * activation leaves towards its caller, or the reason why that can't be told.
 *
 * A function's body is its own code and all cold parts that jumps, switch
 * tables and landing pads lead to; so is code without a name that nothing else
 * jumps to.  Its exits are known completely where
 *
 * - all of the body decodes, and each indirect jump in it is a switch with a
 *   known table, or leaves;
 * - nothing leaves but by a return, a jump elsewhere, or a call that doesn't
 *   come back, and for each it is proven that nothing is on the stack then but
 *   the return address: by the CFI, or where there is none by counting along
 *   the instructions;
 * - nothing enters but at the start: an exit that another function's
 *   activation may execute too proves nothing about this one.
 *
 * What leaves without an instruction of the function's own is no exit: longjmp,
 * exceptions that pass through, the end of the thread.
 *
 * Computed once a module, right after the target set, from the same facts; all
 * addresses are link-time ones.  Pure, and safe with hostile bytes and facts.
 */
#ifndef UKP_PLAN_EXITS_H
#define UKP_PLAN_EXITS_H

#include "plan/targets.h"
#include "plan/window.h"

/* Why the exits of a function aren't known; plan_exits_reason() has the words. */
enum plan_exits_why {
	PLAN_EXITS_OK,
	PLAN_EXITS_BROKEN,   /* couldn't be decoded throughout */
	PLAN_EXITS_OVERLAP,  /* its bounds and another function's overlap */
	PLAN_EXITS_INDIRECT, /* has a jump to nobody knows where */
	PLAN_EXITS_LABEL,    /* the address of a place inside of it is kept somewhere */
	PLAN_EXITS_ENTERED,  /* other code enters it behind its start */
	PLAN_EXITS_SHARES,   /* goes on in the middle of another function */
	PLAN_EXITS_FALLS,    /* runs into what follows it */
	PLAN_EXITS_NO_CFI,   /* leaves where neither CFI nor counting tells what is on the stack */
	PLAN_EXITS_DEPTH,    /* leaves with something on the stack */
	PLAN_EXITS_FAR,      /* far or interrupt return */
	PLAN_EXITS_EFFORT,   /* its module makes more work than any sane one */
	PLAN_EXITS_NONE,     /* never comes back */
	PLAN_EXITS_REASONS,
};

const char *plan_exits_reason(enum plan_exits_why why);

enum plan_way_kind {
	PLAN_WAY_RET,
	PLAN_WAY_TAIL,          /* jump to target, outside of the body */
	PLAN_WAY_TAIL_INDIRECT, /* jump to what a register or memory has */
};

struct plan_way_out {
	uint64_t addr;
	uint64_t target; /* TAIL */
	/*
	 * Where a window begins that has this instruction among those that it
	 * takes, extended if need be, at or before addr; 0: there is no room.
	 */
	uint64_t window;
	uint16_t pops; /* RET: bytes behind the return address */
	uint8_t kind;  /* enum plan_way_kind */
	uint8_t len;
	uint8_t no_room; /* enum plan_window_why, at addr, where window is 0 */
	bool conditional;
};

enum {
	PLAN_FN_TOUCHES = 1, /* reads or writes its return address, or has the word's address */
	PLAN_FN_LOOPS = 2,   /* jumps to its own start; not set if entry lies behind that */
	PLAN_FN_SWITCH = 4,  /* has a switch table */
	PLAN_FN_PARTS = 8,   /* has code outside of its own bounds */
};

struct plan_function {
	uint64_t start;
	/*
	 * What an activation passes once, with the stack as at start: that, or
	 * where it goes on behind a check that may have it begin again.
	 */
	uint64_t entry;
	uint64_t where; /* the instruction that why is about; 0: none in particular */
	uint8_t why;    /* enum plan_exits_why */
	uint8_t flags;  /* PLAN_FN_*; complete only where why is OK or NONE */
	uint32_t first, nr_exits;
	uint32_t first_range, nr_ranges;
	uint32_t nr_tails;   /* of the exits */
	uint32_t nr_no_room; /* exits without the jump form */
};

struct plan_range {
	uint64_t start, end;
};

/* Where the unwinder may enter what the FDE that starts at func describes. */
struct plan_pad {
	uint64_t func, addr;
};

struct plan_exits_request {
	const struct plan_targets *targets;
	const struct plan_module *module; /* what they were made from */
	const struct plan_pad *pad;       /* all that the module has, by func */
	size_t nr_pads;
	/*
	 * The CFA at pc as *reg + *off, in DWARF's numbers; false: not known.
	 * Gets module->arg.
	 */
	bool (*cfa)(void *arg, uint64_t pc, unsigned int *reg, int64_t *off);
};

struct plan_exits;

/* -ENOMEM, or -EINVAL where pads aren't in order.  Keeps nothing of the request. */
int plan_exits_new(struct plan_exits **ret, const struct plan_exits_request *req);
void plan_exits_free(struct plan_exits *x);

/* All functions, by start; *n of them. */
const struct plan_function *plan_exits_all(const struct plan_exits *x, size_t *n);
/* The one that starts at an address; NULL: none does. */
const struct plan_function *plan_exits_find(const struct plan_exits *x, uint64_t start);
/* fn->nr_exits of them by address, none where they aren't known completely. */
const struct plan_way_out *plan_exits_ways(const struct plan_exits *x,
                                           const struct plan_function *fn);
/* fn->nr_ranges of them: the body, by address, none where it isn't known. */
const struct plan_range *plan_exits_body(const struct plan_exits *x,
                                         const struct plan_function *fn);
size_t plan_exits_bytes(const struct plan_exits *x);

#endif
