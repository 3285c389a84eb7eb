/* SPDX-License-Identifier: MIT */
/*
 * How many functions of real programs have exits that are all known, and how
 * many of those exits get the jump form.
 */
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
		for (size_t k = 0; k < n; k++) {
			count(&s, &e, &fn[k]);
			if (getenv("EXITS_SHOW") && fn[k].why && fn[k].why != PLAN_EXITS_NONE)
				printf("    %#lx: %s (at %#lx)\n", fn[k].start,
				       plan_exits_reason(fn[k].why), fn[k].where);
		}
		print(&s);
		exits_done(&e);
		seen++;
	}
	assert_true(seen > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_exits_of_nearly_all_functions_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
