/* SPDX-License-Identifier: MIT */
/*
 * What a histogram says about its values, in its own unit (ticks).  A value is
 * known by its bucket: it stands for the middle of it, never outside of
 * [min, max], so it is off by less than 1 %.  Any content is accepted, for the
 * counters come from shared memory.
 */
#ifndef UKP_BASE_QUANTILE_H
#define UKP_BASE_QUANTILE_H

#include <stdint.h>

#include "wire/hist.h"

/* The value at rank ceil(q * count), q clamped to [0, 1]; 0 without values. */
uint64_t hist_quantile(const struct ukp_hist *h, double q);

/* How many values lie in [lo, hi), by what they stand for: adjacent ranges add up. */
uint64_t hist_between(const struct ukp_hist *h, uint64_t lo, uint64_t hi);

#endif
