/* SPDX-License-Identifier: MIT */
/*
 * Functions of which each instruction is known: steps(n) executes 4 + 3 n of
 * its 9; three others can't be probed at all.  "go N CALLS" calls steps.
 */
#include <stdio.h>

__asm__(".text\n"
        ".globl steps\n"
        ".type steps, @function\n"
        "steps:	xor	%eax, %eax\n"
        "	test	%edi, %edi\n"
        "	jle	2f\n"
        "1:	add	%edi, %eax\n"
        "	dec	%edi\n"
        "	jne	1b\n"
        "2:	ret\n"
        "	mov	$1, %eax\n" /* nobody gets here */
        "	ret\n"
        ".size steps, . - steps\n"

        ".type holds_a_breakpoint, @function\n"
        "holds_a_breakpoint: int3\n"
        "	ret\n"
        ".size holds_a_breakpoint, . - holds_a_breakpoint\n"

        ".type returns_far, @function\n"
        "returns_far: lretq\n"
        ".size returns_far, . - returns_far\n"

        ".type steps.cold, @function\n"
        "steps.cold: jmp	steps\n"
        ".size steps.cold, . - steps.cold\n");

int steps(int n);

int main(void)
{
	int n, calls, sum;

	printf("ready\n");
	fflush(stdout);
	while (scanf(" go %d %d", &n, &calls) == 2) {
		for (sum = 0; calls; calls--)
			sum += steps(n);
		printf("sum %d\n", sum);
		fflush(stdout);
	}
	return 0;
}
