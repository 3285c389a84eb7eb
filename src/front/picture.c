/* SPDX-License-Identifier: MIT */
/*
 * The log2 picture of a latency function, a row for each doubling of the time:
 *
 *	[256ns, 512ns)          1234 |@@@@@@@@@@@@                            |
 */
#include <inttypes.h>

#include "front/latency.h"

#define BAR 40

static uint64_t highest(const struct latency *l)
{
	uint64_t max = 0;

	for (unsigned int i = 0; i < LATENCY_ROWS; i++)
		if (l->row[i] > max)
			max = l->row[i];
	return max;
}

static void row_print(FILE *out, unsigned int row, uint64_t n, uint64_t max)
{
	char low[LATENCY_NS_MAX], high[LATENCY_NS_MAX], label[2 * LATENCY_NS_MAX + 8];
	int at = (int)((double)n * BAR / (double)max + 0.5);

	latency_ns(low, sizeof(low), latency_row_low(row));
	latency_ns(high, sizeof(high), latency_row_high(row));
	snprintf(label, sizeof(label), "[%s, %s)", low, high);
	fprintf(out, "  %-18s %10" PRIu64 " |%.*s%*s|\n", label, n, at,
	        "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@", BAR - at, "");
}

void picture_print(FILE *out, const struct latency *l)
{
	unsigned int first, last;
	uint64_t max = highest(l);

	if (!latency_rows(l, &first, &last))
		return;
	for (unsigned int i = first; i <= last; i++)
		row_print(out, i, l->row[i], max);
}
