/* SPDX-License-Identifier: MIT */
/* Histograms: what isn't inline (hist_in.h). */
#include "engine/hist_in.h"

void ukp_hist_init(struct ukp_hist *h)
{
	h->min = UINT64_MAX;
}

/*
 * The place of a value, claimed if it has none.  A place that is being claimed
 * is passed by, whatever is being written there: its owner may be the code
 * that this signal handler interrupted.
 */
static struct ukp_hist_err *place_of(struct ukp_hist *h, int64_t value)
{
	for (uint32_t i = 0; i < UKP_HIST_ERRS; i++) {
		struct ukp_hist_err *e = &h->err[i];
		/* Acquire: value was written before 2. */
		uint64_t claimed = __atomic_load_n(&e->claimed, __ATOMIC_ACQUIRE);

		if (!claimed && __atomic_compare_exchange_n(&e->claimed, &claimed, 1, 0,
		                                            __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
			__atomic_store_n(&e->value, value, __ATOMIC_RELAXED);
			__atomic_store_n(&e->claimed, 2, __ATOMIC_RELEASE);
			return e;
		}
		if (claimed == 2 && e->value == value)
			return e;
	}
	return 0;
}

void ukp_hist_add_error(struct ukp_hist *h, int64_t value, int alone)
{
	struct ukp_hist_err *e = place_of(h, value);

	hist_sum(&h->errors, 1, alone);
	hist_sum(e ? &e->count : &h->err_other, 1, alone);
}

void ukp_hist_add(struct ukp_hist *h, struct ukp_hist *open, uint64_t ticks, uint64_t retval,
                  uint32_t kind)
{
	if (hist_take(h)) {
		hist_add_call(h, ticks, retval, kind, 1);
		hist_give(h);
	} else {
		hist_add_call(open, ticks, retval, kind, 0);
	}
}
