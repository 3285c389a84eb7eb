/* SPDX-License-Identifier: MIT */
/*
 * To be process 1 of a namespace: each line on stdin is so many calls, with a SIGTRAP and
 * a SIGSEGV sent to itself, which the kernel doesn't deliver to such a one.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) long work(long n)
{
	__asm__ volatile("nop; nop; nop; nop; nop" : "+r"(n));
	return n + 1;
}

int main(void)
{
	long n, calls;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready\npid %d\n", (int)getpid());
	while (scanf("%ld", &n) == 1) {
		kill(getpid(), SIGTRAP);
		kill(getpid(), SIGSEGV);
		for (calls = 0; calls < n;)
			calls = work(calls);
		printf("calls %ld\ndone\n", calls);
	}
	return 0;
}
