/* SPDX-License-Identifier: MIT */
/* The end of the subcommands that tell something about a process. */
#ifndef UKP_FRONT_ABOUT_H
#define UKP_FRONT_ABOUT_H

#include <stdio.h>

#include <ukprobes/session.h>

#include "front/options.h"

/* Sees that the output has arrived, gives the reason for a failure; exit status. */
int about_end(int err, const char *why);

#endif
