/* SPDX-License-Identifier: MIT */
/*
 * Where the code of a module may jump to: the ground on which a jump may
 * replace several instructions.
 *
 * Computed once for a module, from its bytes and from what its file says of
 * them; all addresses are link-time ones.  Linear in the size of the module,
 * two bits a byte of text.  Pure, and safe with hostile bytes and facts.
 *
 * The set has each place that is known to be entered otherwise than from the
 * instruction before it: targets of direct branches and calls anywhere in the
 * text, code addresses that lea or (in a module that isn't relocated) an
 * immediate makes, relocations, starts of functions, entries of switch tables,
 * and what the caller adds, as landing pads.  What stays out: places behind a
 * call, which the return enters.
 *
 * A region is a function, or several whose bounds overlap.  Facts about
 * decoding and indirect jumps are kept by region.
 */
#ifndef UKP_PLAN_TARGETS_H
#define UKP_PLAN_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plan_code {
	uint64_t addr;
	const uint8_t *bytes;
	size_t size;
};

struct plan_bounds {
	uint64_t start, end;
	/*
	 * No function by itself but a part of one that lies elsewhere, as the
	 * cold parts that compilers split off: ".cold" in its name, or a CFA
	 * that isn't rsp + 8 at its start.
	 */
	bool part;
	/*
	 * Has a symbol.  Without one nothing but the module itself can enter it;
	 * a cold part in a stripped file that begins with an empty stack is such.
	 */
	bool named;
};

/* A word that will hold the address of code. */
struct plan_reloc {
	uint64_t place, target;
};

struct plan_module {
	const struct plan_code *code; /* executable, ascending, without overlaps */
	size_t nr_code;
	/*
	 * FDEs but those of signal frames, and functions that have symbols
	 * alone; by start.  Overlapping ones share their fate.
	 */
	const struct plan_bounds *func;
	size_t nr_funcs;
	const struct plan_reloc *reloc; /* by place */
	size_t nr_relocs;
	const uint64_t *extra; /* further targets, in any order */
	size_t nr_extra;
	bool fixed; /* linked to run at one place: immediates may be addresses */
	/* Bytes of read-only data, at most len; returns how many there are. */
	size_t (*read)(void *arg, uint64_t addr, void *buf, size_t len);
	/* Does the CFI say that nothing is on the stack at pc but the return address?  Or NULL. */
	bool (*bare_stack)(void *arg, uint64_t pc);
	void *arg;
};

enum {
	PLAN_REGION_BROKEN = 1,   /* couldn't be decoded throughout as one run of instructions */
	PLAN_REGION_INDIRECT = 2, /* has an indirect jump, or is part of what has one, that may
	                             lead anywhere in it */
	PLAN_REGION_PART = 4,     /* nothing but parts */
};

struct plan_region {
	uint64_t start, end;
	uint32_t flags;
};

enum plan_exit_kind {
	PLAN_EXIT_RET,
	PLAN_EXIT_TAIL,     /* jump to another function */
	PLAN_EXIT_PART,     /* jump between parts of a function, or into another's middle */
	PLAN_EXIT_NORETURN, /* a last call, ud2 or hlt: does not come back */
	PLAN_EXIT_INDIRECT, /* jump to nobody knows where */
};

struct plan_exit {
	uint64_t addr;
	uint64_t target; /* 0: by memory or register */
	uint8_t kind;
	uint8_t len;
	bool conditional;
};

struct plan_targets;

/* -ENOMEM, or -EINVAL where code, func or reloc isn't in order.  Keeps nothing of m. */
int plan_targets_new(struct plan_targets **ret, const struct plan_module *m);
/*
 * For addr's region alone and some padding behind it, without decoding the module:
 * what is near enough for a short branch is decoded, elsewhere whatever looks like a
 * branch into it counts as one.  All around it counts as a target.  -EAGAIN: only the
 * set of the whole module can tell, else as above.  It does not know of tables in
 * parts of a function that only its landing pads enter: ask for none that has pads.
 */
int plan_targets_near(struct plan_targets **ret, const struct plan_module *m, uint64_t addr);
void plan_targets_free(struct plan_targets *t);

/* What the set is for: all addresses, or what one made for a region knows of. */
void plan_targets_range(const struct plan_targets *t, uint64_t *from, uint64_t *to);
/* Is anything in [from, to) a target?  What is no text isn't. */
bool plan_targets_any(const struct plan_targets *t, uint64_t from, uint64_t to);
/* Is addr the start of an instruction of a region? */
bool plan_targets_boundary(const struct plan_targets *t, uint64_t addr);
/* NULL: in none */
const struct plan_region *plan_targets_region(const struct plan_targets *t, uint64_t addr);
/*
 * The exits in [start, end), by address; *n of them, NULL if none.  A switch has
 * one for each entry of its table that leads to another part; where the same
 * register had several tables, the first jump has those of all that were known.
 */
const struct plan_exit *plan_targets_exits(const struct plan_targets *t, uint64_t start,
                                           uint64_t end, size_t *n);
/* Bytes that the set takes. */
size_t plan_targets_bytes(const struct plan_targets *t);

#endif
