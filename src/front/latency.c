/* SPDX-License-Identifier: MIT */
/* Copying a latency function's state, and its numbers as text; see latency.h. */
#include "front/latency.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const double shares[NR_QUANTILES] = { 0.5, 0.9, 0.99, 0.999 };

int latency_read(struct latency *l, struct ukp_session *s, unsigned int id)
{
	struct ukp_latency_info info;
	int ret;

	memset(l, 0, sizeof(*l));
	ret = ukp_session_counts(s, id, &l->counts);
	if (!ret)
		ret = ukp_session_latency(s, id, &info);
	if (ret)
		return ret;
	l->name = strdup(info.name);
	l->kind = strdup(info.kind);
	if (!l->name || !l->kind) {
		latency_free(l);
		return -ENOMEM;
	}
	l->count = info.count;
	l->errors = info.errors;
	l->other = info.other;
	l->nr_errors = info.nr_errors < LATENCY_ERRS ? info.nr_errors : LATENCY_ERRS;
	if (l->nr_errors)
		memcpy(l->error, info.by_value, l->nr_errors * sizeof(*l->error));
	for (unsigned int i = l->nr_errors; i < info.nr_errors; i++)
		l->other += info.by_value[i].count;
	if (!info.count)
		return 0;
	l->min = info.min;
	l->max = info.max;
	l->mean = info.mean;
	for (unsigned int i = 0; i < NR_QUANTILES; i++)
		l->quantile[i] = ukp_latency_quantile(s, id, shares[i]);
	for (unsigned int i = 0; i < LATENCY_ROWS; i++)
		l->row[i] = ukp_latency_between(s, id, latency_row_low(i), latency_row_high(i));
	return 0;
}

void latency_free(struct latency *l)
{
	free(l->name);
	free(l->kind);
	l->name = l->kind = NULL;
}

bool latency_rows(const struct latency *l, unsigned int *first, unsigned int *last)
{
	bool any = false;

	for (unsigned int i = 0; i < LATENCY_ROWS; i++) {
		if (!l->row[i])
			continue;
		if (!any)
			*first = i;
		*last = i;
		any = true;
	}
	return any;
}

bool latency_is_pointer(const struct latency *l)
{
	return !strcmp(l->kind, "ptr");
}

const char *latency_ns(char *buf, size_t size, uint64_t ns)
{
	static const char *const unit[] = { "us", "ms", "s" };
	double v = (double)ns;
	unsigned int u = 0;

	if (ns < 1000) {
		snprintf(buf, size, "%" PRIu64 "ns", ns);
		return buf;
	}
	/* 999.5 would be printed as 1000: take the next unit. */
	for (v /= 1000; u < 2 && v >= 999.5; u++)
		v /= 1000;
	snprintf(buf, size, "%.*f%s", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, unit[u]);
	return buf;
}

const char *latency_share(char *buf, size_t size, uint64_t part, uint64_t all)
{
	double share = all ? 100.0 * (double)part / (double)all : 0;

	if (part && share < 0.01)
		snprintf(buf, size, "<0.01%%");
	else
		snprintf(buf, size, "%.2f%%", share);
	return buf;
}
