/* SPDX-License-Identifier: MIT */
/*
 * Adding a call to a histogram.  A locked add takes several times as long as a plain
 * one, and a call has four and more; so a shard is taken with one exchange, and is
 * this call's alone until it is given back by a store.  Who finds it taken, by a
 * thread that was moved or interrupted in there or by what the thread's own signal
 * handler interrupted, uses locked adds on the one that nobody takes.
 */
#include "engine/hist.h"

#define ERR_LAST (-4095)

void ukp_hist_init(struct ukp_hist *h)
{
	h->min = UINT64_MAX;
}

/* Once for each: known when it is compiled. */
#define ONCE static inline __attribute__((always_inline))

/* Atomic for readers in both cases. */
ONCE void add(uint64_t *p, uint64_t n, int alone)
{
	if (alone)
		__atomic_store_n(p, __atomic_load_n(p, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(p, n, __ATOMIC_RELAXED);
}

/* Each failure means that another has brought *p nearer to v or beyond it. */
ONCE void lower(uint64_t *p, uint64_t v, int alone)
{
	uint64_t old = __atomic_load_n(p, __ATOMIC_RELAXED);

	if (alone && v < old)
		__atomic_store_n(p, v, __ATOMIC_RELAXED);
	while (!alone && v < old &&
	       !__atomic_compare_exchange_n(p, &old, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

ONCE void raise(uint64_t *p, uint64_t v, int alone)
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
static int is_error(uint64_t retval, uint32_t kind, int64_t *value)
{
	int32_t low = (int32_t)retval;

	switch (kind) {
	case UKP_ERR_AUTO:
		*value = low;
		return low < 0 && low >= ERR_LAST;
	case UKP_ERR_PTR:
		*value = (int64_t)retval;
		return !retval || retval >= (uint64_t)ERR_LAST;
	case UKP_ERR_S32:
		*value = low;
		return low < 0;
	case UKP_ERR_S64:
		*value = (int64_t)retval;
		return *value < 0;
	}
	return 0;
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

static void add_error(struct ukp_hist *h, int64_t value, int alone)
{
	struct ukp_hist_err *e = place_of(h, value);

	add(&h->errors, 1, alone);
	add(e ? &e->count : &h->err_other, 1, alone);
}

ONCE void add_call(struct ukp_hist *h, uint64_t ticks, uint64_t retval, uint32_t kind, int alone)
{
	int64_t value;

	lower(&h->min, ticks, alone);
	raise(&h->max, ticks, alone);
	add(&h->sum, ticks, alone);
	add(&h->bucket[ukp_hist_index(ticks)], 1, alone);
	if (is_error(retval, kind, &value))
		add_error(h, value, alone);
	/* Last: who sees it in count sees its min and max. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	add(&h->count, 1, alone);
}

void ukp_hist_add(struct ukp_hist *h, struct ukp_hist *open, uint64_t ticks, uint64_t retval,
                  uint32_t kind)
{
	/* Acquire: what the last owner wrote is there.  It gave back with release. */
	if (!__atomic_exchange_n(&h->taken, 1, __ATOMIC_ACQUIRE)) {
		add_call(h, ticks, retval, kind, 1);
		__atomic_store_n(&h->taken, 0, __ATOMIC_RELEASE);
	} else {
		add_call(open, ticks, retval, kind, 0);
	}
}
