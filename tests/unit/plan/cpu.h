/* SPDX-License-Identifier: MIT */
/*
 * Running one instruction on the real CPU, all of its state given and taken.
 *
 * cpu_run() loads every general register, the flags and the xsave state, and
 * jumps.  The way out is always a signal: an int3 behind the instruction or at
 * its target, or its own fault.  The handler runs on another stack, so nothing
 * near the instruction's rsp is touched.
 */
#ifndef TESTS_PLAN_CPU_H
#define TESTS_PLAN_CPU_H

#include <cpuid.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define XSIZE 4096
/*
 * What is loaded: x87, SSE, AVX, AVX-512.  Not all there is: xrstor reaches for
 * AMX's eight kilobytes, which are more than our areas have, even where the
 * header says that they are in their initial state.
 */
#define CPU_PARTS "0xe7"

/* gpr: as the hardware numbers them. */
struct cpu {
	uint64_t gpr[16];
	uint64_t flags;
	uint64_t pc;
};

struct xstate {
	uint8_t b[XSIZE] __attribute__((aligned(64)));
};

struct outcome {
	struct cpu cpu;
	struct xstate x;
	int signo;
	uint64_t fault; /* si_addr */
};

/* Used by the assembly below. */
__attribute__((used)) uint64_t cpu_host_sp, cpu_sp, cpu_pc;
__attribute__((used)) struct xstate cpu_clean;
void cpu_enter(const struct cpu *cpu, const struct xstate *x);
void cpu_leave(void);

static struct outcome *volatile cpu_outcome;

__asm__(".text\n"
        ".globl cpu_enter, cpu_leave\n"
        ".hidden cpu_enter, cpu_leave\n"
        "cpu_enter:\n"
        "	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        "	mov %rsp, cpu_host_sp(%rip)\n"
        "	mov $" CPU_PARTS ", %eax; xor %edx, %edx\n"
        "	xrstor64 (%rsi)\n"
        "	mov 32(%rdi), %rax; mov %rax, cpu_sp(%rip)\n"
        "	mov 136(%rdi), %rax; mov %rax, cpu_pc(%rip)\n"
        "	mov %rdi, %rsp\n"
        "	pop %rax; pop %rcx; pop %rdx; pop %rbx; lea 8(%rsp), %rsp; pop %rbp\n"
        "	pop %rsi; pop %rdi; pop %r8; pop %r9; pop %r10; pop %r11\n"
        "	pop %r12; pop %r13; pop %r14; pop %r15; popfq\n"
        "	mov cpu_sp(%rip), %rsp\n"
        "	jmp *cpu_pc(%rip)\n"
        "cpu_leave:\n"
        "	mov $" CPU_PARTS ", %eax; xor %edx, %edx\n"
        "	xrstor64 cpu_clean(%rip)\n"
        "	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
        "	ret\n");

static void cpu_on_signal(int signo, siginfo_t *si, void *context)
{
	static const uint8_t order[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
		                           REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
		                           REG_R12, REG_R13, REG_R14, REG_R15 };
	ucontext_t *uc = context;
	greg_t *r = uc->uc_mcontext.gregs;
	struct outcome *o = cpu_outcome;
	uint32_t size;

	if (!o) { /* not ours: a bug in the test itself */
		signal(signo, SIG_DFL);
		return;
	}
	for (int i = 0; i < 16; i++)
		o->cpu.gpr[i] = (uint64_t)r[order[i]];
	o->cpu.flags = (uint64_t)r[REG_EFL];
	o->cpu.pc = (uint64_t)r[REG_RIP];
	o->signo = signo;
	o->fault = (uint64_t)si->si_addr;
	memcpy(&size, (uint8_t *)uc->uc_mcontext.fpregs + 480, 4); /* fpx_sw_bytes.xstate_size */
	memcpy(o->x.b, uc->uc_mcontext.fpregs, size < XSIZE ? size : XSIZE);
	cpu_outcome = NULL;
	r[REG_RIP] = (greg_t)(uintptr_t)cpu_leave;
	r[REG_RSP] = (greg_t)cpu_host_sp;
	r[REG_EFL] = 0x202;
}

static inline void cpu_run(const struct cpu *cpu, const struct xstate *x, struct outcome *o)
{
	cpu_outcome = o;
	cpu_enter(cpu, x);
}

static inline uint64_t cpu_xcr0(void)
{
	uint32_t lo, hi;

	__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
	return lo | (uint64_t)hi << 32;
}

/* Where a component of the xsave area lies.  Asked once: cpuid is slow in a guest. */
static inline uint32_t cpu_component(unsigned int i, uint32_t *size)
{
	static struct {
		uint32_t known, off, size;
	} cache[8];
	uint32_t c, d;

	if (!cache[i].known) {
		cache[i].known = 1;
		if (cpu_xcr0() >> i & 1)
			__cpuid_count(0xd, i, cache[i].size, cache[i].off, c, d);
	}
	*size = cache[i].size;
	return cache[i].off;
}

/* cmocka takes these for itself at the start of each test: call it in the test. */
static inline void cpu_take_signals(void)
{
	static const int signals[] = { SIGTRAP, SIGSEGV, SIGILL, SIGFPE, SIGBUS };
	struct sigaction sa = { .sa_sigaction = cpu_on_signal,
		                .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &sa, NULL);
}

static inline void cpu_setup(void)
{
	static uint8_t handler_stack[1 << 18];
	stack_t ss = { .ss_sp = handler_stack, .ss_size = sizeof(handler_stack) };

	sigaltstack(&ss, NULL);
	cpu_clean.b[24] = 0x80; /* mxcsr 0x1f80 */
	cpu_clean.b[25] = 0x1f;
}

/* The vector, mask and x87 state that a program can see, but for x87's last pc and operand. */
static inline bool cpu_same_vectors(const struct xstate *a, const struct xstate *b)
{
	static const unsigned int components[] = { 2, 5, 6, 7 };
	static uint8_t zero[XSIZE];

	if (memcmp(a->b, b->b, 6) || memcmp(a->b + 24, b->b + 24, 416 - 24))
		return false;
	for (int i = 0; i < 4; i++) {
		uint32_t size, off = cpu_component(components[i], &size);
		uint8_t bit = (uint8_t)(1U << components[i]);
		const uint8_t *pa = a->b[512] & bit ? a->b + off : zero;
		const uint8_t *pb = b->b[512] & bit ? b->b + off : zero;

		if (size && memcmp(pa, pb, size))
			return false;
	}
	return true;
}

#endif
