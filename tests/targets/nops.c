/* SPDX-License-Identifier: MIT */
/*
 * Functions that a compiler left nops in, by its options.  "go N" calls traced()
 * so often; "bytes" shows how it begins now, the jump's displacement aside.
 */
#include <stdio.h>
#include <string.h>

__attribute__((noinline)) unsigned int traced(unsigned int a)
{
	__asm__ volatile("" : "+r"(a));
	return a * 3 + 1;
}

int main(void)
{
	const unsigned char *text = (const unsigned char *)traced;
	unsigned int n, i, wrong;
	char line[64];

	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "bytes\n"))
			printf("begins %02x%02x%02x%02x%02x\n", text[0], text[1], text[2], text[3],
			       text[4]);
		if (sscanf(line, "go %u", &n) == 1) {
			for (i = wrong = 0; i < n; i++)
				wrong += traced(i) != i * 3 + 1;
			printf("wrong %u\ndone\n", wrong);
		}
		fflush(stdout);
	}
	return 0;
}
