/* SPDX-License-Identifier: MIT */
/*
 * A program with one symbol of each kind.  Prints where they are, one "name
 * hex" a line, then "ready", and waits to be killed.  Built by the tests in many
 * ways: dynamic, static, static-PIE, no-PIE, musl, stripped.
 */
#include <stdio.h>
#include <unistd.h>

int global_object = 7;
int global_work(int a);
int _global_work_alias(int a) __attribute__((alias("global_work")));
void untyped_asm(void);
void untyped_bare(void);

/* Functions in assembler: one with an FDE but neither type nor size, one with nothing. */
__asm__(".text\n"
        ".globl untyped_asm\n"
        "untyped_asm:\n"
        ".cfi_startproc\n"
        "local_label:\n"
        "	nop\n"
        "	nop\n"
        "	ret\n"
        ".cfi_endproc\n"
        ".globl untyped_bare\n"
        "untyped_bare:\n"
        "	nop\n"
        "	ret\n"
        ".globl after_bare\n"
        ".type after_bare, @function\n"
        "after_bare:\n"
        "	ret\n"
        ".size after_bare, 1\n");

static __attribute__((noinline)) int local_work(int a)
{
	return a * 3 + global_object;
}

__attribute__((noinline)) int global_work(int a)
{
	return local_work(a) + 1;
}

#ifndef NO_IFUNC
static int chosen_impl(int a)
{
	return a;
}

static void *resolve_chosen(void)
{
	return chosen_impl;
}

int chosen(int a) __attribute__((ifunc("resolve_chosen")));
#endif

int main(void)
{
	printf("global_work %lx\n", (unsigned long)&global_work);
	printf("local_work %lx\n", (unsigned long)&local_work);
	printf("untyped_asm %lx\n", (unsigned long)&untyped_asm);
	printf("untyped_bare %lx\n", (unsigned long)&untyped_bare);
	printf("global_object %lx\n", (unsigned long)&global_object);
	printf("main %lx\n", (unsigned long)&main);
	printf("ready\n");
	fflush(stdout);
	for (;;)
		pause();
}
