/* SPDX-License-Identifier: MIT */
/* The engine in one's own process. */
#ifndef UKP_LIB_LIB_H
#define UKP_LIB_LIB_H

#include "engine/hit.h"

/* Made by the first registration, never freed: a thread may be on a hit at any time. */
extern struct ukp_ctl *ukp_lib_ctl;

#endif
