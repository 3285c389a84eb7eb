/* SPDX-License-Identifier: MIT */
/* Letting one thread of a held process run on by itself. */
#include "help.h"
#include "inject/internal.h"

#include <pthread.h>

struct runs {
	volatile long ready, stop, bad, rounds[2];
	volatile int nr;
};

static struct runs *runs;

static void *make_calls(void *arg)
{
	volatile long *rounds = arg;
	const long pid = getpid();

	__atomic_add_fetch(&runs->ready, 1, __ATOMIC_RELAXED);
	while (!runs->stop) {
		if (syscall(SYS_getpid) != pid)
			__atomic_add_fetch(&runs->bad, 1, __ATOMIC_RELAXED);
		++*rounds;
	}
	return NULL;
}

static void *make_none(void *arg)
{
	volatile long *rounds = arg;

	__atomic_add_fetch(&runs->ready, 1, __ATOMIC_RELAXED);
	while (!runs->stop)
		++*rounds;
	return NULL;
}

static int run(void *(*fn)(void *))
{
	pthread_t th;

	if (runs->nr > 1 && pthread_create(&th, NULL, fn, (void *)&runs->rounds[1]))
		return 1;
	fn((void *)&runs->rounds[0]);
	if (runs->nr > 1)
		pthread_join(th, NULL);
	return runs->bad ? 1 : 7;
}

static int run_calls(void *arg)
{
	(void)arg;
	return run(make_calls);
}

static int run_none(void *arg)
{
	(void)arg;
	return run(make_none);
}

static pid_t start(int (*fn)(void *), int nr, struct inject **t)
{
	pid_t pid;

	runs = shared_page();
	runs->nr = nr;
	pid = child(fn, NULL);
	await_word(&runs->ready, nr);
	assert_int_equal(inject_open(t, pid, NULL), 0);
	return pid;
}

static void end(pid_t pid, struct inject *t)
{
	long before[2] = { runs->rounds[0], runs->rounds[1] };

	inject_close(t);
	await_word(&runs->rounds[0], before[0] + 1);
	if (runs->nr > 1)
		await_word(&runs->rounds[1], before[1] + 1);
	runs->stop = 1;
	assert_int_equal(child_status(pid), 7 << 8);
	assert_int_equal(runs->bad, 0);
	munmap((void *)runs, 4096);
}

static bool yes(void *arg, size_t i)
{
	(void)i;
	++*(int *)arg;
	return true;
}

/* On a busy machine it may not have come to a CPU in its millisecond. */
static void run_on_until_a_call(struct inject *t, size_t i)
{
	time_t end = patience();
	int asked = 0, holds = 0;

	do {
		inject_release(t);
		assert_true(patient(end));
		assert_int_equal(inject_seize(t, NULL), 0);
		assert_int_equal(inject_run_on(t, i, yes, &asked), 1);
		assert_int_equal(asked, ++holds);
	} while (!t->threads[i].in_call);
}

static void the_one_that_makes_a_call_is_asked_of_before_and_makes_it_afterwards(void **state)
{
	struct inject *t;
	pid_t pid = start(run_calls, 1, &t);
	struct err err = ERR_INIT;
	int k;

	for (k = 0; k < 20; k++) {
		long before;

		run_on_until_a_call(t, 0);
		/* It stands before its call. */
		before = runs->rounds[0];
		nap_ms(1);
		assert_int_equal(runs->rounds[0], before);
		assert_true(inject_begin(t, &err) < 0);
		inject_release(t);
		await_word(&runs->rounds[0], before + 1);
	}
	end(pid, t);
	(void)state;
}

static void one_makes_our_calls(struct inject *t)
{
	struct err err = ERR_INIT;

	assert_int_equal(inject_begin(t, &err), 0);
	assert_int_equal(inject_syscall(t, SYS_getppid, 0, 0, 0, 0, 0, 0), getpid());
	inject_end(t);
	inject_release(t);
}

static void our_calls_are_made_by_another_thread_then(void **state)
{
	struct inject *t;
	pid_t pid = start(run_calls, 2, &t);
	int k;

	for (k = 0; k < 20; k++) {
		run_on_until_a_call(t, (size_t)k % 2);
		one_makes_our_calls(t);
	}
	end(pid, t);
	(void)state;
}

/* Whom nothing stops is held again, and may make calls for us. */
static void the_one_that_meets_nothing_is_asked_of_in_the_end(void **state)
{
	struct inject *t;
	pid_t pid = start(run_none, 2, &t);
	long before[2];
	int asked = 0;

	assert_int_equal(inject_seize(t, NULL), 0);
	before[0] = runs->rounds[0];
	before[1] = runs->rounds[1];
	assert_int_equal(inject_run_on(t, 0, yes, &asked), 1);
	assert_int_equal(asked, 1);
	/* One of them may have run: the main thread is the first in the list. */
	assert_true(runs->rounds[0] >= before[0]);
	assert_int_equal(runs->rounds[1], before[1]);
	one_makes_our_calls(t);
	end(pid, t);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			the_one_that_makes_a_call_is_asked_of_before_and_makes_it_afterwards),
		cmocka_unit_test(our_calls_are_made_by_another_thread_then),
		cmocka_unit_test(the_one_that_meets_nothing_is_asked_of_in_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
