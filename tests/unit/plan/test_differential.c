/* SPDX-License-Identifier: MIT */
/*
 * Both forms of a probe, executed and compared with the original: copies in
 * slots, and windows under a jump to a detour whose engine clobbers all it may.
 * Every form of control flow, a list of what is known to be awkward, and random
 * instructions.
 *
 * test_differential [CASES]: so many random slots and so many random windows; or
 * by UKP_TEST_CASES.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <asm/prctl.h>
#include <sys/syscall.h>

#include "unit/plan/windows.h"

static unsigned long cases = 120000; /* of each kind */
static struct trial t;
static struct sequence seq;
static uint64_t fsbase;
static void (*tweak)(struct trial *t); /* of a form's registers */

static int setup(void **state)
{
	syscall(SYS_arch_prctl, ARCH_GET_FS, &fsbase);
	return detouring_setup(state);
}

/* A form between fillers, first or last in a window, if it is at home there. */
static bool form_window(const uint8_t *code, unsigned int n, bool first)
{
	static const uint8_t fillers[][2] = { { 0x90 }, { 0x89, 0xf6 }, { 0x89, 0xff }, { 0xf8 } };
	const uint64_t addr = t.addr;
	bool copied = false, done = false;

	memset(&seq.w, 0, sizeof(seq.w));
	while (seq.w.len < PLAN_JUMP_SIZE || !done) {
		const bool now = first ? !seq.w.nr : seq.w.len + n >= PLAN_JUMP_SIZE;
		const uint8_t *f = fillers[below(4)];

		t.addr = addr + seq.w.len;
		if (!trial_decode(&t, now ? code : f, now ? n : 2))
			return false;
		if (now && !trial_registers(&t, fsbase))
			return false;
		if (now && tweak)
			tweak(&t);
		if (now) { /* with the displacement that it has got */
			uint8_t pinned[15];

			memcpy(pinned, t.code, sizeof(pinned));
			trial_decode(&t, pinned, n);
		}
		if (plan_decode(t.code, t.n, t.addr, &seq.insn[seq.w.nr]))
			return false;
		done |= now;
		if (!fits(&t, &seq.insn[seq.w.nr], now && seq.w.len + t.n >= PLAN_JUMP_SIZE,
		          &copied))
			return false;
		memcpy(seq.code + seq.w.len, t.code, t.n);
		seq.w.insn[seq.w.nr].off = seq.w.len;
		seq.w.insn[seq.w.nr++].len = (uint8_t)t.n;
		seq.w.len = (uint8_t)(seq.w.len + t.n);
	}
	t.addr = addr;
	seq.w.covered = seq.w.len;
	return true;
}

/* One form, in times different states and places: out of line and under a jump. */
static void form(const uint8_t *code, unsigned int n, unsigned int times)
{
	for (unsigned int i = 0; i < times; i++) {
		if (i % 8 == 0)
			trial_place(&t, i & 8), trial_state(&t);
		else
			trial_place(&t, i & 1);
		assert_true(trial_decode(&t, code, n));
		assert_int_equal(t.n, n);
		if (trial_registers(&t, fsbase)) {
			if (tweak)
				tweak(&t);
			assert_true(trial_run(&t, fsbase));
		}
		t.post = 0;
		if (form_window(code, n, i & 1))
			assert_true(window_run(&t, &seq));
	}
}

static void report(const char *what)
{
	trial_report(what);
	window_report(what);
}

#define FORM(...) \
	form((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }), 16)

static void conditional_jumps_of_all_widths(void **state)
{
	for (uint8_t cc = 0; cc < 16; cc++) {
		FORM(0x70 | cc, 0x20);
		FORM(0x70 | cc, 0x80);
		FORM(0x3e, 0x70 | cc, 0x7f);
		FORM(0xf2, 0x70 | cc, 0x20);
		FORM(0x0f, 0x80 | cc, 0x00, 0x01, 0, 0);
		FORM(0x0f, 0x80 | cc, 0x00, 0xff, 0xff, 0xff);
		FORM(0x2e, 0x0f, 0x80 | cc, 0x40, 0, 0, 0);
		FORM(0x48, 0x0f, 0x80 | cc, 0x40, 0, 0, 0);
	}
	report("jcc");
}

