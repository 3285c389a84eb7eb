/* SPDX-License-Identifier: MIT */
/*
 * Sets handlers and masks in ways that somebody who sets them, too, may come upon.
 * Says "wrong WHAT" for what is not as it was set, and "rounds N" now and then.
 *
 *	old	a handler that blocks all is set again and again, and the old one asked for,
 *		while its signal comes
 *	many	four threads set handlers of two signals
 *	save	a fault's handler is kept, another set and used, and the first given back
 *	vfork	a child by vfork() gives a fault's handler back
 *	most	all signals but one are blocked, and opened
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long calls, rounds;
static pthread_t victim;
static sigjmp_buf back;
static sigset_t all;

__attribute__((noinline)) unsigned long work(unsigned long n)
{
	__asm__ volatile("nop\n\tnop\n\tnop\n\tnop\n\tnop" : "+r"(n));
	calls++;
	return n + 1;
}

static void wrong(const char *what)
{
	printf("wrong %s\n", what);
}

static void call_work(int sig)
{
	work((unsigned long)sig);
}

static void other(int sig)
{
	(void)sig;
}

static void leave(int sig)
{
	(void)sig;
	siglongjmp(back, 1);
}

static void set(int sig, void (*fn)(int), struct sigaction *old)
{
	struct sigaction sa = { .sa_handler = fn, .sa_mask = all };

	if (sigaction(sig, &sa, old))
		wrong("result");
}

static void *be_victim(void *arg)
{
	for (;;)
		usleep(50);
	return arg;
}

static void *send_signals(void *arg)
{
	for (;;) {
		pthread_kill(victim, SIGUSR1);
		usleep(20);
	}
	return arg;
}

static void *set_others(void *arg)
{
	for (;;)
		set(SIGUSR2, other, NULL);
	return arg;
}

static void begin(void *(*fn)(void *), pthread_t *th)
{
	if (pthread_create(th, NULL, fn, NULL))
		abort();
}

static void old_round(void)
{
	struct sigaction old;

	set(SIGUSR1, call_work, &old);
	if (old.sa_handler != call_work || sigismember(&old.sa_mask, SIGTRAP) != 1)
		wrong("old handler");
	usleep(10);
}

static void many_round(void)
{
	struct sigaction now;

	set(SIGUSR1, call_work, NULL);
	if (sigaction(SIGUSR1, NULL, &now) || now.sa_handler != call_work)
		wrong("handler");
}

static void fault(void)
{
	if (!sigsetjmp(back, 1))
		*(volatile int *)8 = 1;
}

static void save_round(void)
{
	struct sigaction mine = { .sa_handler = leave }, old;

	work(rounds);
	if (sigaction(SIGSEGV, &mine, &old) || old.sa_handler != other)
		wrong("saved handler");
	fault();
	if (sigaction(SIGSEGV, &old, NULL))
		wrong("result");
	usleep(200);
}

static void vfork_round(void)
{
	const struct sigaction dfl = { .sa_handler = SIG_DFL };
	pid_t pid;

	work(rounds);
	pid = vfork();
	if (!pid) {
		sigaction(SIGSEGV, &dfl, NULL);
		_exit(7);
	}
	waitpid(pid, NULL, 0);
	fault();
	usleep(1000);
}

static void work_for(long us)
{
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do {
		work(rounds);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - from.tv_sec) * 1000000 + (now.tv_nsec - from.tv_nsec) / 1000 < us);
}

static void most_round(void)
{
	sigset_t most = all;

	sigdelset(&most, SIGINT);
	pthread_sigmask(SIG_BLOCK, &most, NULL);
	work_for(30000);
	pthread_sigmask(SIG_UNBLOCK, &most, NULL);
	usleep(20000);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	void (*round)(void) = !strcmp(how, "old")     ? old_round
	                      : !strcmp(how, "many")  ? many_round
	                      : !strcmp(how, "vfork") ? vfork_round
	                      : !strcmp(how, "save")  ? save_round
	                                              : most_round;
	pthread_t th;
	int i;

	sigfillset(&all);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (round == old_round) {
		set(SIGUSR1, call_work, NULL);
		begin(be_victim, &victim);
		begin(send_signals, &th);
	}
	for (i = 0; round == many_round && i < 3; i++)
		begin(set_others, &th);
	if (round == vfork_round) {
		struct sigaction sa = { .sa_handler = leave };

		sigaction(SIGSEGV, &sa, NULL);
	}
	if (round == save_round)
		set(SIGSEGV, other, NULL);
	puts("ready");
	for (;;) {
		round();
		if (++rounds % (round == many_round ? 100000 : round == most_round ? 4 : 20) == 0)
			printf("rounds %lu\n", rounds);
	}
}
