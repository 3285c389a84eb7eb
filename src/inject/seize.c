/* SPDX-License-Identifier: MIT */
/*
 * Stopping all threads and letting them go.
 *
 * First every thread is seized (which doesn't stop it), then all are
 * interrupted at once, then their stops are collected, and the task folder is
 * read again until it shows nobody new: a stopped thread can't make another.
 *
 * A seized thread that doesn't stop can't be detached: ptrace has no call for
 * it.  So nobody is seized before each thread has been seen outside of an
 * uninterruptible sleep, and whoever slips into one all the same lingers in
 * the list until inject_settle() or the next seize finds it stopped.
 */
#include "inject/internal.h"
#include "inject/arch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STOP_WAIT 1000000  /* us */
#define BUSY_WAIT 10000000 /* us more for who only waits for a CPU */
#define ROUNDS 10          /* of looking for new threads, at least */

#ifndef PTRACE_GETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#endif

/* Threads keep their order in the folder: the search starts where the last ended. */
static bool thread_listed(const struct inject *t, pid_t tid, size_t *hint)
{
	size_t i;

	for (i = 0; i < t->nr; i++) {
		size_t at = (*hint + i) % t->nr;

		if (t->threads[at].pub.tid == tid) {
			*hint = at + 1;
			return true;
		}
	}
	return false;
}

int thread_add(struct inject *t, pid_t tid)
{
	struct thread *th;

	if (t->nr == t->cap) {
		size_t cap = t->cap ? 2 * t->cap : 16;

		th = realloc(t->threads, cap * sizeof(*th));
		if (!th)
			return -ENOMEM;
		t->threads = th;
		t->cap = cap;
	}
	th = &t->threads[t->nr++];
	memset(th, 0, sizeof(*th));
	th->pub.tid = tid;
	th->state = THREAD_RUNNING;
	return 0;
}

static void forget_gone(struct inject *t)
{
	size_t i, kept = 0;

	for (i = 0; i < t->nr; i++)
		if (t->threads[i].state != THREAD_GONE)
			t->threads[kept++] = t->threads[i];
	t->nr = kept;
}

/* Why a seize failed: 0 if the thread is only dead. */
int seize_rights(struct inject *t, pid_t tid, int error, struct err *err)
{
	char status[4096], comm[32];
	pid_t tracer;

	if (error == ESRCH || wait_dead(t, tid))
		return 0;
	if (proc_status(t->pid, tid, status, sizeof(status)) <= 0)
		return 0;
	tracer = proc_number(status, "TracerPid", 10);
	if (tracer) {
		proc_comm(tracer, tracer, comm);
		return err_set(err, -EBUSY,
		               "process %d is being traced by %s (pid %d): end that first", t->pid,
		               comm, tracer);
	}
	error = inject_preflight(t->pid, err);
	return error ? error
	             : err_set(err, -EPERM, "the kernel refuses to trace thread %d of process %d",
	                       tid, t->pid);
}

static int seize_one(struct inject *t, pid_t tid, struct err *err)
{
	if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD))
		return seize_rights(t, tid, errno, err);
	if (thread_add(t, tid))
		return err_set(err, -ENOMEM, "no memory for the threads of process %d", t->pid);
	return 0;
}

struct newcomers {
	struct inject *t;
	size_t hint;
	struct err *err;
};

static int take_new(pid_t tid, void *arg)
{
	struct newcomers *n = arg;

	return thread_listed(n->t, tid, &n->hint) ? 0 : seize_one(n->t, tid, n->err);
}

/* Seizes who isn't yet.  A folder that changed while it was read is read again. */
static int seize_new(struct inject *t, size_t *found, struct err *err)
{
	struct newcomers n = { t, 0, err };
	size_t before = t->nr;
	bool more = false;
	int ret = proc_each_task(t->pid, take_new, &n, &more);

	if (ret == -ESRCH)
		err_set(err, -ESRCH, "there is no process %d", t->pid);
	*found = t->nr - before + more;
	if (!before)
		t->stopped_at = clock_us();
	for (; before < t->nr; before++)
		ptrace(PTRACE_INTERRUPT, t->threads[before].pub.tid, 0, 0);
	return ret;
}

/* What a stop means for a thread that is to be held. */
static void advance(struct thread *th, const struct stop *stop)
{
	switch (stop->kind) {
	case STOP_NONE:
		break;
	case STOP_GONE:
		th->state = THREAD_GONE;
		break;
	case STOP_EVENT:
		th->state = THREAD_STOPPED;
		th->known = false;
		break;
	case STOP_SIGNAL:
	case STOP_SYSCALL:
	case STOP_EXEC:
		/*
		 * Any stop clears a pending interrupt.  Mostly it is noticed first, but
		 * to take a POSIX timer's signal the kernel lets go of its lock between
		 * the two: so it is said again.
		 */
		ptrace(PTRACE_INTERRUPT, th->pub.tid, 0, 0);
		ptrace(PTRACE_CONT, th->pub.tid, 0, (long)stop->sig);
		break;
	}
}

