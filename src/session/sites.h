/* SPDX-License-Identifier: MIT */
/*
 * The sites of a target: by address on our side, and the table that the engine
 * reads.  Finding and adding take the same time however many there are.
 */
#ifndef UKP_SESSION_SITES_H
#define UKP_SESSION_SITES_H

#include "session/target.h"

struct site *sites_find(const struct target *t, uint64_t addr);

/* Room for n more on both sides, so that sites_add() doesn't fail: 0, -ENOMEM, -ENOSPC. */
int sites_reserve(struct target *t, size_t n);

/* Names a complete site on both sides: from now on the engine finds it. */
void sites_add(struct target *t, struct site *s);

void sites_free(struct target *t);

#endif
