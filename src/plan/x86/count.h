/* SPDX-License-Identifier: MIT */
/* The entry of a probe that only counts: no call, no frame. */
#ifndef UKP_PLAN_X86_COUNT_H
#define UKP_PLAN_X86_COUNT_H

#include "plan/detour.h"
#include "plan/x86/gen.h"

#define COUNT_SAVES (PLAN_SAVE(ax) | PLAN_SAVE(cx) | PLAN_SAVE(dx))

/* Marks each boundary as that of the instruction at orig. */
void count_entry(struct gen *g, const struct plan_count *c, uint64_t cell, uint64_t orig);

#endif
