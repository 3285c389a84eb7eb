/* SPDX-License-Identifier: MIT */
/* ukprobe doctor: thin over the session. */
#include "front/about.h"

int cmd_doctor(const struct options *o)
{
	const char *why = NULL;
	int err = ukp_doctor(o->pid, stdout, &why);

	return about_end(err, why);
}
