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

/*
 * Text that no file has, or has otherwise: anonymous or writable memory, or bytes that
 * the program has changed.  What is there is what is probed, where it was asked for.
 * Reads memory as it would be without us; 0 or a negative errno.
 */
struct place_live {
	int (*read)(void *arg, uint64_t addr, void *buf, size_t len);
	void *arg;
};

/* Is it such text?  Not so is what is refused even if it was asked for. */
bool place_is_live(struct sym_proc *sym, const struct place_live *live, uint64_t addr);
/*
 * place_check() of it.  Where no function is known around addr, that it is an
 * instruction's start is the caller's word.
 */
int place_check_live(struct sym_proc *sym, const struct place_live *live, uint64_t addr, int column,
                     struct err *err);
/* plan_copy() of it; req has addr, slot and post, site->orig gets what follows it as well. */
enum plan_refusal place_copy_live(const struct place_live *live, const struct plan_request *req,
                                  uint8_t *out, struct ukp_site *site);

/* column: in the text that err is about, or -1; jump_only: as deny_check() has it. */
int place_check(struct sym_proc *sym, uint64_t addr, bool ret_probe, const char **jump_only,
                int column, struct err *err);
/* As many of the file's bytes at addr as there are, at most UKP_INSN_MAX. */
int place_original(struct sym_proc *sym, uint64_t addr, uint8_t code[UKP_INSN_MAX], size_t *len);
/* Length of the file's instruction at addr, and its bytes; 0: it can't be probed. */
size_t place_length(struct sym_proc *sym, uint64_t addr, uint8_t code[UKP_INSN_MAX]);

#endif
