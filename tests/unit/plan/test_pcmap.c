/* SPDX-License-Identifier: MIT */
/* Which original pc and sp each boundary of generated code stands for. */
#include "unit/plan/copying.h"

static void expect_nothing(const struct copied *c, unsigned int off)
{
	struct ukp_site_frame f;

	assert_false(ukp_site_frame(&c->site, c->site.slot + off, 0, &f));
}

static void the_start_of_the_slot_is_the_probed_address(void **state)
{
	struct copied c = copy_to(BYTES(0x48, 0x89, 0xe5), ADDR, SLOT, 0);

	expect_pc(&c, 0, ADDR, 0);
	assert_int_equal(c.site.pc[0].flags, UKP_PC_BEFORE);
	expect_pc(&c, 3, ADDR + 3, 0);
	assert_int_equal(c.site.pc[1].flags, UKP_PC_AFTER);
	assert_int_equal(c.site.npc, 2);
}

static void an_address_inside_an_instruction_is_none(void **state)
{
	struct copied c = copy_to(BYTES(0x48, 0x89, 0xe5), ADDR, SLOT, 0);

	expect_nothing(&c, 1);
	expect_nothing(&c, 2);
	expect_nothing(&c, 4);
	expect_nothing(&c, UKP_SLOT_SIZE);
	expect_nothing(&c, (unsigned int)-1);
}

static void a_pushed_return_address_has_not_happened_yet(void **state)
{
	struct copied c = copy_to(BYTES(0xe8, 0, 0, 0, 0), HIGH + ADDR, HIGH + SLOT, 0);

	expect_pc(&c, 0, HIGH + ADDR, 0);
	expect_pc(&c, 5, HIGH + ADDR, 8);
	expect_pc(&c, 13, HIGH + ADDR, 8);
	assert_int_equal(c.site.npc, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(c.site.pc[i].flags, UKP_PC_BEFORE);
}

static void expect_saved(const struct copied *c, unsigned int off, uint32_t flags, uint32_t reg)
{
	struct ukp_site_frame f = { 0 };

	assert_true(ukp_site_frame(&c->site, c->site.slot + off, 0, &f));
	assert_int_equal(f.flags, flags);
	assert_int_equal(f.reg, reg);
}

static void a_borrowed_register_is_told(void **state)
{
	/* mov m,%rsi by way of %rdi */
	struct copied c = copy_to(BYTES(0x48, 0x8b, 0x35, 0, 0, 0, 0), ADDR, HIGH, 0);

	expect_pc(&c, 0, ADDR, 0);
	expect_pc(&c, 5, ADDR, 128);
	expect_pc(&c, 6, ADDR, 136);
	expect_pc(&c, 16, ADDR, 136);
	expect_pc(&c, 23, ADDR + 7, 136);
	expect_pc(&c, 24, ADDR + 7, 128);
	expect_pc(&c, 32, ADDR + 7, 0);
	assert_int_equal(c.site.npc, 7);
	expect_saved(&c, 5, UKP_PC_BEFORE, 0);
	expect_saved(&c, 6, UKP_PC_BEFORE | UKP_PC_SAVED, 7);
	expect_saved(&c, 16, UKP_PC_BEFORE | UKP_PC_SAVED, 7);
	expect_saved(&c, 23, UKP_PC_AFTER | UKP_PC_SAVED, 7);
	expect_saved(&c, 24, UKP_PC_AFTER, 0);
}

static void a_taken_branch_stands_at_its_target(void **state)
{
	struct copied c = copy_to(BYTES(0xe2, 0x0e), ADDR, SLOT, 0);

	expect_pc(&c, 0, ADDR, 0);
	expect_pc(&c, 2, ADDR + 2, 0);
	expect_pc(&c, 7, ADDR + 0x10, 0);
	c = copy_to(BYTES(0x74, 0xf0), ADDR, HIGH, 0);
	expect_pc(&c, 2, ADDR + 2, 0);
	expect_pc(&c, 16, ADDR - 14, 0);
}

static void a_restarted_system_call_stands_at_the_syscall(void **state)
{
	struct copied c = copy_to(BYTES(0x0f, 0x05), ADDR, SLOT, 0);

	/* the kernel leaves pc behind the copy, and rewinds it by two */
	expect_pc(&c, 2, ADDR + 2, 0);
	assert_int_equal(c.site.pc[1].flags, UKP_PC_AFTER);
	expect_pc(&c, 0, ADDR, 0);
	expect_pc(&c, 7, ADDR + 2, 0);
	/* ... over a prefix that is executed or not */
	c = copy_to(BYTES(0x48, 0x0f, 0x05), ADDR, SLOT, 0);
	expect_pc(&c, 0, ADDR, 0);
	expect_pc(&c, 1, ADDR + 1, 0);
	assert_int_equal(c.site.pc[1].flags, UKP_PC_BEFORE);
	expect_pc(&c, 3, ADDR + 3, 0);
}

static void the_post_stub_knows_what_it_took_from_the_stack(void **state)
{
	struct copied c = copy_to(BYTES(0x90), ADDR, SLOT, 0x5000);

	expect_pc(&c, 0, ADDR, 0);
	expect_pc(&c, 1, ADDR + 1, 0);
	expect_pc(&c, 6, ADDR + 1, 128);
	expect_pc(&c, 11, ADDR + 1, 136);
	assert_true(11 < c.site.slot_len);
}

static void the_longest_copy_has_room_in_the_map(void **state)
{
	struct copied c = copy_to(BYTES(0x48, 0x0f, 0x05), HIGH + ADDR, 0x10000, 0x5000);

	assert_int_equal(c.why, PLAN_OK);
	assert_in_range(c.site.npc, 1, UKP_SITE_PCS);
	assert_true(c.site.slot_len <= UKP_SLOT_SIZE);
}

static void a_hostile_count_is_cut(void **state)
{
	struct copied c = copy_to(BYTES(0x90), ADDR, SLOT, 0);

	c.site.npc = 255;
	expect_nothing(&c, 33);
	expect_pc(&c, 1, ADDR + 1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_start_of_the_slot_is_the_probed_address),
		cmocka_unit_test(an_address_inside_an_instruction_is_none),
		cmocka_unit_test(a_pushed_return_address_has_not_happened_yet),
		cmocka_unit_test(a_borrowed_register_is_told),
		cmocka_unit_test(a_taken_branch_stands_at_its_target),
		cmocka_unit_test(a_restarted_system_call_stands_at_the_syscall),
		cmocka_unit_test(the_post_stub_knows_what_it_took_from_the_stack),
		cmocka_unit_test(the_longest_copy_has_room_in_the_map),
		cmocka_unit_test(a_hostile_count_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
