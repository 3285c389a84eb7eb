/* SPDX-License-Identifier: MIT */
/*
 * Closes what a daemon closes.  A line on stdin: "close" is all descriptors behind the
 * first three, "call N" so many calls of work(); it says the sum, then "done".
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) long work(long n)
{
	__asm__ volatile("" : "+r"(n));
	return 2 * n;
}

int main(void)
{
	char line[64];
	long n, sum;

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "close\n"))
			closefrom(3);
		if (sscanf(line, "call %ld", &n) == 1) {
			for (sum = 0; n; n--)
				sum += work(n);
			printf("sum %ld\n", sum);
		}
		puts("done");
	}
	return 0;
}
