/* SPDX-License-Identifier: MIT */
/*
 * A thread that is inside the engine whenever it is looked at, as it runs from one
 * breakpoint to the next, is let run by itself until it enters the kernel: by the next
 * breakpoint or by a call.
 *
 *	engine ... program	cc		stopped before its SIGTRAP is delivered,
 *			^	|		and looked at; then that is delivered,
 *			+-------+		and it stands where the handler begins
 *
 * Not by single steps: see remote.c.  Nothing of it is changed, neither mask nor
 * registers, as we may be killed at any time: each stop is one that it goes on from by
 * itself, with the signal that it is about or into the call.
 */
#include "inject/arch.h"
#include "inject/internal.h"

#include <signal.h>
#include <sys/ptrace.h>

#define RUN_WAIT 1000 /* us */
#define STOPS 4       /* by faults of the engine's own, and what was pending */

/* Of an int3, and no longer in the engine than any other. */
static bool is_trap(pid_t tid, int sig)
{
	siginfo_t si;

	return sig == SIGTRAP && !ptrace(PTRACE_GETSIGINFO, tid, 0, &si) && si.si_code == SI_KERNEL;
}

/* The engine handles these and goes on. */
static bool is_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS;
}

/* True: in *stop it has met a breakpoint or makes a call. */
static bool run(struct inject *t, pid_t tid, struct stop *stop)
{
	const int64_t deadline = clock_us() + RUN_WAIT;
	int stops;

	for (stops = 0; stops < STOPS; stops++) {
		if (ptrace(PTRACE_SYSCALL, tid, 0, (long)stop->sig))
			break;
		*stop = (struct stop){ .kind = STOP_NONE };
		if (wait_stop(t, tid, deadline, stop))
			break;
		if (stop->kind == STOP_SYSCALL ||
		    (stop->kind == STOP_SIGNAL && is_trap(tid, stop->sig)))
			return true;
		/* Any other signal has its turn: it stands at the begin of the handler. */
		if (stop->kind != STOP_SIGNAL || !is_fault(stop->sig))
			break;
	}
	return false;
}

int inject_run_on(struct inject *t, size_t i, bool (*look)(void *arg, size_t i), void *arg)
{
	struct thread *th = &t->threads[i];
	struct stop stop = { .kind = STOP_NONE };
	bool seen = false;
	int ret;

	if (!t->held || t->remote.active || i >= t->nr_held || th->state != THREAD_STOPPED)
		return -EINVAL;
	if (run(t, th->pub.tid, &stop) && !ptrace(PTRACE_GETREGS, th->pub.tid, 0, &th->pub.regs))
		seen = look(arg, i);
	/* It makes its call when all go on: one that sleeps would keep them waiting. */
	if (stop.kind == STOP_SYSCALL) {
		th->in_call = true;
		return seen;
	}
	ptrace(PTRACE_INTERRUPT, th->pub.tid, 0, 0);
	if (stop.kind != STOP_NONE)
		ptrace(PTRACE_CONT, th->pub.tid, 0, (long)stop.sig);
	ret = seize_again(t, th);
	return ret ? ret : seen || look(arg, i);
}