static void loops_of_all_kinds(void **state)
{
	for (uint8_t kind = 0xe0; kind <= 0xe3; kind++)
		for (int i = 0; i < 4; i++) {
			FORM(kind, 0x20);
			FORM(kind, 0x90);
			FORM(0x67, kind, 0x20);
			FORM(0x67, 0x3e, kind, 0x80);
		}
	report("loop");
}

static void direct_jumps_and_calls(void **state)
{
	FORM(0xeb, 0x00);
	FORM(0xeb, 0x80);
	FORM(0xe9, 0, 0, 0, 0);
	FORM(0xe9, 0, 0xff, 0xff, 0xff);
	FORM(0xe9, 0xff, 0xff, 0xff, 0x7f);
	FORM(0xf2, 0xe9, 0, 1, 0, 0);
	FORM(0xe8, 0, 0, 0, 0);
	FORM(0xe8, 0, 0xff, 0xff, 0xff);
	FORM(0xe8, 0, 0, 0, 0x80);
	FORM(0x67, 0xe8, 0, 1, 0, 0);
	FORM(0xf2, 0xe8, 0, 1, 0, 0);
	FORM(0x66, 0x66, 0x48, 0xe8, 0, 1, 0, 0);
	report("jmp and call");
}

static void indirect_jumps_and_calls_with_every_operand(void **state)
{
	for (uint8_t modrm = 0; modrm < 0x80; modrm++) {
		uint8_t reg = modrm & 0x40 ? 4 : 2;
		uint8_t rm = modrm & 7, mod = (uint8_t)(modrm >> 3 & 3);
		uint8_t code[15] = { 0x40, 0xff };

		if (modrm & 0x20)
			code[0] |= 1;
		code[2] = (uint8_t)(mod << 6 | reg << 3 | rm);
		for (int sib = 0; sib < (mod != 3 && rm == 4 ? 256 : 1); sib++) {
			uint64_t tail = below(256);
			struct trial d;

			code[3] = (uint8_t)sib;
			if (mod != 3 && rm == 4)
				memcpy(code + 4, &tail, 8);
			else
				memcpy(code + 3, &tail, 8);
			assert_true(trial_decode(&d, code, sizeof(code)));
			form(code, d.n, sib ? 2 : 16);
		}
	}
	FORM(0x3e, 0xff, 0xd0);
	FORM(0x3e, 0xff, 0x10);
	FORM(0xf2, 0xff, 0x10);
	FORM(0x64, 0xff, 0x10);
	FORM(0x65, 0xff, 0x53, 0x08);
	FORM(0x64, 0xff, 0x63, 0x08);
	FORM(0x67, 0xff, 0x53, 0x08);
	FORM(0x67, 0xff, 0x15, 0, 0, 0, 0);
	FORM(0x67, 0xff, 0x25, 0, 0, 0, 0);
	report("indirect");
}

static void returns(void **state)
{
	for (int i = 0; i < 8; i++) {
		FORM(0xc3);
		FORM(0xf3, 0xc3);
		FORM(0xf2, 0xc3);
		FORM(0xc2, 0x10, 0);
		FORM(0xc2, 0, 0x80);
	}
	report("ret");
}

static void the_stack_and_the_flags(void **state)
{
	for (uint8_t r = 0; r < 8; r++) {
		FORM(0x50 | r);
		FORM(0x58 | r);
		FORM(0x41, 0x50 | r);
		FORM(0x66, 0x50 | r);
		FORM(0x66, 0x58 | r);
	}
	for (int i = 0; i < 8; i++) {
		FORM(0x9c);
		FORM(0x9d);
	}
	FORM(0xff, 0x34, 0x24);
	FORM(0x8f, 0x04, 0x24);
	FORM(0xff, 0x74, 0x24, 0x88);
	FORM(0x8f, 0x05, 0, 0, 0, 0);
	FORM(0xff, 0x35, 0, 0, 0, 0);
	FORM(0xc9);
	FORM(0xc8, 0x20, 0, 2);
	FORM(0x68, 1, 2, 3, 0x84);
	FORM(0x6a, 0x80);
	FORM(0x9e);
	FORM(0x9f);
	FORM(0xfc);
	FORM(0xfd);
	FORM(0xf5);
	FORM(0x48, 0x83, 0xec, 0x28);
	FORM(0x48, 0x8d, 0xa4, 0x24, 0, 0xff, 0xff, 0xff);
	FORM(0x48, 0x89, 0x44, 0x24, 0x80);
	FORM(0x48, 0x8b, 0x44, 0x24, 0xf8);
	FORM(0x48, 0x94);
	report("stack");
}

