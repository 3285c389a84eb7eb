/* SPDX-License-Identifier: MIT */
/* Each line on stdin is a number: so many milliseconds of CPU time it turns, four calls deep. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

__attribute__((noinline, noclone)) long p_inner(long turns)
{
	volatile long n = 0;
	long i;

	for (i = 0; i < turns; i++)
		n += i;
	return n & 1;
}

__attribute__((noinline, noclone)) long p_middle(long depth, long turns)
{
	volatile long n;

	n = depth ? p_middle(depth - 1, turns) : p_inner(turns);
	return n + 1;
}

__attribute__((noinline, noclone)) long p_outer(long turns)
{
	volatile long n = p_middle(1, turns);

	return n + 1;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

int main(void)
{
	char line[64];
	double end;
	long calls;

	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		calls = 0;
		for (end = now() + atol(line); now() < end; calls += 4)
			p_outer(100000);
		printf("calls %ld\ndone\n", calls);
		fflush(stdout);
	}
	return 0;
}
