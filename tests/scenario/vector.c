/* SPDX-License-Identifier: MIT */
/* Handlers are plain C: what they do to vector registers, flags and errno stays theirs. */
#include <ukprobes/fprobe.h>

#include "scenario.h"

static int hits;
static char text[256];

typedef double four __attribute__((vector_size(32)));

TARGET double scale(double x)
{
	__asm__ volatile("");
	return x * 1.5;
}

TARGET int touch(int x)
{
	__asm__ volatile("");
	return x + 1;
}

/* All that libc may use: SSE and AVX in printf, memcpy, malloc. */
static void busy(void)
{
	char *p = malloc(1000);

	memset(p, hits, 1000);
	hits++;
	snprintf(text, sizeof(text), "%f %Lf %s %d", 3.25 * hits, (long double)hits / 3, "text",
	         p[9]);
	free(p);
	__asm__ volatile("pcmpeqd %%xmm0, %%xmm0\n\tpcmpeqd %%xmm7, %%xmm7\n\t"
	                 "pcmpeqd %%xmm15, %%xmm15\n\tfld1\n\tfstp %%st(0)" ::
	                         : "xmm0", "xmm7", "xmm15", "st");
	errno = EXDEV;
}

static int pre(struct kprobe *p, struct pt_regs *regs)
{
	busy();
	return 0;
}

static void post(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
	busy();
}

static int on_call(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	busy();
	return 0;
}

static int on_fentry(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                     struct pt_regs *regs, void *data)
{
	busy();
	return 0;
}

static void on_fexit(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                     struct pt_regs *regs, void *data)
{
	busy();
}

static struct rethook *rh;

static void on_hooked(struct rethook_node *n, void *data, unsigned long ret_addr,
                      struct pt_regs *regs)
{
	busy();
}

static int hook(struct kprobe *p, struct pt_regs *regs)
{
	struct rethook_node *n = rethook_try_get(rh);

	busy();
	return rethook_hook(n, regs, true);
}

