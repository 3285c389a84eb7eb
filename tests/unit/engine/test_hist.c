/* SPDX-License-Identifier: MIT */
/* What is added to a histogram, and which return values are errors. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <pthread.h>

#include "engine/hist.h"

static struct ukp_hist *empty(void)
{
	struct ukp_hist *h = calloc(1, sizeof(*h));

	assert_non_null(h);
	ukp_hist_init(h);
	return h;
}

static void count_sum_min_and_max_are_exact(void **s)
{
	struct ukp_hist *h = empty();
	uint64_t v[] = { 70, 5, UINT64_MAX, 0, 12345 };

	assert_int_equal(h->min, UINT64_MAX);
	ukp_hist_add(h, h, 70, 0, UKP_ERR_NONE);
	assert_int_equal(h->min, 70);
	assert_int_equal(h->max, 70);
	for (int i = 1; i < 5; i++)
		ukp_hist_add(h, h, v[i], 0, UKP_ERR_NONE);
	assert_int_equal(h->count, 5);
	assert_int_equal(h->min, 0);
	assert_int_equal(h->max, UINT64_MAX);
	assert_int_equal(h->sum, 70ull + 5 + UINT64_MAX + 12345);
	for (int i = 0; i < 5; i++)
		assert_int_equal(h->bucket[ukp_hist_index(v[i])], 1);
	assert_int_equal(h->errors, 0);
	free(h);
}

static void buckets_are_in_order_and_narrow(void **s)
{
	for (uint32_t i = 0; i < UKP_HIST_BUCKETS; i++) {
		uint64_t low = ukp_hist_low(i);

		assert_int_equal(ukp_hist_index(low), i);
		if (i + 1 == UKP_HIST_BUCKETS)
			break;
		assert_int_equal(ukp_hist_index(ukp_hist_low(i + 1) - 1), i);
		if (low >= 2 * UKP_HIST_SUB)
			assert_true((ukp_hist_low(i + 1) - low) * 64 <= low);
	}
	assert_int_equal(ukp_hist_index(UINT64_MAX), UKP_HIST_BUCKETS - 1);
}

static void errors_are_what_the_kind_says(void **s)
{
	static const struct {
		uint32_t kind;
		uint64_t v;
		int error;
		int64_t value;
	} c[] = {
		{ UKP_ERR_AUTO, 0, 0, 0 },
		{ UKP_ERR_AUTO, (uint64_t)-12, 1, -12 },
		{ UKP_ERR_AUTO, 0xfffffff4, 1, -12 },
		{ UKP_ERR_AUTO, 0x12345678fffffff4, 1, -12 },
		{ UKP_ERR_AUTO, (uint64_t)-4095, 1, -4095 },
		{ UKP_ERR_AUTO, (uint64_t)-4096, 0, 0 },
		{ UKP_ERR_AUTO, 0x80000000, 0, 0 },
		{ UKP_ERR_AUTO, 0xffffffff00000001, 0, 0 },
		{ UKP_ERR_PTR, 0, 1, 0 },
		{ UKP_ERR_PTR, 0x7f0000001000, 0, 0 },
		{ UKP_ERR_PTR, (uint64_t)-4095, 1, -4095 },
		{ UKP_ERR_PTR, (uint64_t)-4096, 0, 0 },
		{ UKP_ERR_PTR, 0xfffffff4, 0, 0 },
		{ UKP_ERR_S32, 0x80000000, 1, INT32_MIN },
		{ UKP_ERR_S32, 0x7fffffff, 0, 0 },
		{ UKP_ERR_S32, 0xffffffff00000001, 0, 0 },
		{ UKP_ERR_S64, 0xffffffff, 0, 0 },
		{ UKP_ERR_S64, 0x8000000000000000, 1, INT64_MIN },
		{ UKP_ERR_NONE, (uint64_t)-1, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct ukp_hist *h = empty();

		ukp_hist_add(h, h, 1, c[i].v, c[i].kind);
		assert_int_equal(h->errors, c[i].error);
		assert_int_equal(h->err[0].count, c[i].error);
		assert_int_equal(h->err[0].value, c[i].value);
		assert_int_equal(h->err[0].claimed, c[i].error ? 2 : 0);
		free(h);
	}
}

static void the_sixty_fifth_error_value_counts_as_other(void **s)
{
	struct ukp_hist *h = empty();

	for (int lap = 0; lap < 3; lap++)
		for (int i = 1; i <= 66; i++)
			ukp_hist_add(h, h, 1, (uint64_t)-i, UKP_ERR_AUTO);
	assert_int_equal(h->errors, 3 * 66);
	assert_int_equal(h->err_other, 6);
	for (int i = 0; i < 64; i++) {
		assert_int_equal(h->err[i].value, -i - 1);
		assert_int_equal(h->err[i].count, 3);
	}
	free(h);
}

static void a_place_that_is_being_claimed_is_passed_by(void **s)
{
	struct ukp_hist *h = empty();

	h->err[0].claimed = 1;
	h->err[0].value = -5; /* not to be believed yet */
	ukp_hist_add(h, h, 1, (uint64_t)-5, UKP_ERR_AUTO);
	assert_int_equal(h->err[0].count, 0);
	assert_int_equal(h->err[1].value, -5);
	assert_int_equal(h->err[1].count, 1);
	free(h);
}

