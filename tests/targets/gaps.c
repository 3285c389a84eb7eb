/* SPDX-License-Identifier: MIT */
/*
 * gaps THREADS: one does nothing but read the clock, the others sleep; each line
 * that comes in is answered by the longest gap since the last, in us.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

static unsigned long longest;

__attribute__((noinline)) void work(void)
{
	__asm__ volatile("");
}

static void *run(void *arg)
{
	unsigned long last = __rdtsc(), now, old;

	for (;; last = now) {
		now = __rdtsc();
		old = __atomic_load_n(&longest, __ATOMIC_RELAXED);
		while (now - last > old &&
		       !__atomic_compare_exchange_n(&longest, &old, now - last, 0, __ATOMIC_RELAXED,
		                                    __ATOMIC_RELAXED))
			;
	}
	return NULL;
}

static void *rest(void *arg)
{
	for (;;)
		pause();
	return NULL;
}

static double ticks_a_us(void)
{
	struct timespec a, b;
	unsigned long t = __rdtsc();

	clock_gettime(CLOCK_MONOTONIC, &a);
	usleep(50000);
	clock_gettime(CLOCK_MONOTONIC, &b);
	return (__rdtsc() - t) / ((b.tv_sec - a.tv_sec) * 1e6 + (b.tv_nsec - a.tv_nsec) / 1e3);
}

int main(int argc, char **argv)
{
	double rate = ticks_a_us();
	char line[64];
	int n = atoi(argv[1]);
	pthread_t t;

	while (n--)
		pthread_create(&t, NULL, n ? rest : run, NULL);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		work();
		printf("gap %.0f\ndone\n",
		       __atomic_exchange_n(&longest, 0, __ATOMIC_RELAXED) / rate);
		fflush(stdout);
	}
	return 0;
}
