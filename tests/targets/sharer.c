/* SPDX-License-Identifier: MIT */
/*
 * sharer [handlers]: "share" makes a process that runs in the same memory, is no
 * thread, and calls work() all the time; with "handlers" its dispositions are
 * shared, too.  "alone" ends it.  "calls N" calls work() so often.  Each says
 * "done", with how often work() was called by both.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long called, wrong;
static volatile int alone;
static char stack[65536] __attribute__((aligned(16)));

__attribute__((noinline)) unsigned long work(unsigned long i)
{
	__asm__ volatile("");
	return i * 3 + 1;
}

static void call(unsigned long i)
{
	if (work(i) != i * 3 + 1)
		__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&called, 1, __ATOMIC_RELAXED);
}

static int share(void *arg)
{
	unsigned long i;

	/* It goes with its parent, however that ends. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0; !alone; i++)
		call(i);
	return 0;
}

int main(int argc, char **argv)
{
	int flags = CLONE_VM | SIGCHLD | (argc > 1 ? CLONE_SIGHAND : 0);
	unsigned long i, n;
	char line[64];
	pid_t pid = 0;

	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "share\n")) {
			alone = 0;
			pid = clone(share, stack + sizeof(stack), flags, NULL);
		} else if (!strcmp(line, "alone\n")) {
			alone = 1;
			waitpid(pid, NULL, 0);
		} else if (sscanf(line, "calls %lu", &n) == 1) {
			for (i = 0; i < n; i++)
				call(i);
		}
		printf("pid %d\ncalled %lu\nwrong %lu\ndone\n", pid, called, wrong);
		fflush(stdout);
	}
	return 0;
}
