/* SPDX-License-Identifier: MIT */
/*
 * The table of ukprobe latency: first a line a function, to compare them, then
 * for each its picture and its errors.
 */
#include <inttypes.h>
#include <string.h>

#include "front/errno_name.h"
#include "front/latency.h"

#define NAME_MIN 8

static int name_width(const struct latency *l, unsigned int nr)
{
	size_t width = NAME_MIN;

	for (unsigned int i = 0; i < nr; i++)
		if (strlen(l[i].name) > width)
			width = strlen(l[i].name);
	return (int)width;
}

static void time_print(FILE *out, const struct latency *l, uint64_t ns)
{
	char text[LATENCY_NS_MAX];

	fprintf(out, " %6s", l->count ? latency_ns(text, sizeof(text), ns) : "-");
}

static void line_print(FILE *out, const struct latency *l, int width)
{
	char share[16];

	fprintf(out, "%-*s %9" PRIu64 " %8" PRIu64 " %7s", width, l->name, l->count, l->errors,
	        latency_share(share, sizeof(share), l->errors, l->count));
	time_print(out, l, l->min);
	for (unsigned int i = 0; i < NR_QUANTILES; i++)
		time_print(out, l, l->quantile[i]);
	time_print(out, l, l->max);
	fputc('\n', out);
}

static void error_print(FILE *out, const struct latency *l, const char *what, uint64_t n)
{
	char share[16];

	fprintf(out, "  %-22s %10" PRIu64 " %7s\n", what, n,
	        latency_share(share, sizeof(share), n, l->count));
}

static void errors_print(FILE *out, const struct latency *l)
{
	char what[64];

	if (!l->errors)
		return;
	fprintf(out, "  errors:\n");
	for (unsigned int i = 0; i < l->nr_errors; i++) {
		errno_text(what, sizeof(what), l->error[i].value, latency_is_pointer(l));
		error_print(out, l, what, l->error[i].count);
	}
	if (l->other)
		error_print(out, l, "other", l->other);
}

/* Calls that the figures above don't contain, and why. */
static void misses_print(FILE *out, const struct latency *l)
{
	const char *sep = "";

	if (!l->counts.misses)
		return;
	fprintf(out, "  missed: %" PRIu64 " of %" PRIu64 " calls (", l->counts.misses,
	        l->counts.hits);
	for (unsigned int i = 0; i < UKP_NR_MISSES; i++) {
		if (!l->counts.miss[i])
			continue;
		fprintf(out, "%s%s %" PRIu64, sep, ukp_miss_name(i), l->counts.miss[i]);
		sep = ", ";
	}
	fprintf(out, ")\n");
}

void latency_table(FILE *out, const struct latency *l, unsigned int nr)
{
	int width = name_width(l, nr);

	fprintf(out, "%-*s %9s %8s %7s %6s %6s %6s %6s %6s %6s\n", width, "FUNCTION", "COUNT",
	        "ERRORS", "SHARE", "MIN", "P50", "P90", "P99", "P99.9", "MAX");
	for (unsigned int i = 0; i < nr; i++)
		line_print(out, &l[i], width);
	for (unsigned int i = 0; i < nr; i++) {
		if (!l[i].count && !l[i].counts.misses)
			continue;
		fprintf(out, "\n%s (%s)\n", l[i].name, l[i].kind);
		picture_print(out, &l[i]);
		errors_print(out, &l[i]);
		misses_print(out, &l[i]);
	}
}
