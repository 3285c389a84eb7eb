/* SPDX-License-Identifier: MIT */
/*
 * Calls nested in each other, of which the innermost waits for a line: whoever
 * looks at the stack meanwhile finds main, outermost, middle (three times) and
 * innermost.  "end" ends it.  The results are printed.
 */
#include <stdio.h>
#include <string.h>

static char line[16];

__attribute__((noinline)) unsigned long innermost(unsigned long n)
{
	printf("inside %lu\n", n);
	return fgets(line, sizeof(line), stdin) ? n + strlen(line) : 0;
}

__attribute__((noinline)) unsigned long middle(unsigned long n)
{
	return (n ? middle(n - 1) : innermost(n)) * 3 + 1;
}

__attribute__((noinline)) unsigned long outermost(unsigned long n)
{
	return middle(n) + 7;
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	do
		printf("result %lu\n", outermost(2));
	while (line[0] && strcmp(line, "end\n"));
	return 0;
}
