/* SPDX-License-Identifier: MIT */
/*
 * Which threads run a handler now.  It is the recursion guard, the answer of
 * kprobe_running(), and what unregistering waits on.  A thread may be in handlers
 * of several kinds at a time, once in each.
 *
 * A table keyed by the thread pointer, not TLS: a hit may come before a thread
 * has any.  A key stands in the first free slot from its home bucket on; each
 * bucket that was passed for it says so in `passed` for as long, the home also
 * where it is but the first slot that was, and a search goes on behind such
 * buckets only.  So a home with neither `passed` nor a first key has nobody, which
 * is what a hit mostly finds.  A thread looks for no key but its own, and what it
 * has put in itself it sees.
 *
 * guard_on() then reading a list, against unlinking then guard_wait(): both
 * sides write, fence and read, so one of them sees the other.
 */
#include "engine/arch.h"
#include "lib/hit/guard.h"

#define NO_TLS (1ull << 63)
#define KINDS 3ull /* in a key; thread pointers are aligned */

enum { NR_gettid = 186 };

struct guard_bucket ukp_guard_table[GUARD_BUCKETS] __attribute__((aligned(64)));
uint64_t ukp_guard_quiet;

static uint64_t thread_key(void)
{
	uint64_t key = ukp_arch_thread();

	if (!key)
		key = NO_TLS | (uint64_t)ukp_arch_syscall(NR_gettid, 0, 0, 0, 0) << 2;
	return key & ~KINDS;
}

/* Where g->key is; false: nowhere. */
static __attribute__((noinline)) bool find(struct guard *g)
{
	uint64_t n;
	int i;

	for (n = 0; n < GUARD_BUCKETS; n++) {
		struct guard_bucket *b = &ukp_guard_table[(g->home + n) % GUARD_BUCKETS];

		g->at = b;
		for (i = 0; i < GUARD_SLOTS; i++)
			if (guard_key(b, i) == g->key) {
				g->slot = (uint32_t)i;
				g->passed = n ? n : i > 0;
				return true;
			}
		if (!guard_passed(b))
			break;
	}
	return false;
}

/* Take a free slot of one bucket. */
static bool claim(struct guard *g, struct guard_bucket *b)
{
	uint32_t i;

	for (i = 0; i < GUARD_SLOTS; i++)
		if (!guard_key(b, (int)i) && guard_claim(b, i, g->key)) {
			g->at = b;
			g->slot = i;
			return true;
		}
	return false;
}

static void pass(uint64_t n)
{
	__atomic_fetch_add(&ukp_guard_table[n % GUARD_BUCKETS].passed, 1, __ATOMIC_RELAXED);
}

static void unpass(uint64_t home, uint64_t n)
{
	while (n--)
		__atomic_fetch_sub(&ukp_guard_table[(home + n) % GUARD_BUCKETS].passed, 1,
		                   __ATOMIC_RELAXED);
}

/* Anywhere but in the home's first slot. */
static __attribute__((noinline)) bool claim_further(struct guard *g)
{
	uint64_t n;

	pass(g->home);
	g->passed = 1;
	if (claim(g, &ukp_guard_table[g->home]))
		return true;
	for (n = 1; n < GUARD_BUCKETS; n++) {
		if (n > 1)
			pass(g->home + n - 1);
		g->passed = n;
		if (claim(g, &ukp_guard_table[(g->home + n) % GUARD_BUCKETS]))
			return true;
	}
	unpass(g->home, g->passed);
	return false;
}

enum guard_state guard_on_kind(struct guard *g, enum guard_kind kind)
{
	uint64_t thread = thread_key();
	struct guard_bucket *home;

