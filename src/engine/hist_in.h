/* SPDX-License-Identifier: MIT */
/*
 * Adding a call to a histogram, inline.  A locked add takes several times as long as a
 * plain one, and a call has four and more; so a shard is taken with one exchange, and
 * is this call's alone until it is given back by a store.  Who finds it taken, by a
 * thread that was moved or interrupted in there or by what the thread's own signal
 * handler interrupted, uses locked adds on the one that nobody takes.
 */
#ifndef UKP_ENGINE_HIST_IN_H
#define UKP_ENGINE_HIST_IN_H

#include "engine/hist.h"

#define HIST_ERR_LAST (-4095)

#pragma GCC visibility push(hidden)

/* An error is rarer than a call. */
void ukp_hist_add_error(struct ukp_hist *h, int64_t value, int alone);

/* Once for each: known when it is compiled. */
#define HIST_INLINE static inline __attribute__((always_inline))

/* Atomic for readers in both cases. */
HIST_INLINE void hist_sum(uint64_t *p, uint64_t n, int alone)
{
	if (alone)
		__atomic_store_n(p, __atomic_load_n(p, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(p, n, __ATOMIC_RELAXED);
}

/* Each failure means that another has brought *p nearer to v or beyond it. */
HIST_INLINE void hist_lower(uint64_t *p, uint64_t v, int alone)
{
	uint64_t old = __atomic_load_n(p, __ATOMIC_RELAXED);

	if (alone && v < old)
		__atomic_store_n(p, v, __ATOMIC_RELAXED);
	while (!alone && v < old &&
	       !__atomic_compare_exchange_n(p, &old, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

HIST_INLINE void hist_raise(uint64_t *p, uint64_t v, int alone)
{
	uint64_t old = __atomic_load_n(p, __ATOMIC_RELAXED);

	if (alone && v > old)
		__atomic_store_n(p, v, __ATOMIC_RELAXED);
	while (!alone && v > old &&
	       !__atomic_compare_exchange_n(p, &old, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/*
 * Is it an error, and which.  A function that returns an int leaves the upper
 * half of the register undefined: there only the lower half counts.
 */
HIST_INLINE int hist_is_error(uint64_t retval, uint32_t kind, int64_t *value)
{
	int32_t low = (int32_t)retval;

	switch (kind) {
	case UKP_ERR_AUTO:
		*value = low;
		return low < 0 && low >= HIST_ERR_LAST;
	case UKP_ERR_PTR:
		*value = (int64_t)retval;
		return !retval || retval >= (uint64_t)HIST_ERR_LAST;
	case UKP_ERR_S32:
		*value = low;
		return low < 0;
	case UKP_ERR_S64:
		*value = (int64_t)retval;
		return *value < 0;
	}
	return 0;
}

HIST_INLINE void hist_add_call(struct ukp_hist *h, uint64_t ticks, uint64_t retval, uint32_t kind,
                               int alone)
{
	int64_t value;

	hist_lower(&h->min, ticks, alone);
	hist_raise(&h->max, ticks, alone);
	hist_sum(&h->sum, ticks, alone);
	hist_sum(&h->bucket[ukp_hist_index(ticks)], 1, alone);
	if (__builtin_expect(hist_is_error(retval, kind, &value), 0))
		ukp_hist_add_error(h, value, alone);
	/* Last: who sees it in count sees its min and max. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	hist_sum(&h->count, 1, alone);
}

/* Is h this call's alone now? */
HIST_INLINE int hist_take(struct ukp_hist *h)
{
	/* Acquire: what the last owner wrote is there.  It gave back with release. */
	return !__atomic_exchange_n(&h->taken, 1, __ATOMIC_ACQUIRE);
}

HIST_INLINE void hist_give(struct ukp_hist *h)
{
	__atomic_store_n(&h->taken, 0, __ATOMIC_RELEASE);
}

#pragma GCC visibility pop

#endif
