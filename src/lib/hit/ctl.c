/* SPDX-License-Identifier: MIT */
/* Where the engine finds its control area in our own process. */
#include "lib/hit/hit.h"

struct ukp_ctl *ukp_lib_ctl;

struct ukp_ctl *ukp_engine_ctl(void)
{
	return ukp_lib_ctl;
}
