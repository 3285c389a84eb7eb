/* SPDX-License-Identifier: MIT */
/*
 * Lives by its faults: touch() writes to a protected page, the handler opens it
 * and tries again, and checks address and pc of each fault.  takes(p) is called
 * with pointers that no one may follow.  "done" after each round that a line asks
 * for, with what went wrong.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static char *page, *none;
static unsigned long faults, wrong;
extern char touch_store[];

/* Its second instruction is the one that faults, the first is the entry. */
__asm__(".text\n.globl touch, touch_store\n.type touch, @function\n"
        "touch:	mov %esi, %eax\n"
        "touch_store:	movb %al, (%rdi)\n"
        "	movzbl (%rdi), %eax\n"
        "	ret\n.size touch, . - touch\n");
int touch(char *p, int value);

__attribute__((noinline)) int takes(const char *s)
{
	__asm__ volatile("" : : "r"(s));
	return 5;
}

static void on_segv(int sig, siginfo_t *info, void *ctx)
{
	ucontext_t *uc = ctx;

	faults++;
	if (info->si_addr != page || uc->uc_mcontext.gregs[REG_RIP] != (intptr_t)touch_store ||
	    uc->uc_mcontext.gregs[REG_RDI] != (intptr_t)page || info->si_code != SEGV_ACCERR)
		wrong++;
	if (mprotect(page, 4096, PROT_READ | PROT_WRITE))
		_exit(9);
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO };
	unsigned long done = 0;
	char line[64];
	int i;

	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaction(SIGSEGV, &sa, NULL);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		for (i = 0; i < 200; i++, done++) {
			mprotect(page, 4096, PROT_NONE);
			if (touch(page, i % 100) != i % 100)
				wrong++;
			takes(NULL);
			takes(none);
			takes((const char *)1);
			takes((const char *)0x8000000000000000);
			takes("good");
		}
		printf("faults %lu\nwrong %lu\nrounds %lu\ndone\n", faults, wrong, done);
		fflush(stdout);
	}
	return 0;
}
