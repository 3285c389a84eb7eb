/* SPDX-License-Identifier: MIT */
/*
 * Handlers that run with all signals blocked, and call work().  SIGUSR1 has one from
 * the start.
 *
 *	raise S N	raises signal S so often; says how often the handlers were called
 *	late S		sets that handler for S
 *	open S		the same with SIGTRAP alone left open
 *	none S		back to the default
 *	look		what sigaction() says of all
 *	raw		what the kernel says of all
 *	fork S N	raise in a child, and what it then says of all
 *
 * What a change says of what was before is held against what was set.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const int signals[] = { SIGUSR1, SIGUSR2, SIGWINCH, SIGCHLD };
static struct sigaction was[_NSIG];
static volatile int calls;
static int wrong;

__attribute__((noinline)) int work(int i)
{
	__asm__ volatile("" : "+r"(i));
	return i + 1;
}

static void handler(int sig)
{
	sigset_t now;

	calls = work(calls);
	sigprocmask(SIG_BLOCK, NULL, &now);
	wrong += !sigismember(&now, SIGHUP);
}

static int same(const struct sigaction *a, const struct sigaction *b)
{
	return a->sa_handler == b->sa_handler && !memcmp(&a->sa_mask, &b->sa_mask, 8);
}

static void change(int sig, void (*to)(int), int open)
{
	struct sigaction sa = { .sa_handler = to, .sa_flags = SA_RESTART }, old;

	if (to != SIG_DFL)
		sigfillset(&sa.sa_mask);
	if (open)
		sigdelset(&sa.sa_mask, SIGTRAP);
	if (sigaction(sig, &sa, &old) || !same(&old, &was[sig]))
		wrong++;
	was[sig] = sa;
	/* The kernel's own. */
	sigdelset(&was[sig].sa_mask, SIGKILL);
	sigdelset(&was[sig].sa_mask, SIGSTOP);
	if (sigaction(sig, NULL, &old) || !same(&old, &was[sig]))
		wrong++;
}

static void look(int raw)
{
	struct {
		unsigned long handler, flags, restorer, mask;
	} k;
	struct sigaction sa;
	unsigned long mask;

	for (unsigned int i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		sigaction(signals[i], NULL, &sa);
		memcpy(&mask, &sa.sa_mask, sizeof(mask));
		syscall(SYS_rt_sigaction, signals[i], NULL, &k, 8);
		printf("sig %d %s %x %lx\n", signals[i],
		       (raw ? k.handler : (unsigned long)sa.sa_handler) == (unsigned long)handler
		               ? "handler"
		               : "other",
		       raw ? (unsigned int)k.flags : (unsigned int)sa.sa_flags,
		       raw ? k.mask : mask);
	}
}

static void serve(const char *line)
{
	char what[16] = "";
	int sig = 0, n = 0;

	sscanf(line, "%15s %d %d", what, &sig, &n);
	if (!strcmp(what, "raise"))
		while (n--)
			raise(sig);
	else if (!strcmp(what, "late") || !strcmp(what, "open"))
		change(sig, handler, *what == 'o');
	else if (!strcmp(what, "none"))
		change(sig, SIG_DFL, 0);
	else if (!strcmp(what, "look") || !strcmp(what, "raw"))
		look(*what == 'r');
	if (!strcmp(what, "fork") && !fork()) {
		while (n--)
			raise(sig);
		look(0);
		fflush(stdout);
		_exit(wrong != 0);
	} else if (!strcmp(what, "fork")) {
		n = -1;
		wait(&n);
		printf("child %d\n", n);
	}
	printf("calls %d\nwrong %d\ndone\n", calls, wrong);
	fflush(stdout);
}

int main(void)
{
	char line[64];

	change(SIGUSR1, handler, 0);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		serve(line);
	return wrong;
}
