/* SPDX-License-Identifier: MIT */
/*
 * What would hinder an attach here and now: one line a point, "ok", "warn" or
 * "no", what was found, and the remedy behind "->".
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "inject/inject.h"
#include "patch/deny.h"
#include "session/hazard.h"
#include "session/proto.h"
#include "session/target.h"
#include "ukprobes/session.h"

struct report {
	FILE *out;
	bool hindered;
};

__attribute__((format(printf, 4, 5))) static void say(struct report *r, const char *verdict,
                                                      const char *what, const char *fmt, ...)
{
	va_list ap;

	if (!strcmp(verdict, "no"))
		r->hindered = true;
	fprintf(r->out, "%-4s  %-14s ", verdict, what);
	va_start(ap, fmt);
	vfprintf(r->out, fmt, ap);
	va_end(ap);
	fputc('\n', r->out);
}

static bool read_line(const char *path, char *buf, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, len - 1);

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return false;
	buf[n] = 0;
	buf[strcspn(buf, "\n")] = 0;
	return true;
}

static void check_kernel(struct report *r)
{
	int major = 0, minor = 0;
	struct utsname u;
	long caps = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	uname(&u);
	sscanf(u.release, "%d.%d", &major, &minor);
	if (major > 5 || (major == 5 && minor >= 3))
		say(r, "ok", "kernel", "Linux %s", u.release);
	else
		say(r, "no", "kernel", "Linux %s has no pidfd_open -> 5.3 or later", u.release);
	if (strcmp(u.machine, "x86_64"))
		say(r, "no", "machine", "%s -> x86_64", u.machine);
	if (caps > 0 && (caps & MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE))
		say(r, "ok", "membarrier", "cores can be serialised");
	else
		say(r, "warn", "membarrier",
		    "no SYNC_CORE -> only the int3 form can be planted while threads run");
}

static void check_clock(struct report *r)
{
	char cpu[8192], source[64] = "?";
	int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, cpu, sizeof(cpu) - 1);
	bool steady;

	if (fd >= 0)
		close(fd);
	cpu[n > 0 ? n : 0] = 0;
	steady = strstr(cpu, "nonstop_tsc") || strstr(cpu, "tsc_known_freq");
	read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
	          sizeof(source));
	if (steady)
		say(r, "ok", "clock", "the TSC is steady (clock source %s)", source);
	else
		say(r, "warn", "clock",
		    "the TSC may change its rate or stop (clock source %s) -> times and durations "
		    "are rough",
		    source);
}

static void check_yama(struct report *r)
{
	char scope[16];

	if (!read_line("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope)) ||
	    scope[0] == '0')
		say(r, "ok", "yama", "own processes may be traced");
	else if (scope[0] == '3')
		say(r, "no", "yama", "ptrace_scope is 3: nobody may trace -> reboot with another");
	else if (!geteuid())
		say(r, "ok", "yama", "ptrace_scope is %s, which root passes", scope);
	else
		say(r, scope[0] == '1' ? "warn" : "no", "yama",
		    "ptrace_scope is %s -> launch with 'ukprobe trace ... -- CMD', or as root: "
		    "sysctl "
		    "kernel.yama.ptrace_scope=0",
		    scope);
}

static void check_rights(struct report *r, pid_t pid)
{
	struct err err = ERR_INIT;

	if (!inject_preflight(pid, &err))
		say(r, "ok", "rights", "process %d may be traced", pid);
	else
		say(r, "no", "rights", "%s", err.text);
}

static void check_sigtrap(struct report *r, pid_t pid)
{
	unsigned long long bit = 1ull << (SIGTRAP - 1);

	if (proto_status(pid, "SigBlk", 16) & bit)
		say(r, "warn", "sigtrap",
		    "the main thread blocks SIGTRAP: a breakpoint would kill it -> only jumps are "
		    "planted, where there is room for one, and no returns are followed");
	else if (proto_status(pid, "SigIgn", 16) & bit)
		say(r, "ok", "sigtrap", "ignored by the program, whose own stay so");
	else if (proto_status(pid, "SigCgt", 16) & bit)
		say(r, "ok", "sigtrap",
		    "handled by the program, which still gets its own, or by an agent of ours");
	else
		say(r, "ok", "sigtrap", "free");
}

static void check_seccomp(struct report *r, pid_t pid)
{
	if (!proto_status(pid, "Seccomp", 10))
		say(r, "ok", "seccomp", "no filter");
	else if (!geteuid())
		say(r, "ok", "seccomp", "a filter, which root suspends while it attaches");
	else
		say(r, "warn", "seccomp",
		    "a filter: an attach may break its rules -> run as root (CAP_SYS_ADMIN), which "
		    "suspends it");
}

static void check_agent(struct report *r, pid_t pid, struct sym_proc *p)
{
	pid_t broker;

	if (!orphan_seen(p, pid))
		return;
	broker = orphan_broker(p, pid);
	if (broker)
		say(r, "ok", "agent", "it is being probed (broker %d): 'ukprobe list -p %d'",
		    broker, pid);
	else
		say(r, "warn", "agent",
		    "there is one that nobody serves: its broker was killed, or the process was "
		    "forked from a probed one -> 'ukprobe cure -p %d'",
		    pid);
}

static void check_text(struct report *r, pid_t pid)
{
	struct err err = ERR_INIT;
	struct sym_proc *p;
	size_t i, files = 0, writable = 0;
	const char *hazard;

	if (sym_open(&p, pid, &err)) {
		say(r, "no", "code", "%s", err.text);
		return;
	}
	for (i = 0; i < sym_nr_maps(p); i++) {
		const struct sym_map *m = sym_map_at(p, i);

		files += m->x && m->module;
		writable += m->x && m->w;
	}
	check_agent(r, pid, p);
	hazard = hazard_find(p, pid, 0);
	sym_close(p);
	if (hazard)
		say(r, "warn", "threads", "%s", hazard);
	if (files)
		say(r, "ok", "code", "%zu executable file mappings", files);
	else
		say(r, "no", "code", "no executable file can be read -> run where its files are");
	if (writable)
		say(r, "warn", "jit", "%zu writable executable mappings -> code in them is refused",
		    writable);
}

int ukp_doctor(pid_t pid, FILE *out, const char **why)
{
	struct report r = { .out = out };

	check_kernel(&r);
	check_clock(&r);
	check_yama(&r);
	if (pid) {
		check_rights(&r, pid);
		if (proto_status(pid, "Tgid", 10)) {
			check_sigtrap(&r, pid);
			check_seccomp(&r, pid);
			check_text(&r, pid);
		}
	}
	if (!r.hindered)
		return 0;
	*why = "an attach would fail; see the lines that say \"no\"";
	return -EPERM;
}
