/* SPDX-License-Identifier: MIT */
/*
 * traps handled|ignored|late|default: a program with a use of its own for SIGTRAP.
 * "go N" raises it N times in each of four ways (not by int3 where it is ignored)
 * and says how often work() was called, how often the handler ran, and what it, or
 * what sigaction() reads back, had wrong.  "late" installs its handler at the first
 * line, by signal(), and takes it away in the end.  "int3" and "raise" do it once.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#define SA_RESTORER 0x04000000 /* libc's own, and read back */

enum how { INT3, RAISE, KILL, QUEUE, WAYS };

static volatile enum how how;
static volatile unsigned long works, traps, wrong;
extern char behind_int3[];

__attribute__((noinline)) void work(void)
{
	works++;
	__asm__ volatile("");
}

static void own_int3(void)
{
	__asm__ volatile("int3\n.globl behind_int3\nbehind_int3:" : : : "memory");
}

static void check(const siginfo_t *si, const ucontext_t *uc)
{
	static const int code[WAYS] = { SI_KERNEL, SI_TKILL, SI_USER, SI_QUEUE };
	sigset_t now;

	if (si->si_signo != SIGTRAP || si->si_code != code[how])
		wrong++;
	if (how == INT3 && uc->uc_mcontext.gregs[REG_RIP] != (intptr_t)behind_int3)
		wrong++;
	if (how != INT3 && si->si_pid != getpid())
		wrong++;
	if (how == QUEUE && si->si_value.sival_int != 42)
		wrong++;
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	if (!sigismember(&now, SIGUSR1) || sigismember(&now, SIGUSR2) ||
	    sigismember(&uc->uc_sigmask, SIGUSR1) || sigismember(&uc->uc_sigmask, SIGTRAP))
		wrong++;
}

static void on_trap(int sig, siginfo_t *si, void *uc)
{
	traps++;
	check(si, uc);
	work();
}

static void on_trap_simply(int sig)
{
	traps++;
	if (sig != SIGTRAP)
		wrong++;
	work();
}

static void trap(enum how by)
{
	union sigval v = { .sival_int = 42 };

	how = by;
	work();
	if (by == INT3)
		own_int3();
	else if (by == RAISE)
		raise(SIGTRAP);
	else if (by == KILL)
		kill(getpid(), SIGTRAP);
	else
		sigqueue(getpid(), SIGTRAP, v);
}

static void *handler_of(const struct sigaction *sa)
{
	return sa->sa_flags & SA_SIGINFO ? (void *)sa->sa_sigaction : (void *)sa->sa_handler;
}

static void read_back(const struct sigaction *set)
{
	struct sigaction now;

	sigaction(SIGTRAP, NULL, &now);
	if (handler_of(&now) != handler_of(set) || now.sa_flags != (set->sa_flags | SA_RESTORER) ||
	    memcmp(&now.sa_mask, &set->sa_mask, 8) != 0)
		wrong++;
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = SIG_IGN };
	enum how first = INT3, by;
	int late, i, n;
	char line[64];

	late = !strcmp(argv[1], "late");
	if (!strcmp(argv[1], "handled")) {
		sa.sa_sigaction = on_trap;
		sa.sa_flags = SA_SIGINFO | SA_RESTART;
		sigaddset(&sa.sa_mask, SIGUSR1);
	} else if (late) {
		sa.sa_handler = on_trap_simply; /* as signal() does it */
		sa.sa_flags = SA_RESTART;
		sigaddset(&sa.sa_mask, SIGTRAP);
	}
	if (!strcmp(argv[1], "ignored"))
		first = RAISE;
	if (!late && strcmp(argv[1], "default"))
		sigaction(SIGTRAP, &sa, NULL);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strncmp(line, "int3", 4))
			trap(INT3);
		if (!strncmp(line, "raise", 5))
			trap(RAISE);
		if (late && signal(SIGTRAP, on_trap_simply) != SIG_DFL)
			wrong++;
		n = sscanf(line, "go %d", &n) == 1 ? n : 0;
		for (i = 0; i < n; i++)
			for (by = first; by < WAYS; by++) {
				trap(by);
				read_back(&sa);
			}
		if (late && signal(SIGTRAP, SIG_DFL) != on_trap_simply)
			wrong++;
		printf("work %lu\ntraps %lu\nwrong %lu\ndone\n", works, traps, wrong);
		fflush(stdout);
		works = traps = 0;
	}
	return 0;
}
