/* SPDX-License-Identifier: MIT */
/* Where a jump may be placed, and the reason where not, by bytes. */
#include "unit/plan/toy_module.h"

static struct toy toy;
static struct plan_window w;

static int done(void **state)
{
	plan_targets_free(toy.t);
	toy.t = NULL;
	return 0;
}

static enum plan_window_why judged(size_t off, const uint8_t *live)
{
	struct plan_window_request req = {
		.targets = toy.t,
		.code = toy.code + off,
		.avail = toy.size - off < PLAN_WINDOW_MAX ? toy.size - off : PLAN_WINDOW_MAX,
		.addr = CODE_AT + off,
		.live = live,
	};
	bool ok = plan_window(&req, &w);

	assert_int_equal(ok, w.why == PLAN_WINDOW_OK);
	return (enum plan_window_why)w.why;
}

#define MADE(...)                                   \
	do {                                        \
		done(NULL);                         \
		TOY(&toy, __VA_ARGS__);             \
		toy_func(&toy, 0, toy.size, false); \
		toy_make(&toy);                     \
	} while (0)

static void whole_instructions_up_to_five_bytes_are_covered(void **state)
{
	MADE(0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0xc3);
	assert_int_equal(judged(0, NULL), PLAN_WINDOW_OK);
	assert_int_equal(w.nr, 3);
	assert_int_equal(w.len, 8);
	assert_int_equal(w.covered, 8);
	assert_int_equal(w.insn[2].off, 4);
	assert_int_equal(w.insn[2].len, 4);
	assert_false(w.ftrace);
}

static void a_branch_into_it_refuses_and_one_to_its_start_or_end_does_not(void **state)
{
	for (uint8_t to = 0; to <= 5; to++) {
		/* five nops, jmp to one of them or behind */
		MADE(0x90, 0x90, 0x90, 0x90, 0x90, 0xeb, (uint8_t)(to - 7));
		assert_int_equal(judged(0, NULL),
		                 to > 0 && to < 5 ? PLAN_WINDOW_TARGET : PLAN_WINDOW_OK);
	}
}

static void a_call_may_only_be_the_last_one(void **state)
{
	MADE(0x90, 0xff, 0xd0, 0x90, 0x90, 0x90, 0xc3);
	assert_int_equal(judged(0, NULL), PLAN_WINDOW_CALL);
	assert_int_equal(judged(1, NULL), PLAN_WINDOW_CALL);
	MADE(0x90, 0x90, 0x90, 0xff, 0xd0, 0xc3);
	assert_int_equal(judged(0, NULL), PLAN_WINDOW_OK);
	MADE(0xe8, 0, 0, 0, 0, 0xc3);
	assert_int_equal(judged(0, NULL), PLAN_WINDOW_OK);
	MADE(0x90, 0x0f, 0x05, 0x90, 0x90, 0xc3);
	assert_int_equal(judged(0, NULL), PLAN_WINDOW_CALL);
	MADE(0xb8, 1, 0, 0, 0, 0x0f, 0x05, 0xc3);
	assert_int_equal(judged(0, NULL), PLAN_WINDOW_OK);
}

/* How many more instructions a window at 0 takes. */
static unsigned int extended(void)
{
	struct plan_window_request req = { toy.t, toy.code,
		                           toy.size < PLAN_WINDOW_LONG ? toy.size
		                                                       : PLAN_WINDOW_LONG,
		                           CODE_AT, NULL };
	unsigned int n = 0;

	assert_true(plan_window(&req, &w));
	while (plan_window_extend(&req, &w)) {
		n++;
		assert_int_equal(w.len, w.insn[w.nr - 1].off + w.insn[w.nr - 1].len);
		assert_int_equal(w.covered, w.len);
	}
	return n;
}

