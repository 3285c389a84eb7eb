/* SPDX-License-Identifier: MIT */
/* ukprobe list, blacklist, funcs: thin over the session. */
#include "front/about.h"

int cmd_list(const struct options *o)
{
	const char *why = NULL;
	int err = ukp_list(o->pid, stdout, &why);

	return about_end(err, why);
}

int cmd_blacklist(const struct options *o)
{
	const char *why = NULL;
	int err = ukp_blacklist(o->pid, stdout, &why);

	return about_end(err, why);
}

int cmd_funcs(const struct options *o)
{
	const char *why = NULL;
	const char *glob = o->nr_words ? o->words[0] : NULL;
	int err = ukp_funcs(o->pid, glob, stdout, &why);

	return about_end(err, why);
}
