/* SPDX-License-Identifier: MIT */
/* Trace lines, against lines as the kernel prints them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "fake_session.h"
#include "front/format.h"

static struct ukp_session *session;

static int setup(void **state)
{
	fake_reset();
	ukp_session_open(&session, 1);
	*state = format_new(session);
	return !*state;
}

static int teardown(void **state)
{
	format_free(*state);
	ukp_session_close(session);
	return 0;
}

static void expect(void **state, const struct ukp_record *r, const char *line)
{
	size_t bound = format_bound(*state, r);
	char *text = malloc(bound + 1), *end;

	end = format_line(*state, text, r);
	assert_true((size_t)(end - text) <= bound);
	*end = 0;
	assert_string_equal(text, line);
	free(text);
}

static void a_probe_prints_its_place(void **state)
{
	struct ukp_event_info ev = { 2, false, "ukprobes", "rd", "", "", 0x401004, 0, NULL, 1 };
	struct ukp_record r = { &ev, 2420544000, 149, 0, "wc", 0x401004, 0, 0, NULL };

	expect(state, &r,
	       "              wc-149     [000] .....     2.420544: rd: (get+0x4/0x80)\n");
}

static void a_return_prints_caller_and_function(void **state)
{
	struct ukp_record r;

	fake_record(&r, 0);
	expect(state, &r,
	       "    redis-server-149     [001] .....     2.420544: get: (caller+0x0/0xf0 <- get) "
	       "ret=0x7f0000001000 ns=1000 key=\"user:1\"\n");
}

static void a_function_without_a_name_is_its_symbol_without_the_offset(void **state)
{
	struct ukp_event_info ev = { 2, true, "ukprobes", "q", "", "", 0x401000, 0, NULL, 1 };
	struct ukp_record r = { &ev, 0, 1, 0, "wc", 0x401000, 0x402003, 0, NULL };

	expect(state, &r,
	       "              wc-1       [000] .....     0.000000: q: (caller+0x3/0xf0 <- get)\n");
	r.ip = 0x500123;
	expect(state, &r,
	       "              wc-1       [000] .....     0.000000: q: (caller+0x3/0xf0 <- "
	       "0x500123)\n");
}

static void numbers_follow_their_types(void **state)
{
	static const struct ukp_field f[] = {
		{ "u", UKP_FIELD_U, 8 },   { "m", UKP_FIELD_U, 8 }, { "s", UKP_FIELD_S, 8 },
		{ "n", UKP_FIELD_S, 1 },   { "x", UKP_FIELD_X, 8 }, { "z", UKP_FIELD_X, 4 },
		{ "big", UKP_FIELD_X, 8 },
	};
	struct ukp_value v[] = {
		{ .num = 0 },
		{ .num = UINT64_MAX },
		{ .num = (uint64_t)INT64_MIN },
		{ .num = (uint64_t)-1 },
		{ .num = 0x1f },
		{ .num = 0 },
		{ .num = UINT64_MAX },
	};
	struct ukp_event_info ev = { 3, false, "g", "e", "", "", 0x401000, 7, f, 1 };
	struct ukp_record r = { &ev, 0, 1, 0, "wc", 0x401000, 0, 7, v };

	expect(state, &r,
	       "              wc-1       [000] .....     0.000000: e: (get+0x0/0x80) u=0 "
	       "m=18446744073709551615 s=-9223372036854775808 n=-1 x=0x1f z=0x0 "
	       "big=0xffffffffffffffff\n");
}

/* One value on a line of its own. */
static void value_is(void **state, enum ukp_field_type type, unsigned int size, struct ukp_value v,
                     const char *text)
{
	const struct ukp_field f = { "v", type, size };
	struct ukp_event_info ev = { 3, false, "g", "e", "", "", 0x401000, 1, &f, 1 };
	struct ukp_record r = { &ev, 0, 1, 0, "wc", 0x401000, 0, 1, &v };
	char line[256];

	snprintf(line, sizeof(line),
	         "              wc-1       [000] .....     0.000000: e: (get+0x0/0x80) v=%s\n",
	         text);
	expect(state, &r, line);
	/* Events are known by their address. */
	format_free(*state);
	*state = format_new(session);
}

