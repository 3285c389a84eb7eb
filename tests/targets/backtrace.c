/* SPDX-License-Identifier: MIT */
/* A C program, without the unwinder until its first backtrace(): how deep is it, each line. */
#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int cleaned;

__attribute__((noinline)) int tracer(int depth)
{
	void *at[64];
	volatile int n;

	n = depth ? tracer(depth - 1) : backtrace(at, 64);
	return n;
}

static void clean(void *arg)
{
	cleaned++;
}

__attribute__((noinline)) int leaves(int depth)
{
	volatile int n = depth;

	pthread_cleanup_push(clean, NULL);
	if (!depth)
		pthread_exit((void *)7);
	n += leaves(depth - 1);
	pthread_cleanup_pop(0);
	return n;
}

__attribute__((noinline)) int waits(int depth)
{
	volatile int n = depth;

	pthread_cleanup_push(clean, NULL);
	if (!depth)
		pause();
	n += waits(depth - 1);
	pthread_cleanup_pop(0);
	return n;
}

static void *leaver(void *arg)
{
	leaves(5);
	return NULL;
}

static void *waiter(void *arg)
{
	waits(5);
	return NULL;
}

int main(void)
{
	pthread_t a, b;
	void *ret, *ret2;
	char line[64];

	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		printf("frames %d\n", tracer(10));
		cleaned = 0;
		pthread_create(&a, NULL, leaver, NULL);
		pthread_create(&b, NULL, waiter, NULL);
		usleep(20000);
		pthread_cancel(b);
		pthread_join(a, &ret);
		pthread_join(b, &ret2);
		printf("cleaned %d\nleft %ld %d\ndone\n", cleaned, (long)ret,
		       ret2 == PTHREAD_CANCELED);
		fflush(stdout);
	}
	return 0;
}
