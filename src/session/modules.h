/* SPDX-License-Identifier: MIT */
/*
 * Target sets of a process's modules, and the exits of their functions where
 * return probes want them, computed by a thread of their own: a large library
 * takes seconds.  All calls are for the broker's thread.
 */
#ifndef UKP_SESSION_MODULES_H
#define UKP_SESSION_MODULES_H

#include "plan/exits.h"
#include "plan/targets.h"
#include "sym/sym.h"

struct modules;

int modules_open(struct modules **ret);
void modules_close(struct modules *m); /* waits for the thread */

/* Readable when one more is ready. */
int modules_fd(const struct modules *m);
/* Ask for a module's target set, and exits; asking again costs nothing. */
void modules_want(struct modules *m, struct sym_module *mod, bool exits);
/* Until it is ready. */
void modules_wait(struct modules *m, const struct sym_module *mod);
/* What tells modules apart: the build-id, or the path of one that has none. */
const char *modules_id(const struct sym_module *mod);
/* Done with all that was asked for of it, for better or worse. */
bool modules_ready(struct modules *m, const struct sym_module *mod);
/* NULL: none could be made.  Addresses are link-time ones: runtime - *bias. */
const struct plan_targets *modules_targets(struct modules *m, const struct sym_module *mod,
                                           uint64_t *bias);
/* NULL: none could be made, or nobody has asked. */
const struct plan_exits *modules_exits(struct modules *m, const struct sym_module *mod,
                                       uint64_t *bias);

#endif
