/* SPDX-License-Identifier: MIT */
/*
 * Definitions of functions in libraries that are not loaded: as with the kernel's
 * modules they wait, and land when the library does, before its constructors run.
 *
 * While a channel has one that waited once, the dynamic linker's hook for
 * debuggers has a breakpoint (agent/in/loader.c): whatever is loaded or unloaded,
 * the linker stops there until the broker has looked, for 100 ms at most.
 */
#ifndef UKP_SESSION_PENDING_H
#define UKP_SESSION_PENDING_H

#include "session/target.h"

/* May this definition wait?  It names a library that is not mapped. */
bool pending_may(struct target *t, const struct lang_def *def);
/* Is there a hook at all?  -EOPNOTSUPP with the reason: a static program has none. */
int pending_check(struct target *t, int column, struct err *err);

/* Has it a seccomp filter, which may kill for a call that is new? */
bool pending_is_filtered(const struct target *t);
/* Readable when libraries have come or gone; -1: nobody waits. */
int pending_fd(const struct target *t);
/* Looks for what waits, and lands it; true: something has changed in the target. */
bool pending_look(struct target *t);
/* After definitions were started or have left: the hook in or out.  As above. */
bool pending_settle(struct target *t);
void pending_close(struct target *t);

/* "PLACE: why" lines of those that never landed; returns what snprintf does. */
int pending_print(const struct chan *c, char *buf, size_t len);

#endif
