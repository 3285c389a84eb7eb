/* SPDX-License-Identifier: MIT */
/* The set of one region knows all that the whole module's set knows of it. */
#include "unit/plan/toy_module.h"

#include <errno.h>
#include <stdio.h>

#include "unit/plan/module_facts.h"

static struct toy toy;

static int near(size_t off)
{
	return plan_targets_near(&toy.t, &toy.m, CODE_AT + off);
}

static int done(void **state)
{
	plan_targets_free(toy.t);
	toy.t = NULL;
	return 0;
}

/* Three functions: 0 nops, ret; 8 jne 12, nops, ret; 16 nops, ret. */
static void three(void)
{
	TOY(&toy, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3, /* */
	    0x75, 0x02, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3,       /* */
	    0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3);
	for (size_t i = 0; i < 3; i++)
		toy_func(&toy, 8 * i, 8 * i + 8, false);
}

static void all_around_the_region_is_a_target_and_inside_what_is_one(void **state)
{
	uint64_t from, to;

	three();
	assert_int_equal(near(10), 0);
	plan_targets_range(toy.t, &from, &to);
	assert_true(from == CODE_AT + 8 && to == CODE_AT + 16);
	for (size_t off = 0; off < 24; off++)
		assert_int_equal(toy_target(&toy, off),
		                 off < 8 || off == 8 || off == 12 || off >= 16);
	assert_true(plan_targets_boundary(toy.t, CODE_AT + 10));
	assert_false(plan_targets_boundary(toy.t, CODE_AT + 9));
	assert_int_equal(toy_flags(&toy, 8), 0);
	assert_null(plan_targets_region(toy.t, CODE_AT + 7));
	assert_null(plan_targets_region(toy.t, CODE_AT + 16));
	done(state);
	assert_int_equal(plan_targets_new(&toy.t, &toy.m), 0);
	plan_targets_range(toy.t, &from, &to);
	assert_true(from == 0 && to == UINT64_MAX);
}

static void a_neighbour_s_short_branch_and_a_relocation_are_targets(void **state)
{
	three();
	toy.code[16] = 0x75; /* jne 11 */
	toy.code[17] = 0xf9;
	toy.reloc[0] = (struct plan_reloc){ DATA_AT, CODE_AT + 13 };
	toy.m.nr_relocs = 1;
	toy.extra[0] = CODE_AT + 14;
	toy.m.nr_extra = 1;
	assert_int_equal(near(8), 0);
	for (size_t off = 8; off < 16; off++)
		assert_int_equal(toy_target(&toy, off), off == 8 || (off >= 11 && off <= 14));
}

static void padding_behind_the_region_is_known_as_well(void **state)
{
	/* 0 jne 9; 2 ret; 3 nops; 24 ret, another function; 25 jne 6 */
	TOY(&toy, 0x75, 7, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
	    0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3, 0x75, 0xeb, 0xc3);
	toy_func(&toy, 0, 3, false);
	toy_func(&toy, 24, 28, false);
	assert_int_equal(near(0), 0);
	for (size_t off = 0; off < 28; off++)
		assert_int_equal(toy_target(&toy, off),
		                 off == 0 || off == 6 || off == 9 || off >= 3 + 16);
	done(state);
	toy.func[1].start = CODE_AT + 5;
	assert_int_equal(near(0), -EAGAIN);
	toy.code[1] = 2; /* jne 4 */
	assert_int_equal(near(0), 0);
	for (size_t off = 0; off < 28; off++)
		assert_int_equal(toy_target(&toy, off), off == 0 || off >= 4);
}

/* A function that is too far away to be decoded: at 40, behind one that lies between. */
static uint8_t far_code[600];

static int with_far_in(const uint8_t *bytes, size_t n, bool fixed)
{
	static struct plan_code text;
	static struct plan_bounds func[] = { { CODE_AT, CODE_AT + 16, false, false },
		                             { CODE_AT + 16, CODE_AT + 400, false, false },
		                             { CODE_AT + 400, CODE_AT + 600, false, false } };
	struct plan_module m = { .code = &text, .nr_code = 1, .func = func, .nr_funcs = 3 };

	memset(far_code, 0x90, sizeof(far_code));
	memcpy(far_code + 500, bytes, n);
	text = (struct plan_code){ CODE_AT, far_code, sizeof(far_code) };
	m.fixed = fixed;
	return plan_targets_near(&toy.t, &m, CODE_AT);
}

static int with_far(const uint8_t *bytes, size_t n)
{
	return with_far_in(bytes, n, false);
}

