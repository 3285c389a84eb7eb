/* SPDX-License-Identifier: MIT */
/* Which functions an fprobe is for, and how the calls of each are followed. */
#ifndef UKP_LIB_GATHER_H
#define UKP_LIB_GATHER_H

#include "lib/lib.h"
#include "ukprobes/fprobe.h"

struct found {
	uint64_t addr;
	struct lib_returns how; /* with an exit handler; to be taken over, or freed */
};

/* What is asked for: two globs, or num addresses or names. */
struct gather_wanted {
	const char *filter, *notfilter;
	const unsigned long *ips;
	const char **syms;
	int num;
};

struct gather {
	struct found *found; /* by addr, each once */
	size_t nr, room;
	size_t refused;
	char why[256]; /* of the first refused */
};

/* In the last view of the process.  g is zeroed; whatever the result, gather_free() follows. */
int gather(struct gather *g, struct sym_proc *sym, const struct fprobe *fp,
           const struct gather_wanted *w, struct err *err);
void gather_refuse(struct gather *g, const char *why);
void gather_free(struct gather *g);

#endif
