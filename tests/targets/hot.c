/* SPDX-License-Identifier: MIT */
/* Calls hot() all the time, and cool() once in two million calls of that. */
#include <stdio.h>

__attribute__((noinline)) unsigned long hot(unsigned long n)
{
	__asm__ volatile("nopl (%%rax)\nnopl (%%rax)" : "+r"(n));
	return n + 1;
}

__attribute__((noinline)) unsigned long cool(unsigned long n)
{
	__asm__ volatile("nopl (%%rax)\nnopl (%%rax)" : "+r"(n));
	return n + 2;
}

int main(void)
{
	unsigned long n = 0, i;

	printf("ready\n");
	fflush(stdout);
	for (;;) {
		for (i = 0; i < 2000000; i++)
			n = hot(n);
		n = cool(n);
	}
}
