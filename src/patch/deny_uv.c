/* SPDX-License-Identifier: MIT */
/*
 * libuv, as a library or in a program such as node: it blocks all signals while it
 * changes its handlers, in these, and around fork(), whose child takes all handlers
 * away before it opens signals again.  Functions of these names are probed by jumps.
 */
#include <string.h>

#include "patch/deny.h"

static const char blocked[] = "libuv may run it with all signals blocked, where a breakpoint kills";

static const char *const names[] = {
	"uv__signal_", "uv_signal_start", "uv_signal_stop",  "uv__process_",
	"uv__spawn",   "uv_spawn",        "uv__cloexec",     "uv__nonblock",
	"uv__close",   "uv__write_int",   "uv__write_errno", "uv__make_pipe",
};

const char *deny_uv(struct sym_proc *p, struct sym_module *m, uint64_t addr)
{
	struct sym_symbol s;
	uint64_t off;
	size_t i;

	if (!sym_resolve(p, addr, &s, &off) || s.module != m || strncmp(s.name, "uv_", 3) != 0)
		return NULL;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(s.name, names[i], strlen(names[i])))
			return blocked;
	return NULL;
}

bool deny_is_uv(struct sym_proc *p, struct sym_module *m)
{
	struct sym_symbol s;

	return sym_lookup(p, m, "uv_spawn", &s, 1);
}
