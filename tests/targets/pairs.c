/* SPDX-License-Identifier: MIT */
/*
 * Keeps a shadow stack of its own, a trap after each instruction: "go N" says how
 * many calls there were and how many returns went elsewhere than the last call came
 * from.  "inside" calls a function that waits there for the line "on".  All
 * functions to be probed leave by a jump to another one, too.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#define TF 0x100
#define DEPTH 1024

__asm__(".text\n"
        ".macro function name\n"
        ".balign 32\n"
        ".globl \\name\n"
        ".type \\name, @function\n"
        "\\name:\n"
        ".endm\n"
        "function last\n"
        "	lea	5(%rdi), %rax\n"
        "	ret\n"
        ".size last, . - last\n"
        /* n + 6 */
        "function tail\n"
        "	lea	1(%rdi), %rdi\n"
        "	nop\n"
        "	jmp	last\n"
        ".size tail, . - tail\n"
        /* 5 + 1 + ... + n, n + 1 calls */
        "function deep\n"
        "	push	%rbx\n"
        "	mov	%rdi, %rbx\n"
        "	test	%rdi, %rdi\n"
        "	jz	1f\n"
        "	lea	-1(%rdi), %rdi\n"
        "	call	deep\n"
        "	add	%rbx, %rax\n"
        "	pop	%rbx\n"
        "	ret\n"
        "1:	pop	%rbx\n"
        "	jmp	last\n"
        ".size deep, . - deep\n"
        /* the eighth argument less the seventh, which it takes along */
        "function pops\n"
        "	mov	16(%rsp), %rax\n"
        "	sub	8(%rsp), %rax\n"
        "	js	last\n"
        "	ret	$16\n"
        ".size pops, . - pops\n"
        "function calls_pops\n"
        "	push	%rbp\n"
        "	mov	%rsp, %rbp\n"
        "	push	$50\n"
        "	push	$8\n"
        "	call	pops\n"
        "	cmp	%rsp, %rbp\n"
        "	je	1f\n"
        "	ud2\n"
        "1:	pop	%rbp\n"
        "	ret\n"
        ".size calls_pops, . - calls_pops\n"
        /* what waiting() gives, and 1 */
        "function waits\n"
        "	push	%rbx\n"
        "	mov	%rdi, %rbx\n"
        "	test	%rdi, %rdi\n"
        "	jz	1f\n"
        "	call	waiting\n"
        "	add	$1, %rax\n"
        "	pop	%rbx\n"
        "	ret\n"
        "1:	pop	%rbx\n"
        "	jmp	last\n"
        ".size waits, . - waits\n");

long tail(long), deep(long), calls_pops(void), waits(long);

static struct {
	uint64_t ret[DEPTH];
	unsigned int depth;
	uint64_t ip, sp; /* before the last instruction */
	unsigned long calls, wrong;
} shadow;

/* By what it has done: a call has pushed an address that is just behind it. */
static bool is_call(uint64_t ip, uint64_t sp)
{
	const uint64_t behind = *(uint64_t *)sp - shadow.ip;

	return sp == shadow.sp - 8 && behind >= 2 && behind <= 8 && ip != *(uint64_t *)sp;
}

static bool is_ret(void)
{
	const unsigned char *p = (const unsigned char *)shadow.ip;

	return *p == 0xc3 || *p == 0xc2 || (*p == 0xf3 && p[1] == 0xc3);
}

static void stepped(int sig, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	const uint64_t ip = (uint64_t)g[REG_RIP], sp = (uint64_t)g[REG_RSP];

	(void)sig;
	(void)info;
	if (shadow.ip && is_call(ip, sp) && shadow.depth < DEPTH) {
		shadow.ret[shadow.depth++] = *(uint64_t *)sp;
		shadow.calls++;
	} else if (shadow.ip && is_ret() && shadow.depth) {
		shadow.wrong += shadow.ret[--shadow.depth] != ip;
	}
	shadow.ip = ip;
	shadow.sp = sp;
}

static inline __attribute__((always_inline)) void step_flag(bool on)
{
	uint64_t flags;

	__asm__ volatile("pushfq; pop %0" : "=r"(flags) : : "memory");
	flags = on ? flags | TF : flags & ~(uint64_t)TF;
	__asm__ volatile("push %0; popfq" : : "r"(flags) : "memory", "cc");
}

static __attribute__((noinline)) bool work(void)
{
	return tail(1) == 7 && deep(4) == 15 && calls_pops() == 42;
}

static void go(unsigned long n)
{
	bool (*volatile fn)(void) = work;
	unsigned long bad = 0;

	memset(&shadow, 0, sizeof(shadow));
	for (; n; n--) {
		bool fine;

		shadow.ip = 0;
		shadow.depth = 0;
		step_flag(true);
		fine = fn();
		step_flag(false);
		bad += !fine;
	}
	printf("calls %lu\nwrong %lu\nbad %lu\ndone\n", shadow.calls, shadow.wrong, bad);
}

long waiting(void);

__attribute__((noinline, used)) long waiting(void)
{
	char line[64] = "";

	printf("inside\n");
	fflush(stdout);
	return fgets(line, sizeof(line), stdin) && !strcmp(line, "on\n") ? 41 : 0;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = stepped, .sa_flags = SA_SIGINFO };
	unsigned long n;
	char line[64];

	sigaction(SIGTRAP, &sa, NULL);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "go %lu", &n) == 1)
			go(n);
		else if (!strcmp(line, "inside\n"))
			printf("back %ld\ndone\n", waits(1));
		fflush(stdout);
	}
	return 0;
}
