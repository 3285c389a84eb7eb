/* SPDX-License-Identifier: MIT */
/*
 * Breakpoints of many sites, page by page, while the target runs: one byte of
 * an instruction changes at a time, and a thread that meets it finds slot, site
 * and table there already, or still.
 */
#ifndef UKP_SESSION_PAGES_H
#define UKP_SESSION_PAGES_H

#include "session/target.h"

typedef void (*pages_refused_fn)(struct site *s, const char *why, void *arg);

/* Sites ascending by address.  What memory has not as the file has it is refused. */
void pages_arm(struct target *t, struct site **v, size_t n, pages_refused_fn refused, void *arg);
/* Only what is still ours is put back. */
void pages_disarm(struct target *t, struct site **v, size_t n);

#endif
