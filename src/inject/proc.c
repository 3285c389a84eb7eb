/* SPDX-License-Identifier: MIT */
/* What /proc says of a process and its threads. */
#include "inject/internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int proc_read(const char *path, char *buf, size_t size)
{
	size_t len = 0;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	while (len + 1 < size) {
		n = read(fd, buf + len, size - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int error = errno;

			close(fd);
			return -error;
		}
		if (!n)
			break;
		len += n;
	}
	close(fd);
	buf[len] = '\0';
	return len;
}

int proc_status(pid_t pid, pid_t tid, char *buf, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	return proc_read(path, buf, size);
}

const char *proc_field(const char *status, const char *name)
{
	size_t len = strlen(name);
	const char *p;

	for (p = status; p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (!strncmp(p, name, len) && p[len] == ':') {
			p += len + 1;
			return p + strspn(p, " \t");
		}
	}
	return NULL;
}

unsigned long proc_number(const char *status, const char *name, int base)
{
	const char *p = proc_field(status, name);

	return p ? strtoul(p, NULL, base) : 0;
}

/* The state in a thread's "stat" and the kernel's flags: PF_* */
static char read_stat(pid_t pid, pid_t tid, unsigned long *flags)
{
	char path[64], buf[1024], *p;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	if (proc_read(path, buf, sizeof(buf)) <= 0)
		return 0;
	p = strrchr(buf, ')'); /* a name may hold anything */
	/* state ppid pgrp session tty tpgid flags */
	if (flags && p)
		sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %lu", flags);
	return p && p[1] ? p[2] : 0;
}

char proc_state(pid_t pid, pid_t tid)
{
	return read_stat(pid, tid, NULL);
}

unsigned long proc_flags(pid_t tid)
{
	unsigned long flags = 0;

	read_stat(tid, tid, &flags);
	return flags;
}

void proc_comm(pid_t pid, pid_t tid, char buf[32])
{
	char path[64];
	int n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	n = proc_read(path, buf, 32);
	if (n <= 0)
		strcpy(buf, "?");
	else if (buf[n - 1] == '\n')
		buf[n - 1] = '\0';
}

int proc_each_task(pid_t pid, int (*fn)(pid_t tid, void *arg), void *arg, bool *more)
{
	size_t seen = 0;
	char path[64];
	struct dirent *e;
	struct stat st;
	int ret = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return -ESRCH;
	while (!ret && (e = readdir(dir))) {
		pid_t tid = atoi(e->d_name);

		seen += tid > 0;
		if (tid > 0)
			ret = fn(tid, arg);
	}
	/* the folder's link count is 2 + threads */
	if (more)
		*more = !fstat(dirfd(dir), &st) && st.st_nlink > seen + 2;
	closedir(dir);
	return ret;
}

struct live {
	pid_t pid, tid;
};

static int take_live(pid_t tid, void *arg)
{
	struct live *l = arg;
	char state = proc_state(l->pid, tid);

	l->tid = tid;
	return state && state != 'Z' && state != 'X';
}

/* A leader that called pthread_exit() has no memory: its /proc files are empty. */
pid_t proc_live_tid(pid_t pid)
{
	struct live l = { .pid = pid };

	if (take_live(pid, &l))
		return pid;
	return proc_each_task(pid, take_live, &l, NULL) > 0 ? l.tid : 0;
}

int64_t clock_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000ll + now.tv_nsec / 1000;
}
