/* SPDX-License-Identifier: MIT */
/*
 * One window: drafted from the file's bytes and the module's target set, then
 * made in the target.  windows.c asks for them in the order of addresses.
 */
#ifndef UKP_SESSION_COVER_H
#define UKP_SESSION_COVER_H

#include "plan/detour.h"
#include "session/windows.h"

/* A piece of code memory that detours of one module fill. */
#define COVER_CHUNK (16u << 10)

/* A chunk that isn't full, of a module that isn't looked at just now. */
struct cover_rest {
	uint64_t at, lo, hi;
	size_t used;
};

struct cover {
	struct modules *modules;
	struct windows *windows; /* that it makes them for */
	/* what of a mapping the targets are known of, the mapping, its module */
	uint64_t start, end, map_start, map_end, bias;
	const char *why; /* against any jump in that module; NULL */
	const struct plan_targets *targets;
	bool ready;
	struct stays *stays; /* code of it that must run in its place */
	/* a piece of its file */
	uint8_t *code;
	uint64_t code_at;
	size_t code_len;
	/* detours that are not yet written */
	uint8_t *chunk;
	uint64_t chunk_at, chunk_lo, chunk_hi; /* where it runs, whom it serves */
	size_t used, written;
	bool failed;
	struct cover_rest *rest;
	size_t nr_rest;
	/* the shapes in use */
	struct ukp_detour_shape *shape;
	uint32_t *shape_off;
	size_t nr_shapes;
};

struct draft {
	uint64_t addr, text; /* of the jump; of what is changed with it */
	struct plan_window w;
	uint8_t code[PLAN_WINDOW_LONG]; /* from addr on */
	size_t avail;
	uint8_t probes;
	struct site *site[WINDOW_SITES];
	bool count, call, flow; /* as in struct window */
	uint32_t saves;
};

int cover_open(struct cover *c, struct modules *m);
void cover_close(struct cover *c);

/* Go to addr's module; false: it has no target set yet. */
bool cover_module(struct target *t, struct cover *c, uint64_t addr);

/* A window at addr; the reason why there is none, or NULL. */
const char *cover_at(struct target *t, struct cover *c, uint64_t addr, struct draft *f);
/* One that begins back bytes before addr and covers it. */
bool cover_back(struct target *t, struct cover *c, uint64_t addr, unsigned int back,
                struct draft *f);
/* Is a place in (addr - back, addr] entered by other code?  Then nothing begins before it. */
bool cover_entered(const struct cover *c, uint64_t addr, unsigned int back);
/* At a function's entry, in the nops behind its endbr64; false: there are none. */
bool cover_ftrace(struct target *t, struct cover *c, struct site *s, struct draft *f);
bool cover_extend(const struct cover *c, struct draft *f);

/* stays.c: what no window may copy, of one module at a time. */
struct stays;
struct stays *stays_open(void);
void stays_close(struct stays *s);
/* Go to a module; -ENOMEM. */
int stays_module(struct stays *s, struct sym_proc *sym, struct sym_module *m);
/* Why [start, end) must run where it is, or NULL. */
const char *stays_why(const struct stays *s, uint64_t start, uint64_t end);
/* What its probes need; false: one needs the address that it is planted at. */
bool cover_form(struct target *t, struct draft *f);

bool cover_same(const struct window *w, const struct draft *f);
/* Windows are made between begin and end, which writes them: 0 or -errno. */
void cover_begin(struct cover *c);
const char *cover_make(struct target *t, struct cover *c, const struct draft *f,
                       struct window **ret);
int cover_end(struct target *t, struct cover *c);
/* Its sites keep the base form, for this reason. */
void cover_drop(struct window *w, const char *why);
/* The counter that the site's entry adds to. */
void cover_count(struct target *t, struct site *s);

#endif
