/* SPDX-License-Identifier: MIT */
/*
 * Between the files of the language.
 *
 * Text is cut into words once (struct lang_words); everything after that works
 * on slices of them and knows the column of each, so that no error has to look
 * for its place again.
 */
#ifndef UKP_LANG_PRIVATE_H
#define UKP_LANG_PRIVATE_H

#include <stddef.h>

#include "lang/errors.h"
#include "lang/lang.h"

#define LANG_ARG_NAME_MAX 32 /* MAX_ARG_NAME_LEN */
#define LANG_ARG_EXPR_MAX 63 /* MAX_ARGSTR_LEN */
#define LANG_ARRAY_MAX 64    /* MAX_ARRAY_LEN */
#define LANG_PARAM_MAX 2048  /* PARAM_MAX_STACK: the N of $stackN and $argN */
#define LANG_MAXACTIVE 4096  /* KRETPROBE_MAXACTIVE_MAX */
#define LANG_REG_ARGS 6      /* $argN in registers */
#define LANG_ENDBR_LEN 4

/* A piece of a word, not terminated. */
struct slice {
	const char *p;
	size_t n;
};

struct lang_words {
	char *text; /* single spaces, no comment */
	size_t nr;
	struct lang_word {
		struct slice s; /* in text */
		int column;
	} * word;
};

/*
 * An argument: one value, DEREFs, then the store.  Steps are as in the wire
 * format but for two that need a target or the whole definition: a symbol's
 * IMM (sym set; imm gets its address) and $argN (UKP_FETCH_EDATA with imm = N).
 */
struct lang_arg {
	char name[LANG_ARG_NAME_MAX + 1];
	char expr[LANG_ARG_EXPR_MAX + 1]; /* as written, with its type */
	int column;                       /* of expr */
	int value_column;                 /* of what the value is made of */
	uint8_t type;                     /* enum lang_type */
	uint8_t size;
	uint8_t nr_steps;
	uint32_t nth; /* N of $argN, else 0 */
	char sym[LANG_ARG_EXPR_MAX + 1];
	int64_t sym_offset;
	struct ukp_fetch steps[UKP_FETCH_MAX];
};

/* errors.c.  detail may be NULL; what would disturb a terminal is made '?'. */
int lang_fail(struct err *err, int code, enum lang_error what, int column, const char *detail, ...)
	__attribute__((format(printf, 5, 6)));

/* lex.c */
int lang_split(struct lang_words *w, const char *text, struct err *err);
void lang_words_free(struct lang_words *w);
struct slice slice_from(struct slice s, size_t from);
struct slice slice_head(struct slice s, size_t n);
/* Index of the first c; s.n: none. */
size_t slice_find(struct slice s, char c);
bool slice_is(struct slice s, const char *text);
bool slice_starts(struct slice s, const char *text);
/* kstrtoul() and kstrtol(): 0, -EINVAL, -ERANGE. */
int lang_number(struct slice s, unsigned int base, uint64_t *value);
int lang_signed(struct slice s, unsigned int base, int64_t *value);
/* simple_strtoul(): never fails; returns the characters taken. */
size_t lang_digits(struct slice s, unsigned int base, uint64_t *value);
bool lang_good_name(struct slice s);
bool lang_good_group(struct slice s);

/* parse.c */
typedef int (*lang_words_fn)(struct lang_def *def, const struct lang_words *w, void *arg,
                             struct err *err);
int lang_parse_with(struct lang_def **ret, const char *text, lang_words_fn fn, void *arg,
                    struct err *err);

/* place.c */
int lang_parse_place(struct lang_def *def, struct slice s, int column, struct err *err);
int lang_parse_glob(struct lang_def *def, const struct lang_words *w, struct err *err);
void lang_auto_event(struct lang_def *def);

/* args.c */
int lang_check_meta(const struct lang_def *def, const struct lang_words *w, struct err *err);
int lang_parse_arg(struct lang_def *def, unsigned int i, const struct lang_word *word,
                   struct err *err);
/* Checks that the kernel makes when it registers the event. */
int lang_check_symbols(struct lang_def *def, struct err *err);

/* types.c */
struct lang_spec {
	struct slice type; /* p NULL: none given */
	int column;        /* of type */
	int array_column;
	uint32_t count; /* of an array, 0: none */
	uint8_t kind;   /* enum lang_type */
	uint8_t size;
	bool is_string, is_symstr;
	const char *unsupported; /* why a type that the kernel has isn't taken */
};
int lang_cut_type(struct slice *body, int column, struct lang_spec *spec, struct err *err);
int lang_find_type(struct slice body, struct lang_spec *spec, struct err *err);
bool lang_good_bitfield(const struct lang_spec *spec);

/* fetch.c: base value and dereferences. */
struct lang_value {
	enum {
		LANG_VAL_PLAIN, /* in a register or on the stack */
		LANG_VAL_RETVAL,
		LANG_VAL_ARG, /* $argN */
		LANG_VAL_XMM,
		LANG_VAL_ST,
		LANG_VAL_IMM,
		LANG_VAL_MEM,  /* @..., +OFF() */
		LANG_VAL_UMEM, /* +uOFF() */
		LANG_VAL_COMM,
		LANG_VAL_DATA, /* \"string" */
		LANG_VAL_DURATION,
	} kind;
	int column; /* where the kernel would place an error from now on */
};
int lang_parse_fetch(const struct lang_def *def, struct lang_arg *arg, struct slice body,
                     int column, struct lang_value *val, struct err *err);

/* many.c */
/* Does a definition mean all functions that match, not one by its name? */
bool lang_is_glob(const struct lang_def *def);

/* resolve.c */
int lang_resolve_data(const struct lang_def *def, const struct lang_arg *arg, struct sym_proc *proc,
                      uint64_t *addr, struct err *err);
/* True when addr is where the function func begins, landing pad left aside. */
bool lang_is_entry(struct sym_proc *proc, const struct sym_symbol *func, uint64_t addr);
/* GCC and LLVM jump to the unlikely half of a function, foo.cold: nobody calls it. */
bool lang_is_cold(const char *name);

#endif
