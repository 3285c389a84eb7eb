/* SPDX-License-Identifier: MIT */
/* The ring under real threads, signals and kills; test_ring_model.c has the interleavings. */
#include "ring_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define EACH 500000

static void a_record_is_read_back_as_written(void **s)
{
	const struct ukp_rec_view *v, *w;
	struct fixture f;

	fixture_open(&f, 4, 12);
	for (uint64_t i = 0; i < 10000; i++) {
		assert_int_equal(ukp_reader_next(f.rd, 0, &v), UKP_READ_NONE);
		assert_true(write_record(f.ring, 1, i));
		assert_int_equal(ukp_reader_peek(f.rd, 0, &w), UKP_READ_RECORD);
		assert_int_equal(ukp_reader_next(f.rd, 0, &v), UKP_READ_RECORD);
		assert_ptr_equal(v, w);
		assert_int_equal(v->tsc, i);
		assert_int_equal(v->seq, i);
		assert_true(record_ok(v));
	}
	fixture_close(&f);
}

static void a_full_ring_drops_and_counts(void **s)
{
	const struct ukp_rec_view *v;
	struct ukp_ring_counts c;
	struct fixture f;
	uint64_t n = 0;

	fixture_open(&f, 2, 12);
	while (write_record(f.ring, 0, n))
		n++;
	assert_int_equal(f.ring->lost, 1);
	for (uint64_t i = 0; i < n; i++) {
		assert_int_equal(ukp_reader_next(f.rd, 0, &v), UKP_READ_RECORD);
		assert_int_equal(v->tsc, i);
	}
	assert_int_equal(ukp_reader_next(f.rd, 0, &v), UKP_READ_NONE);
	assert_true(write_record(f.ring, 0, n));
	assert_int_equal(ukp_reader_next(f.rd, 0, &v), UKP_READ_RECORD);
	ukp_reader_counts(f.rd, 0, &c);
	assert_int_equal(c.attempts, n + 2);
	assert_int_equal(c.seen, n + 1);
	assert_int_equal(c.lost, 1);
	assert_int_equal(c.missing, 0);
	fixture_close(&f);
}

static void a_length_that_cannot_be_is_dropped(void **s)
{
	struct fixture f;
	uint64_t pos;

	fixture_open(&f, 2, 13);
	assert_null(ukp_ring_reserve(f.ring, 16, &pos));
	assert_null(ukp_ring_reserve(f.ring, 28, &pos));
	assert_null(ukp_ring_reserve(f.ring, UKP_REC_MAX + 8, &pos));
	assert_non_null(ukp_ring_reserve(f.ring, UKP_REC_MAX, &pos));
	assert_int_equal(f.ring->lost, 3);
	fixture_close(&f);
}

struct job {
	struct fixture *f;
	uint32_t thread;
	uint64_t written, dropped;
	pthread_t id;
};

static void *write_many(void *arg)
{
	struct job *j = arg;

	for (uint64_t i = 0; i < EACH; i++) {
		if (write_record(j->f->ring, j->thread, i))
			j->written++;
		else
			j->dropped++;
	}
	return NULL;
}

/* Reads all there is; per thread in order, each one whole.  Returns how many. */
static uint64_t read_all(struct fixture *f, int64_t last[])
{
	const struct ukp_rec_view *v;
	uint64_t n = 0;

	while (ukp_reader_next(f->rd, 0, &v) == UKP_READ_RECORD) {
		if (v->event >= THREADS || !record_ok(v) || (int64_t)v->tsc <= last[v->event])
			fail_msg("record %lu of thread %u is wrong", v->tsc, v->event);
		last[v->event] = (int64_t)v->tsc;
		n++;
	}
	return n;
}

static void attempts_are_records_and_lost_with_a_slow_reader(void **s)
{
	int64_t last[THREADS] = { -1, -1, -1, -1 };
	struct job job[THREADS];
	uint64_t seen = 0, written = 0, dropped = 0;
	struct ukp_ring_counts c;
	struct fixture f;

	fixture_open(&f, 8, 14);
	for (uint32_t i = 0; i < THREADS; i++) {
		job[i] = (struct job){ .f = &f, .thread = i };
		assert_int_equal(pthread_create(&job[i].id, NULL, write_many, &job[i]), 0);
	}
	for (int i = 0; i < 400; i++) {
		seen += read_all(&f, last);
		usleep(200);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(job[i].id, NULL), 0);
		written += job[i].written;
		dropped += job[i].dropped;
	}
	seen += read_all(&f, last);
	ukp_reader_counts(f.rd, 0, &c);
	print_message("%lu written and read, %lu dropped\n", written, dropped);
	assert_int_equal(seen, written);
	assert_int_equal(c.attempts, (uint64_t)THREADS * EACH);
	assert_int_equal(c.lost, dropped);
	assert_int_equal(c.missing, 0);
	assert_int_equal(c.passed + c.bad, 0);
	assert_true(dropped > 0);
	fixture_close(&f);
}

static struct fixture *sig_ring;
static volatile uint64_t sig_attempts, sig_written;

static void on_prof(int sig)
{
	sig_written += (uint64_t)write_record(sig_ring->ring, 1, sig_attempts++);
}

