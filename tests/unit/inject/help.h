/* SPDX-License-Identifier: MIT */
/* What the tests of this zone share: children to attach to. */
#ifndef UKP_TESTS_INJECT_HELP_H
#define UKP_TESTS_INJECT_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject/inject.h"

/* Memory that a test and its children see alike. */
static inline void *shared_page(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

/* A child that runs fn(arg) and ends with its result; it doesn't outlive the test. */
static inline pid_t child(int (*fn)(void *), void *arg)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(fn(arg));
	}
	return pid;
}

static inline int child_status(pid_t pid)
{
	int st = -1;

	assert_int_equal(waitpid(pid, &st, 0), pid);
	return st;
}

static inline void child_kill(pid_t pid)
{
	int st;

	kill(pid, SIGKILL);
	while (waitpid(pid, &st, 0) < 0 && errno == EINTR)
		;
}

static inline void nap_ms(unsigned int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000l };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

/* Waits until *word is at least value. */
static inline void await_word(volatile long *word, long value)
{
	int i;

	for (i = 0; i < 10000 && *word < value; i++)
		nap_ms(1);
	assert_true(*word >= value);
}

/* Until the first thread is in an interruptible sleep (state S). */
static inline void await_state(pid_t pid, char want)
{
	char path[64], buf[512], *p;
	int i;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	for (i = 0; i < 10000; i++) {
		FILE *f = fopen(path, "r");
		size_t n = f ? fread(buf, 1, sizeof(buf) - 1, f) : 0;

		if (f)
			fclose(f);
		buf[n] = '\0';
		p = strrchr(buf, ')');
		if (p && p[1] && p[2] == want)
			return;
		nap_ms(1);
	}
	fail_msg("process %d is not in state %c", pid, want);
}

static inline long status_number(pid_t pid, const char *name)
{
	char path[64], line[256];
	long value = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			value = strtol(line + strlen(name) + 1, NULL, 10);
	if (f)
		fclose(f);
	return value;
}

static inline struct inject *opened(pid_t pid)
{
	struct err err = ERR_INIT;
	struct inject *t = NULL;

	if (inject_open(&t, pid, &err))
		fail_msg("%s", err.text);
	return t;
}

static inline void seized(struct inject *t)
{
	struct err err = ERR_INIT;

	if (inject_seize(t, &err))
		fail_msg("%s", err.text);
}

/*
 * Each test runs twice: with calls by an instruction that is there anyway, and
 * by a runner in a page of its own.
 */
static bool with_runner __attribute__((unused));

static inline int use_runner(void **state)
{
	with_runner = true;
	return 0;
}

static inline void bring_runner(struct inject *t)
{
	size_t len;
	const void *code = inject_runner(&len);
	long page = inject_syscall(t, SYS_mmap, 0, 4096, PROT_READ | PROT_EXEC,
	                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(page > 0);
	assert_int_equal(inject_write(t, page, code, len), 0);
	inject_use_runner(t, page);
}

static inline void begun(struct inject *t)
{
	struct err err = ERR_INIT;

	if (inject_begin(t, &err))
		fail_msg("%s", err.text);
	if (with_runner && !inject_has_runner(t))
		bring_runner(t);
}

#endif
