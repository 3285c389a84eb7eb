/* SPDX-License-Identifier: MIT */
/*
 * What the makers of a module's facts share.
 *
 * Work is counted: each pass over bytes that a file may point at more than once
 * takes its bytes from a budget that a sane file never empties.
 */
#ifndef UKP_SYM_FACTS_IN_H
#define UKP_SYM_FACTS_IN_H

#include "sym/eh.h"
#include "sym/facts.h"

#define FACTS_BLOCK (UINT64_C(64) << 10)
#define CFA_DEPTH 16
#define FACTS_PLTS 8
#define FACTS_NOPS 4
#define FACTS_MAX (1U << 24) /* relocations, and extra targets */

struct facts_fde {
	uint64_t start, end;
	uint64_t at; /* in the frames */
};

struct cfa_rule {
	uint64_t reg;
	int64_t off;
	bool known; /* no expression */
};

/* A CFA program, as far as it has run. */
struct cfa_run {
	size_t fde; /* SIZE_MAX: none */
	struct eh_cursor c;
	struct eh_cie cie;
	uint64_t loc;
	struct cfa_rule rule, stack[CFA_DEPTH];
	unsigned int depth;
};

/* [start, end) */
struct facts_range {
	uint64_t start, end;
};

struct facts {
	struct sym_facts pub;          /* first */
	struct image *img;             /* our own */
	char *path;                    /* for errors */
	struct sym_facts_func *symbol; /* as the module has them */
	size_t nr_symbols;
	struct sym_facts_code *code;
	size_t nr_code, room_code;
	bool by_sections, textrel;
	struct sym_facts_func *func;
	size_t nr_funcs, room_funcs;
	struct sym_facts_reloc *reloc;
	size_t nr_relocs, room_relocs;
	uint64_t *extra;
	size_t nr_extra, room_extra;
	struct sym_facts_pad *pad;
	size_t nr_pads, room_pads;
	struct eh_frames frames;
	struct facts_fde *fde; /* by start, without signal frames */
	size_t nr_fdes, room_fdes;
	struct facts_range *unfit; /* no function is to overlap these */
	size_t nr_unfit, room_unfit;
	struct facts_range plt[FACTS_PLTS];
	unsigned int nr_plts;
	/* lists of nops that tracers may use: addresses in code that nobody jumps to */
	struct facts_range nops[FACTS_NOPS];
	unsigned int nr_nops;
	struct cfa_run cfa;
	uint64_t cfa_budget; /* instructions */
	uint64_t budget;     /* bytes of exception tables and of words */
	uint8_t *block;      /* of the file, at block_off */
	uint64_t block_off, block_len;
	uint8_t *sites; /* a table of call sites */
	size_t room_sites;
};

/* The code around addr, or NULL. */
const struct sym_facts_code *facts_code(const struct facts *f, uint64_t addr);
/* Bytes of the file at a link-time address, through a block that is kept. */
size_t facts_fetch(struct facts *f, uint64_t addr, void *buf, size_t len);
int facts_add_extra(struct facts *f, uint64_t addr);
/* -EFBIG once a file makes more work than it has bytes. */
int facts_spend(struct facts *f, uint64_t bytes);

/* facts.c: from f->img and symbols alone, as the fuzzer calls it */
int facts_make(struct facts *f);
/* lsda.c: -EINVAL where the table makes no sense */
int facts_lsda(struct facts *f, uint64_t lsda, uint64_t start);
/* cfa.c; NULL: it isn't known */
const struct cfa_rule *facts_cfa(struct facts *f, uint64_t pc);
bool facts_bare_stack(struct facts *f, uint64_t pc);
/* relocs.c: all that name code, by place; and the targets that PT_DYNAMIC names */
int facts_relocs(struct facts *f);
/* labels.c */
int facts_labels(struct facts *f);
/* text.c */
int facts_text(struct facts *f);
/* funcs.c */
int facts_symbols(struct facts *f, const struct symtab *symbols);
int facts_funcs(struct facts *f);

#endif
