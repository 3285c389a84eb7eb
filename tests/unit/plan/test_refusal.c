/* SPDX-License-Identifier: MIT */
/* What can't be probed is refused with its reason; what only looks like it is not. */
#include "unit/plan/copying.h"

#include <errno.h>

static void expect_refused(const uint8_t *code, size_t n, enum plan_refusal why)
{
	struct copied c = copy_to(code, n, ADDR, SLOT, 0);

	assert_int_equal(c.why, why);
}

static void breakpoints_and_software_interrupts_are_refused(void **state)
{
	expect_refused(BYTES(0xcc), PLAN_BREAKPOINT);
	expect_refused(BYTES(0xcd, 0x80), PLAN_BREAKPOINT);
	expect_refused(BYTES(0xcd, 0x03), PLAN_BREAKPOINT);
	expect_refused(BYTES(0xf1), PLAN_BREAKPOINT);
}

static void bytes_that_are_no_instruction_are_refused(void **state)
{
	expect_refused(BYTES(0x06), PLAN_UNDECODABLE);                   /* push es */
	expect_refused(BYTES(0xce), PLAN_UNDECODABLE);                   /* into */
	expect_refused(BYTES(0x17), PLAN_UNDECODABLE);                   /* pop ss */
	expect_refused(BYTES(0x9a, 1, 2, 3, 4, 5, 6), PLAN_UNDECODABLE); /* far call */
	expect_refused(BYTES(0x48), PLAN_UNDECODABLE);
	expect_refused(BYTES(0xe8, 0, 0, 0), PLAN_UNDECODABLE); /* cut off */
	expect_refused((const uint8_t *)"", 0, PLAN_UNDECODABLE);
	/* 16 bytes */
	expect_refused(BYTES(0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e,
	                     0x2e, 0x2e, 0x2e, 0x90),
	               PLAN_UNDECODABLE);
}

static void writes_of_the_stack_segment_are_refused(void **state)
{
	expect_refused(BYTES(0x8e, 0xd0), PLAN_STACK_SEGMENT);
	expect_refused(BYTES(0x48, 0x8e, 0x11), PLAN_STACK_SEGMENT);
	assert_int_equal(copy_to(BYTES(0x8e, 0xd8), ADDR, SLOT, 0).why, PLAN_OK);
	assert_int_equal(copy_to(BYTES(0x8c, 0xd0), ADDR, SLOT, 0).why, PLAN_OK);
}

static void far_branches_and_changes_of_privilege_are_refused(void **state)
{
	expect_refused(BYTES(0xcb), PLAN_FAR);
	expect_refused(BYTES(0xca, 8, 0), PLAN_FAR);
	expect_refused(BYTES(0x48, 0xcb), PLAN_FAR);
	expect_refused(BYTES(0xff, 0x18), PLAN_FAR);
	expect_refused(BYTES(0x48, 0xff, 0x28), PLAN_FAR);
	expect_refused(BYTES(0xcf), PLAN_FAR);
	expect_refused(BYTES(0x48, 0xcf), PLAN_FAR);
	expect_refused(BYTES(0x0f, 0x07), PLAN_FAR);
	expect_refused(BYTES(0x0f, 0x34), PLAN_FAR);
	expect_refused(BYTES(0x0f, 0x35), PLAN_FAR);
	expect_refused(BYTES(0xf3, 0x0f, 0x01, 0xec), PLAN_FAR); /* uiret */
	expect_refused(BYTES(0x0f, 0x01, 0xd7), PLAN_FAR);       /* enclu */
}

static void a_transaction_is_refused(void **state)
{
	expect_refused(BYTES(0xc7, 0xf8, 0, 0, 0, 0), PLAN_XBEGIN);
	assert_int_equal(copy_to(BYTES(0xc7, 0xc0, 0, 0, 0, 0), ADDR, SLOT, 0).why, PLAN_OK);
	assert_int_equal(copy_to(BYTES(0x0f, 0x01, 0xd5), ADDR, SLOT, 0).why, PLAN_OK);
}

static void sixteen_bit_branches_are_refused(void **state)
{
	expect_refused(BYTES(0x66, 0xe8, 0, 0, 0, 0), PLAN_BRANCH_PREFIX);
	expect_refused(BYTES(0x66, 0xe9, 0, 0, 0, 0), PLAN_BRANCH_PREFIX);
	expect_refused(BYTES(0x66, 0xeb, 0), PLAN_BRANCH_PREFIX);
	expect_refused(BYTES(0x66, 0x74, 0), PLAN_BRANCH_PREFIX);
	expect_refused(BYTES(0x66, 0x0f, 0x84, 0, 0, 0, 0), PLAN_BRANCH_PREFIX);
	expect_refused(BYTES(0x66, 0xe2, 0), PLAN_BRANCH_PREFIX);
	expect_refused(BYTES(0x66, 0xc3), PLAN_BRANCH_PREFIX);
	expect_refused(BYTES(0x66, 0xff, 0xe0), PLAN_BRANCH_PREFIX);
	expect_refused(BYTES(0x66, 0xff, 0x10), PLAN_BRANCH_PREFIX);
	/* REX.W overrides the prefix */
	assert_int_equal(copy_to(BYTES(0x66, 0x48, 0xff, 0xe0), ADDR, SLOT, 0).why, PLAN_OK);
}

