/* SPDX-License-Identifier: MIT */
/*
 * System calls in the target.
 *
 * A held thread is sent to a syscall instruction of the target's and followed
 * from entry stop to exit stop.  Not by single steps: their SIGTRAP would be
 * forced on a thread that blocks or ignores it, and the kernel then resets the
 * program's SIGTRAP handler.  In the end the thread is caught by an interrupt
 * on its way out of the kernel, so that it is again in a stop from which the
 * kernel restarts the call that it was found in, and gets everything back.
 *
 * With a runner in the target and a signal that does nothing there, that signal
 * ends one call or many instead: the thread is then where signals are delivered,
 * and from there the kernel restarts a call as well.
 *
 * We may be killed between any two of these steps.  Then the thread runs on with
 * what it has just then, so that is always something that leads back to where it
 * was found (back.c).
 */
#include "inject/internal.h"
#include "inject/arch.h"

#include <elf.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#ifndef PTRACE_SETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#define PTRACE_SETSIGMASK 0x420b
#endif
#ifndef PTRACE_O_SUSPEND_SECCOMP
#define PTRACE_O_SUSPEND_SECCOMP (1 << 21)
#endif

#define TRIES 5           /* of a call that the kernel wants restarted */
#define RUN_WAIT 10000000 /* us: whoever makes the runner's code another's is not waited for */

/* Raised by an instruction, and by where it stands. */
#define FAULTS                                                                  \
	(1ull << (SIGTRAP - 1) | 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) | \
	 1ull << (SIGILL - 1) | 1ull << (SIGFPE - 1) | 1ull << (SIGSYS - 1))

static pid_t worker_tid(const struct inject *t)
{
	return t->threads[t->remote.worker].pub.tid;
}

static long gone(struct inject *t)
{
	t->remote.dead = true;
	return -ESRCH;
}

/* The leader if it can, as programs expect calls from it least surprisingly. */
static bool choose_worker(struct inject *t)
{
	size_t i, n = inject_nr_threads(t), found = n;

	for (i = 0; i < n; i++) {
		struct inject_thread *th = &t->threads[i].pub;

		if (t->threads[i].in_call || !arch_can_call(&th->regs))
			continue;
		if (found == n || th->tid == t->pid)
			found = i;
	}
	t->remote.worker = found;
	return found < n;
}

static int lift_seccomp(struct inject *t, const char *status, struct err *err)
{
	pid_t tid = worker_tid(t);

	if (!proc_number(status, "Seccomp", 10))
		return 0;
	if (!ptrace(PTRACE_SETOPTIONS, tid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_SUSPEND_SECCOMP))
		return 0;
	if (errno == ESRCH)
		return err_set(err, -ESRCH, "process %d has ended", t->pid);
	return err_set(err, -EPERM,
	               "process %d has a seccomp filter, which could kill it for a system call of "
	               "ours; suspending the filter needs CAP_SYS_ADMIN: run as root",
	               t->pid);
}

/*
 * Which signal may end the runner: one that would do nothing here, as it will if we
 * are killed before we see it, and that nobody waits for.  0: there is none.  Nor
 * where a fault is to be delivered: on the runner's way back the mask is open again
 * before the registers are what they were.
 */
static int choose_signal(const struct inject *t, const char *status)
{
	static const int idle[] = { SIGURG, SIGWINCH, SIGCHLD };
	uint64_t pending = proc_number(status, "SigPnd", 16) | proc_number(status, "ShdPnd", 16);
	uint64_t not = pending | proc_number(status, "SigCgt", 16) |
	               t->threads[t->remote.worker].pub.sigblk;
	size_t i;

	for (i = 0; !(pending & FAULTS) && i < sizeof(idle) / sizeof(*idle); i++)
		if (!(not &1ull << (idle[i] - 1)))
			return idle[i];
	return 0;
}

static bool can_run(struct inject *t)
{
	size_t len = arch_runner_data - arch_runner;
	uint8_t there[512];

	return t->runner && t->remote.signal && len <= sizeof(there) &&
	       !inject_read(t, t->runner, there, len) && !memcmp(there, arch_runner, len);
}

/* All signals, but for the one that ends the runner. */
static int block_signals(struct inject *t)
{
	uint64_t all = t->remote.runs ? ~(1ull << (t->remote.signal - 1)) : ~0ull;

	t->remote.blocked = !ptrace(PTRACE_SETSIGMASK, worker_tid(t), sizeof(all), &all);
	return t->remote.blocked ? 0 : -errno;
}

/*
 * Where it makes calls, with signals blocked.  In this order: should we be killed
 * in between, the way back has the mask, too.
 */
static int send_off(struct inject *t, const struct user_regs_struct *regs)
{
	if (!t->remote.blocked)
		hooks_off(t, worker_tid(t));
	if (ptrace(PTRACE_SETREGS, worker_tid(t), 0, regs))
		return -ESRCH;
	return t->remote.blocked || !block_signals(t) ? 0 : -ESRCH;
}

