/* SPDX-License-Identifier: MIT */
/*
 * What the file of a module says of its code: the bytes, where functions are,
 * which words will hold addresses of code, where the unwinder may go on, and
 * what is on the stack.  It is the ground on which a jump form is planned.
 *
 * All addresses are link-time ones; runtime = link-time + sym_module_bias().
 * Once opened, facts know nothing of the process: they have their own copies and
 * their own descriptor of the file, so another thread may use them, one at a
 * time.
 *
 * What is left out is left out on the safe side: a function whose exception
 * table can't be read is none, and nothing is made at all of a file that would
 * need more memory or time than a sane one.
 */
#ifndef UKP_SYM_FACTS_H
#define UKP_SYM_FACTS_H

#include "sym/sym.h"

struct sym_facts_code {
	uint64_t addr;
	const uint8_t *bytes;
	size_t size;
};

struct sym_facts_func {
	uint64_t start, end;
	/* A cold part of a function: by its name, or because its CFA isn't rsp + 8 at start. */
	bool part;
	bool named; /* has a symbol; what has none can't be called from another module */
};

struct sym_facts_reloc {
	uint64_t place, target;
};

/* Where the unwinder may enter what belongs to an FDE: not always between its bounds. */
struct sym_facts_pad {
	uint64_t func; /* the FDE's start */
	uint64_t addr;
};

struct sym_facts {
	/*
	 * Sections of instructions, PLTs included, or executable segments where
	 * the section table is missing or doesn't agree with the segments;
	 * ascending, without overlaps.
	 */
	const struct sym_facts_code *code;
	size_t nr_code;
	/*
	 * FDEs but those of signal frames and PLTs, and symbols of functions; by
	 * start, one for each start.  All begin in code.  They may overlap.
	 */
	const struct sym_facts_func *func;
	size_t nr_funcs;
	/*
	 * Words that hold the address of code once the module is relocated, by
	 * place.  In a fixed module, whose words aren't relocated: all aligned
	 * words of its data that look so.
	 */
	const struct sym_facts_reloc *reloc;
	size_t nr_relocs;
	/*
	 * Landing pads, the entry point, DT_INIT and DT_FINI, static branches and
	 * where they lead; ascending.
	 */
	const uint64_t *extra;
	size_t nr_extra, nr_pads; /* nr_pads: how many landing pads are among them */
	const struct sym_facts_pad
		*pad; /* the landing pads once more, with whose they are; by func */
	bool fixed;   /* runs at its link-time addresses */
	size_t bytes; /* memory that all this takes */
};

/*
 * In two steps, as the second one takes as long as reading all of the code: the
 * first is for the thread that owns the module's process, the second for any.
 * -ENOENT: no file to trust behind the module; -ENOEXEC: no code in it; -EFBIG,
 * -ENOMEM.  Where loading fails nothing but freeing is left to do.
 */
int sym_facts_open(struct sym_module *m, struct sym_facts **ret, struct err *err);
int sym_facts_load(struct sym_facts *f, struct err *err);
/* Both; *ret is NULL on failure. */
int sym_facts(struct sym_module *m, struct sym_facts **ret, struct err *err);
void sym_facts_free(struct sym_facts *f);

/* Bytes of the file that no store can change once mapped; at most len, returns how many there are.
 */
size_t sym_facts_read(struct sym_facts *f, uint64_t addr, void *buf, size_t len);

/*
 * Does the CFI say that CFA = rsp + 8 at pc: nothing on the stack but the
 * return address?  False where it says nothing.  Cheapest when pc ascends.
 */
bool sym_facts_bare_stack(struct sym_facts *f, uint64_t pc);
/* The CFA at pc as *reg + *off, in DWARF's numbers.  False where the CFI doesn't say so. */
bool sym_facts_cfa(struct sym_facts *f, uint64_t pc, unsigned int *reg, int64_t *off);

#endif
