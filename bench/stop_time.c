/* SPDX-License-Identifier: MIT */
/*
 * How long an attach keeps a process standing: 200 times seize, some remote
 * calls, release, over processes with 1, 4, 50 and 100 threads, idle and busy.
 * From the first interrupt to the last detach, as the tracer sees it.
 *
 *	cc -O2 -Isrc bench/stop_time.c build/test.a -lpthread
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/inject.h"

#define ROUNDS 200

static void *busy(void *arg)
{
	for (;;)
		__asm__ volatile("");
	return arg;
}

static void *idle(void *arg)
{
	while (pause())
		;
	return arg;
}

static pid_t target(int threads, void *(*fn)(void *))
{
	pid_t pid = fork();
	pthread_t th;
	int i;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 1; i < threads; i++)
		if (pthread_create(&th, NULL, fn, NULL))
			_exit(1);
	fn(NULL);
	_exit(0);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int measure(int threads, int calls, void *(*fn)(void *), const char *name)
{
	pid_t pid = target(threads, fn);
	double held[ROUNDS];
	struct err err;
	struct inject *t;
	int i, j;

	usleep(100000);
	if (inject_open(&t, pid, &err))
		goto failed;
	for (i = 0; i < ROUNDS; i++) {
		if (inject_seize(t, &err))
			goto failed;
		if (calls) {
			if (inject_begin(t, &err))
				goto failed;
			for (j = 0; j < calls; j++)
				inject_syscall(t, SYS_getpid, 0, 0, 0, 0, 0, 0);
			inject_end(t);
		}
		inject_release(t);
		held[i] = inject_stop_us(t);
		usleep(500);
	}
	qsort(held, ROUNDS, sizeof(held[0]), compare);
	printf("%3d threads %s, %2d calls: median %6.0f us, p90 %6.0f us, worst %6.0f us\n",
	       threads, name, calls, held[ROUNDS / 2], held[ROUNDS * 9 / 10], held[ROUNDS - 1]);
	inject_close(t);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
failed:
	fprintf(stderr, "%s\n", err.text);
	kill(pid, SIGKILL);
	return 1;
}

int main(void)
{
	const int threads[] = { 1, 4, 50, 100 };
	int i, ret = 0;

	for (i = 0; i < 4; i++) {
		ret |= measure(threads[i], 0, idle, "idle");
		ret |= measure(threads[i], 20, idle, "idle");
		ret |= measure(threads[i], 0, busy, "busy");
		ret |= measure(threads[i], 20, busy, "busy");
		fflush(stdout);
	}
	return ret;
}
