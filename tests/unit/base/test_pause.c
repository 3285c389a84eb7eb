/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

#include "base/pause.h"

#define LOOK_US 20000
#define TRIES 500

struct worker {
	struct pause pause;
	atomic_ulong done;
	atomic_bool stop;
	pthread_t thread;
};

static void *work(void *arg)
{
	struct worker *w = arg;

	pause_mine(&w->pause);
	while (!w->stop) {
		pause_point();
		w->done++;
	}
	return NULL;
}

static int start(void **state)
{
	struct worker *w = calloc(1, sizeof(*w));

	*state = w;
	pause_init(&w->pause);
	return pthread_create(&w->thread, NULL, work, w);
}

static int stop(void **state)
{
	struct worker *w = *state;

	w->stop = true;
	pause_end(&w->pause);
	pthread_join(w->thread, NULL);
	pause_destroy(&w->pause);
	free(w);
	return 0;
}

static bool goes_on(struct worker *w)
{
	const unsigned long then = w->done;
	int i;

	for (i = 0; i < TRIES && w->done == then; i++)
		usleep(1000);
	return w->done != then;
}

/* It may be anywhere between two points when it is asked. */
static bool comes_to_a_stand(struct worker *w)
{
	unsigned long then;
	int i;

	for (i = 0; i < TRIES; i++) {
		then = w->done;
		usleep(LOOK_US);
		if (w->done == then)
			return true;
	}
	return false;
}

static void a_worker_stands_from_one_of_its_points_to_the_end_of_the_pause(void **state)
{
	struct worker *w = *state;
	int i;

	for (i = 0; i < 5; i++) {
		assert_true(goes_on(w));
		pause_begin(&w->pause);
		assert_true(comes_to_a_stand(w));
		pause_end(&w->pause);
		assert_true(goes_on(w));
	}
}

static void a_pause_begun_twice_ends_once(void **state)
{
	struct worker *w = *state;

	pause_begin(&w->pause);
	pause_begin(&w->pause);
	assert_true(comes_to_a_stand(w));
	pause_end(&w->pause);
	assert_true(goes_on(w));
}

static void a_point_in_a_thread_without_a_pause_does_nothing(void **state)
{
	struct worker *w = *state;

	pause_begin(&w->pause);
	pause_point();
	assert_null(pause_of_thread);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_worker_stands_from_one_of_its_points_to_the_end_of_the_pause, start,
			stop),
		cmocka_unit_test_setup_teardown(a_pause_begun_twice_ends_once, start, stop),
		cmocka_unit_test_setup_teardown(a_point_in_a_thread_without_a_pause_does_nothing,
		                                start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
