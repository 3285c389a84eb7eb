/* SPDX-License-Identifier: MIT */
/* What is a target, and what isn't known of a function, by bytes. */
#include "unit/plan/toy_module.h"

#include <errno.h>

static struct toy toy;

static const struct plan_exit *exit_at(size_t off)
{
	size_t n;
	const struct plan_exit *e = plan_targets_exits(toy.t, CODE_AT + off, CODE_AT + off + 1, &n);

	return n == 1 ? e : NULL;
}

static int done(void **state)
{
	plan_targets_free(toy.t);
	toy.t = NULL;
	return 0;
}

static void direct_branches_and_calls_are_targets_and_returns_are_not(void **state)
{
	/* 0 jne 9; 2 call 12; 7 jmp 10; 9 nop; 10 nop; 11 ret; 12 ret */
	TOY(&toy, 0x75, 7, 0xe8, 5, 0, 0, 0, 0xeb, 1, 0x90, 0x90, 0xc3, 0xc3);
	toy_func(&toy, 0, 12, false);
	toy_make(&toy);
	toy_expect_targets(&toy, 0, 9, 10, 12, -1);
	assert_int_equal(toy_flags(&toy, 0), 0);
	assert_true(plan_targets_boundary(toy.t, CODE_AT + 7));
	assert_false(plan_targets_boundary(toy.t, CODE_AT + 8));
}

static void addresses_that_lea_makes_are_targets_and_those_of_loads_are_not(void **state)
{
	/* 0 lea 15(%rip)->rax; 7 mov 16(%rip),%rax; 14 ret ... */
	TOY(&toy, 0x48, 0x8d, 0x05, 8, 0, 0, 0, 0x48, 0x8b, 0x05, 2, 0, 0, 0, 0xc3, 0x90, 0x90,
	    0xc3);
	toy_func(&toy, 0, 18, false);
	toy_make(&toy);
	toy_expect_targets(&toy, 0, 15, -1);
}

static void relocations_pads_and_starts_are_targets_a_part_s_start_is_not(void **state)
{
	TOY(&toy, 0x90, 0x90, 0x90, 0xc3, 0x90, 0x90, 0x90, 0xc3);
	toy_func(&toy, 0, 4, false);
	toy_func(&toy, 4, 8, true);
	toy.reloc[0] = (struct plan_reloc){ DATA_AT, CODE_AT + 2 };
	toy.m.nr_relocs = 1;
	toy.extra[0] = CODE_AT + 6;
	toy.m.nr_extra = 1;
	toy_make(&toy);
	toy_expect_targets(&toy, 0, 2, 6, -1);
}

static void immediates_are_targets_where_nothing_is_relocated(void **state)
{
	for (int fixed = 0; fixed < 2; fixed++) {
		/* 0 mov $0x1008,%edi; 5 push $0x1009; 10 ret */
		TOY(&toy, 0xbf, 0x08, 0x10, 0, 0, 0x68, 0x09, 0x10, 0, 0, 0xc3);
		toy_func(&toy, 0, 11, false);
		toy.m.fixed = fixed;
		toy_make(&toy);
		assert_int_equal(toy_target(&toy, 8), fixed);
		assert_int_equal(toy_target(&toy, 9), fixed);
		done(state);
	}
}

/* 0 cmp $bound,%edi; 3 ja 24; 5 lea DATA(%rip),%rdx; 12 movslq (%rdx,%rdi,4),%rax;
 * 16 add %rdx,%rax; 19 jmp *%rax; 21 nop; 22 nop; 23 nop; 24 ret */
static void make_switch(uint8_t bound, uint8_t prefix)
{
	uint8_t jump[] = { 0xff, 0xe0 };

	TOY(&toy, 0x83, 0xff, bound, 0x77, 19, 0x48, 0x8d, 0x15, 0xf4, 0x6f, 0, 0, 0x48, 0x63, 0x04,
	    0xba, 0x48, 0x01, 0xd0, 0x90, 0xff, 0xe0, 0x90, 0x90, 0xc3, 0x90, 0x90);
	if (prefix) {
		toy.code[19] = prefix;
		memcpy(toy.code + 20, jump, 2);
	}
	toy_func(&toy, 0, 25, false);
	toy_func(&toy, 25, 27, false);
	toy_entry(&toy, 22);
	toy_entry(&toy, 23);
}

static void a_switch_table_is_read(void **state)
{
	make_switch(1, 0);
	toy_make(&toy);
	toy_expect_targets(&toy, 0, 22, 23, 24, 25, -1);
	assert_int_equal(toy_flags(&toy, 0), 0);
	assert_null(exit_at(20));
	done(state);
	make_switch(1, 0x3e); /* notrack */
	toy_make(&toy);
	toy_expect_targets(&toy, 0, 22, 23, 24, 25, -1);
	assert_int_equal(toy_flags(&toy, 0), 0);
}

static void a_table_ends_where_an_entry_leaves_the_function(void **state)
{
	make_switch(1, 0);
	toy_entry(&toy, 26);
	toy_make(&toy);
	assert_false(toy_target(&toy, 26));
	assert_int_equal(toy_flags(&toy, 0), 0);
}

