/* SPDX-License-Identifier: MIT */
/*
 * Adding a call to a histogram (wire/hist.h).
 *
 *                    concurrent   in a signal handler   killed in the middle
 *   ukp_hist_add     any number   yes, nested too       that call counts in part
 *     left in the middle for good (longjmp out of a handler): that call counts in
 *     part, and its shard is used no more
 *   ukp_hist_init    alone, before the histogram is seen by anybody
 *
 * Exact at rest: the buckets add up to count, err[].count and err_other to
 * errors.  A value may have taken two places of err[] when two calls claimed
 * one at once; the reader merges them.
 */
#ifndef UKP_ENGINE_HIST_H
#define UKP_ENGINE_HIST_H

#include <stdint.h>

#include "wire/hist.h"

/* Zeroed memory becomes an empty histogram. */
void ukp_hist_init(struct ukp_hist *h);

/* To h, or where it is taken to open, which never is.  kind: enum ukp_err_kind */
void ukp_hist_add(struct ukp_hist *h, struct ukp_hist *open, uint64_t ticks, uint64_t retval,
                  uint32_t kind);

#endif
