/* SPDX-License-Identifier: MIT */
/*
 * A thread that is inside the engine whenever it is looked at, as it runs from one
 * breakpoint to the next, is let run by itself until it enters the kernel: by the next
 * breakpoint, which it is put back to, or by a call.
 *
 *	engine ... program	cc		stopped where its SIGTRAP is to be
 *			^	|		delivered; that is dropped, and the
 *			+-------+		breakpoint will be met again
 *
 * Not by single steps: see remote.c.  Signals that are sent meanwhile stay pending by
 * the thread's mask.  Faults stay open, for one that is blocked ends the program.
 */
#include "inject/arch.h"
#include "inject/internal.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#ifndef PTRACE_SETSIGMASK
#define PTRACE_SETSIGMASK 0x420b
#endif

#define RUN_WAIT 1000 /* us */
#define STOPS 4       /* by faults of the engine's own, and what was pending */

#define BIT(sig) (1ull << ((sig)-1))
/* As the kernel keeps it: nobody blocks the last two. */
#define MASK                                                                                     \
	(~(BIT(SIGTRAP) | BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGFPE) | BIT(SIGSYS) | \
	   BIT(SIGKILL) | BIT(SIGSTOP)))

static int set_mask(pid_t tid, uint64_t mask)
{
	return ptrace(PTRACE_SETSIGMASK, tid, sizeof(mask), &mask) ? -errno : 0;
}

/* Before an int3 that it has executed, whose signal is to be delivered now. */
static bool put_back(struct inject *t, pid_t tid, int sig)
{
	struct user_regs_struct regs;
	siginfo_t si;
	uint8_t byte;

	if (sig != SIGTRAP || ptrace(PTRACE_GETSIGINFO, tid, 0, &si) || si.si_code != SI_KERNEL ||
	    ptrace(PTRACE_GETREGS, tid, 0, &regs))
		return false;
	regs.rip--;
	return !inject_read(t, regs.rip, &byte, 1) && byte == 0xcc &&
	       !ptrace(PTRACE_SETREGS, tid, 0, &regs);
}

/* True: it stands before an int3, with no signal to come. */
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
		if (stop->kind == STOP_SIGNAL && put_back(t, tid, stop->sig))
			return true;
		if (stop->kind == STOP_SYSCALL)
			break;
	}
	return false;
}

static bool is_return(pid_t tid)
{
	struct user_regs_struct regs;

	return !ptrace(PTRACE_GETREGS, tid, 0, &regs) && arch_syscall_nr(&regs) == SYS_rt_sigreturn;
}

int inject_run_on(struct inject *t, size_t i)
{
	struct thread *th = &t->threads[i];
	struct stop stop = { .kind = STOP_NONE };
	const uint64_t own = th->pub.sigblk;
	const pid_t tid = th->pub.tid;
	int ret;

	if (!t->held || t->remote.active || i >= t->nr || th->state != THREAD_STOPPED)
		return -EINVAL;
	if (set_mask(tid, MASK))
		return -ESRCH;
	if (run(t, tid, &stop))
		return seize_read(t, th) ? inject_set_mask(t, i, own) : -ESRCH;
	/* A call is made with its own mask; a return from a handler sets that. */
	if (stop.kind == STOP_SYSCALL && !is_return(tid))
		set_mask(tid, own);
	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	if (stop.kind != STOP_NONE)
		ptrace(PTRACE_CONT, tid, 0, (long)stop.sig);
	ret = seize_again(t, th);
	return !ret && th->pub.sigblk == MASK ? inject_set_mask(t, i, own) : ret;
}
