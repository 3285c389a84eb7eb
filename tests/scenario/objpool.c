/* SPDX-License-Identifier: MIT */
/*
 * objpool: what the kernel's lib/test_objpool.c measures (sync, overrun, async;
 * hits, misses and the balance of allocations), and the errno of each limit.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include <ukprobes/objpool.h>

#include "scenario.h"

enum { THREADS = 8, ROUNDS = 20000, NR = 64 };

struct object {
	unsigned long owner; /* 0: in the pool */
	unsigned long number;
	char body[40];
};

static struct objpool_head pool;
static int inits, releases, failing_at;
static unsigned long hits, misses;
static pthread_barrier_t all_here;

static int reset(void **state)
{
	inits = releases = failing_at = 0;
	hits = misses = 0;
	return 0;
}

static int on_init(void *obj, void *context)
{
	struct object *o = obj;

	assert_ptr_equal(context, &inits);
	assert_int_equal(o->owner | o->number | (unsigned long)o->body[39], 0);
	if (inits == failing_at - 1)
		return -EXDEV;
	o->number = (unsigned long)++inits;
	return 0;
}

static int on_release(struct objpool_head *head, void *context)
{
	assert_ptr_equal(head, &pool);
	assert_ptr_equal(context, &inits);
	__atomic_fetch_add(&releases, 1, __ATOMIC_RELAXED);
	return 0;
}

static void make(int nr)
{
	assert_int_equal(objpool_init(&pool, nr, sizeof(struct object), GFP_KERNEL, &inits, on_init,
	                              on_release),
	                 0);
	assert_int_equal(inits, nr);
}

/* An object that two have at a time is found out by one of them. */
static struct object *take(unsigned long self)
{
	struct object *o = objpool_pop(&pool);

	if (!o) {
		__atomic_fetch_add(&misses, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	if (__atomic_exchange_n(&o->owner, self, __ATOMIC_RELAXED))
		abort();
	__atomic_fetch_add(&hits, 1, __ATOMIC_RELAXED);
	return o;
}

static void give(struct object *o, unsigned long self)
{
	if (__atomic_exchange_n(&o->owner, 0, __ATOMIC_RELAXED) != self)
		abort();
	if (objpool_push(o, &pool))
		abort();
}

/* All nr are in it, each once, and the pool ends with that. */
static void all_are_back(int nr)
{
	struct object *o;
	int n;

	for (n = 0; (o = objpool_pop(&pool)); n++) {
		assert_int_equal(o->owner, 0);
		o->owner = 1;
	}
	assert_int_equal(n, nr);
	objpool_fini(&pool);
	assert_int_equal(releases, 0);
	for (n = 1; objpool_drop(&pool, &pool) == -EAGAIN; n++)
		;
	assert_int_equal(n, nr);
	assert_int_equal(releases, 1);
}

static void run_together(void *(*fn)(void *))
{
	pthread_t t[THREADS];
	unsigned long i;

	pthread_barrier_init(&all_here, NULL, THREADS);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, fn, (void *)(i + 1)), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	pthread_barrier_destroy(&all_here);
}

static void limits_have_the_kernels_errno(void **state)
{
	static const int bad[][2] = { { 0, 8 },
		                      { -1, 8 },
		                      { 1, 0 },
		                      { 1, -1 },
		                      { 1, 65537 },
		                      { (1 << 24) + 1, 8 },
		                      { 1 << 24, 1 << 17 } };
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(
			objpool_init(&pool, bad[i][0], bad[i][1], GFP_KERNEL, NULL, NULL, NULL),
			-EINVAL);
	assert_int_equal(objpool_init(&pool, 3, 65536, GFP_ATOMIC, NULL, NULL, NULL), 0);
	assert_int_equal(pool.obj_size, 65536);
	assert_int_equal(pool.capacity, 4);
	objpool_free(&pool);
	assert_int_equal(objpool_init(&pool, 1 << 24, 1, GFP_KERNEL, NULL, NULL, NULL), 0);
	assert_int_equal(pool.obj_size, 8);
	assert_int_equal(pool.ref, (1 << 24) + 1);
	assert_int_equal(objpool_drop(NULL, &pool), -EINVAL);
	assert_int_equal(objpool_drop(&pool, NULL), -EINVAL);
	objpool_free(&pool);
	objpool_free(&pool);
}

static void what_the_init_callback_returns_is_handed_on(void **state)
{
	failing_at = 5;
	assert_int_equal(objpool_init(&pool, 10, sizeof(struct object), GFP_KERNEL, &inits, on_init,
	                              on_release),
	                 -EXDEV);
	assert_int_equal(inits, 4);
	assert_int_equal(releases, 0);
}

static void each_object_is_had_once_and_all_fit_back_on_one_cpu(void **state)
{
	struct object *o[NR];
	int i, round;

	make(NR);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < NR; i++) {
			o[i] = take(7);
			assert_non_null(o[i]);
			assert_in_range(o[i]->number, 1, NR);
			assert_int_equal((unsigned long)o[i] % sizeof(long), 0);
		}
		assert_null(objpool_pop(&pool));
		for (i = 0; i < NR; i++)
			give(o[i], 7);
	}
	assert_int_equal(objpool_push((char *)o[0] + 1, &pool), -EINVAL);
	assert_int_equal(objpool_push(&pool, &pool), -EINVAL);
	assert_int_equal(objpool_push(NULL, &pool), -EINVAL);
	all_are_back(NR);
}

