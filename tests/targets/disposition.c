/* SPDX-License-Identifier: MIT */
/* disposition blocked|ignored|handled|thread: SIGTRAP so, then waits. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void on_trap(int sig)
{
}

__attribute__((noinline)) void work(void)
{
	__asm__ volatile("");
}

static void *blocker(void *arg)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	printf("ready\n");
	fflush(stdout);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	pthread_t t;

	if (!strcmp(argv[1], "blocked"))
		blocker(NULL);
	if (!strcmp(argv[1], "thread"))
		pthread_create(&t, NULL, blocker, NULL);
	else if (!strcmp(argv[1], "ignored"))
		signal(SIGTRAP, SIG_IGN);
	else if (!strcmp(argv[1], "handled"))
		signal(SIGTRAP, on_trap);
	if (strcmp(argv[1], "thread"))
		printf("ready\n");
	fflush(stdout);
	for (;;) {
		work();
		pause();
	}
}
