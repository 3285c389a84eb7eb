/* SPDX-License-Identifier: MIT */
/* The JSON of ukprobe latency, read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "latency_sample.h"

static struct json_object *back(const struct latency *l, unsigned int nr)
{
	struct json_object *o;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_int_equal(latency_json(f, l, nr, 42, 10.0015), 0);
	fclose(f);
	assert_int_equal(text[len - 1], '\n');
	o = json_tokener_parse(text);
	assert_non_null(o);
	free(text);
	return o;
}

static struct json_object *get(struct json_object *o, const char *key)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, key, &v))
		fail_msg("no key %s", key);
	return v;
}

static uint64_t number(struct json_object *o, const char *key)
{
	return json_object_get_uint64(get(o, key));
}

static void all_figures_come_back(void **state)
{
	struct latency l = latency_sample();
	struct json_object *o = back(&l, 1), *f;

	assert_int_equal(number(o, "pid"), 42);
	assert_true(json_object_get_double(get(o, "seconds")) > 10.0);
	f = json_object_array_get_idx(get(o, "functions"), 0);
	assert_string_equal(json_object_get_string(get(f, "name")), "lookupKey");
	assert_string_equal(json_object_get_string(get(f, "kind")), "ptr");
	assert_int_equal(number(f, "count"), 1230);
	assert_int_equal(number(f, "errors"), 20);
	assert_int_equal(number(f, "min"), 187);
	assert_int_equal(number(f, "p50"), 300);
	assert_int_equal(number(f, "p90"), 1020);
	assert_int_equal(number(f, "p99"), 5400);
	assert_int_equal(number(f, "p99.9"), 990000);
	assert_int_equal(number(f, "max"), 13400000);
	assert_int_equal(number(f, "mean"), 950);
	assert_int_equal(number(f, "errors_other"), 1);
	assert_int_equal(number(f, "hits"), 1232);
	assert_int_equal(number(get(f, "misses"), "maxactive"), 2);
	assert_int_equal(json_object_object_length(get(f, "misses")), 1);
	json_object_put(o);
}

static void errors_have_value_name_and_count(void **state)
{
	struct latency l = latency_sample();
	struct json_object *o = back(&l, 1), *list, *e;

	list = get(json_object_array_get_idx(get(o, "functions"), 0), "errors_by_value");
	assert_int_equal(json_object_array_length(list), 2);
	e = json_object_array_get_idx(list, 0);
	assert_int_equal(json_object_get_int64(get(e, "value")), 0);
	assert_string_equal(json_object_get_string(get(e, "name")), "NULL");
	assert_int_equal(number(e, "count"), 17);
	e = json_object_array_get_idx(list, 1);
	assert_int_equal(json_object_get_int64(get(e, "value")), -12);
	assert_string_equal(json_object_get_string(get(e, "name")), "ENOMEM");
	json_object_put(o);
}

static void the_rows_of_the_histogram_join(void **state)
{
	struct latency l = latency_sample();
	struct json_object *o, *rows, *row;
	uint64_t sum = 0, from;

	l.row[63] = 1;
	o = back(&l, 1);
	rows = get(json_object_array_get_idx(get(o, "functions"), 0), "histogram");
	assert_int_equal(json_object_array_length(rows), 63 - 7 + 1);
	from = 128;
	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		row = json_object_array_get_idx(rows, i);
		assert_int_equal(number(row, "from"), from);
		from = number(row, "below");
		sum += number(row, "count");
	}
	assert_true(from == UINT64_MAX);
	assert_int_equal(sum, 1231);
	json_object_put(o);
}

static void what_is_unknown_is_null(void **state)
{
	struct latency l = { .name = (char *)"a\"b\\\n", .kind = (char *)"auto" };
	struct json_object *o = back(&l, 1), *f;

	f = json_object_array_get_idx(get(o, "functions"), 0);
	assert_string_equal(json_object_get_string(get(f, "name")), "a\"b\\\n");
	assert_null(get(f, "min"));
	assert_null(get(f, "p99.9"));
	assert_int_equal(json_object_array_length(get(f, "histogram")), 0);
	json_object_put(o);
}

static void functions_keep_their_order(void **state)
{
	struct latency l[2] = { latency_sample(), latency_sample() };
	struct json_object *o, *list;

	l[1].name = (char *)"second";
	o = back(l, 2);
	list = get(o, "functions");
	assert_int_equal(json_object_array_length(list), 2);
	assert_string_equal(json_object_get_string(get(json_object_array_get_idx(list, 1), "name")),
	                    "second");
	json_object_put(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_figures_come_back),
		cmocka_unit_test(errors_have_value_name_and_count),
		cmocka_unit_test(the_rows_of_the_histogram_join),
		cmocka_unit_test(what_is_unknown_is_null),
		cmocka_unit_test(functions_keep_their_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
