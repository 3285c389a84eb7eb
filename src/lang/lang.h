/* SPDX-License-Identifier: MIT */
/*
 * The probe-definition language: text in, a checked event out.
 *
 *	p[:[GRP/]EVENT] PLACE [ARGS]
 *	p[:[GRP/]EVENT] [MOD:]GLOB+* [ARGS]
 *	r[MAXACTIVE][:[GRP/]EVENT] PLACE [ARGS]
 *	r[MAXACTIVE][:[GRP/]EVENT] [MOD:]GLOB [ARGS]
 *	f[MAXACTIVE][:[GRP/]EVENT] [MOD:]GLOB[%return] [ARGS]
 *
 * Two steps: lang_parse() needs no target; lang_compile() resolves symbols in
 * one.  Errors carry the kernel's text and the 0-based column in the command,
 * re-joined with single spaces (def->text), as the kernel's error_log has it.
 * Pure but for the symbols; text may be hostile.
 */
#ifndef UKP_LANG_LANG_H
#define UKP_LANG_LANG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sym/sym.h"
#include "wire/event.h"

#define LANG_NAME_MAX 64 /* MAX_EVENT_NAME_LEN */
#define LANG_LINE_MAX 4094

enum lang_type {
	LANG_U,
	LANG_S,
	LANG_X,
	LANG_F, /* 4, 8 and 10 bytes: float, double, x87's extended */
	LANG_STRING,
	LANG_COMM,
	LANG_NS, /* $duration */
	LANG_NR_TYPES
};

/* One argument as it is printed; what a client needs to read a record. */
struct lang_field {
	char name[33];
	uint8_t type;    /* enum lang_type */
	uint8_t size;    /* bytes in the record, at most UKP_VALUE_MAX; strings 4, comm 0 */
	uint16_t offset; /* in the payload */
};

/* How many places a definition means. */
enum lang_many {
	LANG_ONE,
	LANG_FUNCS, /* f, and r of a glob: every function that matches place.sym */
	LANG_INSNS, /* p GLOB+*: every instruction of a function, or of all that match */
};

/* PLACE as parsed: exactly one of sym, addr, file. */
struct lang_place {
	char *module;   /* MOD of MOD:SYM, or PATH of PATH:0xOFFSET; NULL */
	char *sym;      /* NULL for an address */
	int64_t offset; /* SYM+OFFS, or the file offset */
	uint64_t addr;  /* 0xADDR */
	enum { LANG_SYM, LANG_ADDR, LANG_FILE } kind;
	int column;
};

struct lang_arg; /* parsed argument, private */

struct lang_def {
	char *text; /* the command with single spaces: what columns count in */
	bool ret;   /* r, or %return */
	enum lang_many many;
	uint32_t maxactive;        /* 0: not given */
	char group[LANG_NAME_MAX]; /* default "ukprobes" */
	char event[LANG_NAME_MAX]; /* default p_SYM_OFF, r_SYM_0, p_0xADDR, SYM__entry */
	struct lang_place place;
	struct lang_arg *args;
	unsigned int nr_args;
};

/* Everything but the target: syntax, names, registers, types.  Frees nothing of text. */
int lang_parse(struct lang_def **ret, const char *text, struct err *err);
void lang_free(struct lang_def *def);

/*
 * Where PLACE is in this process.  Errors: unknown symbol (suggests near
 * names), ambiguous symbol (lists the candidates), unknown module, offset
 * beyond the function, place not executable, r not at a function entry.
 * func gets the function's symbol (name "" when unknown, addr = its start).
 * Of many places: the first.
 */
int lang_resolve(const struct lang_def *def, struct sym_proc *proc, uint64_t *addr,
                 struct sym_symbol *func, struct err *err);

/*
 * All functions that a definition means, by address in each module, each
 * address once; GLOB * means those without a name (""), too.  Stops when fn returns nonzero, and
 * returns that.  Those that can't be probed at their entry are among them: lang_no_entry() says
 * why.
 */
typedef int (*lang_func_fn)(const struct sym_symbol *func, void *arg);
int lang_resolve_all(const struct lang_def *def, struct sym_proc *proc, lang_func_fn fn, void *arg,
                     struct err *err);
/*
 * The code that a definition of instructions means, by address in each module
 * and without overlaps.  GLOB * means all code of functions, with a name or not.
 */
typedef int (*lang_code_fn)(uint64_t start, uint64_t end, void *arg);
int lang_resolve_code(const struct lang_def *def, struct sym_proc *proc, lang_code_fn fn, void *arg,
                      struct err *err);
/* Why it is no entry that the definition could mean, or NULL: nobody calls it, or so. */
const char *lang_no_entry(const struct lang_def *def, const struct sym_symbol *func);

/*
 * Compile the arguments.  *ev is malloc'ed (steps behind it), chan, id,
 * enabled and active left 0; *fields is malloc'ed, nr_args of them.
 */
int lang_compile(const struct lang_def *def, struct sym_proc *proc, struct ukp_event **ev,
                 struct lang_field **fields, struct err *err);
/* The fields alone, of what isn't there to be looked up yet. */
int lang_fields(const struct lang_def *def, struct lang_field **fields, struct err *err);

/* Do its arguments read anything but registers? */
bool lang_reads_memory(const struct lang_def *def);

/* The definition as the kernel shows it: p:GRP/EV SYM+OFF name=expr...; malloc'ed. */
char *lang_show(const struct lang_def *def);

/* FUNC[=KIND] of ukprobe latency: PLACE of a function entry and enum ukp_err_kind. */
int lang_parse_latency(struct lang_def **ret, uint32_t *kind, const char *text, struct err *err);

/* The module that a definition names; *m NULL: none named. */
int lang_find_module(const struct lang_place *pl, struct sym_proc *proc, struct sym_module **m,
                     struct err *err);
/* "; near it: a, b or c", or "". */
void lang_near(struct sym_proc *proc, struct sym_module *m, const char *name, char *buf,
               size_t len);

#endif
