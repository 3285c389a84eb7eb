/* SPDX-License-Identifier: MIT */
/* Where the engine finds its control area in our own process. */
#include "lib/hit/hit.h"

struct ukp_ctl *ukp_lib_ctl;

/* The engine's name for it. */
extern struct ukp_ctl *const volatile ukp_engine_ctl_word __attribute__((alias("ukp_lib_ctl")));