static void fini_of_a_full_pool_ends_it_at_once(void **state)
{
	make(NR);
	objpool_fini(&pool);
	assert_int_equal(releases, 1);
	objpool_fini(&pool);
	assert_int_equal(releases, 1);
}

/* Each takes up to a few and gives them back itself. */
static void *sync_thread(void *arg)
{
	unsigned long self = (unsigned long)arg, i, n, k;
	struct object *mine[NR / THREADS];

	pthread_barrier_wait(&all_here);
	for (i = 0; i < ROUNDS; i++) {
		for (n = 0, k = 0; k < 1 + i % (NR / THREADS); k++)
			if ((mine[n] = take(self)))
				n++;
		while (n)
			give(mine[--n], self);
	}
	return NULL;
}

static void threads_that_take_and_give_lose_none(void **state)
{
	unsigned long wanted = 0, i;

	for (i = 0; i < ROUNDS; i++)
		wanted += THREADS * (1 + i % (NR / THREADS));
	make(NR);
	run_together(sync_thread);
	assert_int_equal(hits + misses, wanted);
	assert_true(hits > wanted / 2);
	all_are_back(NR);
}

/* All want more than there is, and keep it. */
static void *greedy(void *arg)
{
	unsigned long self = (unsigned long)arg, n = 0;
	struct object *mine[NR + 1];

	pthread_barrier_wait(&all_here);
	while ((mine[n] = take(self)))
		n++;
	/* Nobody gives anything back before all have seen the end. */
	pthread_barrier_wait(&all_here);
	while (n)
		give(mine[--n], self);
	return NULL;
}

static void an_overrun_pool_gives_each_object_and_then_none(void **state)
{
	int round;

	make(NR);
	for (round = 0; round < 50; round++) {
		hits = misses = 0;
		run_together(greedy);
		assert_int_equal(hits, NR);
		assert_int_equal(misses, THREADS);
	}
	all_are_back(NR);
}

/* What one took another gives back. */
static struct object *letter[THREADS];

static void *async_thread(void *arg)
{
	unsigned long self = (unsigned long)arg, i;
	struct object *o;

	pthread_barrier_wait(&all_here);
	for (i = 0; i < ROUNDS; i++) {
		o = take(self);
		if (o)
			give(o, self);
		o = objpool_pop(&pool);
		o = __atomic_exchange_n(&letter[(self + i) % THREADS], o, __ATOMIC_ACQ_REL);
		if (o && objpool_push(o, &pool))
			abort();
	}
	return NULL;
}

