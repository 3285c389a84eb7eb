/* SPDX-License-Identifier: MIT */
/* The reader of a channel against channels that are wrong, in part or on purpose. */
#include "../engine/ring_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "engine/hist.h"

static struct ukp_chan *chan_of(struct fixture *f)
{
	return f->mem;
}

static struct ukp_rec *data_at(struct fixture *f, uint64_t pos)
{
	return (struct ukp_rec *)((char *)f->ring + f->ring->off_data + pos);
}

static void wrong_geometry_is_refused(void **s)
{
	struct ukp_chan good;
	struct fixture f;

	fixture_open(&f, 4, 12);
	good = *chan_of(&f);
#define REFUSED(field, v)                                                        \
	do {                                                                     \
		chan_of(&f)->field = (v);                                        \
		assert_int_equal(ukp_reader_init(f.rd, f.mem, f.size), -EINVAL); \
		*chan_of(&f) = good;                                             \
	} while (0)
	REFUSED(magic, 1);
	REFUSED(version, UKP_CHAN_VERSION + 1);
	REFUSED(version, UKP_CHAN_VERSION - 1);
	REFUSED(nr_shards, 0);
	REFUSED(nr_shards, UKP_READER_RINGS + 1);
	REFUSED(nr_stats, UKP_CHAN_STATS + 1);
	REFUSED(nr_stats, 200);
	REFUSED(nr_rings, 0);
	REFUSED(nr_rings, 2);
	REFUSED(nr_rings, UINT32_MAX);
	REFUSED(nr_subs, 0);
	REFUSED(nr_subs, 3);
	REFUSED(nr_subs, 8);
	REFUSED(nr_subs, 1u << 31);
	REFUSED(sub_shift, 0);
	REFUSED(sub_shift, 11);
	REFUSED(sub_shift, 40);
	REFUSED(off_stats, 4);
	REFUSED(off_stats, UINT64_MAX & ~7ull);
	REFUSED(nr_counters, UKP_CHAN_COUNTERS + 1);
	REFUSED(nr_counters, f.size / 8 + 1);
	REFUSED(off_counters, 4);
	REFUSED(off_counters, f.size + 8);
	REFUSED(off_hists, f.size + 8);
	REFUSED(off_rings, 4097);
	REFUSED(off_rings, 4104);
	REFUSED(off_rings, UINT64_MAX & ~4095ull);
	REFUSED(ring_stride, 0);
	REFUSED(ring_stride, good.ring_stride + 4096);
	REFUSED(size, f.size + 1);
	REFUSED(size, 4096);
#undef REFUSED
	assert_int_equal(ukp_reader_init(f.rd, f.mem, f.size), 0);
	assert_int_equal(ukp_reader_init(f.rd, f.mem, f.size - 8), -EINVAL);
	assert_int_equal(ukp_reader_init(f.rd, f.mem, 8), -EINVAL);
	fixture_close(&f);
}

static void counters_of_places_are_summed_over_the_shards(void **s)
{
	uint64_t *at, sum = 7;
	struct fixture f;

	fixture_open(&f, 4, 12);
	assert_int_equal(ukp_counter_sum(f.rd, 0, &sum), -EINVAL);
	/* Two counters each, in what are the histograms' pages here. */
	chan_of(&f)->off_counters = chan_of(&f)->off_hists;
	chan_of(&f)->nr_counters = 2;
	assert_int_equal(ukp_reader_init(f.rd, f.mem, f.size), 0);
	at = (uint64_t *)((char *)f.mem + chan_of(&f)->off_hists);
	for (uint32_t i = 0; i < chan_of(&f)->nr_shards; i++) {
		at[2 * i] = 100;
		at[2 * i + 1] = i + 1;
	}
	assert_int_equal(ukp_counter_sum(f.rd, 1, &sum), 0);
	assert_int_equal(sum, chan_of(&f)->nr_shards * (chan_of(&f)->nr_shards + 1) / 2);
	assert_int_equal(ukp_counter_sum(f.rd, 2, &sum), -EINVAL);
	at[1] = UKP_COUNT_MAX;
	assert_int_equal(ukp_counter_sum(f.rd, 1, &sum), -EBADMSG);
	assert_int_equal(ukp_counter_sum(f.rd, 0, &sum), 0);
	fixture_close(&f);
}

