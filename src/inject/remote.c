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
 * With a runner in the target and SIGTRAP neither blocked, ignored nor pending,
 * its breakpoint ends one call or many instead: the thread is then where signals
 * are delivered, and from there the kernel restarts a call as well.
 */
#include "inject/internal.h"
#include "inject/arch.h"

#include <elf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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
#define GET_SYSCALL_USER_DISPATCH 0x4211 /* Linux 6.4 */
#define SET_SYSCALL_USER_DISPATCH 0x4210

#define TRIES 5           /* of a call that the kernel wants restarted */
#define RUN_WAIT 10000000 /* us: whoever makes the runner's code another's is not waited for */

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

		if (!arch_can_call(&th->regs))
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
 * A breakpoint with SIGTRAP blocked or ignored would reset the program's
 * disposition.  And one that the thread has met already is to be delivered
 * where it stands, not in the runner.
 */
static bool may_run(const struct inject *t, const char *status)
{
	uint64_t not = proc_number(status, "SigIgn", 16) | proc_number(status, "SigPnd", 16) |
	               proc_number(status, "ShdPnd", 16) | t->threads[t->remote.worker].pub.sigblk;

	return !(not &1ull << (SIGTRAP - 1));
}

static bool can_run(struct inject *t)
{
	size_t len = arch_runner_data - arch_runner;
	uint8_t there[512];

	return t->runner && t->remote.may_run && len <= sizeof(there) &&
	       !inject_read(t, t->runner, there, len) && !memcmp(there, arch_runner, len);
}

/* All signals, but for the one that ends the runner. */
static int block_signals(struct inject *t)
{
	uint64_t all = t->remote.runs ? ~(1ull << (SIGTRAP - 1)) : ~0ull;

	t->remote.blocked = !ptrace(PTRACE_SETSIGMASK, worker_tid(t), sizeof(all), &all);
	return t->remote.blocked ? 0 : -errno;
}

/*
 * Where it makes calls, with signals blocked.  In this order: should we be killed
 * in between, the runner gives back the mask, too.
 */
static int send_off(struct inject *t, const struct user_regs_struct *regs)
{
	if (ptrace(PTRACE_SETREGS, worker_tid(t), 0, regs))
		return -ESRCH;
	return t->remote.blocked || !block_signals(t) ? 0 : -ESRCH;
}

/*
 * Two things of a thread that the kernel looks at on its way to and from user
 * mode: the rseq critical section, which it forgets when it finds the thread
 * elsewhere, and the system calls that it hands to the program (Wine).
 */
static void save_hooks(struct inject *t)
{
	struct __ptrace_rseq_configuration rseq = { 0 };
	struct remote *r = &t->remote;
	pid_t tid = worker_tid(t);

	r->rseq_cs = 0;
	if (arch_syscall_nr(&r->saved) < 0 &&
	    ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, sizeof(rseq), &rseq) > 0 &&
	    rseq.rseq_abi_pointer) {
		r->rseq_at = rseq.rseq_abi_pointer + 8; /* struct rseq: rseq_cs */
		if (inject_read(t, r->rseq_at, &r->rseq_cs, sizeof(r->rseq_cs)))
			r->rseq_cs = 0;
	}
	memset(&r->sud, 0, sizeof(r->sud));
	if (!ptrace(GET_SYSCALL_USER_DISPATCH, tid, sizeof(r->sud), &r->sud) && r->sud.mode) {
		struct sud off = { 0 };

		ptrace(SET_SYSCALL_USER_DISPATCH, tid, sizeof(off), &off);
	}
}

