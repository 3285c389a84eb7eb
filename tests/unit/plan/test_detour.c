/* SPDX-License-Identifier: MIT */
/* Detours and their maps, by bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <Zydis/Zydis.h>

#include "plan/detour.h"

#define ADDR 0x100000UL
#define BUF 0x200000UL
#define ENGINE 0x7f0000000000UL

static struct plan_detour d;
static struct plan_window w;

/* A window that covers all of code. */
static void window_of(const uint8_t *code, size_t n)
{
	struct plan_insn insn;

	memset(&w, 0, sizeof(w));
	while (w.len < n) {
		assert_int_equal(plan_decode(code + w.len, n - w.len, ADDR, &insn), PLAN_OK);
		w.insn[w.nr].off = w.len;
		w.insn[w.nr++].len = insn.len;
		w.len = (uint8_t)(w.len + insn.len);
	}
	w.covered = w.len;
}

static enum plan_refusal detour_of(const uint8_t *code, size_t n, struct plan_form form,
                                   unsigned int probes)
{
	struct plan_detour_request req = {
		.code = code,
		.addr = ADDR,
		.window = &w,
		.buf = BUF,
		.engine = form.near ? BUF + 0x1000 : ENGINE,
		.entry = form.near ? BUF + 0x1100 : ENGINE + 0x100,
		.form = form,
		.probes = (uint8_t)probes,
		.site = { 0x1111, 0x2222, 0x3333, 0x4444, 0x5555 },
	};

	window_of(code, n);
	return plan_detour(&req, &d);
}

static const uint8_t prologue[] = { 0x55, 0x48, 0x89, 0xe5, 0x53 };

static void the_lightest_form_is_exactly_this(void **state)
{
	int32_t rel;

	static const uint8_t exact[] = {
		0x48, 0x8d, 0xa4, 0x24, 0x70, 0xff, 0xff, 0xff,       /* lea -144(%rsp) */
		0x9c, 0xfc,                                           /* pushfq; cld */
		0x48, 0x8d, 0x64, 0x24, 0xe8,                         /* lea -24(%rsp) */
		0x57, 0x56,                                           /* push rdi, rsi */
		0x48, 0x8d, 0x64, 0x24, 0x98,                         /* lea -104(%rsp) */
		0x48, 0x89, 0xe7,                                     /* mov %rsp,%rdi */
		0x48, 0xbe, 0x11, 0x11, 0,    0,    0,    0,    0, 0, /* mov $site,%rsi */
		0xe8, 0xd8, 0x0f, 0,    0,                            /* call */
		0x48, 0x8d, 0x64, 0x24, 0x68,                         /* lea 104(%rsp) */
		0x5e, 0x5f,                                           /* pop rsi, rdi */
		0x48, 0x8d, 0x64, 0x24, 0x18,                         /* lea 24(%rsp) */
		0x9d,                                                 /* popfq */
		0x48, 0x8d, 0xa4, 0x24, 0x90, 0,    0,    0,          /* lea 144(%rsp) */
		0x55, 0x48, 0x89, 0xe5, 0x53,                         /* the window */
		0xe9, 0xbe, 0xff, 0xef, 0xff,                         /* back */
	};

	assert_int_equal(detour_of(prologue, 5, (struct plan_form){ 0, false, true, false }, 1),
	                 PLAN_OK);
	assert_true(d.d.size >= sizeof(exact));
	assert_memory_equal(d.code, exact, sizeof(exact));
	assert_int_equal(d.d.jump[0], 0xe9);
	memcpy(&rel, d.d.jump + 1, 4);
	assert_int_equal(rel, BUF - ADDR - 5);
	assert_memory_equal(d.d.orig, prologue, 5);
}

/* Words that sp is below the original's, after an instruction of an entry or the tail. */
static int words_after(const ZydisDecodedInstruction *z, int words)
{
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_PUSHFQ:
		return words + 1;
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_POPFQ:
		return words - 1;
	case ZYDIS_MNEMONIC_LEA:
		if (z->raw.modrm.reg == 4 && !z->raw.rex.R)
			return words - (int)z->raw.disp.value / 8;
		return words;
	default:
		return words;
	}
}

