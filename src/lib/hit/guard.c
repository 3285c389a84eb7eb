/* SPDX-License-Identifier: MIT */
/*
 * Which threads run a handler now.  It is the recursion guard, the answer of
 * kprobe_running(), and what unregistering waits on.  A thread may be in handlers
 * of several kinds at a time, once in each.
 *
 * A table keyed by the thread pointer, not TLS: a hit may come before a thread
 * has any.  A key stands in the first free slot from its home bucket on; each
 * bucket that was passed for it says so in `passed` for as long, and a search
 * goes on behind such buckets only.  A thread looks for no key but its own, and
 * what it has put in itself it sees.
 *
 * guard_on() then reading a list, against unlinking then guard_wait(): both
 * sides write, fence and read, so one of them sees the other.
 */
#include "engine/arch.h"
#include "lib/hit/hit.h"

#define BUCKETS 1024 /* a power of two */
#define SLOTS 7
#define NO_TLS (1ull << 63)
#define KINDS 3ull /* in a key; thread pointers are aligned */

enum { NR_gettid = 186 };

struct guard_slot {
	uint64_t key;  /* 0: free */
	uint64_t runs; /* grows when a run ends */
	struct kprobe *running;
};

struct guard_bucket {
	uint64_t passed;
	struct guard_slot slot[SLOTS];
	uint64_t pad[2];
};

static struct guard_bucket table[BUCKETS] __attribute__((aligned(64)));
static uint64_t quiet; /* the key of the library's own thread, or 0 */

static uint64_t thread_key(void)
{
	uint64_t key = ukp_arch_thread();

	if (!key)
		key = NO_TLS | (uint64_t)ukp_arch_syscall(NR_gettid, 0, 0, 0, 0) << 2;
	return key & ~KINDS;
}

static uint64_t home_of(uint64_t key)
{
	return (key * 0x9e3779b97f4a7c15ull) >> 54;
}

static struct guard_slot *find(uint64_t key, uint64_t home)
{
	uint64_t n;
	int i;

	for (n = 0; n < BUCKETS; n++) {
		struct guard_bucket *b = &table[(home + n) % BUCKETS];

		for (i = 0; i < SLOTS; i++)
			if (__atomic_load_n(&b->slot[i].key, __ATOMIC_RELAXED) == key)
				return &b->slot[i];
		if (!__atomic_load_n(&b->passed, __ATOMIC_RELAXED))
			break;
	}
	return NULL;
}

/* A free slot of one bucket. */
static struct guard_slot *claim(struct guard_bucket *b, uint64_t key)
{
	int i;

	for (i = 0; i < SLOTS; i++) {
		uint64_t none = 0;

		/* Sequentially consistent: the fence between claiming and reading lists. */
		if (!__atomic_load_n(&b->slot[i].key, __ATOMIC_RELAXED) &&
		    __atomic_compare_exchange_n(&b->slot[i].key, &none, key, false,
		                                __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			return &b->slot[i];
	}
	return NULL;
}

static void unpass(uint64_t home, uint64_t n)
{
	while (n--)
		__atomic_fetch_sub(&table[(home + n) % BUCKETS].passed, 1, __ATOMIC_RELAXED);
}

enum guard_state guard_on_kind(struct guard *g, enum guard_kind kind)
{
	uint64_t key = thread_key() | kind, n;

	if ((key & ~KINDS) == __atomic_load_n(&quiet, __ATOMIC_RELAXED))
		return GUARD_QUIET;
	g->home = home_of(key);
	if (find(key, g->home))
		return GUARD_NESTED;
	for (n = 0; n < BUCKETS; n++) {
		struct guard_bucket *b = &table[(g->home + n) % BUCKETS];

		g->slot = claim(b, key);
		if (g->slot)
			break;
		__atomic_fetch_add(&b->passed, 1, __ATOMIC_RELAXED);
	}
	g->bucket = n;
	if (!g->slot) {
		unpass(g->home, n);
		return GUARD_FULL;
	}
	g->error = key & NO_TLS ? NULL : ukp_lib_errno();
	g->saved = g->error ? *g->error : 0;
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
	g->slot->running = NULL;
	/* Before the key: who saw this key with the old number sees the run's end. */
	__atomic_store_n(&g->slot->runs, g->slot->runs + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&g->slot->key, 0, __ATOMIC_RELEASE);
	unpass(g->home, g->bucket);
}

bool guard_is_quiet(void)
{
	return thread_key() == __atomic_load_n(&quiet, __ATOMIC_RELAXED);
}

void guard_quiet(bool on)
{
	__atomic_store_n(&quiet, on ? thread_key() : 0, __ATOMIC_RELAXED);
}

void guard_set_running(struct guard *g, struct kprobe *p)
{
	g->slot->running = p;
}

static struct guard_slot *find_kind(enum guard_kind kind)
{
	uint64_t key = thread_key() | kind;

	return find(key, home_of(key));
}

struct kprobe *guard_running(bool *on)
{
	struct guard_slot *s = find_kind(GUARD_KPROBE);

	*on = s || find_kind(GUARD_FPROBE) || find_kind(GUARD_RETHOOK);
	return s ? s->running : NULL;
}

/*
 * One that stays on between two calls has no struct guard to remember what it
 * passed: it passes again all that stands before its slot.
 */
void guard_set_busy(struct kprobe *busy)
{
	struct guard g;

	if (guard_on(&g) == GUARD_ON)
		g.slot->running = busy;
}

void guard_clear_busy(struct kprobe *busy)
{
	struct guard g = { .slot = find_kind(GUARD_KPROBE) };

	if (!g.slot || g.slot->running != busy)
		return;
	g.home = home_of(g.slot->key);
	while (g.slot < table[(g.home + g.bucket) % BUCKETS].slot ||
	       g.slot >= table[(g.home + g.bucket) % BUCKETS].slot + SLOTS)
		g.bucket++;
	guard_off(&g);
}

static void wait_slot(struct guard_slot *s, uint64_t own, void (*pause)(void))
{
	uint64_t key = __atomic_load_n(&s->key, __ATOMIC_SEQ_CST), runs;

	if (!key || (key & ~KINDS) == own)
		return;
	runs = __atomic_load_n(&s->runs, __ATOMIC_ACQUIRE);
	while (__atomic_load_n(&s->key, __ATOMIC_ACQUIRE) == key &&
	       __atomic_load_n(&s->runs, __ATOMIC_ACQUIRE) == runs)
		pause();
}

void guard_wait(void (*pause)(void))
{
	uint64_t own = thread_key();
	int b, i;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (b = 0; b < BUCKETS; b++)
		for (i = 0; i < SLOTS; i++)
			wait_slot(&table[b].slot[i], own, pause);
}
