/* SPDX-License-Identifier: MIT */
/* What bench/scale plants in: a library loaded by argv[1], and argv[2] threads, one busy. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static void *idle(void *arg)
{
	while (pause())
		;
	return arg;
}

int main(int argc, char **argv)
{
	volatile unsigned long n = 0;
	pthread_t th;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc < 3 || !dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL)) {
		fprintf(stderr, "%s\n", argc < 3 ? "usage" : dlerror());
		return 1;
	}
	for (int i = 1; i < atoi(argv[2]); i++)
		if (pthread_create(&th, NULL, idle, NULL))
			return 1;
	puts("ready");
	fflush(stdout);
	for (;;) {
		n++;
		if (n % 1000000 == 0)
			usleep(1000);
	}
}
