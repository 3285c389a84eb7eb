/* SPDX-License-Identifier: MIT */
/* The program of an event and the layout of its record. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ukprobes/pt_regs.h"
#include "unit/lang/fake_sym.h"
#include "unit/lang/run_line.h"

static void compile(struct line_result *r, const char *text)
{
	run_line(r, text);
	if (r->code)
		fail_msg("%s: %d, column %d, '%s'", text, r->code, r->err.column, r->err.text);
}

static void step_is(const struct ukp_fetch *f, uint8_t op, uint64_t imm)
{
	assert_int_equal(f->op, op);
	assert_int_equal(f->imm, imm);
}

static void store_is(const struct ukp_fetch *f, uint8_t op, uint8_t size, uint16_t field,
                     int32_t off)
{
	assert_int_equal(f->op, op);
	assert_int_equal(f->size, size);
	assert_int_equal(f->field, field);
	assert_int_equal(f->off, off);
}

#define REG(r) offsetof(struct pt_regs, r)

static void an_event_without_arguments_records_its_place_only(void **state)
{
	struct line_result r;

	(void)state;
	compile(&r, "p vfs_read");
	assert_int_equal(r.ev->fixed_len, 8);
	assert_int_equal(r.ev->nr_steps, 0);
	assert_int_equal(r.ev->flags, 0);
	line_free(&r);
	compile(&r, "r12 vfs_read");
	assert_int_equal(r.ev->fixed_len, 16);
	assert_int_equal(r.ev->flags, UKP_EVENT_RETURN);
	assert_int_equal(r.ev->maxactive, 12);
	line_free(&r);
}

static void fields_follow_the_fault_word_in_order_and_without_padding(void **state)
{
	struct line_result r;
	static const struct {
		const char *name;
		uint8_t type, size;
		uint16_t offset;
	} want[] = {
		{ "arg1", LANG_U, 1, 16 },   { "b", LANG_S, 4, 17 },    { "c", LANG_COMM, 0, 21 },
		{ "d", LANG_STRING, 4, 21 }, { "arg5", LANG_X, 8, 25 }, { "arg6", LANG_X, 2, 33 },
	};

	(void)state;
	compile(&r, "p vfs_read %di:u8 b=%si:s32 c=$comm d=+0(%dx):string %ip @0x10:x16");
	assert_int_equal(r.nr_fields, NR(want));
	for (size_t i = 0; i < NR(want); i++) {
		assert_string_equal(r.fields[i].name, want[i].name);
		assert_int_equal(r.fields[i].type, want[i].type);
		assert_int_equal(r.fields[i].size, want[i].size);
		assert_int_equal(r.fields[i].offset, want[i].offset);
	}
	assert_int_equal(r.ev->fixed_len, 35);
	assert_int_equal(r.ev->nr_args, 6);
	assert_int_equal(r.ev->nr_strings, 1);
	assert_int_equal(r.ev->nr_steps, 12);
	line_free(&r);
}

static void every_64_arguments_have_a_fault_word(void **state)
{
	char text[1024] = "r vfs_read";
	struct line_result r;

	(void)state;
	for (int i = 0; i < 64; i++)
		strcat(text, " %di:u8");
	compile(&r, text);
	assert_int_equal(r.fields[0].offset, 24);
	assert_int_equal(r.ev->fixed_len, 24 + 64);
	line_free(&r);
	strcat(text, " %di:u8");
	compile(&r, text);
	assert_int_equal(r.fields[0].offset, 32);
	assert_int_equal(r.ev->fixed_len, 32 + 65);
	line_free(&r);
}

static void the_outermost_dereference_is_the_read_that_is_stored(void **state)
{
	struct line_result r;
	const struct ukp_fetch *s;

	(void)state;
	compile(&r, "p vfs_read +8(+16(%di)) -0x10(%sp):u16 +0(%di):string @jiffies+4:u32");
	s = r.ev->steps;
	step_is(&s[0], UKP_FETCH_REG, REG(di));
	assert_int_equal(s[1].op, UKP_FETCH_DEREF);
	assert_int_equal(s[1].off, 16);
	store_is(&s[2], UKP_FETCH_ST_MEM, 8, 16, 8);
	step_is(&s[3], UKP_FETCH_REG, REG(sp));
	store_is(&s[4], UKP_FETCH_ST_MEM, 2, 24, -16);
	step_is(&s[5], UKP_FETCH_REG, REG(di));
	store_is(&s[6], UKP_FETCH_ST_STRING, 4, 26, 0);
	step_is(&s[7], UKP_FETCH_IMM, 0x410004);
	store_is(&s[8], UKP_FETCH_ST_MEM, 4, 30, 0);
	assert_int_equal(r.ev->nr_steps, 9);
	line_free(&r);
}

static void values_that_are_no_memory_are_stored_as_they_are(void **state)
{
	struct line_result r;
	const struct ukp_fetch *s;

	(void)state;
	compile(&r, "r vfs_read $retval:s32 $duration $stack $stack3 \\-1 $comm $retval:string");
	s = r.ev->steps;
	step_is(&s[0], UKP_FETCH_RETVAL, 0);
	store_is(&s[1], UKP_FETCH_ST_RAW, 4, 24, 0);
	step_is(&s[2], UKP_FETCH_DURATION, 0);
	store_is(&s[3], UKP_FETCH_ST_RAW, 8, 28, 0);
	step_is(&s[4], UKP_FETCH_STACKP, 0);
	step_is(&s[6], UKP_FETCH_STACK, 3);
	step_is(&s[8], UKP_FETCH_IMM, UINT64_MAX);
	step_is(&s[10], UKP_FETCH_COMM, 0);
	store_is(&s[11], UKP_FETCH_ST_NONE, 0, 60, 0);
	step_is(&s[12], UKP_FETCH_RETVAL, 0);
	store_is(&s[13], UKP_FETCH_ST_STRING, 4, 60, 0);
	assert_int_equal(r.fields[1].type, LANG_NS);
	assert_int_equal(r.fields[1].size, 8);
	line_free(&r);
}

static void arguments_lie_where_the_abi_puts_them(void **state)
{
	static const uint16_t regs[] = { REG(di), REG(si), REG(dx), REG(cx), REG(r8), REG(r9) };
	struct line_result r;

	(void)state;
	compile(&r, "p vfs_read $arg1 $arg2 $arg3 $arg4 $arg5 $arg6 $arg7 $arg9");
	for (int i = 0; i < 6; i++)
		step_is(&r.ev->steps[2 * i], UKP_FETCH_REG, regs[i]);
	step_is(&r.ev->steps[12], UKP_FETCH_STACK, 1); /* word 0: the return address */
	step_is(&r.ev->steps[14], UKP_FETCH_STACK, 3);
	line_free(&r);
}

