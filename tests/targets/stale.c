/* SPDX-License-Identifier: MIT */
/*
 * A thread whose stack lies right below its alternate one, in one mapping, as all
 * stacks of a Go program do.  It calls probed() between signals that come often, so
 * that some meet it in the middle of a hit; what they leave on the alternate stack
 * stays there when the thread has gone back to its own.
 * A line on stdin is one round, "end" the last; each prints its number of calls.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

#define STACK (256u << 10)

static volatile unsigned long signals;

__attribute__((noinline)) unsigned long probed(unsigned long n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

static void on_prof(int sig)
{
	signals += sig != 0;
}

static void *work(void *stack)
{
	const struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };
	stack_t alt = { .ss_sp = (char *)stack + STACK, .ss_size = STACK };
	unsigned long calls, end;
	char line[16];

	if (sigaltstack(&alt, NULL))
		return NULL;
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n")) {
		calls = 0;
		end = signals + 300;
		setitimer(ITIMER_REAL, &often, NULL);
		while (signals < end)
			calls = probed(calls);
		setitimer(ITIMER_REAL, &never, NULL);
		printf("calls %lu\n", calls);
	}
	return NULL;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_prof, .sa_flags = SA_ONSTACK | SA_RESTART };
	pthread_attr_t attr;
	sigset_t set;
	pthread_t t;
	char *stack =
		mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stack == MAP_FAILED || sigaction(SIGALRM, &sa, NULL) || pthread_attr_init(&attr) ||
	    pthread_attr_setstack(&attr, stack, STACK) || pthread_create(&t, &attr, work, stack))
		return 1;
	/* Signals are the thread's. */
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_join(t, NULL);
	return 0;
}
