/* SPDX-License-Identifier: MIT */
/*
 * The parts of a detour that save registers and give them back: see plan/detour.h
 * for what they look like.
 */
#ifndef UKP_PLAN_X86_ENTRY_H
#define UKP_PLAN_X86_ENTRY_H

#include "plan/detour.h"
#include "plan/x86/gen.h"

struct detour {
	struct gen g;
	const struct plan_detour_request *req;
	struct plan_detour *out;
	uint32_t saves;
	/* Where constants and the tail are referred to: rel32s to fill in. */
	unsigned int jnz[UKP_WINDOW_INSNS], ip[UKP_WINDOW_INSNS], call[UKP_WINDOW_INSNS];
	unsigned int nr;
	unsigned int js; /* the same, to what calls in place */
	/* What the entry's map is about. */
	uint64_t orig;
	unsigned int words, flags;
};

/* The entry of the probe on d->orig; the next one's number is d->nr afterwards. */
void entry_gen(struct detour *d, uint64_t site);
/* Where the entries' jnz lead to: all of the frame's registers, ip and sp too. */
void entry_tail(struct detour *d);
/* Where the first one's js leads to. */
void entry_call(struct detour *d);

#endif
