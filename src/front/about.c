/* SPDX-License-Identifier: MIT */
/* The end of the subcommands that tell something about a process; see about.h. */
#include "front/about.h"

#include <errno.h>
#include <string.h>

int about_end(int err, const char *why)
{
	/* First what was found, then what it means. */
	if (fflush(stdout) || ferror(stdout))
		return complain("can't write to standard output: %s", strerror(errno));
	if (!err)
		return 0;
	return complain("%s", why && *why ? why : strerror(-err));
}
