/* SPDX-License-Identifier: MIT */
/*
 * Waiting for stops, one thread by its id: waiting for any child would take
 * the caller's other children.  Not by a blocking waitid(): for the leader of
 * a killed group it would wait for the other threads, which wait for us.  The
 * kernel announces every stop to the tracer by SIGCHLD, so that is waited for,
 * with a timeout in case another thread of ours takes it.  (Polling with
 * sched_yield() costs a time slice a look on a loaded machine.)
 */
#include "inject/internal.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAP_NS 1000000 /* between looks if no signal comes */

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

/* From here on a SIGCHLD stays pending until wait_nap() sees it. */
void wait_start(struct waiting *w)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &set, &w->mask);
	w->owed = false;
}

/* Until something has happened to a child, or a millisecond: true for the latter. */
bool wait_nap(struct waiting *w)
{
	struct timespec nap = { 0, NAP_NS };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (sigtimedwait(&set, NULL, &nap) < 0)
		return errno == EAGAIN;
	/* one that the caller waits for may have merged into it: he gets one again */
	w->owed = true;
	return false;
}

void wait_finish(struct waiting *w)
{
	if (w->owed)
		kill(getpid(), SIGCHLD);
	pthread_sigmask(SIG_SETMASK, &w->mask, NULL);
}

bool wait_dead(const struct inject *t, pid_t tid)
{
	char state = proc_state(t->pid, tid);

	return !state || state == 'Z' || state == 'X';
}

/* 0 with a stop; -ESRCH: the thread is dead or dying; -ETIMEDOUT (deadline 0: none). */
int wait_stop(const struct inject *t, pid_t tid, int64_t deadline, struct stop *stop)
{
	struct waiting w;
	int ret = 0;

	wait_start(&w);
	for (;;) {
		wait_peek(t, tid, stop);
		if (stop->kind != STOP_NONE)
			break;
		if (!wait_nap(&w))
			continue;
		if (deadline && clock_us() > deadline)
			ret = -ETIMEDOUT;
		else if (wait_dead(t, tid))
			ret = -ESRCH;
		if (ret)
			break;
	}
	wait_finish(&w);
	return stop->kind == STOP_GONE ? -ESRCH : ret;
}