static int save_thread(struct inject *t)
{
	struct remote *r = &t->remote;
	struct iovec iov = { r->xstate, sizeof(r->xstate) };
	pid_t tid = worker_tid(t);

	r->saved = t->threads[r->worker].pub.regs;
	r->low = arch_sp(&r->saved) - ARCH_RED_ZONE;
	if (ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &iov) ||
	    ptrace(PTRACE_GETSIGMASK, tid, sizeof(r->sigblk), &r->sigblk))
		return -errno;
	r->xstate_len = iov.iov_len;
	hooks_save(t, tid);
	back_update(t);
	return 0;
}

int inject_begin(struct inject *t, struct err *err)
{
	struct remote *r = &t->remote;
	char status[4096];
	int ret;

	if (!t->held || r->active)
		return err_set(err, -EINVAL, "process %d is not held", t->pid);
	if (!choose_worker(t))
		return err_set(err, -EOPNOTSUPP, "process %d has no thread in 64-bit mode", t->pid);
	ret = gadget_find(t, err);
	if (ret)
		return ret;
	if (proc_status(t->pid, worker_tid(t), status, sizeof(status)) <= 0)
		return err_set(err, -ESRCH, "process %d has ended", t->pid);
	ret = lift_seccomp(t, status, err);
	if (ret)
		return ret;
	r->moved = r->dead = r->caught = r->blocked = false;
	r->signal = choose_signal(t, status);
	r->runs = can_run(t);
	r->nr_scratch = r->table_max = 0;
	r->back_len = 0;
	ret = save_thread(t);
	if (ret)
		return err_set(err, ret, "thread %d of process %d: %s", worker_tid(t), t->pid,
		               strerror(-ret));
	r->active = true;
	return 0;
}

/* A fault of the call itself; delivering it would kill the program for our mistake. */
static bool our_fault(const struct inject *t, int sig)
{
	siginfo_t si;

	if (sig != SIGSEGV && sig != SIGILL && sig != SIGBUS && sig != SIGTRAP && sig != SIGSYS)
		return false;
	return !ptrace(PTRACE_GETSIGINFO, worker_tid(t), 0, &si) && si.si_code > 0;
}

/* Runs to the next entry or exit; whatever else stops the thread is passed on. */
static int run_to_syscall_stop(struct inject *t)
{
	struct stop stop = { 0 };
	pid_t tid = worker_tid(t);

	do {
		if (ptrace(PTRACE_SYSCALL, tid, 0, (long)stop.sig))
			return -ESRCH;
		t->remote.moved = true;
		t->remote.caught = false;
		if (wait_stop(t, tid, 0, &stop))
			return -ESRCH;
		if (stop.kind == STOP_SIGNAL && our_fault(t, stop.sig))
			return -EFAULT;
	} while (stop.kind != STOP_SYSCALL);
	return 0;
}

/* Stops it wherever it is. */
static int call_back(struct inject *t)
{
	struct stop stop = { 0 };
	pid_t tid = worker_tid(t);

	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0))
		return -ESRCH;
	while (!wait_stop(t, tid, clock_us() + RUN_WAIT, &stop)) {
		t->remote.caught = stop.kind == STOP_EVENT;
		if (t->remote.caught)
			return -EFAULT;
		if (ptrace(PTRACE_CONT, tid, 0, (long)stop.sig))
			break;
	}
	return -ESRCH;
}

/* From regs on until the runner says that it is done; regs are those then. */
static int run(struct inject *t, struct user_regs_struct *regs)
{
	const uint64_t end = t->runner + (arch_runner_back - arch_runner);
	int64_t deadline = clock_us() + RUN_WAIT;
	struct stop stop = { 0 };
	pid_t tid = worker_tid(t);
	int ret;

	arch_set_sp(regs, t->remote.low);
	if (send_off(t, regs))
		return -ESRCH;
	for (;;) {
		if (ptrace(PTRACE_CONT, tid, 0, (long)stop.sig))
			return -ESRCH;
		t->remote.moved = true;
		t->remote.caught = false;
		ret = wait_stop(t, tid, deadline, &stop);
		if (ret)
			return ret == -ETIMEDOUT ? call_back(t) : ret;
		if (stop.kind != STOP_SIGNAL)
			continue;
		/* One that someone else has sent comes at another place. */
		if (stop.sig == t->remote.signal) {
			if (ptrace(PTRACE_GETREGS, tid, 0, regs))
				return -ESRCH;
			t->remote.caught = arch_pc(regs) == end;
			if (t->remote.caught)
				return 0;
		}
		if (our_fault(t, stop.sig))
			return -EFAULT;
	}
}

static int one_syscall(struct inject *t, long nr, const long args[6], long *result)
{
	struct user_regs_struct regs = t->remote.saved;
	pid_t tid = worker_tid(t);
	uint64_t sp;
	int ret;

	if (t->remote.runs) {
		arch_set_call(&regs, t->runner, nr, args);
		ret = run(t, &regs);
		*result = arch_runner_result(&regs);
		return ret;
	}
	arch_set_call(&regs, t->gadget.call.addr, nr, args);
	sp = back_on_stack(t);
	if (sp)
		arch_set_sp(&regs, sp);
	if (send_off(t, &regs))
		return -ESRCH;
	ret = run_to_syscall_stop(t);
	if (!ret)
		ret = run_to_syscall_stop(t);
	if (!ret && ptrace(PTRACE_GETREGS, tid, 0, &regs))
		ret = -ESRCH;
	*result = arch_result(&regs);
	/* arch_set_call() left no call to restart; its number came with the entry */
	return !ret && arch_restarts(&regs) ? -EAGAIN : ret;
}

