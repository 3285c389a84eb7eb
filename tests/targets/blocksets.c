/* SPDX-License-Identifier: MIT */
/*
 * Changes a handler while it blocks all signals, as libuv does, some thousand times a
 * line on stdin, and calls probed() in between; SIGTRAP's and SIGSEGV's own it sets and
 * reads back.  "end" ends.  Each line prints how often something was not as it was set.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

static volatile unsigned long got;

__attribute__((noinline)) unsigned long probed(unsigned long n)
{
	__asm__ volatile("nopl (%%rax)" : "+r"(n));
	return n + 1;
}

static void on_signal(int sig)
{
	got += (unsigned long)sig;
}

/* By these names libuv is known, and what it runs with all signals blocked. */
__attribute__((noinline, used)) int uv_spawn(int n)
{
	return n;
}

__attribute__((noinline)) int uv__signal_register_handler(int sig)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	return sigaction(sig, &sa, NULL);
}

static unsigned long set(int sig)
{
	struct sigaction was;
	unsigned long before = got;
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	uv__signal_register_handler(sig);
	memset(&was, 0, sizeof(was));
	sigaction(sig, NULL, &was);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	raise(sig);
	return (was.sa_handler != on_signal) + (got - before != (unsigned long)sig);
}

int main(void)
{
	unsigned long n = 0, wrong, i;
	char line[16];

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n")) {
		for (i = wrong = 0; i < 2000; i++) {
			wrong += set(SIGUSR1);
			n = probed(n);
		}
		/* Not in the middle of a change of somebody's: these are kept for it by a probe. */
		if (!strcmp(line, "own\n"))
			wrong += set(SIGTRAP) + set(SIGSEGV);
		printf("wrong %lu\n", wrong);
	}
	return 0;
}
