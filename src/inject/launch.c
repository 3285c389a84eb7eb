/* SPDX-License-Identifier: MIT */
/*
 * Launching a program held at its entry point.
 *
 *	tracer				child
 *	its pid		------>		allows that process to trace it (YAMA)
 *			<------		ready
 *	seizes it
 *	go		------>		exec
 *
 * From the exec's stop a breakpoint at the entry point brings it through the
 * dynamic loader; it is taken out before anyone could see it.
 */
#include "inject/internal.h"
#include "inject/arch.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PTRACE_SETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#define PTRACE_SETSIGMASK 0x420b
#endif

#define LAUNCH_WAIT 30000000 /* us, to the exec and to the entry point each */

static int send_all(int fd, const void *buf, size_t len)
{
	ssize_t n;

	do
		n = send(fd, buf, len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)len ? 0 : n < 0 ? -errno : -EIO;
}

static int receive_all(int fd, void *buf, size_t len)
{
	ssize_t n;

	do
		n = recv(fd, buf, len, MSG_WAITALL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)len ? 0 : n < 0 ? -errno : -ECANCELED;
}

int inject_child_wait(int fd)
{
	pid_t tracer;
	char byte = 0;
	int ret;

	fcntl(fd, F_SETFD, FD_CLOEXEC);
	ret = receive_all(fd, &tracer, sizeof(tracer));
	if (ret)
		return ret;
	prctl(PR_SET_PTRACER, (unsigned long)tracer, 0, 0, 0); /* EINVAL without YAMA */
	ret = send_all(fd, &byte, 1);
	return ret ? ret : receive_all(fd, &byte, 1);
}

static int handshake(struct inject *t, int fd, struct err *err)
{
	pid_t pid = t->pid;
	pid_t self = getpid();
	char byte = 0;
	int ret;

	ret = send_all(fd, &self, sizeof(self));
	if (!ret)
		ret = receive_all(fd, &byte, 1);
	if (ret)
		return err_set(err, -ECHILD, "process %d ended before it was to run its program",
		               pid);
	if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC))
		return err_set(err, -errno, "process %d can't be traced: %s", pid, strerror(errno));
	if (thread_add(t, pid))
		return err_set(err, -ENOMEM, "no memory");
	ret = send_all(fd, &byte, 1);
	return ret ? err_set(err, -ECHILD, "process %d ended before it was to run its program", pid)
	           : 0;
}

/* Runs on until the kind of stop that is asked for; signals on the way are the child's own. */
static int run_to(struct inject *t, enum stop_kind kind, int sig, struct stop *stop)
{
	int64_t deadline = clock_us() + LAUNCH_WAIT;
	int ret;

	for (;;) {
		ret = wait_stop(t, t->pid, deadline, stop);
		if (ret)
			return ret;
		if (stop->kind == kind && stop->sig == sig)
			return 0;
		if (stop->group && !ptrace(PTRACE_LISTEN, t->pid, 0, 0))
			continue; /* SIGSTOP or the like: SIGCONT wakes it */
		if (ptrace(PTRACE_CONT, t->pid, 0, (long)stop->sig))
			return -ESRCH;
	}
}

static uint64_t entry_point(pid_t pid)
{
	Elf64_auxv_t auxv[64];
	char path[64];
	int i, n;

	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	n = proc_read(path, (char *)auxv, sizeof(auxv));
	for (i = 0; i < n / (int)sizeof(auxv[0]); i++)
		if (auxv[i].a_type == AT_ENTRY)
			return auxv[i].a_un.a_val;
	return 0;
}

/* Until the breakpoint at the entry point; other SIGTRAPs are the program's. */
static int run_to_entry(struct inject *t, uint64_t entry)
{
	uint8_t insn[ARCH_TRAP_LEN];
	struct user_regs_struct regs;
	struct stop stop;
	int ret;

	ret = inject_read(t, entry, insn, sizeof(insn));
	if (!ret)
		ret = inject_write(t, entry, arch_trap_insn, sizeof(insn));
	stop.sig = 0;
	while (!ret) {
		if (ptrace(PTRACE_CONT, t->pid, 0, (long)stop.sig))
			return -ESRCH;
		ret = run_to(t, STOP_SIGNAL, SIGTRAP, &stop);
		if (!ret && ptrace(PTRACE_GETREGS, t->pid, 0, &regs))
			ret = -ESRCH;
		if (!ret && arch_pc(&regs) == entry + ARCH_TRAP_ADVANCE)
			break;
	}
	if (ret)
		return ret;
	arch_set_pc(&regs, entry);
	if (ptrace(PTRACE_SETREGS, t->pid, 0, &regs))
		return -ESRCH;
	return inject_write(t, entry, insn, sizeof(insn));
}