long inject_syscall(struct inject *t, long nr, long a, long b, long c, long d, long e, long f)
{
	const long args[6] = { a, b, c, d, e, f };
	int tries, ret = -EAGAIN;
	long result = 0;

	if (!t->remote.active)
		return -EINVAL;
	if (t->remote.dead)
		return -ESRCH;
	for (tries = 0; tries < TRIES && ret == -EAGAIN; tries++)
		ret = one_syscall(t, nr, args, &result);
	if (ret == -ESRCH)
		return gone(t);
	if (ret == -EAGAIN)
		return -EINTR;
	return ret ? ret : result;
}

static int one_by_one(struct inject *t, struct inject_call *v, size_t n)
{
	size_t i;

	for (i = 0; i < n && !t->remote.dead; i++) {
		const long first = i && v[i].nr & INJECT_OF_LAST ? v[i - 1].ret : v[i].arg[0];

		v[i].ret = inject_syscall(t, v[i].nr & ~INJECT_OF_LAST, first, v[i].arg[1],
		                          v[i].arg[2], v[i].arg[3], v[i].arg[4], v[i].arg[5]);
	}
	return t->remote.dead ? -ESRCH : 0;
}

/* In the stack, but for a few where the caller has a place for them. */
static uint64_t find_table(struct inject *t, size_t n)
{
	struct remote *r = &t->remote;

	if (n <= t->journal_max)
		return t->journal;
	if (n > r->table_max) {
		r->table = inject_scratch(t, n * sizeof(struct inject_call));
		r->table_max = r->table ? n : 0;
	}
	return r->table_max ? r->table : 0;
}

int inject_calls(struct inject *t, struct inject_call *v, size_t n)
{
	struct remote *r = &t->remote;
	struct user_regs_struct regs = r->saved;
	uint64_t at;
	int ret;

	if (!r->active)
		return -EINVAL;
	if (r->dead)
		return -ESRCH;
	at = r->runs && (n > 1 || t->journal_max) ? find_table(t, n) : 0;
	if (!at)
		return one_by_one(t, v, n);
	arch_set_run(&regs, t->runner, at, n);
	ret = inject_write(t, at, v, n * sizeof(*v));
	if (!ret)
		ret = run(t, &regs);
	if (ret == -ESRCH)
		return (int)gone(t);
	return ret ? ret : inject_read(t, at, v, n * sizeof(*v));
}

void inject_use_runner(struct inject *t, uint64_t addr)
{
	t->runner = addr;
	if (!t->remote.active)
		return;
	t->remote.runs = can_run(t);
	back_update(t);
	if (t->remote.blocked && block_signals(t))
		t->remote.runs = false;
}

void inject_use_journal(struct inject *t, uint64_t addr, size_t n)
{
	t->journal = addr;
	t->journal_max = n;
}

/* From wherever the calls left it into an event stop, short of user mode. */
static int back_to_event_stop(struct inject *t)
{
	struct stop stop = { 0 };
	pid_t tid = worker_tid(t);

	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0))
		return -ESRCH;
	do {
		if (ptrace(PTRACE_CONT, tid, 0, (long)stop.sig))
			return -ESRCH;
		if (wait_stop(t, tid, 0, &stop))
			return -ESRCH;
		if (stop.kind == STOP_SIGNAL && our_fault(t, stop.sig))
			stop.sig = 0;
	} while (stop.kind != STOP_EVENT);
	return 0;
}

static int restore_thread(struct inject *t)
{
	struct remote *r = &t->remote;
	struct iovec iov = { r->xstate, r->xstate_len };
	pid_t tid = worker_tid(t);

	if (r->moved && !r->caught && back_to_event_stop(t))
		return -ESRCH;
	hooks_restore_early(t);
	if (ptrace(PTRACE_SETREGSET, tid, NT_X86_XSTATE, &iov) ||
	    ptrace(PTRACE_SETSIGMASK, tid, sizeof(r->sigblk), &r->sigblk) ||
	    ptrace(PTRACE_SETREGS, tid, 0, &r->saved))
		return -ESRCH;
	hooks_restore_late(t, tid);
	ptrace(PTRACE_SETOPTIONS, tid, 0, PTRACE_O_TRACESYSGOOD);
	return 0;
}

void inject_end(struct inject *t)
{
	struct remote *r = &t->remote;

	if (!r->active)
		return;
	scratch_unmap(t);
	if (r->dead || restore_thread(t)) {
		t->threads[r->worker].state = THREAD_DYING;
		t->nr_held--;
	}
	/* Not before: the way back is there. */
	scratch_return(t);
	r->active = false;
}
