/* SPDX-License-Identifier: MIT */
/*
 * Makes threads without a pause: most of the time some thread of it has all
 * signals blocked, for the moment that this takes libc.
 *
 *	spawner SECONDS
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

__attribute__((noinline)) void work(void)
{
	__asm__ volatile("");
}

static void *thread_main(void *arg)
{
	work();
	return arg;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 10);
	pthread_t t[8];
	int i, n;

	puts("ready");
	fflush(stdout);
	while (time(NULL) < end) {
		for (n = 0; n < 8 && !pthread_create(&t[n], NULL, thread_main, NULL); n++)
			;
		for (i = 0; i < n; i++)
			pthread_join(t[i], NULL);
	}
	puts("done");
	return 0;
}
