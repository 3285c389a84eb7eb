/* SPDX-License-Identifier: MIT */
/*
 * Functions that must not be probed, or not everywhere, or not at their
 * return, by name and reason, and code that must run in its place (inplace.h).
 * The agent itself needs no list: it lies in memory that no file has.
 */
#ifndef UKP_PATCH_DENY_H
#define UKP_PATCH_DENY_H

#include "sym/sym.h"

enum deny_kind {
	DENY_TRAP,            /* a breakpoint; a jump may stand there */
	DENY_TRAP_BODY,       /* the same, but at the entry */
	DENY_BODY,            /* any probe but at the entry */
	DENY_RETURN,          /* return probes */
	DENY_RETURN_ANYWHERE, /* the same, not of libc alone */
};

struct deny_entry {
	const char *name;
	enum deny_kind kind;
	const char *why;
	bool musl; /* only of musl */
	/* Only a local function that lies beside this one: its name is anybody's. */
	const char *beside;
};

/* The list; ends with a NULL name. */
const struct deny_entry *deny_list(void);

/*
 * The reason why a probe at addr is refused, or NULL.  *jump_only: what is against
 * a breakpoint there, where a jump may stand, or NULL; who has no jumps passes
 * NULL, and is refused for that.
 */
const char *deny_check(struct sym_proc *p, uint64_t addr, bool ret, const char **jump_only);

/* The symbols that e is about in module m, which is libc's: at most max, returns how many. */
size_t deny_symbols(struct sym_proc *p, struct sym_module *m, const struct deny_entry *e,
                    struct sym_symbol *out, size_t max);

/* The parts of that: the C library's module; what the whole of a module is refused for, returns. */
bool deny_is_libc(struct sym_proc *p, struct sym_module *m);
const char *deny_module(struct sym_proc *p, struct sym_module *m);
/* Against returns from where the kernel starts it. */
extern const char deny_start[];
/* The runtime of a Go program: a reason against any probe at addr of m, or NULL. */
const char *deny_go(struct sym_proc *p, const struct sym_module *m, uint64_t addr);
/* libuv in m: a reason against a breakpoint at addr, or NULL. */
const char *deny_uv(struct sym_proc *p, struct sym_module *m, uint64_t addr);
bool deny_is_uv(struct sym_proc *p, struct sym_module *m);
/* Why all of m keeps its breakpoints, or NULL. */
const char *deny_jumps(const struct sym_module *m);
bool deny_is_musl(struct sym_proc *p, struct sym_module *m);
/*
 * From where on a static program's functions without a public name may be libc's; 0: it is
 * no such program.
 */
uint64_t deny_static(struct sym_proc *p, struct sym_module *m);
/* Of a module with libc's functions from there on: has the one at addr no public name? */
bool deny_is_nameless(struct sym_proc *p, struct sym_module *m, uint64_t from, uint64_t addr);
const char *deny_nameless(struct sym_proc *p, struct sym_module *m, bool *trap);
/* Against breakpoints alone?  Not at the entry? */
bool deny_is_of_traps(const struct deny_entry *e);
bool deny_is_anywhere(const struct deny_entry *e);   /* not of libc alone */
bool deny_is_of_returns(const struct deny_entry *e); /* of return probes */
bool deny_but_entry(const struct deny_entry *e);
/* The answer of deny_check(), from a reason that is against breakpoints alone, or not. */
const char *deny_split(const char *why, bool trap, bool ret, const char **jump_only);

/* deny_check() for many addresses of one module (denied.c). */
struct denied;
int denied_open(struct denied **ret_d, struct sym_proc *sym, struct sym_module *m, bool ret);
const char *denied_at(const struct denied *d, uint64_t addr, const char **jump_only);
void denied_close(struct denied *d);

#endif
