/* SPDX-License-Identifier: MIT */
/* The optimizer's thread: see opt.c; what it is asked for is in lib.h. */
#ifndef UKP_LIB_OPT_H
#define UKP_LIB_OPT_H

/* Have a thread look at what is queued, if there is none; under the lock. */
void opt_start(void);

#endif