static void a_ring_that_is_not_there_has_nothing(void **s)
{
	const struct ukp_rec_view *v;
	struct ukp_ring_counts c;
	struct fixture f;
	uint64_t pos;

	fixture_open(&f, 4, 12);
	assert_int_equal(ukp_reader_peek(f.rd, 1, &v), UKP_READ_NONE);
	assert_int_equal(ukp_reader_next(f.rd, UINT32_MAX, &v), UKP_READ_NONE);
	assert_false(ukp_reader_blocked(f.rd, 1, &pos));
	ukp_reader_expire(f.rd, 1);
	ukp_reader_counts(f.rd, 1, &c);
	assert_int_equal(c.attempts, 0);
	fixture_close(&f);
}

static void a_peeked_record_is_the_next_one(void **s)
{
	const struct ukp_rec_view *v;
	struct ukp_ring_counts c;
	struct fixture f;

	fixture_open(&f, 4, 12);
	write_record(f.ring, 0, 7);
	write_record(f.ring, 0, 8);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ukp_reader_peek(f.rd, 0, &v), UKP_READ_RECORD);
		assert_int_equal(v->tsc, 7);
	}
	ukp_reader_counts(f.rd, 0, &c);
	assert_int_equal(c.seen, 0);
	assert_int_equal(c.missing, 2);
	assert_int_equal(ukp_reader_next(f.rd, 0, &v), UKP_READ_RECORD);
	assert_int_equal(v->tsc, 7);
	assert_int_equal(ukp_reader_next(f.rd, 0, &v), UKP_READ_RECORD);
	assert_int_equal(v->tsc, 8);
	fixture_close(&f);
}

static void a_copy_does_not_change_with_the_original(void **s)
{
	const struct ukp_rec_view *v;
	struct fixture f;

	fixture_open(&f, 4, 12);
	write_record(f.ring, 2, 5);
	assert_int_equal(ukp_reader_peek(f.rd, 0, &v), UKP_READ_RECORD);
	memset(data_at(&f, 0), 0xff, 256);
	assert_int_equal(ukp_reader_next(f.rd, 0, &v), UKP_READ_RECORD);
	assert_int_equal(v->tsc, 5);
	assert_true(record_ok(v));
	fixture_close(&f);
}

static void a_word_without_sense_costs_what_is_behind_it(void **s)
{
	static const uint32_t words[] = {
		1,
		UKP_REC_DONE,
		UKP_REC_DONE | 16,
		UKP_REC_DONE | 28,
		UKP_REC_DONE | 4104,
		UKP_REC_OPEN | 8,
		UKP_REC_PAD | 8,
		0xff000000u | 24,
		0xffffffffu,
	};
	const struct ukp_rec_view *v;
	struct ukp_ring_counts c;
	struct fixture f;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		fixture_open(&f, 4, 12);
		write_record(f.ring, 0, 1);
		write_record(f.ring, 0, 2);
		data_at(&f, 0)->word = words[i];
		assert_int_equal(ukp_reader_next(f.rd, 0, &v), UKP_READ_NONE);
		write_record(f.ring, 0, 3);
		assert_int_equal(ukp_reader_next(f.rd, 0, &v), UKP_READ_RECORD);
		assert_int_equal(v->tsc, 3);
		ukp_reader_counts(f.rd, 0, &c);
		assert_int_equal(c.bad, 1);
		fixture_close(&f);
	}
}

static void an_open_record_is_waited_for_until_the_target_is_dead(void **s)
{
	const struct ukp_rec_view *v;
	struct ukp_ring_counts c;
	struct fixture f;
	uint64_t pos;

	fixture_open(&f, 4, 12);
	assert_non_null(ukp_ring_reserve(f.ring, 40, &pos));
	data_at(&f, pos)->word = 0; /* killed before its first store: */
	data_at(&f, pos)->seq = 0;
	assert_non_null(ukp_ring_reserve(f.ring, 40, &pos));
	write_record(f.ring, 0, 3);
	assert_int_equal(ukp_reader_next(f.rd, 0, &v), UKP_READ_BLOCKED);
	assert_true(ukp_reader_blocked(f.rd, 0, &pos));
	assert_int_equal(pos, 0);
	assert_int_equal(ukp_reader_next(f.rd, 0, &v), UKP_READ_BLOCKED);
	ukp_reader_set_dead(f.rd);
	assert_int_equal(ukp_reader_next(f.rd, 0, &v), UKP_READ_RECORD);
	assert_int_equal(v->tsc, 3);
	assert_int_equal(ukp_reader_next(f.rd, 0, &v), UKP_READ_NONE);
	assert_false(ukp_reader_blocked(f.rd, 0, &pos));
	ukp_reader_counts(f.rd, 0, &c);
	assert_int_equal(c.missing, 2);
	assert_int_equal(c.passed, 2);
	fixture_close(&f);
}

