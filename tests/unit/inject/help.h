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
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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
		/* A test that failed in a hold goes first still. */
		setpriority(PRIO_PROCESS, 0, 0);
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

/* What is waited for comes at once; only the scheduler of a busy machine keeps it. */
#define PATIENCE_S 180

static inline time_t patience(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + PATIENCE_S;
}

static inline bool patient(time_t end)
{
	struct timespec ts;

	nap_ms(1);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec < end;
}

/* Waits until *word is at least value. */
static inline void await_word(volatile long *word, long value)
{
	time_t end = patience();

	while (*word < value && patient(end))
		;
	assert_true(*word >= value);
}

/* For a child that ends when it is told to. */
static inline void stay_until(volatile long *word)
{
	while (!*word)
		nap_ms(1);
}

/*
 * Whether the first thread waits in a system call: "call" is how its line begins
 * in /proc/PID/syscall, number and arguments.  That it sleeps would be true as well
 * of one that still loads its libraries.
 */
static inline bool in_call(pid_t pid, const char *call)
{
	char path[64], buf[256];
	bool there;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	f = fopen(path, "r");
	there = f && fgets(buf, sizeof(buf), f) && !strncmp(buf, call, strlen(call));
	if (f)
		fclose(f);
	return there;
}

static inline void await_call(pid_t pid, const char *call)
{
	time_t end = patience();

	while (!in_call(pid, call))
		if (!patient(end))
			fail_msg("process %d is not in the system call %s", pid, call);
}

/* Root of a container often has less than all. */
static inline void skip_without_cap_sys_admin(void)
{
	char line[256];
	uint64_t caps = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "CapEff:", 7))
			caps = strtoull(line + 7, NULL, 16);
	if (f)
		fclose(f);
	if (caps >> 21 & 1)
		return;
	print_message("skipped: needs CAP_SYS_ADMIN\n");
	skip();
}

/* Yama's ptrace_scope from 2 on keeps who has no privilege from any process. */
static inline void skip_if_yama_forbids(void)
{
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "r");
	int scope = 0;

	if (f) {
		if (fscanf(f, "%d", &scope) != 1)
			scope = 0;
		fclose(f);
	}
	if (scope < 2)
		return;
	print_message("skipped: kernel.yama.ptrace_scope is %d here\n", scope);
	skip();
}

/* Until the first thread is in an interruptible sleep (state S). */
static inline void await_state(pid_t pid, char want)
{
	char path[64], buf[512], *p;
	time_t end = patience();

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	do {
		FILE *f = fopen(path, "r");
		size_t n = f ? fread(buf, 1, sizeof(buf) - 1, f) : 0;

		if (f)
			fclose(f);
		buf[n] = '\0';
		p = strrchr(buf, ')');
		if (p && p[1] && p[2] == want)
			return;
	} while (patient(end));
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

static inline int use_instruction(void **state)
{
	with_runner = false;
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
