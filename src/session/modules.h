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
void modules_close(struct modules *m); /* waits for the thread: no pause then */
/* Of the thread: it works while the target runs. */
struct pause *modules_pause(struct modules *m);

/* Readable when one more is ready. */
int modules_fd(const struct modules *m);
/*
 * Ask for what a jump at addr needs: the targets around it for a few such places of a
 * module, then its target set.  True: that has been asked for, which serves all of the
 * module.  Asking again costs nothing.
 */
bool modules_want(struct modules *m, struct sym_module *mod, uint64_t addr);
/* Ask for its target set and its exits. */
void modules_want_exits(struct modules *m, struct sym_module *mod);
/* Until they are ready; ends a pause. */
void modules_wait_exits(struct modules *m, const struct sym_module *mod);
/* What tells modules apart: the build-id, or the path of one that has none. */
const char *modules_id(const struct sym_module *mod);
/* Has what was asked for addr been made, for better or worse? */
bool modules_ready(struct modules *m, const struct sym_module *mod, uint64_t addr);
/*
 * The module's target set, or the one for addr alone (plan_targets_range() tells); NULL:
 * none could be made.  Addresses are link-time ones: runtime - *bias.
 */
const struct plan_targets *modules_targets(struct modules *m, const struct sym_module *mod,
                                           uint64_t addr, uint64_t *bias);
/* The same two of the exits. */
bool modules_exits_ready(struct modules *m, const struct sym_module *mod);
const struct plan_exits *modules_exits(struct modules *m, const struct sym_module *mod,
                                       uint64_t *bias);

#endif