static void some_call(struct trial *tr)
{
	static const uint64_t calls[] = { SYS_getppid, SYS_close, 0xffff, SYS_sched_yield };

	tr->cpu.gpr[0] = calls[below(4)];
	tr->cpu.gpr[7] = -1UL;
}

static void system_calls(void **state)
{
	tweak = some_call;
	for (int i = 0; i < 4; i++) {
		FORM(0x0f, 0x05);
		FORM(0x48, 0x0f, 0x05);
	}
	tweak = NULL;
	report("syscall");
}

static void rip_operands_of_every_encoding(void **state)
{
	for (int i = 0; i < 4; i++) {
		FORM(0x8b, 0x05, 0, 0, 0, 0);
		FORM(0x48, 0x89, 0x1d, 0, 0, 0, 0);
		FORM(0x48, 0x8d, 0x3d, 0, 0, 0, 0);
		FORM(0x67, 0x48, 0x8d, 0x3d, 0, 0, 0, 0);
		FORM(0x67, 0x8b, 0x05, 0, 0, 0, 0);
		FORM(0x80, 0x3d, 0, 0, 0, 0, 0x12);
		FORM(0x66, 0xc7, 0x05, 0, 0, 0, 0, 0x12, 0x34);
		FORM(0x48, 0xc7, 0x05, 0, 0, 0, 0, 0x12, 0x34, 0x56, 0x78);
		FORM(0x0f, 0xba, 0x2d, 0, 0, 0, 0, 3);
		FORM(0xf0, 0x48, 0x0f, 0xc1, 0x05, 0, 0, 0, 0);
		FORM(0xf0, 0x48, 0x0f, 0xc7, 0x0d, 0, 0, 0, 0);
		FORM(0xdd, 0x05, 0, 0, 0, 0);
		FORM(0x0f, 0x10, 0x05, 0, 0, 0, 0);
		FORM(0x0f, 0xc6, 0x05, 0, 0, 0, 0, 0x1b);
		FORM(0x66, 0x0f, 0x3a, 0x0f, 0x05, 0, 0, 0, 0, 5);
		FORM(0xc5, 0xfe, 0x6f, 0x05, 0, 0, 0, 0);
		FORM(0xc5, 0x7e, 0x7f, 0x05, 0, 0, 0, 0);
		FORM(0xc4, 0xe3, 0x7d, 0x06, 0x05, 0, 0, 0, 0, 0x21);
		FORM(0xc4, 0xe2, 0xfb, 0xf6, 0x05, 0, 0, 0, 0);
		/* mulx m,%rdi,%rsi; andn m,%rsi,%rdi: as many registers as there can be */
		FORM(0xc4, 0xe2, 0xc3, 0xf6, 0x35, 0, 0, 0, 0);
		FORM(0xc4, 0xe2, 0xc8, 0xf2, 0x3d, 0, 0, 0, 0);
		FORM(0xc4, 0xe2, 0xbb, 0xf6, 0x35, 0, 0, 0, 0);
		FORM(0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x05, 0, 0, 0, 0);
		FORM(0x62, 0xf1, 0xfe, 0x28, 0x7f, 0x05, 0, 0, 0, 0);
		FORM(0x62, 0xf3, 0xfd, 0x48, 0x25, 0x05, 0, 0, 0, 0, 0x55);
		FORM(0x62, 0xf1, 0x7c, 0x58, 0x58, 0x05, 0, 0, 0, 0);
	}
	report("rip operands");
}

static void strings_locks_vectors_and_faults(void **state)
{
	for (int i = 0; i < 4; i++) {
		FORM(0xf3, 0xa4);
		FORM(0xf3, 0x48, 0xa5);
		FORM(0xf3, 0x48, 0xab);
		FORM(0xf3, 0xa6);
		FORM(0xf2, 0xae);
		FORM(0x67, 0xf3, 0xa4);
		FORM(0xac);
		FORM(0xf0, 0x48, 0x0f, 0xb1, 0x0f);
		FORM(0xf0, 0xff, 0x00);
		FORM(0x48, 0x87, 0x03);
		FORM(0xd7);
		FORM(0x66, 0x0f, 0x6f, 0x00);
		FORM(0x0f, 0xae, 0x13);
		FORM(0xd9, 0xfa);
		FORM(0xc5, 0xf8, 0x77);
		FORM(0xc5, 0xfc, 0x77);
		FORM(0x0f, 0x0b);
		FORM(0xf4);
		FORM(0xec);
		FORM(0x48, 0xf7, 0xf3);
		FORM(0xa0, 0, 0, 0, 0, 0, 0, 0, 0);
		FORM(0x0f, 0x1f, 0x44, 0, 0);
		FORM(0xf3, 0x0f, 0x1e, 0xfa);
		FORM(0x8b, 0x04, 0x25, 0, 0, 0, 0x90);
	}
	report("others");
}

