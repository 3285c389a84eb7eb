/* SPDX-License-Identifier: MIT */
/*
 * Blocks all signals for a moment, again and again, and calls work(), read() and
 * write() meanwhile, as libuv does with its lock.  Each line on stdin is so many
 * rounds; each prints how often something was not as it should be:
 *
 *	set	the mask in force, asked for, is not the one that was set
 *	kept	a signal that was sent meanwhile was not kept until it came open
 *
 * "sent N" sends itself SIGTRAP, SIGSEGV and SIGBUS while all is blocked, and takes them
 * by sigtimedwait(), N times; "taken" says how many came, as they were sent.
 * "block" leaves all signals blocked in the end, "open" opens them.  A library that is
 * named as the argument is loaded and unloaded beside the rounds, "loads" times.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile unsigned long got;
static int lock[2];

__attribute__((noinline)) unsigned long work(unsigned long n)
{
	__asm__ volatile("nopl (%%rax)" : "+r"(n));
	return n + 1;
}

static void on_signal(int sig)
{
	got += (unsigned long)sig;
}

static unsigned long wrong_set, wrong_kept, calls;

static void round_of(int (*set_mask)(int, const sigset_t *, sigset_t *))
{
	const unsigned long before = got;
	sigset_t all, old, now;
	char c = 0;
	int i;

	sigfillset(&all);
	set_mask(SIG_BLOCK, &all, &old);
	if (write(lock[1], &c, 1) != 1 || read(lock[0], &c, 1) != 1)
		abort();
	calls = work(calls);
	raise(SIGUSR1);
	sigemptyset(&now);
	set_mask(SIG_BLOCK, NULL, &now);
	wrong_set += !sigismember(&now, SIGTRAP) || !sigismember(&now, SIGUSR1);
	/* Who does so within, and sets again what was there. */
	sigemptyset(&now);
	set_mask(SIG_BLOCK, &all, &now);
	wrong_set += !sigismember(&now, SIGTRAP) || !sigismember(&now, SIGSEGV);
	set_mask(SIG_SETMASK, &now, &now);
	wrong_set += !sigismember(&now, SIGTRAP) || !sigismember(&now, SIGSEGV);
	wrong_kept += got != before;
	set_mask(SIG_SETMASK, &old, NULL);
	wrong_kept += got - before != SIGUSR1;
	set_mask(SIG_BLOCK, NULL, &now);
	wrong_set += sigismember(&now, SIGTRAP) || sigismember(&now, SIGUSR1);
	/* Open for longer than blocked: who comes waits for that. */
	for (i = 0; i < 20; i++)
		getppid();
}

static unsigned long taken;

static void send_and_take(void)
{
	const struct timespec none = { 0 };
	sigset_t all, three, old, now;
	siginfo_t info;

	sigfillset(&all);
	sigemptyset(&three);
	sigaddset(&three, SIGTRAP);
	sigaddset(&three, SIGSEGV);
	sigaddset(&three, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	calls = work(calls);
	kill(getpid(), SIGSEGV);
	raise(SIGBUS);
	kill(getpid(), SIGTRAP);
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	wrong_set += !sigismember(&now, SIGTRAP) || !sigismember(&now, SIGSEGV);
	while (sigtimedwait(&three, &info, &none) > 0)
		/* glibc says SI_USER for SI_TKILL, too. */
		taken += info.si_pid == getpid() && info.si_code == SI_USER;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	calls = work(calls);
}

static void sends(long n)
{
	wrong_set = wrong_kept = calls = taken = 0;
	while (n-- > 0)
		send_and_take();
}

static const char *library;
static volatile int rounds_end;
static unsigned long loads;

static void *load_and_unload(void *arg)
{
	while (!rounds_end) {
		void *lib = dlopen(library, RTLD_NOW);

		if (!lib)
			abort();
		usleep(1000);
		dlclose(lib);
		usleep(1000);
		loads++;
	}
	return arg;
}

static void rounds(long n)
{
	pthread_t beside;

	wrong_set = wrong_kept = calls = loads = 0;
	rounds_end = 0;
	if (library && pthread_create(&beside, NULL, load_and_unload, NULL))
		abort();
	for (; n > 0; n -= 2) {
		round_of(pthread_sigmask);
		round_of(sigprocmask);
		/* Loads take a tenth of a second while somebody waits for them. */
		if (library)
			usleep(100);
	}
	rounds_end = 1;
	if (library)
		pthread_join(beside, NULL);
}

int main(int argc, char **argv)
{
	char line[32];
	sigset_t all;

	library = argc > 1 ? argv[1] : NULL;
	if (pipe(lock))
		return 1;
	signal(SIGUSR1, on_signal);
	sigfillset(&all);
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "block\n"))
			pthread_sigmask(SIG_SETMASK, &all, NULL);
		if (!strcmp(line, "open\n"))
			pthread_sigmask(SIG_UNBLOCK, &all, NULL);
		if (!strncmp(line, "sent ", 5))
			sends(atol(line + 5));
		else
			rounds(atol(line));
		printf("set %lu\nkept %lu\ncalls %lu\nloads %lu\ntaken %lu\ndone\n", wrong_set,
		       wrong_kept, calls, loads, taken);
	}
	return 0;
}
