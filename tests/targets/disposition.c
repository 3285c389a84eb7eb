/* SPDX-License-Identifier: MIT */
/*
 * disposition blocked|thread|full|noclock|strict: SIGTRAP so, the time stamp
 * counter given up, or seccomp's strict mode; then waits.  With
 * "thread" it is a second thread that blocks it, with "full" one that blocks all
 * signals; it calls work() for each line that comes in, and says "done".
 */
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

__attribute__((noinline)) void work(void)
{
	__asm__ volatile("");
}

static void *blocker(void *arg)
{
	sigset_t set;
	char line[64];

	if (arg)
		sigfillset(&set);
	else
		sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		work();
		printf("done\n");
		fflush(stdout);
	}
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
	else if (!strcmp(argv[1], "full"))
		pthread_create(&t, NULL, blocker, argv);
	else if (!strcmp(argv[1], "noclock"))
		prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
	if (strcmp(argv[1], "thread") && strcmp(argv[1], "full"))
		printf("ready\n");
	fflush(stdout);
	if (!strcmp(argv[1], "strict")) {
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
		while (read(0, argv[1], 1) == 1) /* pause() would end it */
			work();
	}
	for (;;) {
		work();
		pause();
	}
}
