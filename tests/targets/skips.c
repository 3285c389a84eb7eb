/* SPDX-License-Identifier: MIT */
/*
 * A program whose fault handlers go on behind the instruction that faulted: in
 * the middle of what a jump there has taken.  "go N" calls both functions so
 * often, half of the time with what faults.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

__asm__(".text\n"
        ".globl loads, divides\n"
        ".type loads, @function\n"
        "loads:	mov	(%rdi), %eax\n" /* two bytes */
        "	lea	1(%rsi), %eax\n"
        "	ret\n"
        ".size loads, . - loads\n"
        ".type divides, @function\n"
        "divides: mov	%edi, %eax\n"
        "	cltd\n"
        "	idivl	%esi\n" /* two bytes, and one before a window's end */
        "	cltd\n"
        "	lea	3(%rdi), %eax\n"
        "	ret\n"
        ".size divides, . - divides\n");

int loads(const int *p, int n);
int divides(int n, int by);

static unsigned long skipped;

static void skip(int sig, siginfo_t *info, void *context)
{
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
	skipped++;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = skip, .sa_flags = SA_SIGINFO };
	int n, i, wrong, there = 0;
	char line[64];

	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGFPE, &sa, NULL);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "go %d", &n) != 1)
			continue;
		for (i = wrong = 0; i < n; i++) {
			wrong += loads(i % 2 ? &there : NULL, i) != i + 1;
			wrong += divides(i, i % 2) != i + 3;
		}
		printf("skipped %lu\nwrong %d\ndone\n", skipped, wrong);
		fflush(stdout);
	}
	return 0;
}