static void numbers_of_128_bits_are_whole(void **state)
{
	static const struct {
		enum ukp_field_type type;
		uint64_t high, low;
		const char *text;
	} row[] = {
		{ UKP_FIELD_U, 0, 7, "7" },
		{ UKP_FIELD_U, 1, 0, "18446744073709551616" },
		{ UKP_FIELD_U, UINT64_MAX, UINT64_MAX, "340282366920938463463374607431768211455" },
		{ UKP_FIELD_U, 0x4b3b4ca85a86c47a, 0x98a224000000000,
		  "100000000000000000000000000000000000000" },
		{ UKP_FIELD_S, UINT64_MAX, UINT64_MAX, "-1" },
		{ UKP_FIELD_S, UINT64_MAX, 0, "-18446744073709551616" },
		{ UKP_FIELD_S, 1ull << 63, 0, "-170141183460469231731687303715884105728" },
		{ UKP_FIELD_S, INT64_MAX, UINT64_MAX, "170141183460469231731687303715884105727" },
		{ UKP_FIELD_X, 0, 0x1f, "0x1f" },
		{ UKP_FIELD_X, 1, 0, "0x10000000000000000" },
		{ UKP_FIELD_X, 0xabc, 0xd, "0xabc000000000000000d" },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		value_is(state, row[i].type, 16,
		         (struct ukp_value){ .num = row[i].low, .high = row[i].high }, row[i].text);
}

static void floating_numbers_have_the_fewest_digits_that_give_them_back(void **state)
{
	static const struct {
		unsigned int size;
		long double v;
		const char *text;
	} row[] = {
		{ 4, 0.1f, "0.1" },
		{ 4, 16777216.0f, "16777216" },
		{ 4, 3.40282346638528859811704183484516925e+38f, "3.4028235e+38" },
		{ 4, 1 / 3.0f, "0.33333334" },
		{ 8, 0.1, "0.1" },
		{ 8, 0.1 + 0.2, "0.30000000000000004" },
		{ 8, 5e-324, "4.94065645841247e-324" },
		{ 8, -1.7976931348623157e308, "-1.7976931348623157e+308" },
		{ 8, 2, "2" },
		{ 8, -0.0, "-0" },
		{ 8, __builtin_inf(), "inf" },
		{ 8, -__builtin_inf(), "-inf" },
		{ 8, __builtin_nan(""), "nan" },
		{ 10, 1.0L / 3, "0.33333333333333333334" },
		{ 10, -1.18973149535723176502e4932L, "-1.189731495357231765e+4932" },
		{ 10, 0.1, "0.10000000000000000555" },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		value_is(state, UKP_FIELD_F, row[i].size, (struct ukp_value){ .flt = row[i].v },
		         row[i].text);
}

static void every_count_of_digits_comes_out_right(void **state)
{
	static const struct ukp_field f[] = { { "v", UKP_FIELD_U, 8 }, { "x", UKP_FIELD_X, 8 } };
	struct ukp_event_info ev = { 3, false, "g", "e", "", "", 0x401000, 2, f, 1 };
	struct ukp_value v[2] = { { .num = 0 } };
	struct ukp_record r = { &ev, 0, 1, 0, "wc", 0x401000, 0, 2, v };
	char line[256];

	for (uint64_t n = 1; n < UINT64_MAX / 10; n *= 10) {
		for (int d = -1; d <= 1; d++) {
			v[0].num = v[1].num = n + (uint64_t)d;
			snprintf(line, sizeof(line),
			         "              wc-1       [000] .....     0.000000: e: "
			         "(get+0x0/0x80) "
			         "v=%lu x=0x%lx\n",
			         v[0].num, v[1].num);
			expect(state, &r, line);
		}
	}
}

static void what_could_not_be_read_is_a_fault(void **state)
{
	static const struct ukp_field f[] = { { "p", UKP_FIELD_X, 8 },
		                              { "s", UKP_FIELD_STRING, 0 } };
	struct ukp_value v[] = { { .fault = true }, { .fault = true } };
	struct ukp_event_info ev = { 3, false, "g", "e", "", "", 0x401000, 2, f, 1 };
	struct ukp_record r = { &ev, 0, 1, 0, "wc", 0x401000, 0, 2, v };

	expect(state, &r,
	       "              wc-1       [000] .....     0.000000: e: (get+0x0/0x80) p=(fault) "
	       "s=(fault)\n");
}

static void text_of_the_target_stays_on_the_line(void **state)
{
	static const struct ukp_field f[] = { { "s", UKP_FIELD_STRING, 0 } };
	struct ukp_value v[] = { { .str = "a\nb\033[2J\x7f\xc3\xa9\"", .len = 11 } };
	struct ukp_event_info ev = { 3, false, "g", "e", "", "", 0x401000, 1, f, 1 };
	struct ukp_record r = { &ev, 0, 1, 0, "w\n", 0x401000, 0, 1, v };

	expect(state, &r,
	       "              w\\x0a-1       [000] .....     0.000000: e: (get+0x0/0x80) "
	       "s=\"a\\x0ab\\x1b[2J\\x7f\xc3\xa9\"\"\n");
}

static void wide_values_push_the_columns_apart(void **state)
{
	struct ukp_event_info ev = { 2, false, "g", "e", "", "", 0x401000, 0, NULL, 1 };
	struct ukp_record r = {
		&ev, 1234567890123456499, 12345678, 1000, "sixteen-letters", 0x401000, 0, 0, NULL
	};

	expect(state, &r,
	       " sixteen-letters-12345678 [1000] ..... 1234567890.123456: e: (get+0x0/0x80)\n");
}

static void time_is_rounded_to_microseconds(void **state)
{
	struct ukp_event_info ev = { 2, false, "g", "e", "", "", 0x401000, 0, NULL, 1 };
	struct ukp_record r = { &ev, 1999999500, 1, 0, "wc", 0x401000, 0, 0, NULL };

	expect(state, &r, "              wc-1       [000] .....     2.000000: e: (get+0x0/0x80)\n");
	r.time = 1999999499;
	expect(state, &r, "              wc-1       [000] .....     1.999999: e: (get+0x0/0x80)\n");
}

static void an_unknown_task_is_dots(void **state)
{
	struct ukp_event_info ev = { 2, false, "g", "e", "", "", 0x401000, 0, NULL, 1 };
	struct ukp_record r = { &ev, 0, 0, 0, "<...>", 0x401000, 0, 0, NULL };

	expect(state, &r, "           <...>-0       [000] .....     0.000000: e: (get+0x0/0x80)\n");
}

static void a_symbol_is_looked_up_once_until_forgotten(void **state)
{
	struct ukp_record r;
	char line[512];

	for (int i = 0; i < 1000; i++) {
		fake_record(&r, 0);
		format_bound(*state, &r);
		format_line(*state, line, &r);
	}
	assert_int_equal(fake.symbols, 1);
	format_forget(*state);
	format_bound(*state, &r);
	assert_int_equal(fake.symbols, 2);
}

static void many_addresses_and_events_keep_their_names(void **state)
{
	struct ukp_event_info ev[200];
	struct ukp_record r = { NULL, 0, 1, 0, "wc", 0, 0, 0, NULL };
	char name[200][16], line[160];

	for (unsigned int i = 0; i < 200; i++) {
		snprintf(name[i], sizeof(name[i]), "e%u", i);
		ev[i] = (struct ukp_event_info){ i, false, "g", name[i], "", "", 0, 0, NULL, 1 };
	}
	for (unsigned int i = 0; i < 20000; i++) {
		r.event = &ev[i % 200];
		r.ip = 0x402000 + i * 7919 % 10007;
		snprintf(line, sizeof(line),
		         "              wc-1       [000] .....     0.000000: e%u: "
		         "(caller+0x%lx/0xf0)\n",
		         i % 200, r.ip - 0x402000);
		expect(state, &r, line);
	}
}

/* No threshold: a figure for whoever reads the log. */
static void the_speed_is_printed(void **state)
{
	static char buf[1 << 20];
	struct timespec a, b;
	struct ukp_record r;
	char *p = buf;
	uint64_t n = 1000000;
	double ns;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	for (uint64_t i = 0; i < n; i++) {
		fake_record(&r, i);
		if (p + format_bound(*state, &r) > buf + sizeof(buf))
			p = buf;
		p = format_line(*state, p, &r);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	ns = (double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec);
	print_message("%.0f ns a line, %.2f M lines/s\n", ns / (double)n, 1e3 * (double)n / ns);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_probe_prints_its_place),
		T(a_return_prints_caller_and_function),
		T(a_function_without_a_name_is_its_symbol_without_the_offset),
		T(numbers_follow_their_types),
		T(numbers_of_128_bits_are_whole),
		T(floating_numbers_have_the_fewest_digits_that_give_them_back),
		T(every_count_of_digits_comes_out_right),
		T(what_could_not_be_read_is_a_fault),
		T(text_of_the_target_stays_on_the_line),
		T(wide_values_push_the_columns_apart),
		T(time_is_rounded_to_microseconds),
		T(an_unknown_task_is_dots),
		T(a_symbol_is_looked_up_once_until_forgotten),
		T(many_addresses_and_events_keep_their_names),
		T(the_speed_is_printed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