/* Every boundary of an entry is in its map with the sp that decoding gives, and nothing else is. */
static void expect_entry_map(unsigned int i)
{
	unsigned int off = d.d.insn[i].entry, end = off + d.shape.len, seen = 0;
	int words = 0;
	ZydisDecodedInstruction z;
	ZydisDecoder dec;

	ZydisDecoderInit(&dec, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	while (off < end) {
		struct ukp_detour_frame f = { 0 };

		assert_true(ZYAN_SUCCESS(
			ZydisDecoderDecodeInstruction(&dec, NULL, d.code + off, end - off, &z)));
		assert_true(ukp_detour_frame(&d.d, &d.shape, BUF + off, 0x10000, &f));
		assert_int_equal(f.pc, ADDR + d.d.insn[i].off);
		assert_int_equal(f.sp, 0x10000 + 8 * words);
		assert_int_equal(f.flags, UKP_PC_BEFORE);
		assert_int_equal(f.regs, f.sp - UKP_DETOUR_FRAME);
		for (unsigned int k = 1; k < z.length; k++)
			assert_false(ukp_detour_frame(&d.d, &d.shape, BUF + off + k, 0x10000, &f));
		/* a word is saved from its push to its pop */
		for (int b = 0; b < UKP_DETOUR_WORDS; b++)
			assert_int_equal(f.saved >> b & 1,
			                 (d.shape.saves >> b & 1) && words >= 37 - b);
		words = words_after(&z, words);
		off += z.length;
		seen++;
	}
	assert_int_equal(words, 0);
	assert_int_equal(seen, d.shape.npc);
}

static void every_boundary_of_every_form_is_mapped(void **state)
{
	uint32_t saves = 1;

	for (int i = 0; i < 2000; i++) {
		struct plan_form form = { i == 0 ? PLAN_SAVE_ALL : saves, i & 1, i & 2, i & 4 };

		saves = saves * 1664525 + 1013904223;
		assert_int_equal(detour_of(prologue, 5, form, 7), PLAN_OK);
		for (unsigned int k = 0; k < 3; k++)
			expect_entry_map(k);
		assert_int_equal(d.shape.saves, plan_form_saves(&form));
	}
}

static void every_boundary_of_a_counting_entry_is_mapped(void **state)
{
	for (int i = 0; i < 64; i++) {
		struct plan_count count = { .alive = 0x1234567890,
			                    .stride = 1 << 20,
			                    .shards = 1 + (uint32_t)i,
			                    .rdpid = i & 1 };
		struct plan_detour_request req = {
			.code = prologue,
			.addr = ADDR,
			.window = &w,
			.buf = BUF,
			.count = &count,
			.probes = 5,
		};

		window_of(prologue, 5);
		assert_int_equal(plan_detour(&req, &d), PLAN_OK);
		assert_int_equal(d.shape.flags, UKP_DETOUR_COUNT);
		assert_int_equal(d.shape.saves, PLAN_SAVE(ax) | PLAN_SAVE(cx) | PLAN_SAVE(dx));
		expect_entry_map(0);
		expect_entry_map(2);
		assert_int_equal(d.d.insn[1].entry, UKP_DETOUR_NO_ENTRY);
	}
}

static void the_shape_depends_on_the_form_alone(void **state)
{
	static const uint8_t other[] = { 0x31, 0xc0, 0x48, 0x8b, 0x05, 0, 0, 0, 0 };
	struct plan_form form = { PLAN_SAVE_CALL, true, false, false };
	struct ukp_detour_shape first;

	assert_int_equal(detour_of(prologue, 5, form, 1), PLAN_OK);
	first = d.shape;
	assert_int_equal(detour_of(other, sizeof(other), form, 3), PLAN_OK);
	assert_memory_equal(&first, &d.shape, sizeof(first));
}

static void where_the_flow_was_changed_the_map_says_so(void **state)
{
	unsigned int moved = 0;
	struct plan_form form = { PLAN_SAVE_ALL, true, false, false };
	struct ukp_detour_frame f = { 0 };

	assert_int_equal(detour_of(prologue, 5, form, 1), PLAN_OK);
	for (unsigned int i = 0; i < d.d.npc; i++) {
		if (!(d.pc[i].flags & UKP_PC_MOVED))
			continue;
		moved++;
		assert_true(ukp_detour_frame(&d.d, &d.shape, BUF + d.pc[i].off, 0x10000, &f));
		assert_int_equal(f.regs, 0x10000 + 8 * d.pc[i].words - UKP_DETOUR_FRAME);
		assert_true(f.saved & PLAN_SAVE(ip) && f.saved & PLAN_SAVE(sp));
	}
	assert_int_equal(moved, 17);
}

/*
 * Where the engine wants a call: each boundary has the sp that decoding gives, and
 * from the one behind the store to the frame's word on the map says that.
 */
static void where_a_function_is_called_in_place_the_map_says_so(void **state)
{
	for (int i = 0; i < 8; i++) {
		struct plan_form form = { i & 4 ? PLAN_SAVE_ALL : 0, i & 1, i & 2, true };
		unsigned int calls = 0, called = 0, off = 0;
		ZydisDecodedInstruction z;
		ZydisDecoder dec;
		int words = UKP_DETOUR_FRAME / 8;
		bool stored = false;

		assert_int_equal(detour_of(prologue, 5, form, 3), PLAN_OK);
		expect_entry_map(0);
		expect_entry_map(1);
		ZydisDecoderInit(&dec, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
		for (unsigned int k = 0; k < d.d.npc; k++) {
			struct ukp_detour_frame f = { 0 };

			if (!(d.pc[k].flags & UKP_PC_CALLS))
				continue;
			assert_true(!calls++ || d.pc[k].off == off);
			off = d.pc[k].off;
			assert_true(ukp_detour_frame(&d.d, &d.shape, BUF + off, 0x10000, &f));
			assert_int_equal(f.pc, ADDR);
			assert_int_equal(f.sp, 0x10000 + 8 * words);
			assert_int_equal(f.flags, UKP_PC_CALLS | (stored ? UKP_PC_CALLED : 0));
			called += stored;
			assert_true(ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
				&dec, NULL, d.code + off, d.d.size - off, &z)));
			if (z.mnemonic == ZYDIS_MNEMONIC_MOV && z.raw.modrm.mod == 2 &&
			    z.opcode == 0x89) {
				assert_int_equal(z.raw.disp.value, 8 * words);
				stored = true;
			}
			words = words_after(&z, words);
			off += z.length;
		}
		/* pop %rdi, perhaps popfq and a gap before, lea, jmp *-24(%rsp) */
		assert_true(calls > 5 && called >= 3 && called <= 5);
		assert_int_equal(words, 14);
		assert_memory_equal(d.code + off - 4, "\xff\x64\x24\xe8", 4);
	}
}