static void look_at(struct inject *t, struct thread *th)
{
	struct stop stop;

	wait_peek(t, th->pub.tid, &stop);
	advance(th, &stop);
}

static int timed_out(struct inject *t, pid_t tid, struct err *err)
{
	char path[64], text[128], comm[32];
	const char *why = "does not stop";
	char state = proc_state(t->pid, tid);
	long nr = -1;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", t->pid, tid);
	if (proc_read(path, text, sizeof(text)) > 0 && text[0] >= '0' && text[0] <= '9')
		nr = atol(text);
	proc_comm(t->pid, tid, comm);
	if (state == 'D' && (nr == SYS_vfork || nr == SYS_clone || nr == SYS_clone3))
		why = "waits in vfork() until its child has ended or called exec";
	else if (state == 'D')
		why = "is in an uninterruptible sleep (state D)";
	return err_set(err, -ETIMEDOUT, "thread %d (%s) of process %d %s: try again later", tid,
	               comm, t->pid, why);
}

/* On a busy machine it stops when its turn comes; it may have done so just now. */
static bool waits_for_cpu(const struct inject *t, pid_t tid, int64_t deadline)
{
	char state = proc_state(t->pid, tid);

	return state && state != 'D' && clock_us() < deadline + BUSY_WAIT;
}

/* All must stop, so they are waited for in turn. */
static int collect(struct inject *t, int64_t deadline, struct err *err)
{
	size_t i;

	for (i = 0; i < t->nr; i++) {
		struct thread *th = &t->threads[i];
		struct stop stop;

		while (th->state == THREAD_RUNNING) {
			int ret = wait_stop(t, th->pub.tid, deadline, &stop);

			if (ret == -ETIMEDOUT && waits_for_cpu(t, th->pub.tid, deadline))
				continue;
			if (ret == -ETIMEDOUT)
				return timed_out(t, th->pub.tid, err);
			advance(th, &stop);
			if (ret && th->state == THREAD_RUNNING)
				th->state = THREAD_DYING;
		}
	}
	return 0;
}

static pid_t read_ns_tid(const struct inject *t, pid_t tid)
{
	char status[4096];
	const char *p;
	pid_t last = tid;

	if (!t->other_pid_ns || proc_status(t->pid, tid, status, sizeof(status)) <= 0)
		return tid;
	for (p = proc_field(status, "NSpid"); p && *p && *p != '\n';) {
		char *end;
		long n = strtol(p, &end, 10);
		if (end == p)
			break;
		last = (pid_t)n;
		p = end + strspn(end, " \t");
	}
	return last;
}

pid_t inject_ns_pid(const struct inject *t)
{
	return read_ns_tid(t, t->pid);
}

/* Registers and mask of a stopped thread; false: it was killed or moved by an exec. */
static bool read_thread(struct inject *t, struct thread *th)
{
	struct inject_thread *pub = &th->pub;

	if (ptrace(PTRACE_GETREGS, pub->tid, 0, &pub->regs) ||
	    ptrace(PTRACE_GETSIGMASK, pub->tid, sizeof(pub->sigblk), &pub->sigblk))
		return false;
	pub->syscall_rewound = false;
	if (arch_result(&pub->regs) == -EINTR && eintr_restartable(arch_syscall_nr(&pub->regs))) {
		struct user_regs_struct regs = pub->regs;

		arch_restart_nohand(&regs);
		if (ptrace(PTRACE_SETREGS, pub->tid, 0, &regs))
			return false;
		pub->regs = regs;
		pub->syscall_rewound = true;
	}
	pub->ns_tid = read_ns_tid(t, pub->tid);
	th->in_call = false;
	th->known = true;
	return true;
}

/* Reads who isn't read yet; counts those that have to be stopped again. */
static size_t read_threads(struct inject *t)
{
	size_t i, lost = 0;

	for (i = 0; i < t->nr; i++) {
		struct thread *th = &t->threads[i];

		if (th->state != THREAD_STOPPED || th->known || read_thread(t, th))
			continue;
		th->state = THREAD_RUNNING;
		ptrace(PTRACE_INTERRUPT, th->pub.tid, 0, 0);
		lost++;
	}
	return lost;
}

int seize_again(struct inject *t, struct thread *th)
{
	struct err ignored = ERR_INIT;

	th->state = THREAD_RUNNING;
	th->known = false;
	while (th->state == THREAD_RUNNING) {
		int ret = collect(t, clock_us() + STOP_WAIT, &ignored);

		if (ret)
			return ret;
		read_threads(t);
	}
	return th->state == THREAD_STOPPED ? 0 : -ESRCH;
}

struct awakening {
	struct inject *t;
	int64_t deadline;
	struct err *err;
};

static int await_one(pid_t tid, void *arg)
{
	struct awakening *a = arg;

	while (proc_state(a->t->pid, tid) == 'D') {
		if (clock_us() > a->deadline)
			return timed_out(a->t, tid, a->err);
		usleep(500);
	}
	return 0;
}

