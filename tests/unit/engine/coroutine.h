/* SPDX-License-Identifier: MIT */
/*
 * Coroutines for model tests: a hook in the code under test gives control back
 * to a scheduler, which decides who takes the next step.  ucontext would do,
 * but for two system calls a step.
 */
#ifndef TESTS_COROUTINE_H
#define TESTS_COROUTINE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define CO_STACK 16384

struct co {
	void *sp;
	void *back; /* the scheduler's stack */
	bool done;
	void (*fn)(int);
	int arg;
	unsigned char stack[CO_STACK] __attribute__((aligned(64)));
};

static struct co *co_now; /* 0: the scheduler runs */

__attribute__((naked, noinline)) static void co_switch(void **save __attribute__((unused)),
                                                       void *to __attribute__((unused)))
{
	__asm__("push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
	        "mov %rsp, (%rdi)\n mov %rsi, %rsp\n"
	        "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret");
}

static void co_yield (void)
{
	struct co *c = co_now;

	co_now = 0;
	co_switch(&c->sp, c->back);
}

static void co_main(void)
{
	co_now->fn(co_now->arg);
	co_now->done = true;
	co_yield ();
	__builtin_trap();
}

static void co_start(struct co *c, void (*fn)(int), int arg)
{
	uint64_t *top = (uint64_t *)(c->stack + CO_STACK) - 1; /* aligned as by a call */

	c->fn = fn;
	c->arg = arg;
	c->done = false;
	top[0] = 0; /* co_main's return address: it has none */
	top[-1] = (uint64_t)co_main;
	memset(top - 7, 0, 6 * 8);
	c->sp = top - 7;
}

/* Runs c until it yields. */
static void co_run(struct co *c)
{
	co_now = c;
	co_switch(&c->back, c->sp);
}

/* The live part of a stack, to go back to that moment later.  By hand: ASan minds red zones. */
__attribute__((no_sanitize("address"), unused)) static void
co_copy(unsigned char *to, const unsigned char *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((volatile unsigned char *)to)[i] = from[i];
}

#endif