static void a_window_takes_what_is_entered_from_it_alone(void **state)
{
	/* mov $1,%eax; nop; nop; ret */
	MADE(0xb8, 1, 0, 0, 0, 0x90, 0x90, 0xc3);
	assert_int_equal(extended(), 3);
	assert_int_equal(w.len, 8);
	/* as much as a window holds */
	MADE(0xb8, 1, 0, 0, 0, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3);
	assert_int_equal(extended(), UKP_WINDOW_INSNS - 1);
	/* up to a call, which returns behind itself */
	MADE(0xb8, 1, 0, 0, 0, 0xff, 0xd0, 0x90, 0xc3);
	assert_int_equal(extended(), 1);
	/* up to what doesn't go on */
	MADE(0xb8, 1, 0, 0, 0, 0xc3, 0x90, 0xc3);
	assert_int_equal(extended(), 1);
	/* up to a target: mov; nop; nop; jmp to the second nop */
	MADE(0xb8, 1, 0, 0, 0, 0x90, 0x90, 0xeb, 0xfd);
	assert_int_equal(extended(), 1);
	/* not over padding */
	MADE(0x31, 0xc0, 0xc3, 0x90, 0x90, 0x90);
	assert_int_equal(extended(), 0);
}

static void a_short_function_takes_free_padding_only(void **state)
{
	/* xor %eax,%eax; ret; padding; the next function */
	static const uint8_t kinds[][3] = { { 0x90, 0x90, 0 },
		                            { 0xcc, 0xcc, 0 },
		                            { 0x66, 0x90, 0 },
		                            { 0, 0, 1 },
		                            { 0x90, 0x50, 1 } };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		done(state);
		TOY(&toy, 0x31, 0xc0, 0xc3, kinds[i][0], kinds[i][1], 0x90, 0xc3);
		toy_func(&toy, 0, 3, false);
		toy_func(&toy, 5, 7, false);
		toy_make(&toy);
		assert_int_equal(judged(0, NULL), kinds[i][2] ? PLAN_WINDOW_SHORT : PLAN_WINDOW_OK);
		assert_int_equal(judged(2, NULL), PLAN_WINDOW_SHORT);
	}
	assert_int_equal(w.len, 1);
}

static void padding_belongs_to_the_window(void **state)
{
	TOY(&toy, 0xc3, 0x0f, 0x1f, 0x44, 0, 0, 0xc3);
	toy_func(&toy, 0, 1, false);
	toy_func(&toy, 6, 7, false);
	toy_make(&toy);
	assert_int_equal(judged(0, NULL), PLAN_WINDOW_OK);
	assert_int_equal(w.len, 1);
	assert_int_equal(w.nr, 1);
	assert_int_equal(w.covered, 6);
}

static void padding_that_something_leads_to_is_not_free(void **state)
{
	TOY(&toy, 0xc3, 0x90, 0x90, 0x90, 0x90, 0xeb, 0xfb);
	toy_func(&toy, 0, 1, false);
	toy_func(&toy, 5, 7, false);
	toy_make(&toy);
	assert_int_equal(judged(0, NULL), PLAN_WINDOW_TARGET);
}

static void a_function_that_runs_on_into_padding_is_too_short(void **state)
{
	TOY(&toy, 0x31, 0xc0, 0x90, 0x90, 0x90, 0xc3);
	toy_func(&toy, 0, 2, false);
	toy_make(&toy);
	assert_int_equal(judged(0, NULL), PLAN_WINDOW_SHORT);
}

static void an_unknown_jump_spoils_all_but_long_first_instructions(void **state)
{
	MADE(0x90, 0xb8, 1, 0, 0, 0, 0xff, 0xe0);
	assert_int_equal(judged(0, NULL), PLAN_WINDOW_INDIRECT);
	assert_int_equal(judged(1, NULL), PLAN_WINDOW_OK);
}

static void what_can_t_be_moved_refuses_with_its_reason(void **state)
{
	MADE(0x90, 0x90, 0xcd, 0x80, 0x90, 0xc3);
	assert_int_equal(judged(0, NULL), PLAN_WINDOW_COPY);
	assert_int_equal(w.refusal, PLAN_BREAKPOINT);
	MADE(0x8e, 0xd0, 0x90, 0x90, 0x90, 0xc3);
	assert_int_equal(judged(0, NULL), PLAN_WINDOW_COPY);
	assert_int_equal(w.refusal, PLAN_STACK_SEGMENT);
}

