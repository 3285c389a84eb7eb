/* SPDX-License-Identifier: MIT */
/* Finding instruction boundaries by decoding from a function's start. */
#include "unit/plan/copying.h"

#define FUNC 0x401000UL

static const uint8_t func[] = {
	0xf3, 0x0f, 0x1e, 0xfa,             /*  0 endbr64 */
	0x55,                               /*  4 push %rbp */
	0x48, 0x89, 0xe5,                   /*  5 mov %rsp,%rbp */
	0xcc,                               /*  8 int3 */
	0x66, 0x66, 0x48, 0xe8, 0, 0, 0, 0, /*  9 call */
	0xcd, 0x80,                         /* 17 int $0x80 */
	0xc3,                               /* 19 ret */
};

static void exactly_the_starts_of_instructions_are_boundaries(void **state)
{
	const unsigned int starts = 1 << 0 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 17 | 1 << 19;

	for (unsigned int i = 0; i < sizeof(func); i++)
		assert_int_equal(plan_boundary(func, sizeof(func), FUNC, FUNC + i),
		                 starts >> i & 1 ? PLAN_OK : PLAN_NOT_BOUNDARY);
}

static void an_address_outside_the_function_is_none(void **state)
{
	assert_int_equal(plan_boundary(func, sizeof(func), FUNC, FUNC - 1), PLAN_NOT_BOUNDARY);
	assert_int_equal(plan_boundary(func, sizeof(func), FUNC, FUNC + sizeof(func)),
	                 PLAN_NOT_BOUNDARY);
	assert_int_equal(plan_boundary(func, 0, FUNC, FUNC), PLAN_NOT_BOUNDARY);
}

static void behind_bytes_that_mean_nothing_no_boundary_is_known(void **state)
{
	const uint8_t bad[] = { 0x90, 0x06, 0x90, 0x90 };

	assert_int_equal(plan_boundary(bad, sizeof(bad), FUNC, FUNC + 1), PLAN_OK);
	assert_int_equal(plan_boundary(bad, sizeof(bad), FUNC, FUNC + 2), PLAN_UNDECODABLE);
}

static void behind_a_branch_that_cpus_read_differently_neither(void **state)
{
	const uint8_t bad[] = { 0x66, 0xe8, 0, 0, 0, 0, 0x90 };

	assert_int_equal(plan_boundary(bad, sizeof(bad), FUNC, FUNC + 6), PLAN_BRANCH_PREFIX);
	/* but this one is two bytes everywhere */
	assert_int_equal(plan_boundary(BYTES(0x66, 0xc3, 0x90), FUNC, FUNC + 2), PLAN_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exactly_the_starts_of_instructions_are_boundaries),
		cmocka_unit_test(an_address_outside_the_function_is_none),
		cmocka_unit_test(behind_bytes_that_mean_nothing_no_boundary_is_known),
		cmocka_unit_test(behind_a_branch_that_cpus_read_differently_neither),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