/* Somebody was moved or interrupted in there. */
static void a_shard_that_is_taken_is_left_alone(void **s)
{
	struct ukp_hist *h = empty(), *open = empty();

	h->taken = 1;
	ukp_hist_add(h, open, 7, (uint64_t)-5, UKP_ERR_AUTO);
	assert_int_equal(h->count + h->sum + h->errors + h->bucket[7], 0);
	assert_int_equal(open->count, 1);
	assert_int_equal(open->errors, 1);
	h->taken = 0;
	ukp_hist_add(h, open, 7, 0, UKP_ERR_AUTO);
	assert_int_equal(h->count, 1);
	assert_int_equal(h->taken, 0);
	assert_int_equal(open->count, 1);
	assert_int_equal(open->taken, 0);
	free(h);
	free(open);
}

static struct ukp_hist *shared, *open_one;
static uint64_t sum;

static void *add_many(void *arg)
{
	uint64_t x = (uintptr_t)arg, all = 0;

	for (int i = 0; i < 300000; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		ukp_hist_add(shared, open_one, x >> 40, (uint64_t) - (int64_t)(x >> 60),
		             UKP_ERR_AUTO);
		all += x >> 40;
	}
	__atomic_fetch_add(&sum, all, __ATOMIC_RELAXED);
	return NULL;
}

static void nothing_is_lost_between_threads(void **s)
{
	uint64_t buckets = 0, errors = 0;
	pthread_t id[4];

	shared = empty();
	open_one = empty();
	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&id[i], NULL, add_many, (void *)(i + 1)), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(id[i], NULL);
	for (uint32_t i = 0; i < UKP_HIST_BUCKETS; i++)
		buckets += shared->bucket[i] + open_one->bucket[i];
	for (int i = 0; i < UKP_HIST_ERRS; i++)
		errors += shared->err[i].count + open_one->err[i].count;
	assert_int_equal(shared->count + open_one->count, 1200000);
	assert_int_equal(shared->sum + open_one->sum, sum);
	assert_int_equal(buckets, shared->count + open_one->count);
	assert_int_equal(errors, shared->errors + open_one->errors);
	assert_true(errors > 1000000);
	assert_int_equal(shared->err_other + open_one->err_other, 0);
	free(shared);
	free(open_one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(count_sum_min_and_max_are_exact),
		cmocka_unit_test(buckets_are_in_order_and_narrow),
		cmocka_unit_test(errors_are_what_the_kind_says),
		cmocka_unit_test(the_sixty_fifth_error_value_counts_as_other),
		cmocka_unit_test(a_place_that_is_being_claimed_is_passed_by),
		cmocka_unit_test(a_shard_that_is_taken_is_left_alone),
		cmocka_unit_test(nothing_is_lost_between_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
