/* SPDX-License-Identifier: MIT */
/*
 * May a five-byte jump be written at an address?
 *
 * It may where nothing enters what it overwrites but at its start: no target
 * of the module's set in it, no call in it that would return into it, and all
 * of the function understood.  Pure.
 */
#ifndef UKP_PLAN_WINDOW_H
#define UKP_PLAN_WINDOW_H

#include "plan/plan.h"
#include "plan/targets.h"
#include "wire/detour.h"

#define PLAN_JUMP_SIZE 5
#define PLAN_WINDOW_MAX (PLAN_JUMP_SIZE - 1 + UKP_INSN_MAX)

/* Why the base form stays; plan_window_reason() has the words. */
enum plan_window_why {
	PLAN_WINDOW_OK,
	PLAN_WINDOW_UNKNOWN,  /* in no known function */
	PLAN_WINDOW_BROKEN,   /* the function can't be decoded throughout */
	PLAN_WINDOW_INDIRECT, /* an unresolved indirect jump may enter */
	PLAN_WINDOW_BOUNDARY, /* no start of an instruction */
	PLAN_WINDOW_TARGET,   /* code jumps into it */
	PLAN_WINDOW_CALL,     /* a call or system call in it would return into it */
	PLAN_WINDOW_SHORT,    /* the function ends before five bytes, without free padding */
	PLAN_WINDOW_COPY,     /* an instruction in it can't be moved: see refusal */
	PLAN_WINDOW_FOREIGN,  /* memory differs from the file: somebody else's patch */
	PLAN_WINDOW_REASONS,
};

const char *plan_window_reason(enum plan_window_why why);

struct plan_window_request {
	const struct plan_targets *targets;
	const uint8_t *code; /* the file's bytes at addr */
	size_t avail;        /* PLAN_WINDOW_MAX or what there is */
	uint64_t addr;       /* link-time */
	/*
	 * What memory has there, with our own breakpoints and jumps undone and
	 * as long as code; NULL: not compared.
	 */
	const uint8_t *live;
};

struct plan_window {
	uint8_t why;     /* enum plan_window_why */
	uint8_t refusal; /* enum plan_refusal, with PLAN_WINDOW_COPY */
	bool ftrace;     /* nothing but nops that a compiler left for this */
	uint8_t nr;      /* covered instructions that can run, padding apart */
	uint8_t len;     /* of them, in bytes */
	uint8_t covered; /* with padding: what belongs to this window alone, at least 5 */
	struct {
		uint8_t off, len;
	} insn[UKP_WINDOW_INSNS];
};

/* Fills w in; true if the jump may be placed. */
bool plan_window(const struct plan_window_request *req, struct plan_window *w);

/*
 * Takes the instruction behind a window into it, for a probe that would have no
 * room for a jump of its own.  The jump stays as it is, and so do that
 * instruction's bytes: it is entered from the one before alone, as far as is
 * known, and who enters it in the text is right there, too.  req as before, with
 * PLAN_WINDOW_LONG bytes or what there is.  False: it can't be, w is unchanged.
 */
bool plan_window_extend(const struct plan_window_request *req, struct plan_window *w);
#define PLAN_WINDOW_LONG (PLAN_WINDOW_MAX + (UKP_WINDOW_INSNS - 1) * UKP_INSN_MAX)

/*
 * Where from its start a function has five bytes of nops for tracers: by
 * -fpatchable-function-entry, or -mfentry with -mnop-mcount; behind an endbr64
 * if it begins with one.  -1: nowhere.
 */
int plan_ftrace_offset(const uint8_t *code, size_t avail);

#endif
