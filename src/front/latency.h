/* SPDX-License-Identifier: MIT */
/*
 * The state of one latency function at one moment, copied out of the session:
 * what the table, the picture and the JSON are made from.  Nanoseconds.
 */
#ifndef UKP_FRONT_LATENCY_H
#define UKP_FRONT_LATENCY_H

#include <stdio.h>

#include <ukprobes/session.h>

#define LATENCY_ROWS 64 /* row k: 2^k <= ns < 2^(k+1); row 0 has 0 too */
#define LATENCY_ERRS 64

enum latency_quantile { Q_P50, Q_P90, Q_P99, Q_P999, NR_QUANTILES };

struct latency {
	char *name;
	char *kind;
	uint64_t count, errors;
	uint64_t min, max, mean; /* 0 when count is */
	uint64_t quantile[NR_QUANTILES];
	uint64_t row[LATENCY_ROWS];
	unsigned int nr_errors; /* most frequent first */
	struct ukp_latency_error error[LATENCY_ERRS];
	uint64_t other;
	struct ukp_counts counts;
};

/* 0 or a negative errno, with the sentence in ukp_session_error(). */
int latency_read(struct latency *l, struct ukp_session *s, unsigned int id);
void latency_free(struct latency *l);

/* The first and last row with a count; false: all are empty. */
bool latency_rows(const struct latency *l, unsigned int *first, unsigned int *last);
static inline uint64_t latency_row_low(unsigned int row)
{
	return row ? 1ull << row : 0;
}
static inline uint64_t latency_row_high(unsigned int row)
{
	return row == LATENCY_ROWS - 1 ? UINT64_MAX : 2ull << row;
}

bool latency_is_pointer(const struct latency *l);

#define LATENCY_NS_MAX 24
/* "187ns", "1.02us", "13.4ms", "2.00s": three digits that count.  Returns buf. */
const char *latency_ns(char *buf, size_t size, uint64_t ns);
/* "1.38%", "<0.01%".  Returns buf. */
const char *latency_share(char *buf, size_t size, uint64_t part, uint64_t all);

/* Two faces of the same state. */
void latency_table(FILE *out, const struct latency *l, unsigned int nr);
/* seconds: how long it was watched.  -ENOMEM, or 0. */
int latency_json(FILE *out, const struct latency *l, unsigned int nr, pid_t pid, double seconds);

/* Log2 picture of one function (picture.c). */
void picture_print(FILE *out, const struct latency *l);

#endif
