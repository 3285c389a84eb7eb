/* SPDX-License-Identifier: MIT */
/*
 * burst [THREADS] [PAUSE]: calls work() and deep() in so many threads as fast as
 * it can (or with PAUSE spins in between), and answers each line that comes in:
 * "pong LINE", with how many calls there were and how many went wrong.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned long calls, wrong, pause_spins;

__attribute__((noinline)) unsigned long work(unsigned long i)
{
	__asm__ volatile("");
	return i * 3;
}

__attribute__((noinline)) unsigned long deep(unsigned long n)
{
	return n ? deep(n - 1) + 1 : 0;
}

static void *run(void *arg)
{
	unsigned long i, k;

	for (i = 0;; i++) {
		if (work(i) != i * 3 || deep(5) != 5)
			__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
		for (k = 0; k < pause_spins; k++)
			__asm__ volatile("pause");
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t t;
	char line[64];

	pause_spins = argc > 2 ? strtoul(argv[2], NULL, 0) : 0;
	while (n--)
		pthread_create(&t, NULL, run, NULL);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		printf("calls %lu\nwrong %lu\npong %s", calls, wrong, line);
		fflush(stdout);
	}
	return 0;
}
