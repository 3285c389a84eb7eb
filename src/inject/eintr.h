/* SPDX-License-Identifier: MIT */
/* Which system calls a stop by a tracer would end with EINTR; see eintr.c. */
#ifndef UKP_INJECT_EINTR_H
#define UKP_INJECT_EINTR_H

#include <stdbool.h>

/* EINTR of this call may be made a restart: it has done nothing when it says so. */
bool eintr_restartable(long nr);

#endif
