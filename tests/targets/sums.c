/* SPDX-License-Identifier: MIT */
/* Sums up the code of probed(), and calls it a hundred times, for each line on stdin. */
#include <stdio.h>
#include <string.h>

extern const unsigned char probed_end[];
extern unsigned long probed(unsigned long n);

__asm__(".text\n"
        ".globl probed\n"
        ".type probed, @function\n"
        "probed:\n"
        "	mov %rdi, %rax\n"
        "	add $1, %rax\n"
        "	nop\n"
        "	nop\n"
        "	ret\n"
        ".globl probed_end\n"
        "probed_end:\n"
        ".size probed, . - probed\n");

int main(void)
{
	unsigned long n = 0;
	char line[16];
	int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n")) {
		const unsigned char *p;
		unsigned int sum = 0;

		for (i = 0; i < 100; i++)
			n = probed(n);
		for (p = (const unsigned char *)probed; p < probed_end; p++)
			sum = sum * 31 + *p;
		printf("sum %u\ncalls %lu\n", sum, n);
	}
	return 0;
}