static void a_table_goes_on_beyond_its_compare(void **state)
{
	make_switch(0, 0);
	toy_make(&toy);
	assert_true(toy_target(&toy, 23));
	assert_int_equal(toy_flags(&toy, 0), 0);
}

static void a_table_that_is_shorter_than_its_compare_leaves_the_jump_unknown(void **state)
{
	make_switch(2, 0);
	toy_make(&toy);
	assert_int_equal(toy_flags(&toy, 0), PLAN_REGION_INDIRECT);
	assert_int_equal(exit_at(20)->kind, PLAN_EXIT_INDIRECT);
	assert_int_equal(toy_flags(&toy, 25), 0);
}

static void a_table_may_lead_into_a_cold_part(void **state)
{
	make_switch(2, 0);
	toy.func[1].part = true;
	toy_entry(&toy, 26);
	toy_make(&toy);
	assert_true(toy_target(&toy, 26));
	assert_int_equal(toy_flags(&toy, 0), 0);
	assert_int_equal(exit_at(20)->kind, PLAN_EXIT_PART);
	assert_int_equal(exit_at(20)->target, CODE_AT + 26);
}

static void a_table_of_addresses_is_read_from_memory_or_relocations(void **state)
{
	for (int relocated = 0; relocated < 2; relocated++) {
		/* 0 jmp *DATA(,%rdi,8); 7 nop; 8 ret */
		TOY(&toy, 0xff, 0x24, 0xfd, 0, 0x80, 0, 0, 0x90, 0xc3);
		toy_func(&toy, 0, 9, false);
		toy_entry8(&toy, 7);
		toy_entry8(&toy, 8);
		if (relocated) {
			memset(toy.data, 0, sizeof(toy.data));
			toy.reloc[0] = (struct plan_reloc){ DATA_AT, CODE_AT + 7 };
			toy.reloc[1] = (struct plan_reloc){ DATA_AT + 8, CODE_AT + 8 };
			toy.m.nr_relocs = 2;
		}
		toy_make(&toy);
		toy_expect_targets(&toy, 0, 7, 8, -1);
		assert_int_equal(toy_flags(&toy, 0), 0);
		done(state);
	}
}

static void a_jump_by_pointer_is_a_tail_call_only_from_an_empty_frame(void **state)
{
	for (int bare = 0; bare < 2; bare++) {
		TOY(&toy, 0x48, 0x8b, 0x07, 0xff, 0x60, 0x10);
		toy_func(&toy, 0, 6, false);
		toy.bare = bare ? CODE_AT + 3 : 0;
		toy_make(&toy);
		assert_int_equal(exit_at(3)->kind, bare ? PLAN_EXIT_TAIL : PLAN_EXIT_INDIRECT);
		assert_int_equal(toy_flags(&toy, 0), bare ? 0 : PLAN_REGION_INDIRECT);
		done(state);
	}
}

static void a_computed_goto_is_no_tail_call_even_from_an_empty_frame(void **state)
{
	/* mov (%rsi,%rdi,8),%rax; jmp *%rax */
	TOY(&toy, 0x48, 0x8b, 0x04, 0xfe, 0xff, 0xe0);
	toy_func(&toy, 0, 6, false);
	toy.bare = CODE_AT + 4;
	toy_make(&toy);
	assert_int_equal(toy_flags(&toy, 0), PLAN_REGION_INDIRECT);
}

static void a_jump_through_the_got_leaves(void **state)
{
	TOY(&toy, 0xff, 0x25, 0, 0x10, 0, 0);
	toy_func(&toy, 0, 6, false);
	toy_make(&toy);
	assert_int_equal(exit_at(0)->kind, PLAN_EXIT_TAIL);
	assert_int_equal(toy_flags(&toy, 0), 0);
}

static void exits_have_their_kinds(void **state)
{
	/* 0 ret $8; 3 jmp 16; 5 je 16; 7 jmp 18 (a part); 9 ud2; 11 call: the end; 16 ret; 18 ret
	 */
	TOY(&toy, 0xc2, 8, 0, 0xeb, 11, 0x74, 9, 0xeb, 9, 0x0f, 0x0b, 0xe8, 0, 0, 0, 0, 0xc3, 0x90,
	    0xc3);
	toy_func(&toy, 0, 16, false);
	toy_func(&toy, 16, 17, false);
	toy_func(&toy, 18, 19, true);
	toy_make(&toy);
	assert_int_equal(exit_at(0)->kind, PLAN_EXIT_RET);
	assert_int_equal(exit_at(0)->len, 3);
	assert_int_equal(exit_at(3)->kind, PLAN_EXIT_TAIL);
	assert_int_equal(exit_at(3)->target, CODE_AT + 16);
	assert_false(exit_at(3)->conditional);
	assert_int_equal(exit_at(5)->kind, PLAN_EXIT_TAIL);
	assert_true(exit_at(5)->conditional);
	assert_int_equal(exit_at(7)->kind, PLAN_EXIT_PART);
	assert_int_equal(exit_at(9)->kind, PLAN_EXIT_NORETURN);
	assert_int_equal(exit_at(11)->kind, PLAN_EXIT_NORETURN);
}

