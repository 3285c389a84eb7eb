/* SPDX-License-Identifier: MIT */
/*
 * The same questions as patch/place.h, asked for thousands of places at once:
 * files are read in large pieces, a module's denied names are looked up once,
 * and a function is decoded once for all its places.  Fast for addresses that
 * ascend; right for all.
 *
 * What a survey knows is of the last sym_refresh(): close it before the next.
 */
#ifndef UKP_PATCH_SURVEY_H
#define UKP_PATCH_SURVEY_H

#include "plan/plan.h"
#include "sym/sym.h"

struct survey;

/* ret_probe: of places for return probes. */
int survey_open(struct survey **ret, struct sym_proc *sym, bool ret_probe);
void survey_close(struct survey *s);

/*
 * NULL, or why a probe at addr is refused: a static text that names no place.
 * jump_only: as deny_check() has it.
 */
const char *survey_check(struct survey *s, uint64_t addr, const char **jump_only);

/*
 * Calls fn for each instruction of [start, end), with both answers of
 * survey_check(); the last one is of what can't be decoded, if there is such.
 * Stops when fn returns nonzero, and returns that.
 */
typedef int (*survey_fn)(uint64_t addr, const char *why, const char *jump_only, void *arg);
int survey_insns(struct survey *s, uint64_t start, uint64_t end, survey_fn fn, void *arg);

/* The file's bytes at addr, *avail of them (at most UKP_INSN_MAX, 0: none). */
const uint8_t *survey_code(struct survey *s, uint64_t addr, size_t *avail);

#endif
