/* SPDX-License-Identifier: MIT */
/*
 * What a registered fprobe is to hits.  Places change under the lock; who reads
 * them is inside a guard of kind GUARD_FPROBE.
 */
#ifndef UKP_LIB_HIT_FPROBE_H
#define UKP_LIB_HIT_FPROBE_H

#include "lib/hit/hit.h"
#include "ukprobes/fprobe.h"

#pragma GCC visibility push(hidden)

/* An fprobe at a site, in the site's list, newest first. */
struct ukp_fplace {
	struct ukp_fplace *next;
	struct ukp_fprobe *f;
	struct lib_site *site;
	struct lib_returns how; /* with an exit handler */
};

/* Outlives its fprobe until the last call is back. */
struct ukp_fprobe {
	struct fprobe *fp; /* NULL: unregistered */
	struct ukp_calls calls;
	struct ukp_fplace *place;
	size_t nr;   /* of functions */
	size_t used; /* of places: one that was in a list is not used for another */
	struct ukp_fprobe *next_dead;
};

#pragma GCC visibility pop

#endif
