/* SPDX-License-Identifier: MIT */
/*
 * The guard's table, and the way into it that hits mostly take: nobody else's key
 * has the same home.  guard.c has the rules.
 */
#ifndef UKP_LIB_HIT_GUARD_H
#define UKP_LIB_HIT_GUARD_H

#include "lib/hit/hit.h"

#pragma GCC visibility push(hidden)

#define GUARD_BUCKETS 1024 /* a power of two */
#define GUARD_SLOTS 7

/* What a search reads is one cache line. */
struct guard_bucket {
	uint64_t passed;
	uint64_t key[GUARD_SLOTS];  /* 0: free */
	uint64_t runs[GUARD_SLOTS]; /* grows when a run ends */
	struct kprobe *running[GUARD_SLOTS];
	const struct lib_result *result[GUARD_SLOTS];
	uint64_t pad[3];
};

extern struct guard_bucket ukp_guard_table[GUARD_BUCKETS];
extern uint64_t ukp_guard_quiet; /* the key of the library's own thread, or 0 */

static inline uint64_t guard_home(uint64_t key)
{
	return (key * 0x9e3779b97f4a7c15ull) >> 54;
}

static inline uint64_t guard_key(const struct guard_bucket *b, int i)
{
	return __atomic_load_n(&b->key[i], __ATOMIC_RELAXED);
}

static inline uint64_t guard_passed(const struct guard_bucket *b)
{
	return __atomic_load_n(&b->passed, __ATOMIC_RELAXED);
}

/* Nobody is in its first slot and nobody has passed that: no key that has its home here is on. */
static inline bool guard_empty(const struct guard_bucket *b)
{
	return !(guard_passed(b) | guard_key(b, 0));
}

static inline bool guard_claim(struct guard_bucket *b, uint32_t i, uint64_t key)
{
	uint64_t none = 0;

	/* Sequentially consistent: the fence between claiming and reading lists. */
	return __atomic_compare_exchange_n(&b->key[i], &none, key, false, __ATOMIC_SEQ_CST,
	                                   __ATOMIC_RELAXED);
}

static inline void guard_leave(struct guard_bucket *b, uint32_t i)
{
	b->running[i] = NULL;
	/* Before the key: who saw this key with the old number sees the run's end. */
	__atomic_store_n(&b->runs[i], b->runs[i] + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&b->key[i], 0, __ATOMIC_RELEASE);
}

/*
 * Into slot 0 of the home of thread's key, as GUARD_KPROBE; NULL: guard_on() has to look.
 * A thread without a pointer is told by 0, as ukp_arch_thread() has it.
 */
static inline struct guard_bucket *guard_on_home(uint64_t thread)
{
	struct guard_bucket *b = &ukp_guard_table[guard_home(thread & ~3ull)];

	if (!thread || (thread & ~3ull) == __atomic_load_n(&ukp_guard_quiet, __ATOMIC_RELAXED) ||
	    !guard_empty(b) || !guard_claim(b, 0, thread & ~3ull))
		return NULL;
	return b;
}

#pragma GCC visibility pop

#endif