static void a_detour_without_a_probe_at_its_start_calls_nothing(void **state)
{
	struct plan_form form = { PLAN_SAVE_ALL, true, false, true };

	assert_int_equal(detour_of(prologue, 5, form, 2), PLAN_NOT_BOUNDARY);
	assert_int_equal(detour_of(prologue, 5, form, 1), PLAN_OK);
}

static void copies_are_mapped_and_run_into_each_other(void **state)
{
	/* push %rbp; jne; call *(%rax) */
	static const uint8_t code[] = { 0x55, 0x75, 0x40, 0xff, 0x10 };
	struct ukp_detour_frame f = { 0 };
	unsigned int at;

	assert_int_equal(detour_of(code, 5, (struct plan_form){ 0, false, true, false }, 1),
	                 PLAN_OK);
	at = d.d.insn[0].copy;
	assert_int_equal(d.code[at], 0x55);
	assert_int_equal(d.d.insn[1].copy, at + 1);
	assert_int_equal(d.d.insn[2].copy, at + 7); /* jne rel32, nothing behind it */
	at = d.d.insn[2].copy;
	assert_int_equal(d.code[at], 0x68);
	assert_true(ukp_detour_frame(&d.d, &d.shape, BUF + at, 64, &f));
	assert_int_equal(f.pc, ADDR + 3);
	assert_int_equal(f.sp, 64);
	assert_true(ukp_detour_frame(&d.d, &d.shape, BUF + at + 5, 64, &f));
	assert_int_equal(f.pc, ADDR + 3);
	assert_int_equal(f.sp, 72); /* the return address has been pushed */
	assert_false(ukp_detour_frame(&d.d, &d.shape, BUF + d.d.size, 64, &f));
	assert_false(ukp_detour_frame(&d.d, &d.shape, BUF - 1, 64, &f));
}

