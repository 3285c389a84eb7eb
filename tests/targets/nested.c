/* SPDX-License-Identifier: MIT */
/*
 * nested alternate|deep: calls work() without a pause, and is interrupted by a handler,
 * which is interrupted by another one, which waits for two seconds: on an alternate stack,
 * or with two MiB of its own.  So where work() goes on is said on a stack, or in a part
 * of it, that the thread isn't at.
 *
 * "window" parks it so behind work()'s first instruction, "copy" where no code of the
 * program is; "end" ends it.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <pthread.h>

void work(void);
__asm__(".globl work\n.type work, @function\nwork: pause\npause\npause\npause\nret\n"
        ".size work, . - work\n");

extern const char __executable_start, etext;

enum where { NOWHERE, WINDOW, COPY };
static volatile enum where where;
static volatile sig_atomic_t end;
static unsigned long wrong;

static void say(const char *line)
{
	if (write(1, line, strlen(line)) < 0)
		_exit(1);
}

static void wait_here(void)
{
	struct timespec left = { .tv_sec = 2 };

	if (where == NOWHERE)
		return;
	where = NOWHERE;
	say("parked\n");
	while (nanosleep(&left, &left))
		;
	say("free\n");
}

static void waits(int sig)
{
	wait_here();
}

static void waits_deep(int sig)
{
	volatile char room[2 << 20];

	room[0] = 1;
	wait_here();
	wrong += room[0] != 1;
}

static void interrupts(int sig, siginfo_t *info, void *uc)
{
	const uint64_t ip = (uint64_t)((ucontext_t *)uc)->uc_mcontext.gregs[REG_RIP];
	const uint64_t window = ip - (uint64_t)work - 1;
	/* A copy of it lies near, and not among the program's own. */
	const int copy = (ip < (uint64_t)&__executable_start || ip >= (uint64_t)&etext) &&
	                 ip - (uint64_t)&__executable_start + (1ul << 30) < 1ul << 31;

	if ((where == WINDOW && window < 4) || (where == COPY && copy))
		raise(SIGUSR2);
}

static void *commands(void *arg)
{
	char line[32];

	say("ready\n");
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "window\n"))
			where = WINDOW;
		if (!strcmp(line, "copy\n"))
			where = COPY;
		if (!strcmp(line, "end\n"))
			break;
	}
	end = 1;
	return arg;
}

int main(int argc, char **argv)
{
	const int alternate = argc > 1 && !strcmp(argv[1], "alternate");
	struct sigaction sa = { .sa_sigaction = interrupts, .sa_flags = SA_SIGINFO };
	stack_t stack = { .ss_size = 1 << 20 };
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
	sigset_t alarm;
	pthread_t t;

	stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
	                   -1, 0);
	sigaltstack(&stack, NULL);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm, NULL);
	if (pthread_create(&t, NULL, commands, NULL))
		return 1;
	pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
	sigaction(SIGALRM, &sa, NULL);
	sa.sa_flags = alternate ? SA_ONSTACK : 0;
	sa.sa_handler = alternate ? waits : waits_deep;
	sigaction(SIGUSR2, &sa, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (!end)
		for (int i = 0; i < 1000; i++)
			work();
	printf("wrong %lu\ndone\n", wrong);
	return 0;
}
