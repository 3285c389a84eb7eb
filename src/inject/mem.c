/* SPDX-License-Identifier: MIT */
/*
 * The handle on a target, and its memory through /proc/PID/mem, which also
 * reaches pages that the target may not write.
 */
#include "inject/internal.h"

#include <fcntl.h>
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
	error = gadget_find(t, err);
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
