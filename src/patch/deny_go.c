/* SPDX-License-Identifier: MIT */
/*
 * Go.  Its runtime blocks all signals while threads are made and end, around
 * fork, and in its signal handlers, which print, profile and look up whatever
 * they need: only of what a goroutine alone may call is it known that a breakpoint
 * is safe there.
 *
 * No jump can stand in code of Go's own compiler:
 * - a goroutine that is preempted between any two instructions keeps its place on
 *   a stack that is no thread's meanwhile, so nobody sees that it leads into a jump
 * - runtime.goexit is returned to behind its first byte
 * - a goroutine's stack may have some hundred bytes left, less than a hit needs; a
 *   signal frame goes to a stack of its own
 */
#include <string.h>

#include "patch/deny.h"

static const char blocked[] = "Go's runtime may run it with all signals blocked, where a "
			      "breakpoint kills, and a jump can't stand in Go's code";
static const char stripped[] =
	"it has no name, so it may be one of those that Go's runtime runs with all "
	"signals blocked, where a breakpoint kills";
static const char no_jumps[] =
	"Go's goroutines may be anywhere in it and on no thread's stack, or have no room "
	"on theirs";

/* The runtime's packages, and the assembly behind them. */
static const char *const blocks[] = {
	"runtime.",
	"runtime/",
	"internal/runtime/",
	"internal/abi.",
	"internal/bytealg.",
	"internal/cpu.",
	"internal/syscall/unix.",
	"syscall.forkAndExec",
	"syscall.fork",
	"syscall.rawVfork",
	"syscall.rawSyscall",
	"syscall.RawSyscall",
	"syscall.runtime_",
	"aeshashbody",
	"callRet",
	"cmpbody",
	"countbody",
	"debugCall",
	"gogo",
	"gosave_systemstack_switch",
	"indexbody",
	"indexbytebody",
	"memeqbody",
	"setg_gcc",
	"_rt0_",
	"_cgo_",
	"x_cgo_",
	"crosscall",
	"threadentry",
};

/* What compiled code calls, on a goroutine and nowhere else. */
static const char *const goroutines[] = {
	"runtime.makechan",          "runtime.chansend",
	"runtime.chanrecv",          "runtime.closechan",
	"runtime.selectgo",          "runtime.selectnb",
	"runtime.makemap",           "runtime.mapaccess",
	"runtime.mapassign",         "runtime.mapdelete",
	"runtime.mapiter",           "runtime.mapclear",
	"runtime.makeslice",         "runtime.growslice",
	"runtime.concatstring",      "runtime.slicebytetostring",
	"runtime.slicerunetostring", "runtime.stringtoslice",
	"runtime.intstring",         "runtime.convT",
	"runtime.newproc",           "runtime.gopark",
	"runtime.gopanic",           "runtime.gorecover",
	"runtime.deferproc",
};

static bool begins(const char *name, const char *const *v, size_t n)
{
	while (n--)
		if (!strncmp(name, v[n], strlen(v[n])))
			return true;
	return false;
}

static bool is_goroutines(const char *name)
{
	/* Not its closures for the system's stack, nor newproc1(), which runs there. */
	return begins(name, goroutines, sizeof(goroutines) / sizeof(goroutines[0])) &&
	       !strstr(name, ".func") && strncmp(name, "runtime.newproc1", 16);
}

const char *deny_go(struct sym_proc *p, const struct sym_module *m, uint64_t addr)
{
	struct sym_symbol s;
	uint64_t off;

	if (!sym_module_is_go(m))
		return NULL;
	if (!sym_resolve(p, addr, &s, &off))
		return stripped;
	return begins(s.name, blocks, sizeof(blocks) / sizeof(blocks[0])) && !is_goroutines(s.name)
	               ? blocked
	               : NULL;
}

const char *deny_jumps(const struct sym_module *m)
{
	return sym_module_is_go(m) ? no_jumps : NULL;
}
