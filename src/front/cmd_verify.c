/* SPDX-License-Identifier: MIT */
/* ukprobe verify, cure: thin over the session. */
#include <errno.h>

#include "front/about.h"

int cmd_verify(const struct options *o)
{
	const char *why = NULL;
	int err = ukp_verify(o->pid, stdout, &why);

	/* The differences are the output; the reason for the status is this. */
	if (err == -EEXIST && (!why || !*why))
		why = "the process is not as its files are; ukprobe cure -p PID removes what is "
		      "ours";
	return about_end(err, why);
}

int cmd_cure(const struct options *o)
{
	const char *why = NULL;
	int err = ukp_cure(o->pid, stdout, &why);

	return about_end(err, why);
}
