/* SPDX-License-Identifier: MIT */
/*
 * How much of the program's time probes may take.  Now and then the hits of each
 * since the last look are multiplied by what one costs in its form, and the most
 * expensive ones are taken out until the rest fits.
 */
#ifndef UKP_SESSION_BUDGET_H
#define UKP_SESSION_BUDGET_H

#include "session/target.h"

/* share of the program's CPU time, 0 to 1, for the probes of this channel. */
int budget_set(struct chan *c, double share);
/* Milliseconds until the next look; -1: there is no budget. */
int budget_wait(const struct target *t);
/* True: something was taken out. */
bool budget_look(struct target *t);
void budget_free(struct chan *c);

#endif
