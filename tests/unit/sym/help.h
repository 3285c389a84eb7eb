/* SPDX-License-Identifier: MIT */
/* Shared by this zone's tests: programs built and started on the spot. */
#ifndef UKP_TEST_SYM_HELP_H
#define UKP_TEST_SYM_HELP_H

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sym/internal.h"

#define HELP __attribute__((unused)) static

static char help_dir[] = "/tmp/ukp-sym-XXXXXX";

HELP int help_setup(void **state)
{
	strcpy(help_dir + strlen(help_dir) - 6, "XXXXXX");
	if (!mkdtemp(help_dir))
		return -1;
	return chmod(help_dir, 0755);
}

HELP int help_teardown(void **state)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "rm -rf %s", help_dir);
	return system(cmd);
}

HELP const char *help_path(const char *name)
{
	static char path[4][256];
	static unsigned int next;
	char *p = path[next++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", help_dir, name);
	return p;
}

/* A shell command; false if it fails. */
__attribute__((format(printf, 1, 2))) HELP bool help_run(const char *fmt, ...)
{
	char cmd[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	return !system(cmd);
}

struct target {
	pid_t pid;
	char out[1024]; /* what it printed up to "ready" */
};

/* uid 0: as ourselves. */
HELP void target_start_as(struct target *t, const char *path, uid_t uid)
{
	size_t len = 0;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	fflush(NULL);
	t->pid = fork();
	assert_true(t->pid >= 0);
	if (!t->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fds[1], 1);
		close(fds[0]);
		if (uid && (setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
			_exit(126);
		execl(path, path, NULL);
		_exit(127);
	}
	close(fds[1]);
	while (len < sizeof(t->out) - 1) {
		ssize_t n = read(fds[0], t->out + len, sizeof(t->out) - 1 - len);

		if (n <= 0)
			break;
		len += (size_t)n;
		t->out[len] = 0;
		if (strstr(t->out, "ready\n"))
			break;
	}
	close(fds[0]);
	assert_non_null(strstr(t->out, "ready\n"));
}

HELP void target_start(struct target *t, const char *path)
{
	target_start_as(t, path, 0);
}

HELP void target_stop(struct target *t)
{
	kill(t->pid, SIGKILL);
	waitpid(t->pid, NULL, 0);
}

/* The address that it printed behind a name. */
HELP uint64_t target_addr(const struct target *t, const char *name)
{
	char line[64];
	const char *at;

	snprintf(line, sizeof(line), "%s ", name);
	at = strstr(t->out, line);
	assert_non_null(at);
	return strtoull(at + strlen(line), NULL, 16);
}

HELP int target_mem(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

HELP ssize_t read_mem(void *fd, uint64_t addr, void *buf, size_t len)
{
	ssize_t n = pread(*(int *)fd, buf, len, (off_t)addr);

	return n < 0 ? -errno : n;
}

HELP struct sym_proc *open_proc(pid_t pid)
{
	struct err err = ERR_INIT;
	struct sym_proc *p;
	int r = sym_open(&p, pid, &err);

	if (r)
		print_message("%s\n", err.text);
	assert_int_equal(r, 0);
	return p;
}

/* How often a function is among those listed. */
struct seen {
	const char *name;
	size_t nr;
	struct sym_symbol sym;
};

HELP int see(const struct sym_symbol *s, void *arg)
{
	struct seen *seen = arg;

	if (!seen->name || !strcmp(seen->name, s->name)) {
		seen->nr++;
		seen->sym = *s;
	}
	return 0;
}

#endif
