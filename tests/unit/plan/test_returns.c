/* SPDX-License-Identifier: MIT */
/* The choice of a mechanism, as a table; and over real libraries, that each has one. */
#include "unit/plan/exits_of.h"

#include "plan/returns.h"

#define LIB "/usr/lib/x86_64-linux-gnu/"

struct row {
	/* of the function */
	enum plan_exits_why exits;
	uint32_t nr, tails, no_room, flags;
	/* of the place */
	enum plan_window_why entry;
	bool stays, shadow;
	/* what comes out with each wish: none, exit, call, slot */
	struct {
		enum plan_mechanism by;
		enum plan_return_why why;
	} out[4];
};

#define NO(reason)                                 \
	{                                          \
		PLAN_BY_NONE, PLAN_RETURN_##reason \
	}
#define BY(mechanism, reason)                             \
	{                                                 \
		PLAN_BY_##mechanism, PLAN_RETURN_##reason \
	}
#define EXIT_ASKED BY(EXIT, ASKED)
#define CALL_ASKED BY(CALL, ASKED)
#define SLOT_ASKED BY(SLOT, ASKED)

static const struct row rows[] = {
	/* exits known, few, with room */
	{ PLAN_EXITS_OK,
	  2,
	  0,
	  0,
	  0,
	  PLAN_WINDOW_OK,
	  false,
	  false,
	  { BY(EXIT, FEW), EXIT_ASKED, CALL_ASKED, SLOT_ASKED } },
	{ PLAN_EXITS_OK,
	  8,
	  0,
	  0,
	  0,
	  PLAN_WINDOW_TARGET,
	  false,
	  true,
	  { BY(EXIT, FEW), EXIT_ASKED, NO(ENTRY), NO(SHADOW) } },
	/* many, without room, tail calls: by the entry */
	{ PLAN_EXITS_OK,
	  9,
	  0,
	  0,
	  0,
	  PLAN_WINDOW_OK,
	  false,
	  false,
	  { BY(CALL, MANY), EXIT_ASKED, CALL_ASKED, SLOT_ASKED } },
	{ PLAN_EXITS_OK,
	  2,
	  0,
	  1,
	  0,
	  PLAN_WINDOW_OK,
	  false,
	  true,
	  { BY(CALL, ROOM), EXIT_ASKED, CALL_ASKED, NO(SHADOW) } },
	{ PLAN_EXITS_OK,
	  2,
	  0,
	  1,
	  0,
	  PLAN_WINDOW_CALL,
	  false,
	  false,
	  { BY(SLOT, ENTRY), EXIT_ASKED, NO(ENTRY), SLOT_ASKED } },
	{ PLAN_EXITS_OK,
	  2,
	  1,
	  0,
	  0,
	  PLAN_WINDOW_OK,
	  false,
	  false,
	  { BY(CALL, TAILS), NO(TAILS), CALL_ASKED, SLOT_ASKED } },
	{ PLAN_EXITS_OK,
	  2,
	  1,
	  0,
	  0,
	  PLAN_WINDOW_SHORT,
	  false,
	  false,
	  { BY(SLOT, ENTRY), NO(TAILS), NO(ENTRY), SLOT_ASKED } },
	/* the entry is passed more than once a call */
	{ PLAN_EXITS_OK,
	  1,
	  0,
	  0,
	  PLAN_FN_LOOPS,
	  PLAN_WINDOW_OK,
	  false,
	  false,
	  { BY(CALL, LOOPS), NO(LOOPS), CALL_ASKED, SLOT_ASKED } },
	/* a shadow stack leaves exit sites, if they serve, or nothing */
	{ PLAN_EXITS_OK,
	  20,
	  0,
	  3,
	  0,
	  PLAN_WINDOW_SHORT,
	  false,
	  true,
	  { BY(EXIT, SHADOW), EXIT_ASKED, NO(ENTRY), NO(SHADOW) } },
	{ PLAN_EXITS_OK,
	  2,
	  1,
	  0,
	  0,
	  PLAN_WINDOW_SHORT,
	  false,
	  true,
	  { NO(TAILS), NO(TAILS), NO(ENTRY), NO(SHADOW) } },
	/* unknown exits */
	{ PLAN_EXITS_INDIRECT,
	  0,
	  0,
	  0,
	  0,
	  PLAN_WINDOW_OK,
	  false,
	  false,
	  { BY(CALL, UNKNOWN), NO(UNKNOWN), CALL_ASKED, SLOT_ASKED } },
	{ PLAN_EXITS_DEPTH,
	  0,
	  0,
	  0,
	  0,
	  PLAN_WINDOW_TARGET,
	  false,
	  false,
	  { BY(SLOT, ENTRY), NO(UNKNOWN), NO(ENTRY), SLOT_ASKED } },
	{ PLAN_EXITS_DEPTH,
	  0,
	  0,
	  0,
	  0,
	  PLAN_WINDOW_TARGET,
	  false,
	  true,
	  { NO(UNKNOWN), NO(UNKNOWN), NO(ENTRY), NO(SHADOW) } },
	/* the return address must stay */
	{ PLAN_EXITS_OK,
	  20,
	  0,
	  3,
	  0,
	  PLAN_WINDOW_OK,
	  true,
	  false,
	  { BY(EXIT, STAYS), EXIT_ASKED, NO(STAYS), NO(STAYS) } },
	{ PLAN_EXITS_OK,
	  2,
	  1,
	  0,
	  0,
	  PLAN_WINDOW_OK,
	  true,
	  false,
	  { NO(TAILS), NO(TAILS), NO(STAYS), NO(STAYS) } },
	{ PLAN_EXITS_SHARES,
	  0,
	  0,
	  0,
	  0,
	  PLAN_WINDOW_OK,
	  true,
	  false,
	  { NO(UNKNOWN), NO(UNKNOWN), NO(STAYS), NO(STAYS) } },
	{ PLAN_EXITS_OK,
	  9,
	  0,
	  0,
	  PLAN_FN_TOUCHES,
	  PLAN_WINDOW_OK,
	  false,
	  false,
	  { BY(EXIT, TOUCHES), EXIT_ASKED, NO(TOUCHES), NO(TOUCHES) } },
	{ PLAN_EXITS_OK,
	  1,
	  0,
	  0,
	  PLAN_FN_TOUCHES,
	  PLAN_WINDOW_OK,
	  false,
	  false,
	  { BY(EXIT, FEW), EXIT_ASKED, NO(TOUCHES), NO(TOUCHES) } },
	/* never comes back */
	{ PLAN_EXITS_NONE,
	  0,
	  0,
	  0,
	  0,
	  PLAN_WINDOW_OK,
	  false,
	  false,
	  { BY(EXIT, NEVER), EXIT_ASKED, CALL_ASKED, SLOT_ASKED } },
};

