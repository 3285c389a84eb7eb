/* SPDX-License-Identifier: MIT */
/* The code that makes system calls in the target (x86/runner.S), and what lies behind it. */
#include "inject/internal.h"
#include "inject/arch.h"

/*
 * For a thread that runs on without us: where it goes on.  Written again whenever
 * that changes.
 */
void remote_way_back(struct inject *t)
{
	struct arch_way_back w;

	if (!t->remote.runs)
		return;
	arch_set_way_back(&w, &t->remote.saved, t->remote.sigblk);
	if (inject_write(t, t->runner + (arch_runner_data - arch_runner), &w, sizeof(w)))
		t->remote.runs = false;
}

const void *inject_runner(size_t *len)
{
	*len = arch_runner_end - arch_runner;
	return arch_runner;
}

bool inject_has_runner(const struct inject *t)
{
	return t->runner;
}