static void patience_ends_for_one_place_only(void **s)
{
	const struct ukp_rec_view *v;
	struct fixture f;
	uint64_t pos[3];
	struct ukp_rec *late;

	fixture_open(&f, 4, 12);
	for (int i = 0; i < 3; i++)
		late = ukp_ring_reserve(f.ring, 40, &pos[i]);
	assert_int_equal(ukp_reader_next(f.rd, 0, &v), UKP_READ_BLOCKED);
	ukp_reader_expire(f.rd, 0);
	assert_int_equal(ukp_reader_next(f.rd, 0, &v), UKP_READ_BLOCKED);
	ukp_reader_expire(f.rd, 0);
	assert_int_equal(ukp_reader_next(f.rd, 0, &v), UKP_READ_BLOCKED);
	ukp_reader_expire(f.rd, 0);
	/* Committed after all, in time. */
	ukp_ring_commit(f.ring, late, pos[2], 40);
	assert_int_equal(ukp_reader_next(f.rd, 0, &v), UKP_READ_RECORD);
	assert_int_equal(v->seq, 2);
	fixture_close(&f);
}

static void any_head_leaves_the_reader_inside(void **s)
{
	static const uint64_t heads[] = { 1, 4095, 1u << 20, 1ull << 63, UINT64_MAX, 4096, 16384 };
	const struct ukp_rec_view *v;
	struct fixture f;

	for (size_t i = 0; i < 2 * sizeof(heads) / sizeof(heads[0]); i++) {
		fixture_open(&f, 4, 12);
		write_record(f.ring, 0, 1);
		f.ring->head = heads[i / 2];
		if (i & 1)
			ukp_reader_set_dead(f.rd);
		for (int k = 0; k < 100; k++) {
			ukp_reader_next(f.rd, 0, &v);
			ukp_reader_expire(f.rd, 0);
		}
		fixture_close(&f);
	}
}

static volatile int stop;
static volatile uint64_t turns;

static void *scribble(void *arg)
{
	struct fixture *f = arg;
	uint64_t x = 1, n = 0;

	while (!stop) {
		unsigned char *p;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		p = (unsigned char *)f->ring + (x >> 20) % (f->size - 4096);
		if (x % 16 == 0)
			*p ^= (unsigned char)(1u << (x >> 61));
		if (x % 4096 == 0)
			f->ring->head += x >> 52 & ~7ull;
		/* The writer trusts its header. */
		f->ring->nr_subs = 4;
		f->ring->sub_shift = 12;
		f->ring->off_data = 4096;
		write_record(f->ring, 0, n++);
		turns = n;
		if (n % 64 == 0)
			sched_yield();
	}
	return NULL;
}

/* As many calls as it takes until much has happened. */
static uint64_t read_for_a_while(struct fixture *f)
{
	const struct ukp_rec_view *v;
	uint64_t until = turns + 500, sum = 0;

	while (turns < until) {
		enum ukp_read ret = ukp_reader_next(f->rd, 0, &v);

		if (ret == UKP_READ_BLOCKED)
			ukp_reader_expire(f->rd, 0);
		if (ret != UKP_READ_RECORD) {
			sched_yield();
			continue;
		}
		assert_true(v->len <= UKP_REC_MAX - sizeof(struct ukp_rec));
		for (uint32_t k = 0; k < v->len; k++)
			sum += v->payload[k];
	}
	return sum;
}

