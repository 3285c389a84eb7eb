/* SPDX-License-Identifier: MIT */
/*
 * Slots in a target: places of UKP_SLOT_SIZE bytes near the module that they
 * serve, in pages that are r-x for the target and written from outside.
 */
#ifndef UKP_SESSION_SLOTS_H
#define UKP_SESSION_SLOTS_H

#include "session/target.h"

struct slots;

int slots_open(struct slots **ret, struct target *t);
void slots_close(struct slots *s); /* frees our records; the mappings go with the agent */

/* A slot within reach of the whole module that has addr.  May map: only while held. */
uint64_t slots_get(struct slots *s, uint64_t addr, struct err *err);
/* Give back one that never was in use (its probe was refused). */
void slots_put(struct slots *s, uint64_t slot);

#endif
