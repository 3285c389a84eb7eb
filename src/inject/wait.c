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
 * A stop of the thread, if there is one: the usual case, one call.  It stays to be
 * waited for: a signal that was taken would be lost, should we be killed before we
 * hand it on.
 */
static bool take_stop(pid_t tid, struct stop *stop)
{
	siginfo_t si = { 0 };

	stop->kind = STOP_NONE;
	if (waitid(P_PID, tid, &si, WSTOPPED | __WALL | WNOHANG | WNOWAIT) || !si.si_pid)
		return false;
	classify(&si, stop);
	return true;
}

/* Its end, except the exit status of the caller's own child: that is for the caller. */
static void take_end(const struct inject *t, pid_t tid, struct stop *stop)
{
	siginfo_t si = { 0 };

	stop->kind = STOP_NONE;
	if (waitid(P_PID, tid, &si, WEXITED | __WALL | WNOHANG | WNOWAIT))
		stop->kind = STOP_GONE;
	/* A tracer hears of stops, too, whether asked for or not: the next look takes it. */
	if (stop->kind == STOP_GONE || !si.si_pid || si.si_code == CLD_TRAPPED ||
	    si.si_code == CLD_STOPPED)
		return;
	stop->kind = STOP_GONE;
	if (tid != t->pid || !t->own_child)
		waitid(P_PID, tid, &si, WEXITED | __WALL | WNOHANG);
}

/* What happened to the thread, without waiting; takes the stop or the zombie. */
void wait_peek(const struct inject *t, pid_t tid, struct stop *stop)
{
	if (!take_stop(tid, stop))
		take_end(t, tid, stop);
}

/* From here on a SIGCHLD stays pending until wait_nap() sees it.  Nests. */
void wait_start(struct inject *t)
{
	sigset_t set;

	if (t->waits++)
		return;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &set, &t->mask);
	t->owed = false;
}

/* Until something has happened to a child, or a millisecond: true for the latter. */
bool wait_nap(struct inject *t)
{
	struct timespec nap = { 0, NAP_NS };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (sigtimedwait(&set, NULL, &nap) < 0)
		return errno == EAGAIN;
	/* one that the caller waits for may have merged into it: he gets one again */
	t->owed = true;
	return false;
}

void wait_finish(struct inject *t)
{
	if (--t->waits)
		return;
	if (t->owed)
		kill(getpid(), SIGCHLD);
	pthread_sigmask(SIG_SETMASK, &t->mask, NULL);
}

bool wait_dead(const struct inject *t, pid_t tid)
{
	char state = proc_state(t->pid, tid);

	return !state || state == 'Z' || state == 'X';
}

/* 0 with a stop; -ESRCH: the thread is dead or dying; -ETIMEDOUT (deadline 0: none). */
int wait_stop(struct inject *t, pid_t tid, int64_t deadline, struct stop *stop)
{
	bool first = true;
	int ret = 0;

	wait_start(t);
	while (!ret && !take_stop(tid, stop)) {
		/* Whoever ends says so by the signal, too. */
		if (!first)
			take_end(t, tid, stop);
		first = false;
		if (stop->kind != STOP_NONE)
			break;
		if (!wait_nap(t))
			continue;
		/* First: who is dead will never stop, however often it is asked after that. */
		if (wait_dead(t, tid))
			ret = -ESRCH;
		else if (deadline && clock_us() > deadline)
			ret = -ETIMEDOUT;
	}
	wait_finish(t);
	return stop->kind == STOP_GONE ? -ESRCH : ret;
}
