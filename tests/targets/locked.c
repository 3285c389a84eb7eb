/* SPDX-License-Identifier: MIT */
/* Has all its memory locked, also what is to come; each line on stdin is so many calls. */
#include <stdio.h>
#include <sys/mman.h>

__attribute__((noinline)) long work(long n)
{
	__asm__ volatile("nop; nop; nop; nop; nop" : "+r"(n));
	return n + 1;
}

int main(void)
{
	long n, calls;

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts(mlockall(MCL_CURRENT | MCL_FUTURE) ? "ready, not locked" : "ready");
	while (scanf("%ld", &n) == 1) {
		for (calls = 0; calls < n;)
			calls = work(calls);
		printf("calls %ld\ndone\n", calls);
	}
	return 0;
}
