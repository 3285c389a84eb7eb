/* SPDX-License-Identifier: MIT */
/*
 * The object pool: every interleaving of two threads on a tiny one (stopped at
 * each access to shared memory, bounded preemptions), then real threads and signals.
 */
static void step(void);
#define UKP_STEP() step()
#include "engine/objpool.c"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>
#include <cmocka.h>

#include "coroutine.h"

#define N 4
#define DEPTH 200
#define NR 100000

static struct co co[2];
static bool modelling;

static void step(void)
{
	if (modelling && co_now)
		co_yield ();
}

/* --- the model -------------------------------------------------------------- */

static union {
	struct ukp_objpool p;
	unsigned char bytes[512];
} pool;

static uint32_t size;         /* of the pool */
static const char *script[2]; /* '+' pop, '-' push the oldest that it has, '<' to shard 0 */
static uint32_t owned[2][8];
static unsigned int first[2], last[2];
static uint8_t out[N];
static unsigned int nr_out, failed;
static bool used; /* none is fresh at the start, the second one has one, another is in its shard */

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	printf("%s (scripts %s, %s)\n", what, script[0], script[1]);
	fflush(stdout);
	abort();
}

static void actor(int self)
{
	for (const char *p = script[self]; *p; p++) {
		uint32_t i;

		if (*p == '+') {
			i = ukp_objpool_pop(&pool.p, (uint32_t)self);
			if (i == UKP_OBJPOOL_NONE) {
				failed++;
				continue;
			}
			must(i < size && !out[i], "an index given out twice");
			out[i] = 1;
			must(++nr_out <= size, "more than n are out");
			owned[self][last[self]++] = i;
		} else if (first[self] < last[self]) {
			i = owned[self][first[self]++];
			out[i] = 0;
			nr_out--;
			ukp_objpool_push(&pool.p, *p == '<' ? 0 : (uint32_t)self, i);
		}
	}
}

static void use_up(void)
{
	uint32_t a = ukp_objpool_pop(&pool.p, 1), b = ukp_objpool_pop(&pool.p, 1);

	ukp_objpool_push(&pool.p, 1, a);
	owned[1][last[1]++] = b;
	out[b] = 1;
	nr_out = 1;
}

/* All that are free can be had, each once. */
static void take_rest(void)
{
	uint32_t i;

	while ((i = ukp_objpool_pop(&pool.p, 1)) != UKP_OBJPOOL_NONE) {
		must(i < size && !out[i], "an index given out twice, at the end");
		out[i] = 1;
		nr_out++;
	}
	must(nr_out == size, "an index is gone");
}

static int run(uint8_t *choice, uint8_t *options, int given, int budget)
{
	int depth = 0, now = 0;

	memset(&pool, 0, sizeof(pool));
	memset(out, 0, sizeof(out));
	memset(first, 0, sizeof(first));
	memset(last, 0, sizeof(last));
	nr_out = 0;
	ukp_objpool_init(&pool.p, size, 2);
	if (used)
		use_up();
	co_start(&co[0], actor, 0);
	co_start(&co[1], actor, 1);
	for (; !co[0].done || !co[1].done; depth++) {
		must(depth < DEPTH, "too long");
		if (depth >= given)
			choice[depth] = 0;
		options[depth] = !co[0].done && !co[1].done && budget ? 2 : 1;
		if (choice[depth])
			budget--;
		if (choice[depth] || co[now].done)
			now = !now;
		co_run(&co[now]);
	}
	take_rest();
	return depth;
}

static void explore(uint32_t n, const char *a, const char *b, int budget)
{
	static uint8_t choice[DEPTH], options[DEPTH];
	unsigned long runs = 0;
	int given = 0;

	size = n;
	script[0] = a;
	script[1] = b;
	failed = 0;
	modelling = true;
	do {
		int depth = run(choice, options, given, budget);

		runs++;
		for (given = depth; given > 0; given--)
			if (choice[given - 1] + 1 < options[given - 1])
				break;
		if (given)
			choice[given - 1]++;
	} while (given > 0);
	modelling = false;
	print_message("n=%u %s | %s: %lu schedules, %u pops failed\n", n, a, b, runs, failed);
}

static void no_interleaving_gives_an_index_twice_or_loses_one(void **s)
{
	explore(1, "+-+-", "+-+-", 4);
	explore(2, "++--++", "+-+-", 4);
	explore(3, "++-+-", "++--+-", 4);
	explore(2, "+-+-+-", "++--++--", 3);
}

