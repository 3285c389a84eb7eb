/* SPDX-License-Identifier: MIT */
/*
 * Code that must run where it is, because somebody tells by a thread's pc what
 * the thread is doing: in a copy, or behind a breakpoint, it would be mistaken.
 *
 * - Restartable sequences: the kernel takes a thread out of one that it has
 *   interrupted, which a breakpoint does each time, and doesn't where the thread
 *   is in a copy.  The four bytes before the abort handler are a signature.
 * - The cancellable system calls of musl and of glibc from 2.41 on: a signal
 *   handler cancels only if the interrupted pc is between two labels.
 * - Those of glibc before: between enabling and disabling, that handler unwinds
 *   the stack from the interrupted pc.  From a copy it gets nowhere, and ends
 *   the thread without its destructors and cleanup handlers.
 */
#ifndef UKP_PATCH_INPLACE_H
#define UKP_PATCH_INPLACE_H

#include "sym/sym.h"

/* The reason why addr, in module m, must stay; NULL: it need not. */
const char *inplace_check(struct sym_proc *p, struct sym_module *m, uint64_t addr);

/* All such places of m; stops on nonzero and returns it, or -ENOMEM. */
typedef int (*inplace_fn)(void *arg, uint64_t start, uint64_t end, const char *why);
int inplace_ranges(struct sym_proc *p, struct sym_module *m, inplace_fn fn, void *arg);

#endif
