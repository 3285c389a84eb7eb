/* SPDX-License-Identifier: MIT */
/*
 * The first timer with SIGEV_THREAD makes libc start a thread that blocks all
 * signals, as do all that this one starts.  One that is there at an attach is
 * opened (bring.c); one that comes later dies at a breakpoint.  The threads of
 * aio come and go.
 *
 * A handler on an alternate stack that meets a breakpoint needs room for the
 * frames of two signals there.  Only of the thread that acts for us at an attach
 * is it known how much there is.
 */
#include "session/hazard.h"

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

/* Two handlers, one in the other, each with a breakpoint; what they and the engine use. */
#define ALTSTACK_FRAMES 4
#define ALTSTACK_REST 4096

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

/* SIGTIMER of glibc: to a thread of its own that hands it on. */
static bool has_helper(pid_t pid)
{
	char path[64], line[256];
	bool libcs = false, found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/timers", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "signal: ", 8))
			libcs = !strncmp(line, "signal: 32/", 11);
		found = found || (libcs && !strncmp(line, "notify: signal/tid.", 19));
	}
	if (f)
		fclose(f);
	return found;
}

const char *hazard_find(struct sym_proc *p, pid_t pid, uint64_t altstack)
{
	size_t i;

	if (altstack && altstack < ALTSTACK_FRAMES * getauxval(AT_MINSIGSTKSZ) + ALTSTACK_REST)
		return "its alternate signal stack may have no room for two more signals: a "
		       "breakpoint in a handler that runs there kills it -> probe nothing that its "
		       "signal handlers call, or have it take 64 KiB";

	for (i = 0; i < sym_nr_modules(p); i++)
		if (sym_module_has_aio(sym_module_at(p, i)))
			return "it may use libc's aio, whose threads block all signals: one "
			       "started while probes are in dies at a breakpoint -> probe nothing "
			       "that such a thread calls";
	for (i = 0; i < sym_nr_modules(p); i++)
		if (sym_module_has_timers(sym_module_at(p, i)))
			break;
	if (i == sym_nr_modules(p) || has_helper(pid))
		return NULL;
	return "it may start timers with SIGEV_THREAD, whose threads block all signals: one "
	       "started "
	       "while probes are in dies at a breakpoint -> attach when a timer is there, or probe "
	       "nothing that such a thread calls";
}
