/* SPDX-License-Identifier: MIT */
/*
 * What libc does with signals blocked, again and again: threads, children by fork(),
 * posix_spawn() and system(), raise() and the disposition of SIGABRT.  Each line on stdin
 * is so many rounds; "bad" says how often something failed.
 */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static volatile sig_atomic_t raised;

__attribute__((noinline)) long work(long n)
{
	__asm__ volatile("" : "+r"(n));
	return n * 3 + 1;
}

static void on_signal(int sig)
{
	(void)sig;
	raised++;
}

static void *thread(void *arg)
{
	return (void *)work((long)arg);
}

static int threads(void)
{
	pthread_t t[4];
	void *got;
	long i;
	int bad = 0;

	for (i = 0; i < 4; i++)
		bad += pthread_create(&t[i], NULL, thread, (void *)i) != 0;
	for (i = 0; i < 4; i++)
		bad += pthread_join(t[i], &got) || (long)got != i * 3 + 1;
	return bad;
}

static int children(void)
{
	char *const args[] = { "true", NULL };
	struct sigaction sa = { .sa_handler = SIG_DFL };
	pid_t pid = fork();
	int st, bad = 0;

	if (!pid)
		_exit(sigaction(SIGABRT, &sa, NULL) ? 1 : 7);
	bad += waitpid(pid, &st, 0) != pid || st != 7 << 8;
	bad += posix_spawnp(&pid, "true", NULL, NULL, args, environ) ||
	       waitpid(pid, &st, 0) != pid || st;
	return bad + (system("exit 5") != 5 << 8);
}

static int signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal }, old;
	int before = raised;

	return sigaction(SIGABRT, &sa, &old) + (raise(SIGUSR1) || raised != before + 1);
}

int main(void)
{
	int bad;
	long n;

	signal(SIGUSR1, on_signal);
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (scanf("%ld", &n) == 1) {
		for (bad = 0; n-- > 0;)
			bad += threads() + children() + signals();
		printf("bad %d\ndone\n", bad);
	}
	return 0;
}
