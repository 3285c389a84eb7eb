/* SPDX-License-Identifier: MIT */
/*
 * Waiting for stops, one thread by its id: waiting for any child would take
 * the caller's other children.  By polling: a blocking wait for the leader of
 * a killed group would wait for its other threads, which wait for us.
 */
#include "inject/internal.h"

#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#define SPINS 200 /* yields before sleeping */

static void classify(const siginfo_t *si, struct stop *stop)
{
	int event = si->si_status >> 8, sig = si->si_status & 0xff;

	stop->sig = 0;
	stop->group = event == PTRACE_EVENT_STOP && sig != SIGTRAP;
	if (event == PTRACE_EVENT_STOP)
		stop->kind = STOP_EVENT;
	else if (event == PTRACE_EVENT_EXEC)
		stop->kind = STOP_EXEC;
	else if (sig == (SIGTRAP | 0x80))
		stop->kind = STOP_SYSCALL;
	else {
		stop->kind = STOP_SIGNAL;
		stop->sig = event ? 0 : sig;
	}
}

/*
 * What happened to the thread, without waiting; takes the stop or the zombie,
 * except the exit status of the caller's own child: that is for the caller.
 */
void wait_peek(const struct inject *t, pid_t tid, struct stop *stop)
{
	siginfo_t si = { 0 };
	bool exited;

	stop->kind = STOP_NONE;
	if (waitid(P_PID, tid, &si, WSTOPPED | WEXITED | __WALL | WNOHANG | WNOWAIT)) {
		stop->kind = STOP_GONE;
		return;
	}
	if (!si.si_pid)
		return;
	exited = si.si_code != CLD_TRAPPED && si.si_code != CLD_STOPPED;
	if (exited) {
		stop->kind = STOP_GONE;
		if (tid != t->pid || !t->own_child)
			waitid(P_PID, tid, &si, WEXITED | __WALL | WNOHANG);
		return;
	}
	si.si_pid = 0;
	if (waitid(P_PID, tid, &si, WSTOPPED | __WALL | WNOHANG) || !si.si_pid)
		return; /* killed in between: the next look sees it */
	classify(&si, stop);
}

void wait_relax(unsigned int *spins)
{
	struct timespec nap = { 0, 20000 };

	if (++*spins < SPINS)
		sched_yield();
	else
		nanosleep(&nap, NULL);
}

bool wait_dead(const struct inject *t, pid_t tid)
{
	char state = proc_state(t->pid, tid);

	return !state || state == 'Z' || state == 'X';
}

/* 0 with a stop; -ESRCH: the thread is dead or dying; -ETIMEDOUT (deadline 0: none). */
int wait_stop(const struct inject *t, pid_t tid, int64_t deadline, struct stop *stop)
{
	unsigned int spins = 0;

	for (;;) {
		wait_peek(t, tid, stop);
		if (stop->kind == STOP_GONE)
			return -ESRCH;
		if (stop->kind != STOP_NONE)
			return 0;
		if (deadline && clock_us() > deadline)
			return -ETIMEDOUT;
		if (spins > SPINS && spins % 16 == 0 && wait_dead(t, tid))
			return -ESRCH;
		wait_relax(&spins);
	}
}