static void bytes_that_change_meanwhile_do_no_harm(void **s)
{
	uint64_t sum = 0, seen = 0, bad = 0;
	struct ukp_ring_counts c;
	struct fixture f;
	pthread_t t;

	fixture_open(&f, 4, 12);
	stop = 0;
	assert_int_equal(pthread_create(&t, NULL, scribble, &f), 0);
	/* After a while nothing is left of a ring that is treated so. */
	for (int i = 0; i < 200; i++) {
		memset((char *)f.ring + 4096, 0, f.size - 8192);
		ukp_ring_init(f.ring, 4, 12);
		assert_int_equal(ukp_reader_init(f.rd, f.mem, f.size), 0);
		sum += read_for_a_while(&f);
		ukp_reader_counts(f.rd, 0, &c);
		seen += c.seen;
		bad += c.bad;
	}
	stop = 1;
	pthread_join(t, NULL);
	print_message("%lu records, %lu bad places, sum %lu\n", seen, bad, sum);
	assert_true(seen > 0 && bad > 0);
	fixture_close(&f);
}

static void counters_are_summed_over_the_shards(void **s)
{
	static uint64_t mem[8192 + 2 * 4096];
	struct ukp_chan *c = (struct ukp_chan *)mem;
	struct ukp_stat *st = (struct ukp_stat *)(mem + 16), out;
	struct ukp_reader *rd = malloc(sizeof(*rd));

	*c = (struct ukp_chan){
		.magic = UKP_CHAN_MAGIC,
		.version = UKP_CHAN_VERSION,
		.nr_shards = 3,
		.nr_stats = 5,
		.nr_rings = 1,
		.nr_subs = 2,
		.sub_shift = 12,
		.off_stats = 128,
		.off_hists = 128,
		.off_rings = 4096,
		.ring_stride = ukp_ring_stride(2, 12),
		.size = sizeof(mem),
	};
	assert_int_equal(ukp_reader_init(rd, mem, sizeof(mem)), 0);
	for (unsigned int i = 0; i < 3; i++) {
		st[i * 5 + 4].hits = 10 + i;
		st[i * 5 + 4].miss[UKP_MISS_FRAME] = 1;
		st[i * 5 + 3].hits = 1000;
	}
	assert_int_equal(ukp_stat_sum(rd, 4, &out), 0);
	assert_int_equal(out.hits, 33);
	assert_int_equal(out.miss[UKP_MISS_FRAME], 3);
	assert_int_equal(out.records, 0);
	st[5 + 4].miss[UKP_MISS_RING] = UKP_COUNT_MAX;
	assert_int_equal(ukp_stat_sum(rd, 4, &out), -EBADMSG);
	st[5 + 4].miss[UKP_MISS_RING] = UKP_COUNT_MAX - 1;
	assert_int_equal(ukp_stat_sum(rd, 4, &out), 0);
	assert_int_equal(ukp_stat_sum(rd, 5, &out), -EINVAL);
	assert_int_equal(ukp_stat_sum(rd, UINT32_MAX, &out), -EINVAL);
	free(rd);
}

/* A channel with room for three shards of a histogram at 4096. */
static struct ukp_reader *with_hists(struct ukp_hist **h, unsigned char **mem)
{
	uint64_t rings = 4096 + 3 * sizeof(struct ukp_hist);
	uint64_t size = rings + ukp_ring_stride(2, 12);
	struct ukp_reader *rd = malloc(sizeof(*rd));
	struct ukp_chan *c = calloc(1, size);

	assert_true(rd && c);
	*c = (struct ukp_chan){
		.magic = UKP_CHAN_MAGIC,
		.version = UKP_CHAN_VERSION,
		.nr_shards = 3,
		.nr_rings = 1,
		.nr_subs = 2,
		.sub_shift = 12,
		.off_stats = 128,
		.off_hists = 4096,
		.off_rings = rings,
		.ring_stride = ukp_ring_stride(2, 12),
		.size = size,
	};
	assert_int_equal(ukp_reader_init(rd, c, size), 0);
	*mem = (unsigned char *)c;
	*h = (struct ukp_hist *)(*mem + 4096);
	return rd;
}

