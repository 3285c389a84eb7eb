/* SPDX-License-Identifier: MIT */
/*
 * Calls probed(), then sits in a function whose frame covers what a breakpoint's
 * signal frame has left below the stack, and has written to a part of that.  A line
 * on stdin is one call; then it prints how many such frames it has found, "left N",
 * and sits until the next line.
 */
#include <stdint.h>
#include <stdio.h>

#define WORDS 4096
#define CS_AND_SS 0x002b000000000033ul
/* Counted from the word with cs and ss: where the handler returns to, the context's link. */
#define RESTORER (-24)
#define LINK (-22)

__attribute__((noinline)) long probed(long n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

__attribute__((noinline)) static int sit(void)
{
	uint64_t w[WORDS];
	int left = 0, i, c;

	/* What lies there is what we are after: the compiler isn't to know. */
	__asm__ volatile("" : "=m"(w));
	for (i = -RESTORER; i < WORDS; i++)
		if (w[i] == CS_AND_SS) {
			w[i + RESTORER] = w[i + LINK] = 0x7f0123456789;
			left++;
		}
	__asm__ volatile("" : : "m"(w));
	printf("left %d\n", left);
	while ((c = getchar()) != EOF && c != '\n')
		;
	return c;
}

int main(void)
{
	long calls = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	/* Whatever stdio needs from the allocator, it has before the first call. */
	puts("ready");
	while (getchar() != EOF) {
		while (getchar() != '\n')
			;
		calls = probed(calls);
		if (sit() == EOF)
			break;
	}
	return calls < 0;
}