/* Nobody is seized in an uninterruptible sleep: see above. */
static int await_wakefulness(struct inject *t, int64_t deadline, struct err *err)
{
	struct awakening a = { t, deadline, err };
	int ret = proc_each_task(t->pid, await_one, &a, NULL);

	return ret == -ESRCH ? err_set(err, ret, "there is no process %d", t->pid) : ret;
}

/* A leader that has ended while others live: not to be waited for before they end. */
static bool is_left_behind(const struct inject *t)
{
	return wait_dead(t, t->pid) && proc_live_tid(t->pid);
}

/* Waits a moment for the ends of threads that were killed: they are ours to reap. */
void seize_reap(struct inject *t)
{
	int64_t deadline = clock_us() + STOP_WAIT;
	bool left = true;

	wait_start(t);
	while (left && clock_us() < deadline) {
		size_t i;

		left = false;
		for (i = 0; i < t->nr; i++) {
			struct thread *th = &t->threads[i];

			if (th->state != THREAD_DYING)
				continue;
			look_at(t, th);
			/* who lives on without its leader ends later, and so does that */
			left |= th->state == THREAD_DYING &&
			        (th->pub.tid != t->pid || !is_left_behind(t));
		}
		if (left)
			wait_nap(t);
	}
	wait_finish(t);
	forget_gone(t);
}

static void let_go(struct inject *t)
{
	size_t i;

	for (i = 0; i < t->nr; i++) {
		struct thread *th = &t->threads[i];

		if (th->state != THREAD_STOPPED)
			continue;
		if (!ptrace(PTRACE_DETACH, th->pub.tid, 0, 0))
			th->state = THREAD_GONE;
		else
			th->state = THREAD_DYING;
	}
	t->held = false;
	t->stopped_for = clock_us() - t->stopped_at;
	if (t->stopped_for > t->longest)
		t->longest = t->stopped_for;
	relax(t);
	region_forget(t);
	seize_reap(t);
	wait_finish(t);
}

/* A killed thread is removed from the list of the held, but reaped in the end. */
size_t seize_count(const struct inject *t)
{
	size_t i, n = 0;

	for (i = 0; i < t->nr; i++)
		n += t->threads[i].state == THREAD_STOPPED;
	return n;
}

/* The held first, in their order: the caller sees these alone. */
static void sort_held(struct inject *t)
{
	size_t i, at = 0;

	for (i = 0; i < t->nr; i++) {
		struct thread th = t->threads[i];

		if (th.state != THREAD_STOPPED)
			continue;
		memmove(&t->threads[at + 1], &t->threads[at], (i - at) * sizeof(th));
		t->threads[at++] = th;
	}
}

/* One round: whoever is new is stopped and read.  *again: there may be more. */
static int seize_round(struct inject *t, unsigned int round, int64_t deadline, bool *again,
                       struct err *err)
{
	size_t found = 0, lost;
	int ret;

	ret = seize_new(t, &found, err);
	if (!ret)
		ret = collect(t, clock_us() + STOP_WAIT, err);
	if (ret)
		return ret;
	lost = read_threads(t);
	forget_gone(t);
	*again = found || lost;
	if (*again && round > ROUNDS && clock_us() > deadline)
		return err_set(err, -ETIMEDOUT,
		               "process %d makes threads faster than they can be stopped", t->pid);
	return 0;
}

int seize_rest(struct inject *t, struct err *err)
{
	int64_t deadline = clock_us() + STOP_WAIT;
	unsigned int round = 0;
	bool again = true;
	int ret = 0;

	wait_start(t); /* until let_go() */
	hurry(t);
	while (!ret && again)
		ret = seize_round(t, round++, deadline, &again, err);
	t->nr_held = seize_count(t);
	if (!ret && !t->nr_held)
		ret = err_set(err, -ESRCH, "process %d has ended", t->pid);
	if (ret) {
		let_go(t);
		return ret;
	}
	sort_held(t);
	t->held = true;
	return 0;
}

int inject_seize(struct inject *t, struct err *err)
{
	int ret;

	if (t->held)
		return 0;
	inject_settle(t);
	ret = await_wakefulness(t, clock_us() + STOP_WAIT, err);
	return ret ? ret : seize_rest(t, err);
}

void inject_release(struct inject *t)
{
	if (!t->held)
		return;
	inject_end(t);
	let_go(t);
}

size_t inject_settle(struct inject *t)
{
	size_t i;

	if (t->held)
		return 0;
	for (i = 0; i < t->nr; i++) {
		struct thread *th = &t->threads[i];

		if (th->state == THREAD_RUNNING || th->state == THREAD_DYING)
			look_at(t, th);
	}
	for (i = 0; i < t->nr; i++)
		if (t->threads[i].state == THREAD_STOPPED &&
		    !ptrace(PTRACE_DETACH, t->threads[i].pub.tid, 0, 0))
			t->threads[i].state = THREAD_GONE;
	forget_gone(t);
	return t->nr;
}
