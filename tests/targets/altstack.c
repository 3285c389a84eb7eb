/* SPDX-License-Identifier: MIT */
/*
 * altstack HALVES: a SIGUSR1 handler on an alternate stack of so many halves of
 * the room that a signal needs; "go" raises it, its handler calls work().
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

static unsigned long calls;

__attribute__((noinline)) void work(void)
{
	__asm__ volatile("" : "+m"(calls));
	calls++;
}

static void on_usr1(int sig)
{
	work();
}

int main(int argc, char **argv)
{
	size_t room = getauxval(AT_MINSIGSTKSZ) ? getauxval(AT_MINSIGSTKSZ) : 2048;
	struct sigaction sa = { .sa_handler = on_usr1, .sa_flags = SA_ONSTACK };
	stack_t st = { .ss_size = room * (size_t)atoi(argv[1]) / 2 };
	char line[16];

	setvbuf(stdout, NULL, _IOLBF, 0);
	st.ss_sp = calloc(1, st.ss_size);
	if (!st.ss_sp || sigaltstack(&st, NULL) || sigaction(SIGUSR1, &sa, NULL))
		return 1;
	puts("ready");
	while (fgets(line, sizeof(line), stdin) && !strcmp(line, "go\n")) {
		raise(SIGUSR1);
		printf("calls %lu\n", calls);
	}
	return 0;
}