static void parked_threads_meet_the_probes_that_are_ahead_of_them(void **state)
{
	assert_int_equal(detour_of(prologue, 5, (struct plan_form){ 0, false, true, false }, 5),
	                 PLAN_OK);
	assert_int_equal(ukp_detour_park(&d.d, ADDR), ADDR);
	assert_int_equal(ukp_detour_park(&d.d, ADDR + 1), BUF + d.d.insn[1].copy);
	assert_int_equal(ukp_detour_park(&d.d, ADDR + 2), 0);
	assert_int_equal(ukp_detour_park(&d.d, ADDR + 4), BUF + d.d.insn[2].entry);
	assert_int_equal(ukp_detour_park(&d.d, ADDR + 5), ADDR + 5);
	assert_int_equal(ukp_detour_park(&d.d, ADDR - 1), ADDR - 1);
}

static void a_thread_in_a_system_call_is_moved_so_that_it_can_be_restarted(void **state)
{
	/* xor %eax,%eax; nop; syscall */
	static const uint8_t code[] = { 0x31, 0xc0, 0x90, 0x0f, 0x05 };
	uint64_t to;

	assert_int_equal(detour_of(code, 5, (struct plan_form){ 0, false, true, false }, 1),
	                 PLAN_OK);
	to = ukp_detour_park(&d.d, ADDR + 5);
	assert_int_equal(to, BUF + d.d.insn[2].copy + 2);
	assert_memory_equal(d.code + (to - BUF) - 2, "\x0f\x05", 2);
	/* behind a nop, which is not copied, comes the syscall */
	assert_int_equal(d.d.insn[1].copy, d.d.insn[2].copy);
}

static void what_can_t_be_reached_is_refused(void **state)
{
	struct plan_detour_request req = {
		.code = prologue,
		.addr = ADDR,
		.window = &w,
		.buf = 0x100000000UL,
		.engine = ENGINE,
		.probes = 1,
	};

	window_of(prologue, 5);
	assert_int_equal(plan_detour(&req, &d), PLAN_OUT_OF_REACH);
	req.buf = BUF;
	req.form.near = true;
	assert_int_equal(plan_detour(&req, &d), PLAN_OUT_OF_REACH);
	req.form.near = false;
	assert_int_equal(plan_detour(&req, &d), PLAN_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lightest_form_is_exactly_this),
		cmocka_unit_test(every_boundary_of_every_form_is_mapped),
		cmocka_unit_test(every_boundary_of_a_counting_entry_is_mapped),
		cmocka_unit_test(the_shape_depends_on_the_form_alone),
		cmocka_unit_test(where_the_flow_was_changed_the_map_says_so),
		cmocka_unit_test(where_a_function_is_called_in_place_the_map_says_so),
		cmocka_unit_test(a_detour_without_a_probe_at_its_start_calls_nothing),
		cmocka_unit_test(copies_are_mapped_and_run_into_each_other),
		cmocka_unit_test(parked_threads_meet_the_probes_that_are_ahead_of_them),
		cmocka_unit_test(a_thread_in_a_system_call_is_moved_so_that_it_can_be_restarted),
		cmocka_unit_test(what_can_t_be_reached_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
