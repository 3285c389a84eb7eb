/* SPDX-License-Identifier: MIT */
/*
 * launched STATUS | launched kill SIG | launched cat | launched segv | launched args ...
 * Calls early() in a constructor and once() in main.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sigjmp_buf env;

__attribute__((noinline)) int early(int a)
{
	__asm__ volatile("");
	return a + 1;
}

__attribute__((noinline)) int once(int a)
{
	__asm__ volatile("");
	return a + 2;
}

/* A pointer that a probe reads as a string; the function itself doesn't. */
__attribute__((noinline)) int takes(const char *s)
{
	__asm__ volatile("" : : "r"(s));
	return 5;
}

__attribute__((constructor)) static void construct(void)
{
	early(1);
}

static void on_segv(int sig, siginfo_t *info, void *uc)
{
	siglongjmp(env, info->si_addr == (void *)64 ? 1 : 2);
}

/* Installs a handler, reads it back, gets a fault of its own, has probes fault. */
static int segv(void)
{
	struct sigaction sa = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO }, old;
	int i, got;

	sigaddset(&sa.sa_mask, SIGUSR1);
	if (sigaction(SIGSEGV, &sa, &old) || old.sa_handler != SIG_DFL)
		return 11;
	if (sigaction(SIGSEGV, NULL, &old) || old.sa_sigaction != on_segv ||
	    !(old.sa_flags & SA_SIGINFO) || !sigismember(&old.sa_mask, SIGUSR1) ||
	    sigismember(&old.sa_mask, SIGUSR2))
		return 12;
	if (signal(SIGSEGV, SIG_DFL) != (void (*)(int))on_segv)
		return 13;
	sigaction(SIGSEGV, &sa, NULL);
	for (i = 0; i < 100; i++) {
		takes(NULL);
		got = sigsetjmp(env, 1);
		if (!got)
			*(volatile char *)64 = 1;
		if (got != 1)
			return 14;
		takes("text");
	}
	return 0;
}

int main(int argc, char **argv)
{
	char buf[256];
	ssize_t n;

	once(1);
	if (!strcmp(argv[1], "args"))
		return argc;
	if (!strcmp(argv[1], "kill"))
		kill(getpid(), atoi(argv[2]));
	if (!strcmp(argv[1], "segv"))
		return segv();
	if (!strcmp(argv[1], "crash"))
		*(volatile char *)64 = 1;
	if (!strcmp(argv[1], "cat"))
		while ((n = read(0, buf, sizeof(buf))) > 0)
			n = write(1, buf, n);
	return atoi(argv[1]);
}
