/* SPDX-License-Identifier: MIT */
/*
 * Vector and x87 registers as the CPU has them, and as a signal frame has them,
 * parts in their initial state and frames of before xsave included.  The CPU's own
 * xsave makes the frames.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <signal.h>
#include <ucontext.h>

#include "engine/arch.h"
#include "engine/x86/fpu.h"
#include "wire/event.h"

#define SW_MAGIC 464
#define XSTATE_BV 512

/* Filled by assembler, so that no compiler's own use of registers comes between. */
static uint64_t in[16][2], out[UKP_FPU_REGS][2];
static bool there[UKP_FPU_REGS];

static void pattern(void)
{
	memset(out, 0xee, sizeof(out));
	memset(there, 0, sizeof(there));
	for (unsigned int i = 0; i < 16; i++) {
		in[i][0] = 0x1111111111111111ull * i + 1;
		in[i][1] = ~in[i][0];
	}
}

static void live(uint32_t reg)
{
	bool ok;

	/* Two values on the x87's stack: one under pi. */
	__asm__ volatile(
		"fninit\n fld1\n fldpi\n"
		"movups (%[in]), %%xmm0\n movups 16(%[in]), %%xmm1\n"
		"movups 7*16(%[in]), %%xmm7\n movups 8*16(%[in]), %%xmm8\n"
		"movups 15*16(%[in]), %%xmm15\n"
		"mov %%rsp, %%rbx\n sub $128, %%rsp\n and $-16, %%rsp\n add %[odd], %%rsp\n"
		"xor %%esi, %%esi\n call ukp_arch_fpu\n mov %%rbx, %%rsp\n"
		"fninit\n"
		: "=a"(ok)
		: [in] "r"(in), [odd] "r"(reg & 1 ? 8l : 0l), "D"(reg), "d"(out[reg])
		: "rbx", "rsi", "rcx", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1",
		  "xmm7", "xmm8", "xmm15", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)",
		  "st(6)", "st(7)");
	there[reg] = ok;
}

/* As fld1 and fldpi have it. */
static const uint64_t pi[2] = { 0xc90fdaa22168c235, 0x4000 }, one[2] = { 1ull << 63, 0x3fff };

static void registers_are_read_where_they_are(void **state)
{
	static const uint32_t xmm[] = { 0, 1, 7, 8, 15 };

	(void)state;
	pattern();
	for (size_t i = 0; i < sizeof(xmm) / sizeof(xmm[0]); i++) {
		live(xmm[i]);
		assert_true(there[xmm[i]]);
		assert_memory_equal(out[xmm[i]], in[xmm[i]], 16);
	}
	live(UKP_FPU_ST0);
	live(UKP_FPU_ST0 + 1);
	live(UKP_FPU_ST0 + 2);
	live(UKP_FPU_ST0 + 7);
	assert_true(there[UKP_FPU_ST0] && there[UKP_FPU_ST0 + 1]);
	assert_memory_equal(out[UKP_FPU_ST0], pi, 16);
	assert_memory_equal(out[UKP_FPU_ST0 + 1], one, 16);
	assert_false(there[UKP_FPU_ST0 + 2] || there[UKP_FPU_ST0 + 7]);
	assert_false(ukp_arch_fpu(UKP_FPU_REGS, NULL, out[0]));
}

static unsigned char frame[4096] __attribute__((aligned(64)));

static void on_signal(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig, (void)info;
	/* The legacy area and the header behind it are all that is looked at. */
	memcpy(frame, uc->uc_mcontext.fpregs, XSTATE_BV + 64);
}

/* A frame of the kernel's, of a thread with these registers. */
static void take_frame(void)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	assert_int_equal(sigaction(SIGTRAP, &sa, NULL), 0);
	pattern();
	__asm__ volatile("fninit\n fld1\n fldpi\n"
	                 "movups (%[in]), %%xmm0\n movups 15*16(%[in]), %%xmm15\n"
	                 "int3\n fninit\n"
	                 :
	                 : [in] "r"(in)
	                 : "memory", "cc", "xmm0", "xmm15", "st", "st(1)", "st(2)", "st(3)",
	                   "st(4)", "st(5)", "st(6)", "st(7)");
}

static void registers_are_read_from_a_signal_frame(void **state)
{
	(void)state;
	take_frame();
	assert_true(ukp_arch_fpu(0, frame, out[0]));
	assert_true(ukp_arch_fpu(15, frame, out[15]));
	assert_memory_equal(out[0], in[0], 16);
	assert_memory_equal(out[15], in[15], 16);
	assert_true(ukp_arch_fpu(UKP_FPU_ST0, frame, out[UKP_FPU_ST0]));
	assert_memory_equal(out[UKP_FPU_ST0], pi, 16);
	assert_true(ukp_arch_fpu(UKP_FPU_ST0 + 1, frame, out[UKP_FPU_ST0]));
	assert_memory_equal(out[UKP_FPU_ST0], one, 16);
	assert_false(ukp_arch_fpu(UKP_FPU_ST0 + 2, frame, out[UKP_FPU_ST0]));
}

static void parts_that_are_not_in_use_are_in_their_initial_state(void **state)
{
	static const uint64_t zero[2];
	uint32_t *magic = (uint32_t *)(frame + SW_MAGIC);
	uint64_t *bv = (uint64_t *)(frame + XSTATE_BV);

	(void)state;
	take_frame();
	if (*magic == 0x46505853)
		*bv &= ~3ull;
	*magic = 0x46505853;
	assert_true(ukp_arch_fpu(0, frame, out[0]));
	assert_memory_equal(out[0], zero, 16);
	assert_false(ukp_arch_fpu(UKP_FPU_ST0, frame, out[UKP_FPU_ST0]));
	*bv = 1;
	assert_true(ukp_arch_fpu(0, frame, out[0]));
	assert_memory_equal(out[0], zero, 16);
	assert_true(ukp_arch_fpu(UKP_FPU_ST0, frame, out[UKP_FPU_ST0]));
	assert_memory_equal(out[UKP_FPU_ST0], pi, 16);
	*bv = 2;
	assert_true(ukp_arch_fpu(0, frame, out[0]));
	assert_memory_equal(out[0], in[0], 16);
	assert_false(ukp_arch_fpu(UKP_FPU_ST0, frame, out[UKP_FPU_ST0]));
	/* Before xsave there was no such word. */
	*magic = 0;
	*bv = 0;
	assert_true(ukp_arch_fpu(0, frame, out[0]));
	assert_memory_equal(out[0], in[0], 16);
	assert_true(ukp_arch_fpu(UKP_FPU_ST0, frame, out[UKP_FPU_ST0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers_are_read_where_they_are),
		cmocka_unit_test(registers_are_read_from_a_signal_frame),
		cmocka_unit_test(parts_that_are_not_in_use_are_in_their_initial_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