static void the_choice_is_as_the_table_says(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *w = &rows[i];
		const struct plan_function fn = { .why = (uint8_t)w->exits,
			                          .flags = (uint8_t)w->flags,
			                          .nr_exits = w->nr,
			                          .nr_tails = w->tails,
			                          .nr_no_room = w->no_room };
		struct plan_return_request req = { .fn = &fn,
			                           .entry = (uint8_t)w->entry,
			                           .stays = w->stays,
			                           .shadow_stack = w->shadow };

		for (int k = 0; k < 4; k++) {
			struct plan_return r;
			bool any;

			req.want = (uint8_t)k;
			any = plan_return(&req, &r);
			if (r.by != w->out[k].by || r.why != w->out[k].why || any != !!r.by)
				fail_msg("row %zu, wish %d: %s, %s", i, k,
				         plan_mechanism_name((enum plan_mechanism)r.by),
				         plan_return_reason(&r));
		}
	}
}

static void what_is_no_known_function_has_no_exit_sites(void **state)
{
	struct plan_return_request req = { .entry = PLAN_WINDOW_UNKNOWN };
	struct plan_return r;

	assert_true(plan_return(&req, &r));
	assert_int_equal(r.by, PLAN_BY_SLOT);
	assert_string_equal(plan_return_reason(&r), plan_window_reason(PLAN_WINDOW_UNKNOWN));
	req.stays = true;
	assert_false(plan_return(&req, &r));
	assert_int_equal(r.why, PLAN_RETURN_NO_FUNCTION);
	req.stays = false;
	req.want = PLAN_BY_EXIT;
	assert_false(plan_return(&req, &r));
	assert_int_equal(r.why, PLAN_RETURN_NO_FUNCTION);
}

static void each_reason_has_words(void **state)
{
	for (int i = 0; i < PLAN_RETURN_REASONS; i++)
		for (int k = 0; k <= i; k++) {
			const struct plan_return a = { .why = (uint8_t)i },
						 b = { .why = (uint8_t)k };

			assert_int_equal(!strcmp(plan_return_reason(&a), plan_return_reason(&b)),
			                 i == k);
		}
	assert_string_equal(plan_return_reason(&(struct plan_return){ .why = PLAN_RETURN_UNKNOWN,
	                                                              .exits = PLAN_EXITS_FALLS }),
	                    plan_exits_reason(PLAN_EXITS_FALLS));
}

static void each_function_of_real_libraries_has_a_mechanism(void **state)
{
	static const char *const files[] = {
		LIB "libc.so.6",      LIB "libstdc++.so.6",  LIB "libsqlite3.so.0",
		LIB "libcrypto.so.3", "/usr/bin/python3.11", "/usr/bin/redis-server",
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		size_t n, by[4] = { 0 }, why[PLAN_RETURN_REASONS] = { 0 };
		const struct plan_function *fn;
		struct exits_of e;

		if (!exits_of(&e, files[i])) {
			print_message("%s is not installed: left out\n", files[i]);
			continue;
		}
		fn = plan_exits_all(e.x, &n);
		for (size_t k = 0; k < n; k++) {
			struct plan_return_request req = { .fn = &fn[k] };
			struct plan_return r;

			req.entry = exits_entry(&e, fn[k].entry);
			plan_return(&req, &r);
			by[r.by]++;
			why[r.why]++;
		}
		printf("%s: exit %zu, call %zu, slot %zu, none %zu\n", files[i], by[PLAN_BY_EXIT],
		       by[PLAN_BY_CALL], by[PLAN_BY_SLOT], by[PLAN_BY_NONE]);
		for (int k = 0; k < PLAN_RETURN_REASONS; k++)
			if (why[k])
				printf("  %s: %zu\n",
				       k == PLAN_RETURN_UNKNOWN ? "exits unknown"
				       : k == PLAN_RETURN_ENTRY
				               ? "entry without the jump form"
				               : plan_return_reason(&(struct plan_return){
							 .why = (uint8_t)k }),
				       why[k]);
		/* Only what looks at its return address and has unknown exits has none. */
		assert_true(by[PLAN_BY_NONE] * 100 < n);
		assert_true(by[PLAN_BY_EXIT] > n / 4 && by[PLAN_BY_CALL] > 0);
		exits_done(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_choice_is_as_the_table_says),
		cmocka_unit_test(what_is_no_known_function_has_no_exit_sites),
		cmocka_unit_test(each_reason_has_words),
		cmocka_unit_test(each_function_of_real_libraries_has_a_mechanism),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