static void a_part_shares_the_doubt_about_its_function(void **state)
{
	for (int tied = 0; tied < 2; tied++) {
		/* 0 jmp *%rax; 2 jne 6 or nops; 4 ret; 5 ret; 6 nop; 7 ret */
		TOY(&toy, 0xff, 0xe0, 0x75, 2, 0xc3, 0xc3, 0x90, 0xc3);
		if (!tied)
			memset(toy.code + 2, 0x90, 2);
		toy_func(&toy, 0, 5, false);
		toy_func(&toy, 5, 6, false);
		toy_func(&toy, 6, 8, true);
		if (!tied) { /* known to be entered by something else */
			toy.extra[0] = CODE_AT + 6;
			toy.m.nr_extra = 1;
		}
		toy_make(&toy);
		assert_int_equal(toy_flags(&toy, 0), PLAN_REGION_INDIRECT);
		assert_int_equal(toy_flags(&toy, 5), 0);
		assert_int_equal(toy_flags(&toy, 6),
		                 PLAN_REGION_PART | (tied ? PLAN_REGION_INDIRECT : 0));
		done(state);
	}
}

static void a_part_that_nothing_is_known_to_enter_may_be_anybody_s(void **state)
{
	TOY(&toy, 0xff, 0xe0, 0x90, 0xc3);
	toy_func(&toy, 0, 2, false);
	toy_func(&toy, 2, 4, true);
	toy_make(&toy);
	assert_int_equal(toy_flags(&toy, 2), PLAN_REGION_PART | PLAN_REGION_INDIRECT);
}

static void what_can_t_be_decoded_breaks_its_function_alone(void **state)
{
	TOY(&toy, 0x90, 0x06, 0xeb, 0xfb, 0x90, 0xc3);
	toy_func(&toy, 0, 4, false);
	toy_func(&toy, 4, 6, false);
	toy_make(&toy);
	assert_int_equal(toy_flags(&toy, 0), PLAN_REGION_BROKEN);
	assert_int_equal(toy_flags(&toy, 4), 0);
}

static void a_function_that_begins_inside_an_instruction_breaks_both(void **state)
{
	/* mov $0x9090c390,%eax; ret */
	TOY(&toy, 0xb8, 0x90, 0xc3, 0x90, 0x90, 0xc3);
	toy_func(&toy, 0, 6, false);
	toy_func(&toy, 1, 3, false);
	toy_make(&toy);
	assert_int_equal(toy_flags(&toy, 0), PLAN_REGION_BROKEN);
}

static void code_in_no_function_is_searched_too(void **state)
{
	/* 0 jmp 4; 2 undecodable; 3 nop, 4 nop; 5 ret */
	TOY(&toy, 0xeb, 2, 0x06, 0x90, 0x90, 0xc3);
	toy_func(&toy, 3, 6, false);
	toy_make(&toy);
	toy_expect_targets(&toy, 3, 4, -1);
	assert_null(plan_targets_region(toy.t, CODE_AT));
	assert_false(plan_targets_boundary(toy.t, CODE_AT));
}

static void facts_out_of_order_are_refused(void **state)
{
	TOY(&toy, 0x90, 0xc3);
	toy_func(&toy, 1, 2, false);
	toy_func(&toy, 0, 1, false);
	assert_int_equal(plan_targets_new(&toy.t, &toy.m), -EINVAL);
	assert_null(toy.t);
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, done)
	const struct CMUnitTest tests[] = {
		T(direct_branches_and_calls_are_targets_and_returns_are_not),
		T(addresses_that_lea_makes_are_targets_and_those_of_loads_are_not),
		T(relocations_pads_and_starts_are_targets_a_part_s_start_is_not),
		T(immediates_are_targets_where_nothing_is_relocated),
		T(a_switch_table_is_read),
		T(a_table_ends_where_an_entry_leaves_the_function),
		T(a_table_goes_on_beyond_its_compare),
		T(a_table_that_is_shorter_than_its_compare_leaves_the_jump_unknown),
		T(a_table_may_lead_into_a_cold_part),
		T(a_table_of_addresses_is_read_from_memory_or_relocations),
		T(a_jump_by_pointer_is_a_tail_call_only_from_an_empty_frame),
		T(a_computed_goto_is_no_tail_call_even_from_an_empty_frame),
		T(a_jump_through_the_got_leaves),
		T(exits_have_their_kinds),
		T(a_part_shares_the_doubt_about_its_function),
		T(a_part_that_nothing_is_known_to_enter_may_be_anybody_s),
		T(what_can_t_be_decoded_breaks_its_function_alone),
		T(a_function_that_begins_inside_an_instruction_breaks_both),
		T(code_in_no_function_is_searched_too),
		T(facts_out_of_order_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
