/* SPDX-License-Identifier: MIT */
/*
 * Whether a process can be attached to, found out without touching it.  The
 * checks before the last one only make better sentences; the last, opening its
 * memory, is the kernel's own answer to "may I trace it".
 */
#include "inject/internal.h"
#include "inject/arch.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PF_KTHREAD 0x00200000
#define PF_EXITING 0x00000004
#define GOING_MS 2000
#define CAP_SYS_PTRACE 19

static bool is_kernel_thread(pid_t pid)
{
	return proc_flags(pid) & PF_KTHREAD;
}

static int check_kind(pid_t pid, const char *status, struct err *err)
{
	pid_t tgid = proc_number(status, "Tgid", 10);
	const char *state = proc_field(status, "State");

	if (tgid == getpid())
		return err_set(err, -EINVAL, "process %d is this program itself", pid);
	if (tgid != pid)
		return err_set(err, -EINVAL, "%d is a thread of process %d: give that", pid, tgid);
	if (is_kernel_thread(pid))
		return err_set(err, -EOPNOTSUPP, "process %d is a kernel thread", pid);
	if (state && (*state == 'Z' || *state == 'X') && !proc_live_tid(pid))
		return err_set(err, -EOPNOTSUPP,
		               "process %d has ended; its parent has not waited for it (zombie)",
		               pid);
	return 0;
}

/* Who traces it, but for a tracer that is just ending: that lets go within moments. */
static pid_t tracer_of(pid_t pid)
{
	char status[4096];
	pid_t tracer = 0;
	int tries;

	for (tries = 0; tries < GOING_MS; tries++) {
		if (proc_status(pid, pid, status, sizeof(status)) <= 0)
			return 0;
		tracer = proc_number(status, "TracerPid", 10);
		if (!tracer || !(proc_flags(tracer) & PF_EXITING))
			break;
		usleep(1000);
	}
	return tracer;
}

static int check_tracer(pid_t pid, struct err *err)
{
	pid_t tracer = tracer_of(pid);
	char path[64], other[4096], comm[32];

	if (!tracer)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/status", tracer);
	if (proc_read(path, other, sizeof(other)) > 0 &&
	    (pid_t)proc_number(other, "Tgid", 10) == getpid())
		return 0;
	proc_comm(tracer, tracer, comm);
	return err_set(err, -EBUSY, "process %d is being traced by %s (pid %d): end that first",
	               pid, comm, tracer);
}

enum exe_kind preflight_exe(const char *path)
{
	Elf64_Ehdr ehdr;
	ssize_t n;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return EXE_UNKNOWN;
	n = read(fd, &ehdr, sizeof(ehdr));
	close(fd);
	if (n < EI_NIDENT + 4 || memcmp(ehdr.e_ident, ELFMAG, SELFMAG))
		return EXE_UNKNOWN;
	if (ehdr.e_ident[EI_CLASS] == ELFCLASS32)
		return EXE_32_BIT;
	return ehdr.e_machine == arch_elf_machine ? EXE_OURS : EXE_OTHER_CPU;
}

static int check_class(pid_t pid, struct err *err)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/exe", pid, proc_live_tid(pid));
	switch (preflight_exe(path)) {
	case EXE_32_BIT:
		return err_set(err, -EOPNOTSUPP, "process %d is a 32-bit program", pid);
	case EXE_OTHER_CPU:
		return err_set(err, -EOPNOTSUPP, "process %d runs a program of another CPU", pid);
	case EXE_UNKNOWN: /* the check of rights tells more */
	case EXE_OURS:
		break;
	}
	return 0;
}

static int yama_scope(void)
{
	char buf[16];

	return proc_read("/proc/sys/kernel/yama/ptrace_scope", buf, sizeof(buf)) > 0 ? atoi(buf)
	                                                                             : 0;
}

static bool may_trace_any(void)
{
	char buf[4096];

	return proc_read("/proc/self/status", buf, sizeof(buf)) > 0 &&
	       proc_number(buf, "CapEff", 16) >> CAP_SYS_PTRACE & 1;
}

/* Do real, effective and saved ids all equal ours? */
static bool same_ids(const char *status, const char *name, unsigned int own)
{
	const char *p = proc_field(status, name);
	unsigned int id[3];

	return p && sscanf(p, "%u %u %u", &id[0], &id[1], &id[2]) == 3 && id[0] == own &&
	       id[1] == own && id[2] == own;
}

static bool is_undumpable(pid_t pid)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid); /* root owns it then */
	return geteuid() && !stat(path, &st) && st.st_uid != geteuid();
}

/* Access was denied: say by which rule, and the way around it. */
static int explain(pid_t pid, const char *status, struct err *err)
{
	int scope = yama_scope();

	if (scope == 3)
		return err_set(
			err, -EPERM,
			"kernel.yama.ptrace_scope is 3: nobody may trace until a reboot with "
			"another value");
	if (may_trace_any())
		return err_set(
			err, -EPERM,
			"access to process %d is denied in spite of CAP_SYS_PTRACE: it is in "
			"another user namespace, or a security module forbids it",
			pid);
	if (!same_ids(status, "Uid", geteuid()))
		return err_set(err, -EPERM,
		               "process %d belongs to user %lu (we are %u): run as that user or as "
		               "root",
		               pid, proc_number(status, "Uid", 10), geteuid());
	if (!same_ids(status, "Gid", getegid()))
		return err_set(err, -EPERM,
		               "process %d has another group than we (%lu, not %u): run as root",
		               pid, proc_number(status, "Gid", 10), getegid());
	if (is_undumpable(pid))
		return err_set(err, -EPERM,
		               "process %d has forbidden access to its memory (not dumpable: "
		               "prctl, set-user-ID or an unreadable file): run as root",
		               pid);
	if (scope == 2)
		return err_set(
			err, -EPERM,
			"kernel.yama.ptrace_scope is 2, only root may trace: run as root, or "
			"`sysctl kernel.yama.ptrace_scope=0`");
	if (scope == 1)
		return err_set(err, -EPERM,
		               "kernel.yama.ptrace_scope is 1, only own descendants may be traced: "
		               "start the program through us, run as root, or `sysctl "
		               "kernel.yama.ptrace_scope=0`");
	return err_set(err, -EPERM,
	               "access to process %d is denied: it has more capabilities, or a security "
	               "module forbids it; run as root",
	               pid);
}

int inject_preflight(pid_t pid, struct err *err)
{
	char path[64], status[4096];
	int ret, fd;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (pid <= 0 || proc_read(path, status, sizeof(status)) <= 0)
		return err_set(err, -ESRCH, "there is no process %d", pid);
	ret = check_kind(pid, status, err);
	if (!ret)
		ret = check_tracer(pid, err);
	if (!ret)
		ret = check_class(pid, err);
	if (ret)
		return ret;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/mem", pid, proc_live_tid(pid));
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	if (errno == ENOENT || errno == ESRCH)
		return err_set(err, -ESRCH, "process %d has ended", pid);
	return explain(pid, status, err);
}