static void what_lies_far_away_and_would_lead_into_the_middle_is_a_branch(void **state)
{
	const uint8_t to_start[] = { 0xe9, 0x07, 0xfe, 0xff, 0xff, 0x90 };  /* 505 - 505 */
	const uint8_t to_second[] = { 0xe9, 0x08, 0xfe, 0xff, 0xff, 0x90 }; /* to 1 */
	const uint8_t to_last[] = { 0x8d, 0x3d, 0x15, 0xfe, 0xff, 0xff };   /* lea 15 */
	const uint8_t load[] = { 0x8b, 0x3d, 0x15, 0xfe, 0xff, 0xff };      /* mov 15 */
	const uint8_t behind[] = { 0xe9, 0x17, 0xfe, 0xff, 0xff, 0x90 };    /* to 16, the next */
	struct {
		const uint8_t *b;
		int ret;
	} c[] = { { to_start, 0 },
		  { to_second, -EAGAIN },
		  { to_last, -EAGAIN },
		  { load, 0 },
		  { behind, 0 } };

	for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++) {
		assert_int_equal(with_far(c[i].b, 6), c[i].ret);
		assert_int_equal(toy.t != NULL, !c[i].ret);
		done(state);
	}
}

static void an_immediate_far_away_is_an_address_where_nothing_is_relocated(void **state)
{
	const uint8_t mov[] = { 0xbf, 0x0f, 0x10, 0, 0 }, push[] = { 0x68, 0x10, 0x10, 0, 0 };

	assert_int_equal(with_far_in(mov, 5, true), -EAGAIN);
	assert_int_equal(with_far_in(mov, 5, false), 0);
	done(state);
	assert_int_equal(with_far_in(push, 5, true), 0);
}

static void where_parts_or_unknown_jumps_are_only_the_whole_can_tell(void **state)
{
	three(); /* 8 jne 17, inside the next */
	toy.code[9] = 7;
	assert_int_equal(near(8), -EAGAIN);
	toy.func[2].part = true;
	toy.code[9] = 6;
	assert_int_equal(near(8), -EAGAIN);
	assert_int_equal(near(16), -EAGAIN);
	three(); /* 8 jmp *%rax */
	toy.code[8] = 0xff;
	toy.code[9] = 0xe0;
	toy.code[7] = 0x90;
	assert_int_equal(near(8), -EAGAIN);
	three(); /* what can't be decoded */
	toy.code[12] = 0x06;
	assert_int_equal(near(8), -EAGAIN);
	three();
	assert_int_equal(near(24), -EAGAIN);
	toy.func[1].start = CODE_AT;
	toy.func[0].start = CODE_AT + 8;
	assert_int_equal(near(8), -EINVAL);
	assert_null(toy.t);
}

static void expect_same(const struct plan_targets *all, const struct plan_targets *one,
                        const struct plan_region *r)
{
	const struct plan_region *g = plan_targets_region(one, r->start);
	uint64_t from, to;

	assert_non_null(g);
	assert_true(g->start == r->start && g->end == r->end);
	assert_int_equal(g->flags, r->flags);
	plan_targets_range(one, &from, &to);
	assert_true(from == r->start && to >= r->end);
	assert_true(plan_targets_any(one, to, to + 1) || !plan_targets_region(all, to));
	for (uint64_t a = r->start; a < to; a++) {
		if (plan_targets_any(all, a, a + 1) != plan_targets_any(one, a, a + 1))
			fail_msg("target at %#lx", a);
		if (plan_targets_boundary(all, a) != plan_targets_boundary(one, a))
			fail_msg("boundary at %#lx", a);
	}
}

static void in_real_libraries_both_sets_agree(void **state)
{
	static const char *const files[] = { "/lib/x86_64-linux-gnu/libc.so.6",
		                             "/lib/x86_64-linux-gnu/libcrypto.so.3",
		                             "/lib/x86_64-linux-gnu/libstdc++.so.6",
		                             "/usr/bin/python3.11" };
	unsigned int seen = 0;

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		unsigned int told = 0, asked = 0;
		size_t step;
		struct plan_targets *all, *one;
		struct facts f;

		if (!facts_load(&f, files[i])) {
			printf("skipped %s: not installed\n", files[i]);
			continue;
		}
		assert_int_equal(plan_targets_new(&all, &f.m), 0);
		step = getenv("UKP_TEST_ALL") ? 1 : f.m.nr_funcs / 100;
		for (size_t k = i; k < f.m.nr_funcs; k += step) {
			const struct plan_region *r = plan_targets_region(all, f.func[k].start);

			if (!r)
				continue;
			asked++;
			if (plan_targets_near(&one, &f.m, f.func[k].start))
				continue;
			told++;
			expect_same(all, one, r);
			plan_targets_free(one);
		}
		printf("%s: %u of %u functions by themselves\n", files[i], told, asked);
		assert_true(told > asked / 10);
		plan_targets_free(all);
		facts_free(&f);
		seen++;
	}
	assert_true(seen > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(all_around_the_region_is_a_target_and_inside_what_is_one,
		                          done),
		cmocka_unit_test_teardown(a_neighbour_s_short_branch_and_a_relocation_are_targets,
		                          done),
		cmocka_unit_test_teardown(padding_behind_the_region_is_known_as_well, done),
		cmocka_unit_test_teardown(
			what_lies_far_away_and_would_lead_into_the_middle_is_a_branch, done),
		cmocka_unit_test_teardown(
			an_immediate_far_away_is_an_address_where_nothing_is_relocated, done),
		cmocka_unit_test_teardown(where_parts_or_unknown_jumps_are_only_the_whole_can_tell,
		                          done),
		cmocka_unit_test(in_real_libraries_both_sets_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
