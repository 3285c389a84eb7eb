/* SPDX-License-Identifier: MIT */
/*
 * Copies are executed and compared with the originals: every form of control
 * flow, a list of what is known to be awkward, and random instructions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <asm/prctl.h>
#include <sys/syscall.h>

#include "unit/plan/noise.h"
#include "unit/plan/trial.h"

#ifndef RANDOM_INSNS
#define RANDOM_INSNS 200000
#endif

static struct trial t;
static uint64_t fsbase;

static int setup(void **state)
{
	syscall(SYS_arch_prctl, ARCH_GET_FS, &fsbase);
	return trial_setup(state);
}

/* One form, in times different states and places. */
static void form(const uint8_t *code, unsigned int n, unsigned int times)
{
	for (unsigned int i = 0; i < times; i++) {
		if (i % 8 == 0)
			trial_place(&t, i & 8), trial_state(&t);
		else
			trial_place(&t, i & 1);
		assert_true(trial_decode(&t, code, n));
		assert_int_equal(t.n, n);
		if (trial_registers(&t, fsbase))
			assert_true(trial_run(&t, fsbase));
	}
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
	trial_report("jcc");
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
	trial_report("loop");
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
	trial_report("jmp and call");
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
	trial_report("indirect");
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
	trial_report("ret");
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
	trial_report("stack");
}

static void system_calls(void **state)
{
	static const uint8_t codes[][3] = { { 0x0f, 0x05 }, { 0x48, 0x0f, 0x05 } };

	for (int i = 0; i < 64; i++) {
		trial_place(&t, i & 1);
		trial_state(&t);
		assert_true(trial_decode(&t, codes[i >> 1 & 1], sizeof(codes[0])));
		assert_true(trial_registers(&t, fsbase));
		t.cpu.gpr[0] = i & 4 ? SYS_getppid : i & 8 ? SYS_close : 0xffff;
		t.cpu.gpr[7] = -1UL;
		assert_true(trial_run(&t, fsbase));
	}
	trial_report("syscall");
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
		FORM(0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x05, 0, 0, 0, 0);
		FORM(0x62, 0xf1, 0xfe, 0x28, 0x7f, 0x05, 0, 0, 0, 0);
		FORM(0x62, 0xf3, 0xfd, 0x48, 0x25, 0x05, 0, 0, 0, 0, 0x55);
		FORM(0x62, 0xf1, 0x7c, 0x58, 0x58, 0x05, 0, 0, 0, 0);
	}
	trial_report("rip operands");
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
	trial_report("others");
}

static void random_instructions(void **state)
{
	unsigned int i = 0;

	while (tally.run < RANDOM_INSNS) {
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

int main(void)
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
		cmocka_unit_test(random_instructions),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