static void places_that_are_none_are_refused(void **state)
{
	TOY(&toy, 0xb8, 1, 0, 0, 0, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x06, 0x90);
	toy_func(&toy, 0, 6, false);
	toy_func(&toy, 10, 13, false);
	toy_make(&toy);
	assert_int_equal(judged(1, NULL), PLAN_WINDOW_BOUNDARY);
	assert_int_equal(judged(6, NULL), PLAN_WINDOW_UNKNOWN);
	assert_int_equal(judged(10, NULL), PLAN_WINDOW_BROKEN);
}

static void memory_that_differs_refuses(void **state)
{
	uint8_t live[8] = { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3 };

	MADE(0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3);
	assert_int_equal(judged(0, live), PLAN_WINDOW_OK);
	live[4] = 0xcc;
	assert_int_equal(judged(0, live), PLAN_WINDOW_FOREIGN);
	live[4] = 0x90;
	live[5] = 0xcc; /* behind the window */
	assert_int_equal(judged(0, live), PLAN_WINDOW_OK);
}

static void nops_that_a_compiler_left_are_known(void **state)
{
	MADE(0x90, 0x90, 0x90, 0x90, 0x90, 0xc3);
	assert_int_equal(judged(0, NULL), PLAN_WINDOW_OK);
	assert_true(w.ftrace);
	assert_int_equal(plan_ftrace_offset(toy.code, toy.size), 0);
	/* as clang has it */
	MADE(0x0f, 0x1f, 0x44, 0, 8, 0xc3);
	assert_int_equal(judged(0, NULL), PLAN_WINDOW_OK);
	assert_true(w.ftrace);
	assert_int_equal(plan_ftrace_offset(toy.code, toy.size), 0);
	MADE(0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x1f, 0x44, 0, 0, 0xc3);
	assert_int_equal(judged(4, NULL), PLAN_WINDOW_OK);
	assert_true(w.ftrace);
	assert_int_equal(judged(0, NULL), PLAN_WINDOW_OK);
	assert_false(w.ftrace);
	assert_int_equal(plan_ftrace_offset(toy.code, toy.size), 4);
	/* the same nop elsewhere aligns something */
	MADE(0x31, 0xc0, 0x0f, 0x1f, 0x44, 0, 0, 0xc3);
	assert_int_equal(judged(2, NULL), PLAN_WINDOW_OK);
	assert_false(w.ftrace);
	assert_int_equal(plan_ftrace_offset(toy.code, toy.size), -1);
	assert_int_equal(plan_ftrace_offset(toy.code, 0), -1);
}

static void every_reason_has_words(void **state)
{
	for (int i = 0; i < PLAN_WINDOW_REASONS; i++)
		assert_string_not_equal(plan_window_reason((enum plan_window_why)i),
		                        "unknown reason");
	assert_string_equal(plan_window_reason(PLAN_WINDOW_REASONS), "unknown reason");
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, done)
	const struct CMUnitTest tests[] = {
		T(whole_instructions_up_to_five_bytes_are_covered),
		T(a_branch_into_it_refuses_and_one_to_its_start_or_end_does_not),
		T(a_call_may_only_be_the_last_one),
		T(a_window_takes_what_is_entered_from_it_alone),
		T(a_short_function_takes_free_padding_only),
		T(padding_belongs_to_the_window),
		T(padding_that_something_leads_to_is_not_free),
		T(a_function_that_runs_on_into_padding_is_too_short),
		T(an_unknown_jump_spoils_all_but_long_first_instructions),
		T(what_can_t_be_moved_refuses_with_its_reason),
		T(places_that_are_none_are_refused),
		T(memory_that_differs_refuses),
		T(nops_that_a_compiler_left_are_known),
		T(every_reason_has_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