/* rdi and rsi so near to an end of what is mapped that the count leads beyond it. */
static void near_the_end(struct trial *tr)
{
	const bool down = tr->cpu.flags & 0x400;
	uint64_t k = below(20);

	tr->cpu.gpr[7] = down ? DATA + k : DATA + DATA_SIZE - 1 - k;
	tr->cpu.gpr[6] = DATA + DATA_SIZE / 2 + below(64);
	if (below(2)) {
		uint64_t di = tr->cpu.gpr[7];

		tr->cpu.gpr[7] = tr->cpu.gpr[6];
		tr->cpu.gpr[6] = di;
	}
	tr->cpu.gpr[1] = 40;
	memset(tr->data, 0, DATA_SIZE); /* so that comparing goes on, too */
	tr->cpu.gpr[0] = tr->cpu.gpr[0] & 1 ? 0 : tr->cpu.gpr[0];
}

static void strings_that_fault_midway(void **state)
{
	static const uint8_t ops[] = { 0xa4, 0xa6, 0xaa, 0xac, 0xae };
	const unsigned long before = tally.fault;

	tweak = near_the_end;
	for (size_t i = 0; i < sizeof(ops); i++)
		for (uint8_t wide = 0; wide < 2; wide++) {
			FORM(0xf3, ops[i] | wide);
			FORM(0xf2, ops[i] | wide);
			FORM(0x67, 0xf3, ops[i] | wide);
			FORM(0xf3, 0x48, ops[i] | wide);
			FORM(0x66, 0xf3, ops[i] | wide);
			FORM(ops[i] | wide);
		}
	tweak = NULL;
	assert_true(tally.fault - before > 100);
	report("strings that fault");
}

static void floats_and_vectors_of_every_kind(void **state)
{
	for (int i = 0; i < 4; i++) {
		/* fld m64; fstp m80; fxch; fsin; fcomi; fild; fbstp; fnstcw; fldcw; fninit */
		FORM(0xdd, 0x03);
		FORM(0xdb, 0x3b);
		FORM(0xd9, 0xc9);
		FORM(0xd9, 0xfe);
		FORM(0xdb, 0xf1);
		FORM(0xdf, 0x2b);
		FORM(0xdf, 0x33);
		FORM(0xd9, 0x3b);
		FORM(0xdb, 0xe3);
		FORM(0xde, 0xc1);
		/* emms; paddb %mm1,%mm0; movq (%rbx),%mm3 */
		FORM(0x0f, 0x77);
		FORM(0x0f, 0xfc, 0xc1);
		FORM(0x0f, 0x6f, 0x1b);
		/* addps; cvtsi2sd; sqrtsd; pshufb m; pcmpistri; aesenc; movntdq; maskmovdqu */
		FORM(0x0f, 0x58, 0xc1);
		FORM(0xf2, 0x48, 0x0f, 0x2a, 0xc3);
		FORM(0xf2, 0x0f, 0x51, 0x03);
		FORM(0x66, 0x0f, 0x38, 0x00, 0x03);
		FORM(0x66, 0x0f, 0x3a, 0x63, 0xc1, 0x0c);
		FORM(0x66, 0x0f, 0x38, 0xdc, 0xc1);
		FORM(0x66, 0x0f, 0xe7, 0x03);
		FORM(0x66, 0x0f, 0xf7, 0xc1);
		FORM(0x0f, 0xae, 0x1b); /* stmxcsr */
		/* vaddpd %ymm; vfmadd231ps m; vpgatherdd; vzeroall; vmaskmovps; vperm2i128 */
		FORM(0xc5, 0xf5, 0x58, 0xc2);
		FORM(0xc4, 0xe2, 0x75, 0xb8, 0x03);
		FORM(0xc4, 0xe2, 0x6d, 0x90, 0x04, 0x8b);
		FORM(0xc4, 0xe2, 0x75, 0x2c, 0x03);
		FORM(0xc4, 0xe3, 0x75, 0x46, 0xc2, 0x13);
		/* kmovq; kortestw; vaddps %zmm{%k1}{z}; vpcompressd m{%k2}; vpternlogd; vpermb */
		FORM(0xc4, 0xe1, 0xfb, 0x92, 0xcb);
		FORM(0xc5, 0xf8, 0x98, 0xc1);
		FORM(0x62, 0xf1, 0x74, 0xc9, 0x58, 0xc2);
		FORM(0x62, 0xf2, 0x7d, 0x4a, 0x8b, 0x0b);
		FORM(0x62, 0xf3, 0x75, 0x48, 0x25, 0xc2, 0x96);
		FORM(0x62, 0xf2, 0x75, 0x48, 0x8d, 0xc2);
		/* vgatherdps (%rbx,%zmm1,4),%zmm0{%k3}; vscatterdps; vmovdqu64 m,%zmm31; vcmpps
		 * m{1to16} */
		FORM(0x62, 0xf2, 0x7d, 0x4b, 0x92, 0x04, 0x8b);
		FORM(0x62, 0xf2, 0x7d, 0x4b, 0xa2, 0x04, 0x8b);
		FORM(0x62, 0x61, 0xfe, 0x48, 0x6f, 0x3b);
		FORM(0x62, 0xf1, 0x74, 0x58, 0xc2, 0x03, 0x01);
		/* vaddps {rz-sae}; vpconflictd; vpopcntq m{1to8} */
		FORM(0x62, 0xf1, 0x74, 0x78, 0x58, 0xc2);
		FORM(0x62, 0xf2, 0x7d, 0x48, 0xc4, 0xc1);
		FORM(0x62, 0xf2, 0xfd, 0x58, 0x55, 0x03);
	}
	report("floats and vectors");
}

