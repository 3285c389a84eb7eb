/* SPDX-License-Identifier: MIT */
/*
 * Slots in a process, one's own or another: places of UKP_SLOT_SIZE bytes near the module that they
 * serve, in pages that are r-x there and written through /proc/PID/mem.
 */
#ifndef UKP_PATCH_SLOTS_H
#define UKP_PATCH_SLOTS_H

#include "sym/sym.h"
#include "wire/site.h"

struct slots;

/* Makes a mapping of len bytes at hint and nowhere else; 0 with the reason in err. */
typedef uint64_t (*slots_map_fn)(void *arg, uint64_t hint, uint64_t len, struct err *err);

int slots_open(struct slots **ret, struct sym_proc *sym, slots_map_fn map, void *arg);
void slots_close(struct slots *s); /* frees our records; the mappings go with the agent */

/*
 * Room for n slots within reach of the module that has addr, in as few mappings
 * as the address space allows.  Refreshes the view of the process.
 */
int slots_reserve(struct slots *s, uint64_t addr, size_t n, struct err *err);
/* A slot within reach of the whole module that has addr.  May map. */
uint64_t slots_get(struct slots *s, uint64_t addr, struct err *err);
/* As many bytes in one piece, for a detour. */
uint64_t slots_get_bytes(struct slots *s, uint64_t addr, uint32_t bytes, struct err *err);
/* Give back one that never was in use (its probe was refused). */
void slots_put(struct slots *s, uint64_t slot);

#endif