static void a_signal_handler_may_write_in_the_middle_of_a_write(void **s)
{
	int64_t last[THREADS] = { -1, -1, -1, -1 };
	struct itimerval t = { { 0, 50 }, { 0, 50 } }, off = { { 0, 0 }, { 0, 0 } };
	struct sigaction sa = { .sa_handler = on_prof, .sa_flags = SA_RESTART };
	uint64_t seen = 0, written = 0;
	struct ukp_ring_counts c;
	struct fixture f;

	fixture_open(&f, 4, 13);
	sig_ring = &f;
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &t, NULL);
	for (uint64_t i = 0; i < 1000000; i++) {
		written += (uint64_t)write_record(f.ring, 0, i);
		if (!(i % 100))
			seen += read_all(&f, last);
	}
	setitimer(ITIMER_REAL, &off, NULL);
	signal(SIGALRM, SIG_DFL);
	seen += read_all(&f, last);
	ukp_reader_counts(f.rd, 0, &c);
	print_message("%lu writes in the handler\n", sig_attempts);
	assert_true(sig_attempts > 0);
	assert_int_equal(seen, written + sig_written);
	assert_int_equal(c.attempts, 1000000 + sig_attempts);
	assert_int_equal(c.missing, 0);
	fixture_close(&f);
}

static void *write_for_ever(void *arg)
{
	struct job *j = arg;

	for (uint64_t i = 0;; i++)
		write_record(j->f->ring, j->thread, i);
	return NULL;
}

static void write_until_killed(struct fixture *f)
{
	struct job job[2] = { { .f = f, .thread = 0 }, { .f = f, .thread = 1 } };
	pthread_t t;

	pthread_create(&t, NULL, write_for_ever, &job[0]);
	write_for_ever(&job[1]);
}

static void a_killed_writer_leaves_one_torn_record_a_thread(void **s)
{
	uint64_t torn = 0;

	for (int i = 0; i < 50; i++) {
		int64_t last[THREADS] = { -1, -1, -1, -1 };
		struct ukp_ring_counts c;
		struct fixture f;
		pid_t pid;

		fixture_open(&f, 8, 14);
		pid = fork();
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			write_until_killed(&f);
		}
		while (!read_all(&f, last))
			usleep(100);
		for (int k = 0; k < 3 + i % 5; k++) {
			usleep(500);
			read_all(&f, last);
		}
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		ukp_reader_set_dead(f.rd);
		read_all(&f, last);
		ukp_reader_counts(f.rd, 0, &c);
		assert_true(c.attempts > 0 && c.seen > 0);
		assert_true(c.missing <= 2);
		assert_true(c.passed <= 4);
		assert_int_equal(c.bad, 0);
		torn += c.missing;
		fixture_close(&f);
	}
	print_message("%lu torn records in 50 kills of 2 threads\n", torn);
}

static struct ukp_rec *volatile abandoned;

/* Leaves a handler in the middle of a record, as siglongjmp does. */
static struct ukp_rec *abandon(struct ukp_ring *r, uint64_t *pos)
{
	sigjmp_buf out;

	if (!sigsetjmp(out, 0)) {
		abandoned = ukp_ring_reserve(r, 64, pos);
		siglongjmp(out, 1);
	}
	return abandoned;
}

static void an_abandoned_record_does_not_stop_the_ring(void **s)
{
	int64_t last[THREADS] = { -1, -1, -1, -1 };
	uint64_t pos, at, again, seen = 0;
	uint64_t n = 0;
	struct ukp_ring_counts c;
	struct ukp_rec *rec;
	struct fixture f;

	fixture_open(&f, 4, 12);
	write_record(f.ring, 0, n++);
	rec = abandon(f.ring, &pos);
	write_record(f.ring, 0, n++);
	assert_int_equal(read_all(&f, last), 1);
	assert_true(ukp_reader_blocked(f.rd, 0, &at));
	assert_int_equal(read_all(&f, last), 0);
	assert_true(ukp_reader_blocked(f.rd, 0, &again));
	assert_int_equal(at, again);
	ukp_reader_expire(f.rd, 0);
	assert_int_equal(read_all(&f, last), 1);
	for (int i = 0; i < 5000; i++) {
		assert_true(write_record(f.ring, 0, n++));
		seen += read_all(&f, last);
	}
	assert_int_equal(seen, 5000);
	assert_int_equal(f.rd->rings[0].quarantined, 1);
	ukp_reader_counts(f.rd, 0, &c);
	assert_int_equal(c.passed, 1);
	assert_int_equal(c.missing, 1);
	/* It was only late: its sub-buffer comes back. */
	ukp_ring_commit(f.ring, rec, pos, 64);
	for (int i = 0; i < 5000; i++) {
		assert_true(write_record(f.ring, 0, n++));
		seen += read_all(&f, last);
	}
	assert_int_equal(seen, 10000);
	assert_int_equal(f.rd->rings[0].quarantined, 0);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_is_read_back_as_written),
		cmocka_unit_test(a_full_ring_drops_and_counts),
		cmocka_unit_test(a_length_that_cannot_be_is_dropped),
		cmocka_unit_test(attempts_are_records_and_lost_with_a_slow_reader),
		cmocka_unit_test(a_signal_handler_may_write_in_the_middle_of_a_write),
		cmocka_unit_test(a_killed_writer_leaves_one_torn_record_a_thread),
		cmocka_unit_test(an_abandoned_record_does_not_stop_the_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