static void what_one_thread_took_another_may_give_back(void **state)
{
	int i;

	make(NR);
	run_together(async_thread);
	assert_int_equal(hits + misses, (unsigned long)THREADS * ROUNDS);
	for (i = 0; i < THREADS; i++)
		if (letter[i])
			assert_int_equal(objpool_push(letter[i], &pool), 0);
	all_are_back(NR);
}

static int nr_ended;

static void *straggler(void *arg)
{
	struct object *o = take((unsigned long)arg);

	pthread_barrier_wait(&all_here);
	if ((unsigned long)arg == 1)
		objpool_fini(&pool);
	o->body[0] = 'x'; /* the memory is there until it is dropped */
	if (!objpool_drop(o, &pool))
		__atomic_fetch_add(&nr_ended, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void the_pool_ends_once_with_the_last_straggler(void **state)
{
	int round;

	for (round = 0; round < 50; round++) {
		inits = releases = nr_ended = 0;
		make(NR);
		run_together(straggler);
		assert_int_equal(releases, 1);
		/* The last one was a drop, or the fini itself. */
		assert_in_range(nr_ended, 0, 1);
		assert_null(pool.ukp_pool);
	}
}

static unsigned long signals, signal_hits;

static void on_signal(int sig)
{
	struct object *o = objpool_pop(&pool);

	__atomic_fetch_add(&signals, 1, __ATOMIC_RELAXED);
	if (!o)
		return;
	if (__atomic_exchange_n(&o->owner, ~0ul, __ATOMIC_RELAXED))
		abort();
	__atomic_fetch_add(&signal_hits, 1, __ATOMIC_RELAXED);
	if (__atomic_exchange_n(&o->owner, 0, __ATOMIC_RELAXED) != ~0ul)
		abort();
	objpool_push(o, &pool);
}

static void *until_signals(void *arg)
{
	unsigned long self = (unsigned long)arg;
	struct object *o;

	pthread_barrier_wait(&all_here);
	while (__atomic_load_n(&signals, __ATOMIC_RELAXED) < 200) {
		o = take(self);
		if (o)
			give(o, self);
	}
	return NULL;
}

static void signal_handlers_that_interrupt_may_take_and_give(void **state)
{
	struct itimerval every = { { 0, 500 }, { 0, 500 } }, none = { 0 };
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	make(NR);
	sigaction(SIGPROF, &sa, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
	run_together(until_signals);
	setitimer(ITIMER_PROF, &none, NULL);
	signal(SIGPROF, SIG_IGN);
	assert_true(signals >= 200);
	assert_true(signal_hits > 0);
	all_are_back(NR);
}

static struct object *from_handler;

static int taking_pre(struct kprobe *p, struct pt_regs *regs)
{
	from_handler = objpool_pop(&pool);
	assert_int_equal(objpool_push(from_handler, &pool), 0);
	return 0;
}

TARGET int target(int x)
{
	__asm__ volatile("");
	return x + 1;
}

static void handlers_may_take_and_give(void **state)
{
	struct kprobe kp = { .symbol_name = "target", .pre_handler = taking_pre };

	make(NR);
	register_ok(register_kprobe(&kp));
	assert_int_equal(target(1), 2);
	unregister_kprobe(&kp);
	assert_non_null(from_handler);
	all_are_back(NR);
	text_is_as_in_the_file();
}

#define T(name) cmocka_unit_test_setup(name, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(limits_have_the_kernels_errno),
		T(what_the_init_callback_returns_is_handed_on),
		T(each_object_is_had_once_and_all_fit_back_on_one_cpu),
		T(fini_of_a_full_pool_ends_it_at_once),
		T(threads_that_take_and_give_lose_none),
		T(an_overrun_pool_gives_each_object_and_then_none),
		T(what_one_thread_took_another_may_give_back),
		T(the_pool_ends_once_with_the_last_straggler),
		T(signal_handlers_that_interrupt_may_take_and_give),
		T(handlers_may_take_and_give),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
