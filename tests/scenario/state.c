/* SPDX-License-Identifier: MIT */
/*
 * What a probe leaves as it was though its handler has changed it, and what a
 * handler starts with: flags, errno, the control words of x87 and SSE.
 */
#include "scenario.h"

enum { FLAGS = 0x8d5 | 0x400 | 0x200000 }; /* CF PF AF ZF SF OF, DF, ID */

/* No flag of its own: what comes back are those that it was called with. */
unsigned long state_target(unsigned long a);
__asm__(".text\n"
        ".type state_target, @function\n"
        "state_target:\n"
        "	lea 3(%rdi), %rax\n"
        "	mov %rdi, %rdx\n"
        "	mov %rax, %rcx\n"
        "	ret\n"
        ".size state_target, . - state_target\n");

static unsigned long hits, seen_flags;
static unsigned int seen_mxcsr;
static unsigned short seen_fcw;

static int pre(struct kprobe *p, struct pt_regs *regs)
{
	hits++;
	seen_flags = regs->flags & FLAGS;
	errno = 77;
	/* All arithmetic flags are some other way now. */
	__asm__ volatile("mov $-1, %%eax; sub $5, %%eax" ::: "eax", "cc");
	return 0;
}

static int pre_vec(struct kprobe *p, struct pt_regs *regs)
{
	volatile double third = 3;
	long double deep = third;

	hits++;
	__asm__ volatile("stmxcsr %0; fnstcw %1" : "=m"(seen_mxcsr), "=m"(seen_fcw));
	third = 1 / third;       /* sets flags of mxcsr */
	deep = deep / 7 + third; /* and of x87 */
	__asm__ volatile("" ::"m"(deep));
	return 0;
}

static unsigned long call_with(unsigned long flags, unsigned long *after)
{
	unsigned long ret = 5;

	/* Below the red zone. */
	__asm__ volatile("lea -128(%%rsp), %%rsp\n"
	                 "pushfq\n"
	                 "push %2\n"
	                 "popfq\n"
	                 "call state_target\n"
	                 "pushfq\n"
	                 "pop %1\n"
	                 "popfq\n"
	                 "lea 128(%%rsp), %%rsp\n"
	                 : "+D"(ret), "=&b"(*after)
	                 : "r"(flags | 0x202)
	                 : "rax", "rcx", "rdx", "cc", "memory");
	return ret;
}

static unsigned long flags_of(unsigned int n)
{
	static const unsigned long bit[] = { 1, 4, 0x10, 0x40, 0x80, 0x800, 0x400, 0x200000 };
	unsigned long flags = 0;

	for (unsigned int i = 0; i < 8; i++)
		flags |= n >> i & 1 ? bit[i] : 0;
	return flags;
}

static void flags_and_errno_come_back(void **state)
{
	static struct kprobe kp = { .addr = (kprobe_opcode_t *)(uintptr_t)state_target,
		                    .pre_handler = pre,
		                    .flags = UKP_NOVEC };
	unsigned long after;

	hits = 0;
	register_ok(register_kprobe(&kp));
	has_form(&kp);
	for (unsigned int n = 0; n < 256; n++) {
		errno = (int)n;
		assert_int_equal(call_with(flags_of(n), &after), 5);
		assert_int_equal(errno, n);
		assert_int_equal(seen_flags, flags_of(n));
		assert_int_equal(after & FLAGS, flags_of(n));
	}
	assert_int_equal(hits, 256);
	unregister_kprobe(&kp);
	text_is_as_in_the_file();
}

/* Control words and status as given, before a call and after it. */
static void call_in(unsigned short fcw, unsigned int mxcsr, bool busy)
{
	unsigned short fcw_after;
	unsigned int mxcsr_after;
	unsigned long flags;
	double top = 1.25, xmm = 0;

	__asm__ volatile("fninit; fldcw %0; ldmxcsr %1" ::"m"(fcw), "m"(mxcsr));
	if (busy)
		__asm__ volatile("fldl %0; movsd %0, %%xmm15" ::"m"(top) : "xmm15");
	call_with(0, &flags);
	__asm__ volatile("fnstcw %0; stmxcsr %1" : "=m"(fcw_after), "=m"(mxcsr_after));
	top = 0;
	if (busy)
		__asm__ volatile("fstpl %0; movsd %%xmm15, %1" : "=m"(top), "=m"(xmm));
	__asm__ volatile("fninit; ldmxcsr %0" ::"m"((unsigned int){ 0x1f80 }));
	assert_int_equal(fcw_after, fcw);
	assert_int_equal(mxcsr_after, mxcsr);
	assert_true(!busy || (top == 1.25 && xmm == 1.25));
	assert_int_equal(seen_fcw, 0x37f);
	/* What has been raised before stays so: by the ABI nobody relies on it. */
	assert_int_equal(seen_mxcsr & ~0x3fu, 0x1f80);
}

static void a_handler_starts_with_the_abis_state(void **state)
{
	static struct kprobe kp = { .addr = (kprobe_opcode_t *)(uintptr_t)state_target,
		                    .pre_handler = pre_vec };

	hits = 0;
	register_ok(register_kprobe(&kp));
	has_form(&kp);
	for (int i = 0; i < 100; i++) {
		call_in(0x37f, 0x1f80, false);
		call_in(0x37f, 0x1fa0, false); /* a result was rounded before */
		call_in(0x37f, 0x1f80, true);
		call_in(0xe7f, 0x7f80, false); /* other rounding */
		call_in(0xe7f, 0xffc0, true);
	}
	assert_int_equal(hits, 500);
	unregister_kprobe(&kp);
	text_is_as_in_the_file();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flags_and_errno_come_back),
		cmocka_unit_test(a_handler_starts_with_the_abis_state),
	};

	return run_in_both_forms(tests);
}
