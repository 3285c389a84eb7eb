/* SPDX-License-Identifier: MIT */
/*
 * Windows whose detours nobody comes to any more, or is in: their places are used again,
 * the oldest first.
 *
 * A place is a piece of code memory with the description that the engine finds it by.
 * They stay together for the agent's life, and the description in its list: who looks
 * through that meanwhile meets the old one, none, or the new one, and has no business
 * with any of them.
 */
#ifndef UKP_SESSION_SPARE_H
#define UKP_SESSION_SPARE_H

#include "plan/detour.h"
#include "session/windows.h"

#define SPARE_UNIT 64 /* places are multiples of it, code and description */
#define SPARE_CLASSES (PLAN_DETOUR_MAX / SPARE_UNIT + 1)

struct spare {
	struct {
		struct window *first, *last;
	} of[SPARE_CLASSES]; /* by size of the code */
	size_t nr;
};

static inline uint32_t spare_round(uint32_t size)
{
	return (size + SPARE_UNIT - 1) & ~(SPARE_UNIT - 1u);
}

void spare_add(struct spare *s, struct window *w);
/* It is wanted as it is. */
void spare_remove(struct spare *s, struct window *w);
/* The next after w, NULL the first, that has so much room and serves the mapping from start. */
struct window *spare_next(const struct spare *s, struct window *w, uint32_t code, uint32_t map,
                          uint64_t start);

#endif
