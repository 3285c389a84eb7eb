/* SPDX-License-Identifier: MIT */
/*
 * The probe-definition language: text in, a checked event out.
 *
 *	p[:[GRP/]EVENT] PLACE [ARGS]
 *	r[MAXACTIVE][:[GRP/]EVENT] PLACE [ARGS]
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

enum lang_type { LANG_U, LANG_S, LANG_X, LANG_STRING, LANG_COMM, LANG_NS /* $duration */ };

/* One argument as it is printed; what a client needs to read a record. */
struct lang_field {
	char name[33];
	uint8_t type;    /* enum lang_type */
	uint8_t size;    /* bytes in the record; strings 4, comm 0 */
	uint16_t offset; /* in the payload */
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
	char *text;                /* the command with single spaces: what columns count in */
	bool ret;                  /* r */
	uint32_t maxactive;        /* 0: not given */
	char group[LANG_NAME_MAX]; /* default "ukprobes" */
	char event[LANG_NAME_MAX]; /* default p_SYM_OFF, r_SYM_0, p_0xADDR */
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
 */
int lang_resolve(const struct lang_def *def, struct sym_proc *proc, uint64_t *addr,
                 struct sym_symbol *func, struct err *err);

/*
 * Compile the arguments.  *ev is malloc'ed (steps behind it), chan, id,
 * enabled and active left 0; *fields is malloc'ed, nr_args of them.
 */
int lang_compile(const struct lang_def *def, struct sym_proc *proc, struct ukp_event **ev,
                 struct lang_field **fields, struct err *err);

/* The definition as the kernel shows it: p:GRP/EV SYM+OFF name=expr...; malloc'ed. */
char *lang_show(const struct lang_def *def);

/* FUNC[=KIND] of ukprobe latency: PLACE of a function entry and enum ukp_err_kind. */
int lang_parse_latency(struct lang_def **ret, uint32_t *kind, const char *text, struct err *err);

#endif
