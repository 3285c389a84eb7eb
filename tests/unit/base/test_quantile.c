/* SPDX-License-Identifier: MIT */
/* Quantiles of histograms against exact sorting. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/quantile.h"
#include "engine/hist.h"

#define SAMPLES 10000000u

static uint64_t rng = 88172645463325252ull;

static double uniform(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (double)(rng >> 11) / 9007199254740992.0;
}

/* About normal: twelve uniforms. */
static double normal(void)
{
	double x = -6;

	for (int i = 0; i < 12; i++)
		x += uniform();
	return x;
}

/* e^x without libm: 2^k times a short series. */
static double power_of_e(double x)
{
	double y = 1, term = 1;
	int k = 0;

	for (; x > 0.5 || x < -0.5; k++)
		x /= 2;
	for (int i = 1; i < 12; i++)
		y += term *= x / i;
	while (k--)
		y *= y;
	return y;
}

static uint64_t lognormal_ticks(void)
{
	return (uint64_t)(3000 * power_of_e(1.2 * normal()));
}

static uint64_t uniform_ticks(void)
{
	return (uint64_t)(uniform() * 1000000);
}

static uint64_t bimodal_ticks(void)
{
	double around = uniform() < 0.96 ? 800 : 4000000;

	return (uint64_t)(around * (1 + 0.1 * normal()));
}

/* By byte, least first: 10 M values in a second. */
static void sort(uint64_t *v, uint64_t *tmp, size_t n)
{
	for (unsigned int shift = 0; shift < 64; shift += 8) {
		size_t start[257] = { 0 };
		uint64_t *swap = v;

		for (size_t i = 0; i < n; i++)
			start[(v[i] >> shift & 255) + 1]++;
		for (int i = 0; i < 256; i++)
			start[i + 1] += start[i];
		for (size_t i = 0; i < n; i++)
			tmp[start[v[i] >> shift & 255]++] = v[i];
		v = tmp;
		tmp = swap;
	}
}

static void compare(const char *name, uint64_t (*sample)(void))
{
	static const double q[] = { 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999 };
	struct ukp_hist *h = calloc(1, sizeof(*h));
	uint64_t *v = malloc(SAMPLES * sizeof(*v)), *tmp = malloc(SAMPLES * sizeof(*v));
	double worst = 0;

	assert_true(h && v && tmp);
	ukp_hist_init(h);
	for (size_t i = 0; i < SAMPLES; i++) {
		v[i] = sample();
		ukp_hist_add(h, h, v[i], 0, UKP_ERR_AUTO);
	}
	sort(v, tmp, SAMPLES);
	for (size_t i = 0; i < sizeof(q) / sizeof(q[0]); i++) {
		size_t rank = (size_t)(q[i] * SAMPLES + 0.5);
		double exact = (double)v[rank - 1];
		double off = ((double)hist_quantile(h, q[i]) - exact) / (exact ? exact : 1);

		off = off < 0 ? -off : off;
		worst = off > worst ? off : worst;
	}
	print_message("%s: p50 %lu p99.9 %lu, worst error %.3f %%\n", name, hist_quantile(h, 0.5),
	              hist_quantile(h, 0.999), worst * 100);
	assert_true(worst <= 0.02);
	assert_int_equal(h->min, v[0]);
	assert_int_equal(h->max, v[SAMPLES - 1]);
	assert_int_equal(hist_between(h, 0, UINT64_MAX), SAMPLES);
	free(tmp);
	free(v);
	free(h);
}

static void quantiles_are_within_two_percent_of_exact_ones(void **s)
{
	compare("lognormal", lognormal_ticks);
	compare("uniform", uniform_ticks);
	compare("bimodal", bimodal_ticks);
}

static void one_value_is_known_exactly(void **s)
{
	struct ukp_hist *h = calloc(1, sizeof(*h));

	ukp_hist_init(h);
	assert_int_equal(hist_quantile(h, 0.5), 0);
	ukp_hist_add(h, h, 1000001, 0, UKP_ERR_NONE);
	assert_int_equal(hist_quantile(h, 0), 1000001);
	assert_int_equal(hist_quantile(h, 0.5), 1000001);
	assert_int_equal(hist_quantile(h, 1), 1000001);
	free(h);
}

static void the_rank_is_rounded_up(void **s)
{
	struct ukp_hist *h = calloc(1, sizeof(*h));

	ukp_hist_init(h);
	for (uint64_t i = 1; i <= 10; i++)
		ukp_hist_add(h, h, i, 0, UKP_ERR_NONE);
	assert_int_equal(hist_quantile(h, -1), 1);
	assert_int_equal(hist_quantile(h, 0.1), 1);
	assert_int_equal(hist_quantile(h, 0.11), 2);
	assert_int_equal(hist_quantile(h, 0.5), 5);
	assert_int_equal(hist_quantile(h, 0.9), 9);
	assert_int_equal(hist_quantile(h, 0.95), 10);
	assert_int_equal(hist_quantile(h, 7), 10);
	assert_int_equal(hist_quantile(h, 0.0 / 0.0), 1);
	free(h);
}

static void adjacent_ranges_add_up(void **s)
{
	struct ukp_hist *h = calloc(1, sizeof(*h));
	uint64_t sum = 0;

	ukp_hist_init(h);
	for (int i = 0; i < 100000; i++)
		ukp_hist_add(h, h, lognormal_ticks(), 0, UKP_ERR_NONE);
	for (uint64_t lo = 0, hi = 1; hi; lo = hi, hi *= 2)
		sum += hist_between(h, lo, hi);
	assert_int_equal(sum, 100000);
	assert_int_equal(hist_between(h, 5, 5), 0);
	assert_int_equal(hist_between(h, 9, 5), 0);
	free(h);
}

static void nonsense_is_survived(void **s)
{
	struct ukp_hist *h = malloc(sizeof(*h));

	memset(h, 0xff, sizeof(*h));
	hist_quantile(h, 0.5);
	hist_between(h, 0, UINT64_MAX);
	h->max = 0;
	hist_quantile(h, 0.999);
	free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_are_within_two_percent_of_exact_ones),
		cmocka_unit_test(one_value_is_known_exactly),
		cmocka_unit_test(the_rank_is_rounded_up),
		cmocka_unit_test(adjacent_ranges_add_up),
		cmocka_unit_test(nonsense_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