static void a_return_probe_saves_each_argument_once_at_entry(void **state)
{
	struct line_result r;
	const struct ukp_fetch *s;

	(void)state;
	compile(&r, "r vfs_read $arg2 a=+8($arg7):u32 $retval $arg2:u8 %di");
	assert_int_equal(r.ev->nr_entry, 2);
	assert_int_equal(r.ev->nr_steps, 10);
	s = r.ev->steps;
	step_is(&s[0], UKP_FETCH_REG, REG(si));
	step_is(&s[1], UKP_FETCH_STACK, 1);
	step_is(&s[2], UKP_FETCH_EDATA, 0);
	store_is(&s[3], UKP_FETCH_ST_RAW, 8, 24, 0);
	step_is(&s[4], UKP_FETCH_EDATA, 1);
	store_is(&s[5], UKP_FETCH_ST_MEM, 4, 32, 8);
	step_is(&s[8], UKP_FETCH_EDATA, 0);
	store_is(&s[9], UKP_FETCH_ST_RAW, 1, 44, 0);
	step_is(&s[10], UKP_FETCH_REG, REG(di)); /* as it is at the return */
	line_free(&r);
}

static void no_argument_has_more_steps_than_the_engine_takes(void **state)
{
	struct line_result r;

	(void)state;
	compile(&r, "p vfs_read +0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(%di))))))))))))))");
	assert_int_equal(r.ev->nr_steps, 15);
	assert_true(r.ev->nr_steps <= UKP_FETCH_MAX);
	line_free(&r);
}

static void floating_results_come_from_their_registers(void **state)
{
	static const struct {
		uint8_t op, size;
		uint64_t imm;
	} want[] = {
		{ UKP_FETCH_FPU, 4, UKP_FPU_XMM0 },     { UKP_FETCH_FPU, 8, UKP_FPU_XMM0 },
		{ UKP_FETCH_FPU, 10, UKP_FPU_ST0 },     { UKP_FETCH_RETVAL, 16, 0 },
		{ UKP_FETCH_FPU, 8, UKP_FPU_XMM0 + 1 }, { UKP_FETCH_FPU, 16, UKP_FPU_XMM0 + 15 },
		{ UKP_FETCH_FPU, 10, UKP_FPU_ST0 + 1 },
	};
	struct line_result r;
	uint16_t field = 24;
	size_t i;

	(void)state;
	compile(&r, "r vfs_read a=$retval:f32 b=$retval:f64 c=$retval:f80 d=$retval:s128 "
	            "e=%xmm1:f64 f=%xmm15 g=%st1 h=+8($retval):f80");
	for (i = 0; i < NR(want); i++) {
		step_is(&r.ev->steps[2 * i], want[i].op, want[i].imm);
		store_is(&r.ev->steps[2 * i + 1], UKP_FETCH_ST_RAW, want[i].size, field, 0);
		field += want[i].size;
	}
	step_is(&r.ev->steps[2 * i], UKP_FETCH_RETVAL, 0);
	store_is(&r.ev->steps[2 * i + 1], UKP_FETCH_ST_MEM, 10, field, 8);
	assert_int_equal(r.ev->fixed_len, field + 10);
	assert_int_equal(r.fields[0].type, LANG_F);
	assert_int_equal(r.fields[3].type, LANG_S);
	assert_int_equal(r.fields[3].size, 16);
	assert_int_equal(r.fields[5].type, LANG_X);
	assert_false(r.ev->nr_entry);
	line_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_without_arguments_records_its_place_only),
		cmocka_unit_test(fields_follow_the_fault_word_in_order_and_without_padding),
		cmocka_unit_test(every_64_arguments_have_a_fault_word),
		cmocka_unit_test(the_outermost_dereference_is_the_read_that_is_stored),
		cmocka_unit_test(values_that_are_no_memory_are_stored_as_they_are),
		cmocka_unit_test(arguments_lie_where_the_abi_puts_them),
		cmocka_unit_test(floating_results_come_from_their_registers),
		cmocka_unit_test(a_return_probe_saves_each_argument_once_at_entry),
		cmocka_unit_test(no_argument_has_more_steps_than_the_engine_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