/*
 * A SIGTRAP that is blocked or ignored (both live through exec) is forced: the
 * kernel unblocks it and resets it to its default.  Put both back.
 */
static int ignore_sigtrap(struct inject *t, struct err *err)
{
	uint64_t act[4] = { (uint64_t)SIG_IGN, 0, 0, 0 }; /* the kernel's struct sigaction */
	uint64_t at;
	long ret;

	ret = inject_begin(t, err);
	if (ret)
		return ret;
	at = inject_scratch(t, sizeof(act));
	ret = at ? inject_write(t, at, act, sizeof(act)) : -ENOMEM;
	if (!ret)
		ret = inject_syscall(t, SYS_rt_sigaction, SIGTRAP, at, 0, 8, 0, 0);
	inject_end(t);
	return ret ? err_set(err, ret, "process %d: ignoring SIGTRAP as before: %s", t->pid,
	                     strerror(-(int)ret))
	           : 0;
}

static int hold_at_entry(struct inject *t, struct err *err)
{
	char status[4096];
	uint64_t sigblk, sigign, entry = entry_point(t->pid);
	int ret;

	if (!entry || proc_status(t->pid, t->pid, status, sizeof(status)) <= 0 ||
	    ptrace(PTRACE_GETSIGMASK, t->pid, sizeof(sigblk), &sigblk))
		return err_set(err, -ECHILD, "process %d ended at its exec", t->pid);
	sigign = proc_number(status, "SigIgn", 16);
	ret = run_to_entry(t, entry);
	if (ret == -ESRCH)
		return err_set(err, -ECHILD, "process %d ended before its entry point", t->pid);
	if (ret)
		return err_set(err, ret, "process %d did not reach its entry point: %s", t->pid,
		               strerror(-ret));
	/* from the breakpoint's stop, without its signal, into an event stop */
	if (sigblk & 1ull << (SIGTRAP - 1))
		ptrace(PTRACE_SETSIGMASK, t->pid, sizeof(sigblk), &sigblk);
	if (ptrace(PTRACE_INTERRUPT, t->pid, 0, 0) || ptrace(PTRACE_CONT, t->pid, 0, 0))
		return err_set(err, -ECHILD, "process %d ended at its entry point", t->pid);
	ret = seize_rest(t, err);
	/* It has not begun: nobody waits, and what is made in this hold takes its time. */
	relax(t);
	if (!ret && sigign & 1ull << (SIGTRAP - 1))
		ret = ignore_sigtrap(t, err);
	return ret;
}

static int ended(pid_t pid, int ret, struct err *err)
{
	if (ret == -ESRCH)
		return err_set(err, -ECHILD, "process %d ended without running its program", pid);
	return err_set(err, ret, "process %d did not run its program in %d s", pid,
	               LAUNCH_WAIT / 1000000);
}

static int open_executed(struct inject *t, struct err *err)
{
	int ret = inject_preflight(t->pid, err);

	if (!ret)
		ret = mem_open(t, err);
	if (!ret)
		ret = gadget_find(t, err);
	return ret ? ret : hold_at_entry(t, err);
}

int inject_exec(struct inject **ret, pid_t pid, int fd, struct err *err)
{
	struct inject *t = calloc(1, sizeof(*t));
	char status[4096];
	struct stop stop;
	int error;

	if (!t)
		return err_set(err, -ENOMEM, "no memory");
	t->pid = pid;
	t->mem_fd = t->maps_fd = -1;
	if (proc_status(pid, pid, status, sizeof(status)) > 0)
		t->own_child = (pid_t)proc_number(status, "PPid", 10) == getpid();
	error = handshake(t, fd, err);
	if (!error) {
		error = run_to(t, STOP_EXEC, 0, &stop);
		error = error ? ended(pid, error, err) : open_executed(t, err);
	}
	if (!error) {
		*ret = t;
		return 0;
	}
	if (error != -ECHILD)
		kill(pid, SIGKILL);
	if (t->nr && !t->held)
		t->threads[0].state = THREAD_DYING;
	inject_release(t);
	seize_reap(t);
	inject_close(t);
	return error;
}
