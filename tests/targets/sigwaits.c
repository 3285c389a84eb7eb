/* SPDX-License-Identifier: MIT */
/*
 * sigwaits sigwait|signalfd [all]: the main thread blocks SIGTRAP, or all signals, and
 * takes it by one of these.  "go N" has another thread call work() N times and send
 * itself SIGTRAP now and then; it says how many were taken, and how many results were
 * wrong.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define EVERY 100

static volatile unsigned int taken;

__attribute__((noinline)) unsigned int work(unsigned int n)
{
	__asm__ volatile("" : "+r"(n));
	return n * 5 + 3;
}

/* What is behind its only byte is another function's. */
void tiny(void);
__asm__(".text\n.type tiny, @function\ntiny: ret\n.size tiny, . - tiny\n"
        ".globl next\n.type next, @function\nnext: nop\n jmp next\n.size next, . - next\n");

static unsigned int go(unsigned int n)
{
	unsigned int i, wrong = 0, want;

	/* Where there would be a breakpoint of ours. */
	signal(SIGUSR1, SIG_IGN);
	for (i = 0; i < n; i++) {
		wrong += work(i) != i * 5 + 3;
		tiny();
		if (i % EVERY)
			continue;
		want = taken + 1;
		kill(getpid(), SIGTRAP);
		while (taken != want)
			usleep(100);
	}
	return wrong;
}

static void *serve(void *arg)
{
	unsigned int n, before;
	char line[64];

	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		before = taken;
		if (sscanf(line, "go %u", &n) == 1)
			printf("wrong %u\n", go(n));
		printf("taken %u\ndone\n", taken - before);
		fflush(stdout);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	struct signalfd_siginfo info;
	sigset_t set, trap;
	pthread_t t;
	int fd, sig;

	sigemptyset(&set);
	if (argc > 2)
		sigfillset(&set);
	sigaddset(&set, SIGTRAP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	fd = strcmp(argv[1], "signalfd") ? -1 : signalfd(-1, &trap, 0);
	pthread_create(&t, NULL, serve, NULL);
	for (;;)
		if (fd >= 0 ? read(fd, &info, sizeof(info)) == sizeof(info) : !sigwait(&trap, &sig))
			taken++;
}
