/* SPDX-License-Identifier: MIT */
/*
 * Threads whose masks differ in nothing but the signals that are kept open for probes: one
 * has all blocked, others have some of SIGSEGV, SIGBUS and SIGTRAP open and a handler for
 * the first, of which they make use.  "before" and "since" say when masks are set: at
 * the start, or at the line "set".  "go N" has each call work() N times; it says what faults
 * were handled, and how many signals that were sent.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FULL, ALL_OPEN, TWO_OPEN, ONE_OPEN, BUILT, THREADS };

static const int opened[THREADS][3] = {
	[ALL_OPEN] = { SIGSEGV, SIGBUS, SIGTRAP },
	[TWO_OPEN] = { SIGSEGV, SIGTRAP },
	[ONE_OPEN] = { SIGSEGV },
	[BUILT] = { SIGSEGV }, /* blocked first, then opened */
};

static volatile unsigned long faults, handled, calls;
static pthread_barrier_t turn;
static pthread_t thread[THREADS];
static volatile long n;
static volatile int set, before;

__attribute__((noinline)) void work(void)
{
	__asm__ volatile("nop; nop; nop; nop; nop; nop" ::: "memory");
	__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
}

static __thread char *page;

static void on_fault(int sig, siginfo_t *info, void *uc)
{
	if (info->si_code <= 0) {
		__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
		return;
	}
	__atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED);
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void mask_of(int i, sigset_t *mask)
{
	sigfillset(mask);
	for (int k = 0; k < 3; k++)
		if (opened[i][k])
			sigdelset(mask, opened[i][k]);
}

static void set_mask(int i)
{
	sigset_t mask, some;

	mask_of(i == BUILT ? FULL : i, &mask);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	sigemptyset(&some);
	sigaddset(&some, SIGSEGV);
	if (i == BUILT)
		pthread_sigmask(SIG_UNBLOCK, &some, NULL);
}

static void one_turn(int i)
{
	for (long k = 0; k < n; k++) {
		work();
		if (i == FULL)
			continue;
		mprotect(page, 4096, PROT_NONE);
		*page = 1;
		pthread_kill(pthread_self(), SIGSEGV);
	}
}

static void *run(void *arg)
{
	const int i = (int)(long)arg;
	int mine = 0;

	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (;;) {
		/* One that has SIGTRAP blocked at an attach, and not all, means it. */
		if (set && !mine && !(before && i >= ONE_OPEN)) {
			set_mask(i);
			mine = 1;
		}
		pthread_barrier_wait(&turn);
		one_turn(i);
		pthread_barrier_wait(&turn);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	char line[64];

	before = set = argc > 1 && !strcmp(argv[1], "before");
	sigaction(SIGSEGV, &sa, NULL);
	pthread_barrier_init(&turn, NULL, THREADS + 1);
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, run, (void *)i))
			return 1;
	/* Masks that are set at the start are set now. */
	for (int i = 0; i < 2; i++)
		pthread_barrier_wait(&turn);
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		n = 0;
		set |= !strcmp(line, "set\n");
		sscanf(line, "go %ld", &n);
		faults = handled = calls = 0;
		for (int i = 0; i < 4; i++) {
			pthread_barrier_wait(&turn);
			if (i == 1)
				n = 0;
		}
		printf("faults %lu\nhandled %lu\ncalls %lu\ndone\n", faults, handled, calls);
	}
	return 0;
}
