/* SPDX-License-Identifier: MIT */
/* Quantiles and ranges of a log-linear histogram. */
#include "base/quantile.h"

/* What a value in bucket i stands for. */
static uint64_t middle(const struct ukp_hist *h, uint32_t i)
{
	uint64_t low = ukp_hist_low(i);
	uint64_t next = i + 1 < UKP_HIST_BUCKETS ? ukp_hist_low(i + 1) : UINT64_MAX;
	uint64_t v = low + (next - low) / 2;

	if (h->min > h->max)
		return v; /* no honest histogram */
	if (v < h->min)
		v = h->min;
	return v > h->max ? h->max : v;
}

/* By the buckets: count may have been read a moment earlier. */
static uint64_t total(const struct ukp_hist *h)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < UKP_HIST_BUCKETS; i++)
		n += h->bucket[i];
	return n;
}

static uint64_t rank_of(uint64_t n, double q)
{
	uint64_t rank;

	if (!(q > 0))
		return 1;
	if (q >= 1)
		return n;
	rank = (uint64_t)(q * (double)n);
	if ((double)rank < q * (double)n)
		rank++;
	if (rank < 1)
		return 1;
	return rank < n ? rank : n;
}

uint64_t hist_quantile(const struct ukp_hist *h, double q)
{
	uint64_t n = total(h), rank, below = 0;

	if (!n)
		return 0;
	rank = rank_of(n, q);
	for (uint32_t i = 0; i < UKP_HIST_BUCKETS; i++) {
		/* So written, it can't overflow. */
		if (h->bucket[i] >= rank - below)
			return middle(h, i);
		below += h->bucket[i];
	}
	return h->max;
}

uint64_t hist_between(const struct ukp_hist *h, uint64_t lo, uint64_t hi)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < UKP_HIST_BUCKETS; i++) {
		uint64_t v = h->bucket[i] ? middle(h, i) : 0;

		if (h->bucket[i] && v >= lo && v < hi)
			n += h->bucket[i];
	}
	return n;
}