static void histograms_are_summed_and_equal_errors_merged(void **s)
{
	struct ukp_hist *h, *out = malloc(sizeof(*out));
	unsigned char *mem;
	struct ukp_reader *rd = with_hists(&h, &mem);
	const uint64_t stride = sizeof(*h);
	uint64_t count;

	assert_int_equal(ukp_hist_read(rd, 4096, stride, 3, out), 0);
	assert_int_equal(out->min, UINT64_MAX);
	ukp_hist_init(&h[0]); /* the others stay as they came: zeros */
	ukp_hist_init(&h[2]);
	ukp_hist_add(&h[0], &h[0], 100, (uint64_t)-5, UKP_ERR_AUTO);
	ukp_hist_add(&h[2], &h[2], 300, (uint64_t)-6, UKP_ERR_AUTO);
	ukp_hist_add(&h[2], &h[2], 200, (uint64_t)-5, UKP_ERR_AUTO);
	h[2].err[7] = (struct ukp_hist_err){ .value = -5, .count = 1, .claimed = 2 };
	h[2].err[8] = (struct ukp_hist_err){ .value = -9, .count = 1, .claimed = 1 };
	assert_int_equal(ukp_hist_read(rd, 4096, stride, 3, out), 0);
	assert_int_equal(out->count, 3);
	assert_int_equal(ukp_hist_count(rd, 4096, stride, 3, &count), 0);
	assert_int_equal(count, 3);
	assert_int_equal(ukp_hist_count(rd, 4096, UINT64_MAX & ~7ull, 2, &count), -EINVAL);
	assert_int_equal(out->sum, 600);
	assert_int_equal(out->min, 100);
	assert_int_equal(out->max, 300);
	assert_int_equal(out->err[0].value, -5);
	assert_int_equal(out->err[0].count, 3);
	assert_int_equal(out->err[1].value, -6);
	assert_int_equal(out->err[1].count, 1);
	assert_int_equal(out->err[2].claimed, 0);
	h[2].bucket[UKP_HIST_BUCKETS - 1] = UKP_COUNT_MAX;
	assert_int_equal(ukp_hist_read(rd, 4096, stride, 3, out), -EBADMSG);
	h[2].bucket[UKP_HIST_BUCKETS - 1] = 0;
	h[2].err[7].count = UINT64_MAX;
	assert_int_equal(ukp_hist_read(rd, 4096, stride, 3, out), -EBADMSG);
	h[2].err[7].count = 0;
	h[1].errors = UINT64_MAX;
	assert_int_equal(ukp_hist_read(rd, 4096, stride, 3, out), -EBADMSG);
	h[1].errors = 0;
	assert_int_equal(ukp_hist_read(rd, 4096, stride, 3, out), 0);
	free(out);
	free(rd);
	free(mem);
}

static void a_histogram_outside_is_refused(void **s)
{
	struct ukp_hist *h, *out = malloc(sizeof(*out));
	unsigned char *mem;
	struct ukp_reader *rd = with_hists(&h, &mem);
	const uint64_t n = sizeof(*h), size = rd->geo.size;

	assert_int_equal(ukp_hist_read(rd, size - 3 * n, n, 3, out), 0);
	assert_int_equal(ukp_hist_read(rd, size - 3 * n + 8, n, 3, out), -EINVAL);
	assert_int_equal(ukp_hist_read(rd, 4100, n, 1, out), -EINVAL);
	assert_int_equal(ukp_hist_read(rd, UINT64_MAX & ~7ull, n, 1, out), -EINVAL);
	assert_int_equal(ukp_hist_read(rd, 4096, n - 8, 2, out), -EINVAL);
	assert_int_equal(ukp_hist_read(rd, 4096, UINT64_MAX & ~7ull, 2, out), -EINVAL);
	assert_int_equal(ukp_hist_read(rd, 4096, 1ull << 62, 5, out), -EINVAL);
	assert_int_equal(ukp_hist_read(rd, 4096, n, 0, out), -EINVAL);
	assert_int_equal(ukp_hist_read(rd, 4096, n, UINT32_MAX, out), -EINVAL);
	free(out);
	free(rd);
	free(mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_geometry_is_refused),
		cmocka_unit_test(counters_of_places_are_summed_over_the_shards),
		cmocka_unit_test(a_ring_that_is_not_there_has_nothing),
		cmocka_unit_test(a_peeked_record_is_the_next_one),
		cmocka_unit_test(a_copy_does_not_change_with_the_original),
		cmocka_unit_test(a_word_without_sense_costs_what_is_behind_it),
		cmocka_unit_test(an_open_record_is_waited_for_until_the_target_is_dead),
		cmocka_unit_test(patience_ends_for_one_place_only),
		cmocka_unit_test(any_head_leaves_the_reader_inside),
		cmocka_unit_test(bytes_that_change_meanwhile_do_no_harm),
		cmocka_unit_test(counters_are_summed_over_the_shards),
		cmocka_unit_test(histograms_are_summed_and_equal_errors_merged),
		cmocka_unit_test(a_histogram_outside_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
