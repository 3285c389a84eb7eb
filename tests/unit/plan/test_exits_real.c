/* SPDX-License-Identifier: MIT */
/*
 * How many functions of real programs have exits that are all known, and how
 * many of those exits get the jump form.
 */
#include <dlfcn.h>
#include <link.h>

#include "plan/exits_in.h"
#include "unit/plan/exits_of.h"

#define LIB "/usr/lib/x86_64-linux-gnu/"

static const char *const files[] = {
	LIB "libc.so.6",
	LIB "libstdc++.so.6",
	LIB "libsqlite3.so.0",
	LIB "libcrypto.so.3",
	"/usr/bin/python3.11",
	"/usr/bin/redis-server",
	LIB "libpython3.11.so.1.0",
};

struct shares {
	size_t all, why[PLAN_EXITS_REASONS], tails, few, few_room, touches, loops, parts, fit;
	size_t ways[3], no_room[3], with_imm, room_why[PLAN_WINDOW_REASONS], most;
};

static void count(struct shares *s, const struct exits_of *e, const struct plan_function *fn)
{
	const struct plan_way_out *w = plan_exits_ways(e->x, fn);

	s->all++;
	s->why[fn->why]++;
	if (fn->why)
		return;
	s->tails += fn->nr_tails > 0;
	s->touches += fn->flags & PLAN_FN_TOUCHES ? 1 : 0;
	s->loops += fn->flags & PLAN_FN_LOOPS ? 1 : 0;
	s->parts += fn->flags & PLAN_FN_PARTS ? 1 : 0;
	s->few += !fn->nr_tails && fn->nr_exits <= 8;
	s->fit += !fn->nr_no_room;
	s->few_room += !fn->nr_tails && fn->nr_exits <= 8 && !fn->nr_no_room;
	s->most = fn->nr_exits > s->most ? fn->nr_exits : s->most;
	for (uint32_t i = 0; i < fn->nr_exits; i++) {
		s->ways[w[i].kind]++;
		s->no_room[w[i].kind] += !w[i].window;
		s->with_imm += w[i].pops != 0;
		if (!w[i].window)
			s->room_why[w[i].no_room]++;
	}
}

static double percent(size_t part, size_t of)
{
	return of ? 100.0 * (double)part / (double)of : 0;
}

static void print(const struct shares *s)
{
	printf("  known %.2f %% (never back %.2f %%)", percent(s->why[0], s->all),
	       percent(s->why[PLAN_EXITS_NONE], s->all));
	for (int i = 1; i < PLAN_EXITS_REASONS; i++)
		if (s->why[i] && i != PLAN_EXITS_NONE)
			printf("; %s: %zu", plan_exits_reason((enum plan_exits_why)i), s->why[i]);
	printf("\n  of known ones: no tail call, <= 8 exits: %.2f %%; with room for all: %.2f %%; "
	       "tail calls: %zu; touch their return address: %zu; loop to the start: %zu; parts: "
	       "%zu; most exits: %zu\n",
	       percent(s->few, s->why[0]), percent(s->few_room, s->why[0]), s->tails, s->touches,
	       s->loops, s->parts, s->most);
	printf("  returns %zu (%zu pop), no room %.2f %%; tail jumps %zu, no room %.2f %%; "
	       "indirect "
	       "%zu, no room %.2f %%\n",
	       s->ways[0], s->with_imm, percent(s->no_room[0], s->ways[0]), s->ways[1],
	       percent(s->no_room[1], s->ways[1]), s->ways[2], percent(s->no_room[2], s->ways[2]));
	for (int i = 1; i < PLAN_WINDOW_REASONS; i++)
		if (s->room_why[i])
			printf("  no room, %s: %zu\n", plan_window_reason((enum plan_window_why)i),
			       s->room_why[i]);
}

static void the_exits_of_nearly_all_functions_are_known(void **state)
{
	unsigned int seen = 0;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const struct plan_function *fn;
		struct shares s = { 0 };
		struct exits_of e;
		size_t n;

		if (!exits_of(&e, files[i])) {
			print_message("%s is not installed: left out\n", files[i]);
			continue;
		}
		fn = plan_exits_all(e.x, &n);
		printf("%s: %zu functions, %zu KiB\n", files[i], n, plan_exits_bytes(e.x) >> 10);
		for (size_t k = 0; k < n; k++)
			count(&s, &e, &fn[k]);
		print(&s);
		assert_true(percent(s.why[PLAN_EXITS_OK] + s.why[PLAN_EXITS_NONE], s.all) >= 90);
		exits_done(&e);
		seen++;
	}
	assert_true(seen > 0);
}

struct expected {
	const char *name;
	uint32_t flags;
	enum plan_exits_why why;
	bool tails; /* when optimized */
};