static void conditional_loops_with_a_rep_prefix_are_refused(void **state)
{
	expect_refused(BYTES(0xf3, 0xe0, 0), PLAN_BRANCH_PREFIX);
	expect_refused(BYTES(0xf2, 0xe1, 0), PLAN_BRANCH_PREFIX);
	assert_int_equal(copy_to(BYTES(0xf3, 0xe2, 0), ADDR, SLOT, 0).why, PLAN_OK);
}

static void a_call_that_reads_what_it_pushes_is_refused(void **state)
{
	expect_refused(BYTES(0xff, 0xd4), PLAN_STACK_CALL);
	expect_refused(BYTES(0xff, 0x54, 0x24, 0xf8), PLAN_STACK_CALL);
	expect_refused(BYTES(0xff, 0x54, 0x24, 0xf1), PLAN_STACK_CALL);
	expect_refused(BYTES(0xff, 0x54, 0x24, 0xff), PLAN_STACK_CALL);
	expect_refused(BYTES(0xff, 0x54, 0xcc, 0xf8), PLAN_STACK_CALL);
	assert_int_equal(copy_to(BYTES(0xff, 0x54, 0x24, 0xf0), ADDR, SLOT, 0).why, PLAN_OK);
	assert_int_equal(copy_to(BYTES(0x41, 0xff, 0xd4), ADDR, SLOT, 0).why, PLAN_OK);
	assert_int_equal(copy_to(BYTES(0xff, 0xe4), ADDR, SLOT, 0).why, PLAN_OK);
}

static void an_operand_out_of_reach_is_refused_where_rsp_is_used(void **state)
{
	static const uint8_t codes[][8] = {
		{ 0xff, 0x35 },             /* push m */
		{ 0x8f, 0x05 },             /* pop m */
		{ 0x48, 0x89, 0x25 },       /* mov %rsp,m */
		{ 0x48, 0x03, 0x25 },       /* add m,%rsp */
		{ 0x66, 0x39, 0x25 },       /* cmp %sp,m */
		{ 0x0f, 0x38, 0xf1, 0x25 }, /* movbe %esp,m */
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		assert_int_equal(copy_to(codes[i], sizeof(codes[i]), ADDR, HIGH, 0).why,
		                 PLAN_OUT_OF_REACH);
		assert_int_equal(copy_to(codes[i], sizeof(codes[i]), ADDR, SLOT, 0).why, PLAN_OK);
	}
	/* r12 has rsp's number but for one bit */
	assert_int_equal(copy_to(BYTES(0x4c, 0x89, 0x25, 0, 0, 0, 0), ADDR, HIGH, 0).why, PLAN_OK);
}

static void an_operand_that_outgrows_the_instruction_is_refused(void **state)
{
	/* 15 bytes with disp8: disp32 makes 18 */
	expect_refused(BYTES(0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0xff,
	                     0x54, 0x24, 0x78),
	               PLAN_TOO_LONG);
}

static void instructions_that_fault_are_not_refused(void **state)
{
	assert_int_equal(copy_to(BYTES(0x0f, 0x0b), ADDR, SLOT, 0).why, PLAN_OK); /* ud2 */
	assert_int_equal(copy_to(BYTES(0xf4), ADDR, SLOT, 0).why, PLAN_OK);       /* hlt */
	assert_int_equal(copy_to(BYTES(0xec), ADDR, SLOT, 0).why, PLAN_OK);       /* in */
}

static void each_refusal_has_an_errno_and_words(void **state)
{
	assert_int_equal(plan_errno(PLAN_OK), 0);
	for (int i = PLAN_OK + 1; i < PLAN_REFUSALS; i++) {
		assert_true(plan_errno(i) < 0);
		assert_true(strlen(plan_reason(i)) > 5);
	}
	assert_int_equal(plan_errno(PLAN_NOT_BOUNDARY), -EILSEQ);
	assert_int_equal(plan_errno(PLAN_OUT_OF_REACH), -ENOSPC);
	assert_int_equal(plan_errno(PLAN_STACK_SEGMENT), -EINVAL);
	assert_int_equal(plan_errno(PLAN_FAR), -EOPNOTSUPP);
	assert_int_equal(plan_errno((enum plan_refusal)99), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(breakpoints_and_software_interrupts_are_refused),
		cmocka_unit_test(bytes_that_are_no_instruction_are_refused),
		cmocka_unit_test(writes_of_the_stack_segment_are_refused),
		cmocka_unit_test(far_branches_and_changes_of_privilege_are_refused),
		cmocka_unit_test(a_transaction_is_refused),
		cmocka_unit_test(sixteen_bit_branches_are_refused),
		cmocka_unit_test(conditional_loops_with_a_rep_prefix_are_refused),
		cmocka_unit_test(a_call_that_reads_what_it_pushes_is_refused),
		cmocka_unit_test(an_operand_out_of_reach_is_refused_where_rsp_is_used),
		cmocka_unit_test(an_operand_that_outgrows_the_instruction_is_refused),
		cmocka_unit_test(instructions_that_fault_are_not_refused),
		cmocka_unit_test(each_refusal_has_an_errno_and_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
