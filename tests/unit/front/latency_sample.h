/* SPDX-License-Identifier: MIT */
/* A latency state that several tests print. */
#ifndef TESTS_LATENCY_SAMPLE_H
#define TESTS_LATENCY_SAMPLE_H

#include "front/latency.h"

static inline struct latency latency_sample(void)
{
	return (struct latency){
		.name = (char *)"lookupKey",
		.kind = (char *)"ptr",
		.count = 1230,
		.errors = 20,
		.min = 187,
		.max = 13400000,
		.mean = 950,
		.quantile = { 300, 1020, 5400, 990000 },
		.row = { [7] = 200, [8] = 1000, [10] = 29, [23] = 1 },
		.nr_errors = 2,
		.error = { { 0, 17 }, { -12, 2 } },
		.other = 1,
		.counts = { .hits = 1232, .records = 1230, .misses = 2, .miss = { 2 } },
	};
}

#endif
