/* SPDX-License-Identifier: MIT */
/*
 * Whether an address can be probed, by the process's mappings and the files
 * behind them alone.  Errors are the kernel's: -EINVAL for what is no text or
 * denied, -EILSEQ for what is no instruction's start, the planner's otherwise.
 */
#ifndef UKP_PATCH_PLACE_H
#define UKP_PATCH_PLACE_H

#include "plan/plan.h"
#include "sym/sym.h"

/* The reason against a probe on a static branch. */
extern const char place_label[];

/* column: in the text that err is about, or -1; jump_only: as deny_check() has it. */
int place_check(struct sym_proc *sym, uint64_t addr, bool ret_probe, const char **jump_only,
                int column, struct err *err);
/* As many of the file's bytes at addr as there are, at most UKP_INSN_MAX. */
int place_original(struct sym_proc *sym, uint64_t addr, uint8_t code[UKP_INSN_MAX], size_t *len);
/* Length of the file's instruction at addr, and its bytes; 0: it can't be probed. */
size_t place_length(struct sym_proc *sym, uint64_t addr, uint8_t code[UKP_INSN_MAX]);

#endif