static void pops_do_not_fail_while_one_is_free(void **s)
{
	/* At most three of three are ever out or on their way, though they change shards. */
	explore(3, "+-+-+-", "++--+", 4);
	assert_int_equal(failed, 0);
	explore(2, "+-+-+-+-", "+-+-", 4);
	assert_int_equal(failed, 0);
	/* The free one moves from the shard that is looked at last to the first. */
	used = true;
	explore(2, "+", "<+", 10);
	assert_int_equal(failed, 0);
	used = false;
}

/* --- the real thing --------------------------------------------------------- */

static struct ukp_objpool *real;
static uint8_t *taken;
static uint64_t twice, got, none;

static struct ukp_objpool *make(uint32_t n, uint32_t shards)
{
	struct ukp_objpool *p = calloc(1, ukp_objpool_size(n, shards));

	assert_non_null(p);
	ukp_objpool_init(p, n, shards);
	return p;
}

static void capacity_is_exact(void **s)
{
	uint32_t n = 1000;
	struct ukp_objpool *p = make(n, 3);
	uint8_t *seen = calloc(n, 1);

	for (int lap = 0; lap < 3; lap++) {
		memset(seen, 0, n);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t index = ukp_objpool_pop(p, i);

			assert_true(index < n);
			assert_false(seen[index]);
			seen[index] = 1;
		}
		for (uint32_t i = 0; i < 5; i++)
			assert_int_equal(ukp_objpool_pop(p, i), UKP_OBJPOOL_NONE);
		for (uint32_t i = 0; i < n; i++)
			ukp_objpool_push(p, i * 7, i);
	}
	free(seen);
	free(p);
}

static void the_index_returned_last_is_taken_first(void **s)
{
	struct ukp_objpool *p = make(10, 2);
	uint32_t a = ukp_objpool_pop(p, 0), b = ukp_objpool_pop(p, 0);

	ukp_objpool_push(p, 1, b);
	ukp_objpool_push(p, 1, a);
	assert_int_equal(ukp_objpool_pop(p, 1), a);
	assert_int_equal(ukp_objpool_pop(p, 3), b);
	free(p);
}

static void next_links_are_not_touched_before_a_push(void **s)
{
	uint32_t n = 1u << 20;
	struct ukp_objpool *p = make(n, 2);

	for (uint32_t i = 0; i < n; i++)
		ukp_objpool_pop(p, i);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(*pool_next(p, i), 0);
	free(p);
}

static void use_one(uint32_t cpu)
{
	uint32_t i = ukp_objpool_pop(real, cpu);

	if (i == UKP_OBJPOOL_NONE) {
		__atomic_fetch_add(&none, 1, __ATOMIC_RELAXED);
		return;
	}
	if (__atomic_exchange_n(&taken[i], 1, __ATOMIC_RELAXED))
		__atomic_fetch_add(&twice, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&got, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&taken[i], 0, __ATOMIC_RELAXED);
	/* Another shard now and then, as when a thread is moved. */
	ukp_objpool_push(real, cpu + (i & 1), i);
}

static void *hammer(void *arg)
{
	for (int i = 0; i < NR * 5; i++)
		use_one((uint32_t)(uintptr_t)arg);
	return NULL;
}

static void on_alarm(int sig)
{
	use_one(1);
}

static void threads_and_signal_handlers_never_share_an_index(void **s)
{
	struct itimerval t = { { 0, 100 }, { 0, 100 } }, off = { { 0, 0 }, { 0, 0 } };
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	pthread_t id[4];
	uint32_t n = 3;

	real = make(n, 2);
	taken = calloc(n, 1);
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &t, NULL);
	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&id[i], NULL, hammer, (void *)i), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(id[i], NULL);
	setitimer(ITIMER_REAL, &off, NULL);
	signal(SIGALRM, SIG_DFL);
	print_message("%lu pops, %lu found none\n", got, none);
	assert_int_equal(twice, 0);
	for (uint32_t i = 0; i < n; i++)
		assert_int_not_equal(ukp_objpool_pop(real, i), UKP_OBJPOOL_NONE);
	assert_int_equal(ukp_objpool_pop(real, 0), UKP_OBJPOOL_NONE);
	free(taken);
	free(real);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_interleaving_gives_an_index_twice_or_loses_one),
		cmocka_unit_test(pops_do_not_fail_while_one_is_free),
		cmocka_unit_test(capacity_is_exact),
		cmocka_unit_test(the_index_returned_last_is_taken_first),
		cmocka_unit_test(next_links_are_not_touched_before_a_push),
		cmocka_unit_test(threads_and_signal_handlers_never_share_an_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