	if (thread == __atomic_load_n(&ukp_guard_quiet, __ATOMIC_RELAXED))
		return GUARD_QUIET;
	g->key = thread | kind;
	g->home = guard_home(g->key);
	home = &ukp_guard_table[g->home];
	if (!guard_empty(home) && find(g))
		return GUARD_NESTED;
	g->passed = 0;
	g->at = home;
	g->slot = 0;
	if (!guard_claim(home, 0, g->key) && !claim_further(g))
		return GUARD_FULL;
	g->error = NULL;
	if (!(thread & NO_TLS)) {
		g->error = (int *)(thread + ukp_lib_errno_off);
		g->saved = *g->error;
	}
	return GUARD_ON;
}

enum guard_state guard_on(struct guard *g)
{
	return guard_on_kind(g, GUARD_KPROBE);
}

void guard_off(struct guard *g)
{
	if (g->error)
		*g->error = g->saved;
	guard_leave(g->at, g->slot);
	if (g->passed)
		unpass(g->home, g->passed);
}

bool guard_is_quiet(void)
{
	return thread_key() == __atomic_load_n(&ukp_guard_quiet, __ATOMIC_RELAXED);
}

void guard_quiet(bool on)
{
	__atomic_store_n(&ukp_guard_quiet, on ? thread_key() : 0, __ATOMIC_RELAXED);
}

void guard_set_running(struct guard *g, struct kprobe *p)
{
	g->at->running[g->slot] = p;
}

static bool find_kind(struct guard *g, enum guard_kind kind)
{
	g->key = thread_key() | kind;
	g->home = guard_home(g->key);
	return find(g);
}

void guard_push_result(struct guard *g, struct lib_result *r)
{
	r->outer = g->at->result[g->slot];
	__atomic_signal_fence(__ATOMIC_RELEASE);
	g->at->result[g->slot] = r;
}

void guard_pop_result(struct guard *g, struct lib_result *r)
{
	g->at->result[g->slot] = r->outer;
}

const struct lib_result *guard_result(const struct pt_regs *regs)
{
	static const enum guard_kind kind[] = { GUARD_KPROBE, GUARD_FPROBE, GUARD_RETHOOK };
	const struct lib_result *r;
	struct guard g;
	size_t i;

	for (i = 0; i < sizeof(kind) / sizeof(*kind); i++) {
		r = find_kind(&g, kind[i]) ? g.at->result[g.slot] : NULL;
		if (r && r->regs == regs)
			return r;
	}
	return NULL;
}

struct kprobe *guard_running(bool *on)
{
	struct guard g, other;
	bool found = find_kind(&g, GUARD_KPROBE);

	*on = found || find_kind(&other, GUARD_FPROBE) || find_kind(&other, GUARD_RETHOOK);
	return found ? g.at->running[g.slot] : NULL;
}

/* One that stays on between two calls has no struct guard meanwhile. */
void guard_set_busy(struct kprobe *busy)
{
	struct guard g;

	if (guard_on(&g) == GUARD_ON)
		guard_set_running(&g, busy);
}

void guard_clear_busy(struct kprobe *busy)
{
	struct guard g = { 0 };

	if (find_kind(&g, GUARD_KPROBE) && g.at->running[g.slot] == busy)
		guard_off(&g);
}

static void wait_slot(struct guard_bucket *b, int i, uint64_t own, void (*pause)(void))
{
	uint64_t key = __atomic_load_n(&b->key[i], __ATOMIC_SEQ_CST), runs;

	if (!key || (key & ~KINDS) == own)
		return;
	runs = __atomic_load_n(&b->runs[i], __ATOMIC_ACQUIRE);
	while (__atomic_load_n(&b->key[i], __ATOMIC_ACQUIRE) == key &&
	       __atomic_load_n(&b->runs[i], __ATOMIC_ACQUIRE) == runs)
		pause();
}

void guard_wait(void (*pause)(void))
{
	uint64_t own = thread_key();
	int b, i;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (b = 0; b < GUARD_BUCKETS; b++)
		for (i = 0; i < GUARD_SLOTS; i++)
			wait_slot(&ukp_guard_table[b], i, own, pause);
}
