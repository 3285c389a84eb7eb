/* SPDX-License-Identifier: MIT */
/*
 * The handle on a target, and its memory through /proc/PID/mem, which also
 * reaches pages that the target may not write.
 */
#include "inject/internal.h"
#include "inject/arch.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int mem_open(struct inject *t, struct err *err)
{
	pid_t tid = proc_live_tid(t->pid);
	char path[64];
	int ret;

	if (!tid)
		return err_set(err, -ESRCH, "there is no process %d", t->pid);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/mem", t->pid, tid);
	t->mem_fd = open(path, O_RDWR | O_CLOEXEC);
	if (t->mem_fd >= 0)
		return 0;
	if (errno == ENOENT || errno == ESRCH)
		return err_set(err, -ESRCH, "there is no process %d", t->pid);
	if (errno != EACCES && errno != EPERM)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	ret = inject_preflight(t->pid, err);
	return ret ? ret : err_set(err, -EPERM, "%s: access denied", path);
}

static bool has_syscall(struct inject *t)
{
	uint8_t insn[sizeof(arch_syscall_insn)];

	return t->gadget && !inject_read(t, t->gadget, insn, sizeof(insn)) &&
	       !memcmp(insn, arch_syscall_insn, sizeof(insn));
}

/* The first syscall instruction in a mapping; pieces overlap by a byte. */
static uint64_t scan(struct inject *t, uint64_t start, uint64_t end)
{
	uint8_t buf[4096];

	while (start + sizeof(arch_syscall_insn) <= end) {
		size_t len = end - start < sizeof(buf) ? end - start : sizeof(buf);
		long at;

		if (inject_read(t, start, buf, len))
			return 0;
		at = arch_find_syscall(buf, len);
		if (at >= 0)
			return start + at;
		start += len - 1;
	}
	return 0;
}

/* One line of maps: is it text that can hold the instruction? */
static bool is_text(const char *line, bool vdso, uint64_t *start, uint64_t *end)
{
	char perms[8], name[256] = "";

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %*s %255s", start, end, perms, name) <
	    3)
		return false;
	if (vdso)
		return !strcmp(name, "[vdso]");
	return perms[2] == 'x' && perms[3] == 'p' && name[0] == '/';
}

/*
 * Looks for a syscall instruction, in the vdso or else in any mapped file.
 * Found again if it went away with its mapping.
 */
int mem_find_syscall(struct inject *t, struct err *err)
{
	char path[64], line[4400];
	uint64_t start, end;
	bool gone;
	int pass;
	FILE *f;

	if (has_syscall(t))
		return 0;
	t->gadget = 0;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/maps", t->pid, proc_live_tid(t->pid));
	f = fopen(path, "re");
	if (!f)
		return err_set(err, -ESRCH, "process %d has ended", t->pid);
	for (pass = 0; pass < 2 && !t->gadget; pass++) {
		rewind(f);
		while (!t->gadget && fgets(line, sizeof(line), f))
			if (is_text(line, !pass, &start, &end))
				t->gadget = scan(t, start, end);
	}
	rewind(f);
	gone = !t->gadget && !fgets(line, sizeof(line), f); /* killed: no mappings left */
	fclose(f);
	if (gone)
		return err_set(err, -ESRCH, "process %d has ended", t->pid);
	return t->gadget ? 0
	                 : err_set(err, -ENOEXEC,
	                           "process %d has no syscall instruction in its text", t->pid);
}

static bool in_other_pid_ns(pid_t pid)
{
	char path[64], ours[64], theirs[64];
	ssize_t a, b;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/ns/pid", pid, proc_live_tid(pid));
	a = readlink("/proc/self/ns/pid", ours, sizeof(ours));
	b = readlink(path, theirs, sizeof(theirs));
	return a <= 0 || a != b || memcmp(ours, theirs, a);
}

int inject_open(struct inject **ret, pid_t pid, struct err *err)
{
	struct inject *t = calloc(1, sizeof(*t));
	char status[4096];
	int error;

	if (!t)
		return err_set(err, -ENOMEM, "no memory");
	t->pid = pid;
	t->maps_fd = -1;
	error = mem_open(t, err);
	if (error) {
		free(t);
		return error;
	}
	if (proc_status(pid, pid, status, sizeof(status)) > 0)
		t->own_child = (pid_t)proc_number(status, "PPid", 10) == getpid();
	t->other_pid_ns = in_other_pid_ns(pid);
	error = mem_find_syscall(t, err);
	if (error) {
		inject_close(t);
		return error;
	}
	*ret = t;
	return 0;
}

void inject_close(struct inject *t)
{
	if (!t)
		return;
	inject_release(t);
	inject_settle(t);
	if (t->mem_fd >= 0)
		close(t->mem_fd);
	free(t->threads);
	free(t);
}

pid_t inject_pid(const struct inject *t)
{
	return t->pid;
}

pid_t inject_live_tid(const struct inject *t)
{
	return proc_live_tid(t->pid);
}

int inject_mem_fd(const struct inject *t)
{
	return t->mem_fd;
}

/* Both ways; the kernel stops at a page that is not there. */
static int transfer(struct inject *t, bool in, uint64_t addr, void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		char *at = (char *)buf + done;
		ssize_t n = in ? pread(t->mem_fd, at, len - done, addr + done)
		               : pwrite(t->mem_fd, at, len - done, addr + done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -EIO;
		done += n;
	}
	return 0;
}

int inject_read(struct inject *t, uint64_t addr, void *buf, size_t len)
{
	return transfer(t, true, addr, buf, len);
}

int inject_write(struct inject *t, uint64_t addr, const void *buf, size_t len)
{
	return transfer(t, false, addr, (void *)buf, len);
}