/* A call of touch() with all sixteen xmm registers, and the top of x87 looked at around it. */
static void call_and_compare(void)
{
	static unsigned char in[16][16], out[16][16];
	static long double one;
	register unsigned char *from __asm__("r12") = in[0], *to __asm__("r13") = out[0];
	register long double *top __asm__("r14") = &one;
	int i;

	one = 0;
	for (i = 0; i < 256; i++)
		in[i / 16][i % 16] = (unsigned char)(i * 7 + 1);
	__asm__ volatile(
		"fld1\n\t"
		"movups 0(%0), %%xmm0\n\tmovups 16(%0), %%xmm1\n\tmovups 32(%0), %%xmm2\n\t"
		"movups 48(%0), %%xmm3\n\tmovups 64(%0), %%xmm4\n\tmovups 80(%0), %%xmm5\n\t"
		"movups 96(%0), %%xmm6\n\tmovups 112(%0), %%xmm7\n\tmovups 128(%0), %%xmm8\n\t"
		"movups 144(%0), %%xmm9\n\tmovups 160(%0), %%xmm10\n\tmovups 176(%0), %%xmm11\n\t"
		"movups 192(%0), %%xmm12\n\tmovups 208(%0), %%xmm13\n\tmovups 224(%0), %%xmm14\n\t"
		"movups 240(%0), %%xmm15\n\t"
		"lea -128(%%rsp), %%rsp\n\t"
		"mov %%rsp, %%r15\n\tand $-16, %%rsp\n\t"
		"call touch\n\t"
		"mov %%r15, %%rsp\n\tlea 128(%%rsp), %%rsp\n\t"
		"movups %%xmm0, 0(%1)\n\tmovups %%xmm1, 16(%1)\n\tmovups %%xmm2, 32(%1)\n\t"
		"movups %%xmm3, 48(%1)\n\tmovups %%xmm4, 64(%1)\n\tmovups %%xmm5, 80(%1)\n\t"
		"movups %%xmm6, 96(%1)\n\tmovups %%xmm7, 112(%1)\n\tmovups %%xmm8, 128(%1)\n\t"
		"movups %%xmm9, 144(%1)\n\tmovups %%xmm10, 160(%1)\n\tmovups %%xmm11, 176(%1)\n\t"
		"movups %%xmm12, 192(%1)\n\tmovups %%xmm13, 208(%1)\n\tmovups %%xmm14, 224(%1)\n\t"
		"movups %%xmm15, 240(%1)\n\t"
		"fstpt (%2)"
		:
		: "r"(from), "r"(to), "r"(top)
		: "memory", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r15",
		  "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
		  "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
	assert_memory_equal(in, out, sizeof(in));
	assert_true(one == 1.0L);
}

static void vector_state_is_kept_at_entry(void **state)
{
	struct kprobe kp = { .symbol_name = "touch", .pre_handler = pre };

	hits = 0;
	call_and_compare();
	register_ok(register_kprobe(&kp));
	call_and_compare();
	unregister_kprobe(&kp);
	assert_int_equal(hits, 1);
	text_is_as_in_the_file();
}

static void vector_state_is_kept_behind_the_instruction(void **state)
{
	struct kprobe kp = { .symbol_name = "touch", .post_handler = post };

	hits = 0;
	register_ok(register_kprobe(&kp));
	call_and_compare();
	unregister_kprobe(&kp);
	assert_int_equal(hits, 1);
	text_is_as_in_the_file();
}

static void vector_state_is_kept_at_the_return(void **state)
{
	struct kretprobe rp = { .kp.symbol_name = "touch",
		                .handler = on_call,
		                .entry_handler = on_call };

	hits = 0;
	register_ok(register_kretprobe(&rp));
	call_and_compare();
	unregister_kretprobe(&rp);
	assert_int_equal(hits, 2);
	text_is_as_in_the_file();
}

static void vector_state_is_kept_by_fprobes(void **state)
{
	struct fprobe fp = { .entry_handler = on_fentry, .exit_handler = on_fexit };

	hits = 0;
	register_ok(register_fprobe(&fp, "touch", NULL));
	call_and_compare();
	unregister_fprobe(&fp);
	assert_int_equal(hits, 2);
	text_is_as_in_the_file();
}

static void vector_state_is_kept_by_rethooks(void **state)
{
	struct kprobe kp = { .symbol_name = "touch", .pre_handler = hook };

	hits = 0;
	rh = rethook_alloc(NULL, on_hooked, sizeof(struct rethook_node), 1);
	assert_false(IS_ERR(rh));
	register_ok(register_kprobe(&kp));
	call_and_compare();
	unregister_kprobe(&kp);
	rethook_free(rh);
	assert_int_equal(hits, 2);
	text_is_as_in_the_file();
}

static void a_double_comes_back_as_it_was(void **state)
{
	struct kretprobe rp = { .kp.symbol_name = "scale", .handler = on_call };
	int i;

	hits = 0;
	register_ok(register_kretprobe(&rp));
	for (i = 0; i < 1000; i++)
		assert_true(scale(i) == i * 1.5);
	unregister_kretprobe(&rp);
	assert_int_equal(hits, 1000);
	text_is_as_in_the_file();
}

/* The upper halves, which a saved xmm would lose. */
__attribute__((target("avx"))) static void check_avx(void)
{
	four before = { 1.25, -2.5, 3.75, 1e300 }, after;

	__asm__ volatile("vmovupd %1, %%ymm9\n\t"
	                 "lea -128(%%rsp), %%rsp\n\tmov %%rsp, %%r15\n\tand $-16, %%rsp\n\t"
	                 "call touch\n\t"
	                 "mov %%r15, %%rsp\n\tlea 128(%%rsp), %%rsp\n\t"
	                 "vmovupd %%ymm9, %0\n\tvzeroupper"
	                 : "=m"(after)
	                 : "m"(before)
	                 : "memory", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11",
	                   "r15", "cc", "xmm9");
	assert_memory_equal(&before, &after, sizeof(before));
}

static void clobber_upper(void)
{
	__asm__ volatile("vzeroupper" ::: "memory");
	hits++;
}

static int on_return_avx(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	clobber_upper();
	return 0;
}

static void avx_upper_halves_are_kept(void **state)
{
	struct kretprobe rp = { .kp.symbol_name = "touch", .handler = on_return_avx };

	if (!__builtin_cpu_supports("avx")) {
		print_message("skipped: this CPU has no AVX\n");
		skip();
	}
	hits = 0;
	register_ok(register_kretprobe(&rp));
	check_avx();
	unregister_kretprobe(&rp);
	assert_int_equal(hits, 1);
	text_is_as_in_the_file();
}

static void errno_is_the_programs(void **state)
{
	struct kprobe kp = { .symbol_name = "touch", .pre_handler = pre, .post_handler = post };
	struct kretprobe rp = { .kp.symbol_name = "touch", .handler = on_call };
	struct fprobe fp = { .entry_handler = on_fentry, .exit_handler = on_fexit };

	hits = 0;
	register_ok(register_kprobe(&kp));
	register_ok(register_kretprobe(&rp));
	register_ok(register_fprobe(&fp, "touch", NULL));
	errno = EDOM;
	touch(1);
	assert_int_equal(errno, EDOM);
	assert_int_equal(hits, 5);
	unregister_fprobe(&fp);
	unregister_kprobe(&kp);
	unregister_kretprobe(&rp);
	text_is_as_in_the_file();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vector_state_is_kept_at_entry),
		cmocka_unit_test(vector_state_is_kept_behind_the_instruction),
		cmocka_unit_test(vector_state_is_kept_at_the_return),
		cmocka_unit_test(vector_state_is_kept_by_fprobes),
		cmocka_unit_test(vector_state_is_kept_by_rethooks),
		cmocka_unit_test(a_double_comes_back_as_it_was),
		cmocka_unit_test(avx_upper_halves_are_kept),
		cmocka_unit_test(errno_is_the_programs),
	};

	return run_in_both_forms(tests);
}