static void restore_hooks(struct inject *t)
{
	struct remote *r = &t->remote;

	if (r->rseq_cs)
		inject_write(t, r->rseq_at, &r->rseq_cs, sizeof(r->rseq_cs));
	if (r->sud.mode)
		ptrace(SET_SYSCALL_USER_DISPATCH, worker_tid(t), sizeof(r->sud), &r->sud);
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
	save_hooks(t);
	remote_way_back(t);
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
	ret = mem_find_syscall(t, err);
	if (ret)
		return ret;
	if (proc_status(t->pid, worker_tid(t), status, sizeof(status)) <= 0)
		return err_set(err, -ESRCH, "process %d has ended", t->pid);
	ret = lift_seccomp(t, status, err);
	if (ret)
		return ret;
	r->moved = r->dead = r->caught = r->blocked = false;
	r->may_run = may_run(t, status);
	r->runs = can_run(t);
	r->nr_scratch = r->table_max = 0;
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

/* From regs on to the runner's breakpoint before end; regs are those there. */
static int run_to_breakpoint(struct inject *t, struct user_regs_struct *regs, uint64_t end)
{
	int64_t deadline = clock_us() + RUN_WAIT;
	struct stop stop = { 0 };
	pid_t tid = worker_tid(t);
	int ret;

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
		if (stop.sig == SIGTRAP) {
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
	int ret;

	if (t->remote.runs) {
		arch_set_call(&regs, t->runner, nr, args);
		ret = run_to_breakpoint(t, &regs, t->runner + ARCH_RUN_ONE_END);
		*result = arch_result(&regs);
		return ret;
	}
	arch_set_call(&regs, t->gadget, nr, args);
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

	for (i = 0; i < n && !t->remote.dead; i++)
		v[i].ret = inject_syscall(t, v[i].nr, v[i].arg[0], v[i].arg[1], v[i].arg[2],
		                          v[i].arg[3], v[i].arg[4], v[i].arg[5]);
	return t->remote.dead ? -ESRCH : 0;
}

static uint64_t find_table(struct inject *t, size_t n)
{
	struct remote *r = &t->remote;

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
	at = r->runs && n > 1 ? find_table(t, n) : 0;
	if (!at)
		return one_by_one(t, v, n);
	arch_set_run(&regs, t->runner, at, n);
	ret = inject_write(t, at, v, n * sizeof(*v));
	if (!ret)
		ret = run_to_breakpoint(t, &regs, t->runner + (arch_runner_back - arch_runner));
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
	remote_way_back(t);
	if (block_signals(t))
		t->remote.runs = false;
}

/* Is it memory that the program itself may write?  mem would write to any. */
static void *borrow(pid_t tid, uint64_t addr, size_t len)
{
	struct iovec there = { (void *)addr, len };
	struct iovec here = { malloc(len), len };

	if (here.iov_base && process_vm_readv(tid, &here, 1, &there, 1, 0) == (ssize_t)len &&
	    process_vm_writev(tid, &here, 1, &there, 1, 0) == (ssize_t)len)
		return here.iov_base;
	free(here.iov_base);
	return NULL;
}

uint64_t inject_scratch(struct inject *t, size_t len)
{
	struct remote *r = &t->remote;
	struct scratch *s = &r->scratch[r->nr_scratch];
	long mapped;

	if (!r->active || r->dead || r->nr_scratch == SCRATCH_MAX || !len)
		return 0;
	s->len = len;
	s->addr = (r->low - len) & ~15ull;
	s->saved = s->addr < r->low ? borrow(worker_tid(t), s->addr, r->low - s->addr) : NULL;
	if (s->saved) {
		s->len = r->low - s->addr;
		r->low = s->addr;
		r->nr_scratch++;
		return s->addr;
	}
	mapped = inject_syscall(t, SYS_mmap, 0, len, PROT_READ | PROT_WRITE,
	                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mapped < 0 && mapped > -4096)
		return 0;
	s->addr = mapped;
	r->nr_scratch++;
	return s->addr;
}

static void return_scratch(struct inject *t)
{
	struct remote *r = &t->remote;

	while (r->nr_scratch) {
		struct scratch *s = &r->scratch[--r->nr_scratch];

		if (s->saved)
			inject_write(t, s->addr, s->saved, s->len);
		else
			inject_syscall(t, SYS_munmap, s->addr, s->len, 0, 0, 0, 0);
		free(s->saved);
	}
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
	if (ptrace(PTRACE_SETREGSET, tid, NT_X86_XSTATE, &iov) ||
	    ptrace(PTRACE_SETSIGMASK, tid, sizeof(r->sigblk), &r->sigblk) ||
	    ptrace(PTRACE_SETREGS, tid, 0, &r->saved))
		return -ESRCH;
	restore_hooks(t);
	ptrace(PTRACE_SETOPTIONS, tid, 0, PTRACE_O_TRACESYSGOOD);
	return 0;
}

void inject_end(struct inject *t)
{
	struct remote *r = &t->remote;

	if (!r->active)
		return;
	return_scratch(t);
	if (r->dead || restore_thread(t)) {
		t->threads[r->worker].state = THREAD_DYING;
		t->nr_held--;
	}
	r->active = false;
}
