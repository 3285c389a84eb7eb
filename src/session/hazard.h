/* SPDX-License-Identifier: MIT */
/* What a target may do later that a breakpoint would kill it for: nobody can tell that it will. */
#ifndef UKP_SESSION_HAZARD_H
#define UKP_SESSION_HAZARD_H

#include "sym/sym.h"

/* A sentence with its remedy, or NULL.  altstack: bytes of the one that is known of, or 0. */
const char *hazard_find(struct sym_proc *p, pid_t pid, uint64_t altstack);

#endif
