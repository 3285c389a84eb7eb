/* SPDX-License-Identifier: MIT */
/* ukprobe doctor: thin over the session. */
#include "front/about.h"

int cmd_doctor(const struct options *o)
{
	const char *why = NULL;

	return about_end(ukp_doctor(o->pid, stdout, &why), why);
}