static void random_instructions_out_of_line_do_what_they_did(void **state)
{
	unsigned int i = 0;

	while (tally.run < cases) {
		uint8_t code[15];

		noise(code);
		if (i++ % 64 == 0)
			trial_state(&t);
		trial_place(&t, !(i % 4));
		if (!trial_decode(&t, code, sizeof(code)) || fickle(&t.z) ||
		    !trial_registers(&t, fsbase))
			continue;
		assert_true(trial_run(&t, fsbase));
	}
	trial_report("random");
}

static void random_windows_under_a_jump_do_what_they_did(void **state)
{
#ifdef __SANITIZE_ADDRESS__
	printf("skipped: what random code writes may be AddressSanitizer's own memory\n");
	skip();
#endif
	for (unsigned long i = 0; seen.run < cases; i++) {
		if (i % 256 == 0)
			trial_state(&t);
		t.addr = (below(2) ? HIGH : LOW) + CODE + 0x400 + below(0x1000);
		if (sequence_make(&seq, &t, fsbase))
			assert_true(window_run(&t, &seq));
	}
	assert_true(seen.translated * 100 > cases && seen.several * 20 > cases &&
	            seen.branches * 20 > cases && seen.longer * 20 > cases &&
	            seen.counted * 20 > cases && seen.too_long * 10000 < cases);
	window_report("random");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conditional_jumps_of_all_widths),
		cmocka_unit_test(loops_of_all_kinds),
		cmocka_unit_test(direct_jumps_and_calls),
		cmocka_unit_test(indirect_jumps_and_calls_with_every_operand),
		cmocka_unit_test(returns),
		cmocka_unit_test(the_stack_and_the_flags),
		cmocka_unit_test(system_calls),
		cmocka_unit_test(rip_operands_of_every_encoding),
		cmocka_unit_test(strings_locks_vectors_and_faults),
		cmocka_unit_test(strings_that_fault_midway),
		cmocka_unit_test(floats_and_vectors_of_every_kind),
		cmocka_unit_test(random_instructions_out_of_line_do_what_they_did),
		cmocka_unit_test(random_windows_under_a_jump_do_what_they_did),
	};

	const char *many = argc > 1 ? argv[1] : getenv("UKP_TEST_CASES");

	if (many)
		cases = strtoul(many, NULL, 0);
	return cmocka_run_group_tests(tests, setup, NULL);
}
