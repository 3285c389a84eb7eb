/* SPDX-License-Identifier: MIT */
/*
 * A master with workers, as servers prefork them.  "fork" makes a worker and prints
 * its pid; "deep" has the last one fork another, which takes its place; "go N" has
 * the master and each worker call work() N times, and says how many calls were the
 * master's, how many workers answered, and how many results were wrong.  Workers
 * outlive their master.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX 64

static int worker[MAX], nr;

__attribute__((noinline)) unsigned int work(unsigned int n)
{
	__asm__ volatile("" : "+r"(n));
	return n * 5 + 3;
}

static unsigned int calls(unsigned int n)
{
	unsigned int i, wrong = 0;

	for (i = 0; i < n; i++)
		wrong += work(i) != i * 5 + 3;
	return wrong;
}

static void serve(int fd)
{
	unsigned int n;

	while (read(fd, &n, sizeof(n)) == sizeof(n)) {
		if (!n && fork())
			break;
		n = n ? calls(n) : (unsigned int)getpid();
		if (write(fd, &n, sizeof(n)) != sizeof(n))
			break;
	}
	for (;;)
		pause();
}

static unsigned int ask(int fd, unsigned int n)
{
	if (write(fd, &n, sizeof(n)) != sizeof(n) || read(fd, &n, sizeof(n)) != sizeof(n))
		return 1u << 31;
	return n;
}

static void fork_worker(void)
{
	int pair[2];

	if (nr == MAX || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return;
	worker[nr++] = pair[0];
	fflush(stdout);
	pid_t pid = fork();

	if (!pid) {
		while (nr)
			close(worker[--nr]);
		serve(pair[1]);
	}
	close(pair[1]);
	printf("worker %d\n", pid);
}

int main(void)
{
	unsigned int n, wrong, answers;
	char line[64];
	int i;

	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strncmp(line, "fork", 4))
			fork_worker();
		else if (!strncmp(line, "deep", 4))
			printf("worker %u\n", ask(worker[nr - 1], 0));
		else if (sscanf(line, "go %u", &n) == 1) {
			wrong = calls(n);
			for (i = answers = 0; i < nr; i++, answers++)
				wrong += ask(worker[i], n);
			printf("work %u\nanswers %u\nwrong %u\n", n, answers, wrong);
		}
		printf("done\n");
		fflush(stdout);
	}
	return 0;
}
