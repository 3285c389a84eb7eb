/* SPDX-License-Identifier: MIT */
/* The latency table, its picture and its numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "fake_session.h"
#include "front/errno_name.h"
#include "latency_sample.h"

static char text[8192];

/* Prints into text. */
static void table(const struct latency *l, unsigned int nr)
{
	FILE *f = fmemopen(text, sizeof(text), "w");

	latency_table(f, l, nr);
	fclose(f);
}

static void a_function_has_line_picture_errors_and_misses(void **state)
{
	struct latency l = latency_sample();

	table(&l, 1);
	/* clang-format off */
	assert_string_equal(text,
"FUNCTION      COUNT   ERRORS   SHARE    MIN    P50    P90    P99  P99.9    MAX\n"
"lookupKey      1230       20   1.63%  187ns  300ns 1.02us 5.40us  990us 13.4ms\n"
"\n"
"lookupKey (ptr)\n"
"  [128ns, 256ns)            200 |@@@@@@@@                                |\n"
"  [256ns, 512ns)           1000 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|\n"
"  [512ns, 1.02us)             0 |                                        |\n"
"  [1.02us, 2.05us)           29 |@                                       |\n"
"  [2.05us, 4.10us)            0 |                                        |\n"
"  [4.10us, 8.19us)            0 |                                        |\n"
"  [8.19us, 16.4us)            0 |                                        |\n"
"  [16.4us, 32.8us)            0 |                                        |\n"
"  [32.8us, 65.5us)            0 |                                        |\n"
"  [65.5us, 131us)             0 |                                        |\n"
"  [131us, 262us)              0 |                                        |\n"
"  [262us, 524us)              0 |                                        |\n"
"  [524us, 1.05ms)             0 |                                        |\n"
"  [1.05ms, 2.10ms)            0 |                                        |\n"
"  [2.10ms, 4.19ms)            0 |                                        |\n"
"  [4.19ms, 8.39ms)            0 |                                        |\n"
"  [8.39ms, 16.8ms)            1 |                                        |\n"
"  errors:\n"
"  NULL                           17   1.38%\n"
"  -ENOMEM (-12)                   2   0.16%\n"
"  other                           1   0.08%\n"
"  missed: 2 of 1232 calls (maxactive 2)\n");
	/* clang-format on */
}

static void a_function_that_was_not_called_has_a_line_only(void **state)
{
	struct latency l = { .name = (char *)"f", .kind = (char *)"auto" };

	table(&l, 1);
	assert_non_null(strstr(text, "f                0        0   0.00%      -      -      -    "
	                             "  -      -      -\n"));
	assert_null(strchr(text, '@'));
	assert_null(strstr(text, "auto"));
}

static void numbers_line_up_under_a_long_name(void **state)
{
	struct latency l[2] = { latency_sample(), latency_sample() };
	char *second;

	l[1].name = (char *)"a_function_with_a_very_long_name";
	table(l, 2);
	second = strchr(text, '\n') + 1;
	assert_int_equal(strchr(text, '\n') - text, strchr(second, '\n') - second);
}

static void times_have_three_digits_and_a_unit(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} t[] = {
		{ 0, "0ns" },           { 999, "999ns" },         { 1000, "1.00us" },
		{ 1024, "1.02us" },     { 9994, "9.99us" },       { 9996, "10.0us" },
		{ 99940, "99.9us" },    { 99960, "100us" },       { 999400, "999us" },
		{ 999500, "1.00ms" },   { 13400000, "13.4ms" },   { 2000000000, "2.00s" },
		{ 999499999, "999ms" }, { 75000000000, "75.0s" }, { UINT64_MAX, "18446744074s" },
	};
	char buf[LATENCY_NS_MAX];

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		assert_string_equal(latency_ns(buf, sizeof(buf), t[i].ns), t[i].text);
}

static void a_small_share_is_not_none(void **state)
{
	char buf[16];

	assert_string_equal(latency_share(buf, sizeof(buf), 1, 1000000), "<0.01%");
	assert_string_equal(latency_share(buf, sizeof(buf), 0, 1000000), "0.00%");
	assert_string_equal(latency_share(buf, sizeof(buf), 0, 0), "0.00%");
	assert_string_equal(latency_share(buf, sizeof(buf), 5, 5), "100.00%");
}

static void errors_are_named_as_people_know_them(void **state)
{
	char buf[64];

	assert_string_equal(errno_text(buf, sizeof(buf), -12, false), "-ENOMEM (-12)");
	assert_string_equal(errno_text(buf, sizeof(buf), -2, true), "-ENOENT (-2)");
	assert_string_equal(errno_text(buf, sizeof(buf), -1, false), "-1 (or -EPERM)");
	assert_string_equal(errno_text(buf, sizeof(buf), -1, true), "-1 (or -EPERM)");
	assert_string_equal(errno_text(buf, sizeof(buf), 0, true), "NULL");
	assert_string_equal(errno_text(buf, sizeof(buf), 0, false), "0");
	assert_string_equal(errno_text(buf, sizeof(buf), -4000, false), "-4000");
	assert_string_equal(errno_text(buf, sizeof(buf), INT64_MIN, false), "-9223372036854775808");
}

static void the_rows_have_every_sample_once(void **state)
{
	static const uint64_t sample[] = { 0, 1, 2, 3, 4, 1000, 1ull << 40, 1ull << 63 };
	struct ukp_session *s;
	struct latency l;
	uint64_t sum = 0;

	fake_reset();
	fake.sample = sample;
	fake.nr_samples = 8;
	fake.latency = (struct ukp_latency_info){
		.name = "f", .kind = "auto", .count = 8, .min = 0, .max = 1ull << 63
	};
	ukp_session_open(&s, 1);
	assert_int_equal(latency_read(&l, s, 1), 0);
	for (unsigned int i = 0; i < LATENCY_ROWS; i++)
		sum += l.row[i];
	assert_int_equal(sum, 8);
	assert_int_equal(l.row[0], 2);
	assert_int_equal(l.row[63], 1);
	assert_int_equal(l.quantile[Q_P50], 4);
	latency_free(&l);
	ukp_session_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_has_line_picture_errors_and_misses),
		cmocka_unit_test(a_function_that_was_not_called_has_a_line_only),
		cmocka_unit_test(numbers_line_up_under_a_long_name),
		cmocka_unit_test(times_have_three_digits_and_a_unit),
		cmocka_unit_test(a_small_share_is_not_none),
		cmocka_unit_test(errors_are_named_as_people_know_them),
		cmocka_unit_test(the_rows_have_every_sample_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
