/* SPDX-License-Identifier: MIT */
/*
 * pacer THREADS RATE: each line "go N" has so many threads call work() N times
 * in all, RATE a second together (0: as fast as they can), and "done" with the
 * milliseconds that it took.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static unsigned long nr_threads, rate, calls;

__attribute__((noinline)) unsigned long work(unsigned long i)
{
	__asm__ volatile("");
	return i;
}

static long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* A tick a millisecond, and each tick its share of calls; late ones are not made up for in one go.
 */
static void *run(void *arg)
{
	unsigned long left = (unsigned long)arg, share = rate / nr_threads / 1000 + 1, i = 0, n;
	long next = now_ns();

	while (left) {
		n = !rate || left < share ? left : share;
		left -= n;
		while (n--)
			work(i++);
		next += 1000000;
		if (next < now_ns() - 20000000)
			next = now_ns() - 20000000;
		while (rate && now_ns() < next)
			usleep(200);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[64];
	unsigned long i;
	long begin;

	nr_threads = strtoul(argv[1], NULL, 0);
	rate = strtoul(argv[2], NULL, 0);
	printf("ready\n");
	fflush(stdout);
	while (scanf(" go %lu", &calls) == 1) {
		begin = now_ns();
		for (i = 0; i < nr_threads; i++)
			pthread_create(&t[i], NULL, run, (void *)(calls / nr_threads));
		for (i = 0; i < nr_threads; i++)
			pthread_join(t[i], NULL);
		printf("ms %ld\ndone\n", (now_ns() - begin) / 1000000);
		fflush(stdout);
	}
	return 0;
}