static const struct expected leaves[] = {
	{ "plain", 0, PLAN_EXITS_OK, false },
	{ "early", 0, PLAN_EXITS_OK, false },
	{ "by_table", 0, PLAN_EXITS_OK, false },
	{ "tail", 0, PLAN_EXITS_OK, true },
	{ "tail_if", 0, PLAN_EXITS_OK, true },
	{ "tail_pointer", 0, PLAN_EXITS_OK, true },
	{ "tail_member", 0, PLAN_EXITS_OK, true },
	{ "self_tail", 0, PLAN_EXITS_OK, false },
	{ "recurse", 0, PLAN_EXITS_OK, false },
	{ "with_cold", 0, PLAN_EXITS_OK, false },
	{ "never", 0, PLAN_EXITS_NONE, false },
	{ "maybe_never", 0, PLAN_EXITS_OK, false },
	{ "jumper", 0, PLAN_EXITS_OK, false },
	{ "dynamic", 0, PLAN_EXITS_OK, false },
	{ "realigned", 0, PLAN_EXITS_OK, false },
	{ "wide", 0, PLAN_EXITS_OK, false },
	{ "variadic", 0, PLAN_EXITS_OK, false },
	{ "own_address", PLAN_FN_TOUCHES, PLAN_EXITS_OK, false },
	{ "shared_a", 0, PLAN_EXITS_SHARES, false },
	{ "shared_b", 0, PLAN_EXITS_ENTERED, false },
	{ "no_cfi", 0, PLAN_EXITS_OK, false },
	{ "runs_into", 0, PLAN_EXITS_FALLS, false },
	{ "run_into", 0, PLAN_EXITS_OK, false },
	{ "by_push", 0, PLAN_EXITS_DEPTH, false },
	{ "assembler", 0, PLAN_EXITS_OK, false },
	{ "run", 0, PLAN_EXITS_OK, false },
};

static void check_leaf(const struct exits_of *e, const struct expected *want, uint64_t addr,
                       bool optimized)
{
	const struct plan_function *fn = plan_exits_find(e->x, addr);

	assert_non_null(fn);
	if (fn->why != want->why || (!fn->why && (fn->flags & PLAN_FN_TOUCHES) != want->flags))
		fail_msg("%s: %s, flags %d", want->name, plan_exits_reason(fn->why), fn->flags);
	if (want->tails)
		assert_int_equal(fn->nr_tails > 0, optimized);
	else
		assert_true(!fn->nr_tails || optimized);
}

static void each_shape_of_function_is_seen_for_what_it_is(void **state)
{
	static const char *const how[] = { "gcc -O0",   "gcc -O2",   "gcc -O3",    "clang -O0",
		                           "clang -O2", "clang -O3", "gcc -O2 -s", "clang -O2 -s" };

	for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		const char *path = help_path("leaves.so");
		struct link_map *map;
		struct exits_of e;
		void *h;

		assert_true(
			help_run("%s -w -fPIC -shared -o %s tests/targets/leaves.c", how[i], path));
		h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		assert_non_null(h);
		assert_int_equal(dlinfo(h, RTLD_DI_LINKMAP, &map), 0);
		assert_true(exits_of(&e, path));
		for (size_t k = 0; k < sizeof(leaves) / sizeof(leaves[0]); k++) {
			void *at = dlsym(h, leaves[k].name);

			assert_non_null(at);
			check_leaf(&e, &leaves[k], (uint64_t)at - map->l_addr,
			           !strstr(how[i], "-O0"));
		}
		exits_done(&e);
		dlclose(h);
	}
}

/* Of a body's instructions: how often counting and the CFI say the same. */
static void compare_depths(struct exits_of *e, const struct plan_function *fn, size_t *same,
                           size_t *other)
{
	const struct exits_maker k = { .t = e->targets, .m = &e->m };
	const struct plan_range *r = plan_exits_body(e->x, fn);
	struct exits_depth *d;
	size_t region[BODY_REGIONS];

	for (uint32_t i = 0; i < fn->nr_ranges; i++)
		region[i] = exits_region(e->targets, r[i].start);
	assert_int_equal(exits_depth_new(&d, &k, fn->start, region, fn->nr_ranges), 0);
	for (uint32_t i = 0; i < fn->nr_ranges; i++)
		for (uint64_t a = r[i].start; a < r[i].end; a++) {
			unsigned int reg;
			int64_t off, depth;

			if (!plan_targets_boundary(e->targets, a) ||
			    !exits_depth_at(d, a, &depth) ||
			    !sym_facts_cfa(e->facts, a, &reg, &off) || reg != 7)
				continue;
			*same += depth == off - 8;
			*other += depth != off - 8;
		}
	for (uint32_t i = 0; i < fn->nr_exits; i++) {
		int64_t depth;

		if (exits_depth_at(d, plan_exits_ways(e->x, fn)[i].addr, &depth))
			assert_int_equal(depth, 0);
	}
	exits_depth_free(d);
}

static void counting_and_the_cfi_agree(void **state)
{
	unsigned int seen = 0;

	for (size_t i = 0; i < 4; i++) {
		size_t n, same = 0, other = 0;
		const struct plan_function *fn;
		struct exits_of e;

		if (!exits_of(&e, files[i])) {
			print_message("%s is not installed: left out\n", files[i]);
			continue;
		}
		fn = plan_exits_all(e.x, &n);
		for (size_t k = 0; k < n; k++)
			if (!fn[k].why)
				compare_depths(&e, &fn[k], &same, &other);
		printf("%s: %zu instructions with the same depth, %zu with another\n", files[i],
		       same, other);
		assert_true(same > 10000);
		/* Behind calls that don't come back something else may stand. */
		assert_true(other * 1000 < same);
		exits_done(&e);
		seen++;
	}
	assert_true(seen > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_shape_of_function_is_seen_for_what_it_is),
		cmocka_unit_test(counting_and_the_cfi_agree),
		cmocka_unit_test(the_exits_of_nearly_all_functions_are_known),
	};

	return cmocka_run_group_tests(tests, help_setup, help_teardown);
}
