/* SPDX-License-Identifier: MIT */
/*
 * Latencies, aggregated in the target: log-linear buckets of TSC ticks, exact
 * below 2 * UKP_HIST_SUB, then UKP_HIST_SUB buckets an octave, so a bucket is
 * never wider than 1/64 of the values in it.  One copy a CPU shard, which its
 * writer has to itself for as long, and one more for who finds its shard taken
 * (a thread may be moved or interrupted at any point), with locked adds.  The
 * reader adds them all up.
 */
#ifndef UKP_WIRE_HIST_H
#define UKP_WIRE_HIST_H

#include <stdint.h>

#define UKP_HIST_SHIFT 6
#define UKP_HIST_SUB (1u << UKP_HIST_SHIFT)
#define UKP_HIST_BUCKETS ((64 - UKP_HIST_SHIFT + 1) * UKP_HIST_SUB)
#define UKP_HIST_ERRS 64

enum ukp_err_kind {
	UKP_ERR_AUTO, /* an int in -4095..-1 */
	UKP_ERR_PTR,  /* NULL, or in the ERR_PTR range */
	UKP_ERR_S32,  /* negative int */
	UKP_ERR_S64,  /* negative long */
	UKP_ERR_NONE,
};

struct ukp_hist_err {
	int64_t value;    /* as the kind reads it: sign-extended */
	uint64_t count;   /* 0: the place is free or just being claimed */
	uint64_t claimed; /* 0 free, 1 value being written, 2 valid */
};

struct ukp_hist {
	uint64_t taken; /* somebody is adding to it; 0 in the one more */
	uint64_t count;
	uint64_t errors;
	uint64_t sum; /* ticks */
	uint64_t min; /* ticks; all ones: no value yet */
	uint64_t max;
	uint64_t err_other; /* errors whose value found no place */
	struct ukp_hist_err err[UKP_HIST_ERRS];
	uint64_t bucket[UKP_HIST_BUCKETS];
};

/* The bucket of a value: the order of values is the order of buckets. */
static inline uint32_t ukp_hist_index(uint64_t v)
{
	uint32_t top;

	if (v < 2 * UKP_HIST_SUB)
		return (uint32_t)v;
	top = 63 - (uint32_t)__builtin_clzll(v);
	return (top - UKP_HIST_SHIFT) * UKP_HIST_SUB + (uint32_t)(v >> (top - UKP_HIST_SHIFT));
}

/* The smallest value of a bucket. */
static inline uint64_t ukp_hist_low(uint32_t i)
{
	uint32_t shift;

	if (i < 2 * UKP_HIST_SUB)
		return i;
	shift = i / UKP_HIST_SUB - 1;
	return (uint64_t)(i - shift * UKP_HIST_SUB) << shift;
}

/* In the control area: what a latency probe does at its returns. */
struct ukp_latency {
	uint64_t chan;
	uint64_t hist;      /* address of shard 0 in the target */
	uint64_t stride;    /* bytes to the next shard */
	uint32_t nr_shards; /* without the one more, which is behind them */
	uint32_t id;        /* stat row in the channel */
	uint32_t kind;      /* enum ukp_err_kind */
	uint32_t enabled;
};

#endif
