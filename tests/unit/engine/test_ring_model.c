/* SPDX-License-Identifier: MIT */
/*
 * Two writers and a reader of one tiny ring, stopped at each access to shared
 * memory.  A scheduler goes through the interleavings: all of them, or all
 * with a bounded number of preemptions, or random ones.  At every step that
 * wasn't visited before, the writers are killed for a trial: the reader goes
 * on alone and must find every record that was committed, whole, once.
 */
static void step(void);
#define UKP_STEP() step()
#define UKP_READER_RINGS 1
#include "engine/ring.c"
#undef NOWHERE
#define load reader_load
#define length_ok reader_length_ok
#include "wire/check_ring.c"
#undef load
#undef length_ok
#include "wire/check.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "coroutine.h"

#define WRITERS 2
#define READER WRITERS
#define RECS 3
#define CHAN 128 /* offset of the ring */
#define DEPTH 400

struct config {
	const char *name;
	unsigned int subs; /* sub-buffers, 0: 2 */
	unsigned int shift;
	unsigned int recs; /* each writer writes */
	uint32_t len[RECS];
	uint32_t before;      /* bytes written and read before it starts, 0: none */
	unsigned int polls;   /* of the live reader */
	bool impatient;       /* it passes over whatever blocks it */
	bool abandon;         /* writer 0 leaves its first record open */
	int preempt;          /* bound; -1: none */
	unsigned long random; /* schedules by chance instead */
};

enum { NONE, FLYING, COMMITTED, DROPPED, ABANDONED };

/* What a trial may change, and what goes back afterwards. */
static struct world {
	unsigned char mem[CHAN + 4096 + 256] __attribute__((aligned(64)));
	struct ukp_reader rd;
	uint8_t got[WRITERS][RECS];
	bool dead;
	unsigned int last[WRITERS];
} w, saved;

static const struct config *cfg;
static struct co co[WRITERS + 1];
static uint8_t state[WRITERS][RECS];
static uint64_t open_at[WRITERS]; /* position + 1 of the record being written */
static bool polite;               /* the running one has nothing to do now */
static uint8_t choice[DEPTH], options[DEPTH];
static int depth, fresh_from;
static unsigned long trials;

static void require(bool ok, const char *what)
{
	if (ok)
		return;
	printf("%s: %s\nschedule:", cfg->name, what);
	for (int i = 0; i < depth; i++)
		printf(" %d", choice[i]);
	printf("\n");
	fflush(stdout);
	abort();
}

static void step(void)
{
	if (co_now && !w.dead)
		co_yield ();
}

static struct ukp_ring *the_ring(void)
{
	return (struct ukp_ring *)(w.mem + CHAN);
}

static unsigned int nr_subs(void)
{
	return cfg->subs ? cfg->subs : 2;
}

static uint64_t token(int writer, unsigned int k)
{
	return 0x1111111111111111ull * (unsigned int)(writer * RECS + (int)k + 1);
}

static void fill(struct ukp_rec *rec, int writer, unsigned int k, uint32_t len)
{
	uint64_t *p = (uint64_t *)rec->payload;

	step();
	rec->event = (uint16_t)writer;
	rec->tid = k;
	rec->tsc = token(writer, k);
	step();
	for (uint32_t i = 0; i < (len - sizeof(*rec)) / 8; i++) {
		require(!p[i], "a new record is not clean");
		p[i] = token(writer, k) + i;
	}
}

/* Nobody else has a record open in an earlier lap of this sub-buffer. */
static void check_alone(int self, uint64_t pos)
{
	for (int i = 0; i < WRITERS; i++) {
		uint64_t a = pos >> cfg->shift, b = (open_at[i] - 1) >> cfg->shift;

		if (i != self && open_at[i])
			require(a == b || (a - b) % nr_subs(), "entered over an open record");
	}
}

static void writer(int self)
{
	for (unsigned int k = 0; k < cfg->recs; k++) {
		uint32_t len = cfg->len[(k + (unsigned int)self) % cfg->recs];
		struct ukp_rec *rec;
		uint64_t pos;

		state[self][k] = FLYING;
		rec = ukp_ring_reserve(the_ring(), len, &pos);
		if (!rec) {
			state[self][k] = DROPPED;
			continue;
		}
		check_alone(self, pos);
		open_at[self] = pos + 1;
		fill(rec, self, k, len);
		if (cfg->abandon && !self && !k) {
			state[self][k] = ABANDONED;
			continue;
		}
		ukp_ring_commit(the_ring(), rec, pos, len);
		open_at[self] = 0;
		state[self][k] = COMMITTED;
	}
}

static void consume(const struct ukp_rec_view *v)
{
	const uint64_t *p = (const uint64_t *)v->payload;

	require(v->event < WRITERS && v->tid < cfg->recs, "a record of nobody");
	require(v->tsc == token(v->event, v->tid), "garbled");
	require(v->len + sizeof(struct ukp_rec) == cfg->len[(v->tid + v->event) % cfg->recs],
	        "wrong length");
	for (uint32_t i = 0; i < v->len / 8; i++)
		require(p[i] == v->tsc + i, "garbled payload");
	require(!w.got[v->event][v->tid], "the same record twice");
	require(v->tid + 1 > w.last[v->event], "a writer's records out of order");
	w.last[v->event] = v->tid + 1;
	w.got[v->event][v->tid] = 1;
}

/* Reads until there is nothing; a dead target's ring has nothing but records. */
static void drain(void)
{
	const struct ukp_rec_view *v;
	enum ukp_read ret;
	int n = 0;

	while ((ret = ukp_reader_next(&w.rd, 0, &v)) == UKP_READ_RECORD) {
		consume(v);
		require(++n < 100, "the reader does not end");
	}
	require(ret == UKP_READ_NONE, "blocked by the dead");
}

static void reader(int self)
{
	const struct ukp_rec_view *v;

	for (unsigned int i = 0; i < cfg->polls && !w.dead; i++) {
		enum ukp_read ret = ukp_reader_next(&w.rd, 0, &v);

		if (ret == UKP_READ_RECORD) {
			consume(v);
			continue;
		}
		if (ret == UKP_READ_BLOCKED && cfg->impatient)
			ukp_reader_expire(&w.rd, 0);
		polite = true;
		step();
	}
}

/* After death and drain. */
static void check_dead(void)
{
	struct ukp_ring_counts c;
	unsigned int flying = 0, unseen = 0, dropped = 0, left = 0;

	ukp_reader_counts(&w.rd, 0, &c);
	for (int i = 0; i < WRITERS; i++)
		for (unsigned int k = 0; k < cfg->recs; k++) {
			flying += state[i][k] == FLYING;
			left += state[i][k] == ABANDONED;
			dropped += state[i][k] == DROPPED;
			unseen += state[i][k] == COMMITTED && !w.got[i][k];
			require(!w.got[i][k] || state[i][k] == COMMITTED || state[i][k] == FLYING,
			        "a record that was never written");
		}
	require(!c.bad, "bad bytes");
	require(c.lost >= dropped && c.lost <= dropped + flying, "wrong count of lost");
	require(c.missing <= flying + left + unseen, "more than one torn record a writer");
	require(c.missing >= left + unseen, "attempts don't add up");
	if (cfg->impatient)
		require(!unseen || c.passed, "a committed record is gone");
	else
		require(!unseen && c.passed <= 2 * flying + left, "a committed record is gone");
}

/* Without the bytes that nothing uses: this is what a trial takes its time for. */
static void copy_world(struct world *to, const struct world *from)
{
	const size_t head = CHAN + sizeof(struct ukp_ring) + 4 * sizeof(struct ukp_sub);
	const size_t data = CHAN + 4096, buf = offsetof(struct ukp_reader, rings[0].buf);

	memcpy(to->mem, from->mem, head);
	memcpy(to->mem + data, from->mem + data, sizeof(to->mem) - data);
	memcpy(&to->rd, &from->rd, buf + 128);
	memcpy(to->got, from->got, sizeof(*to) - offsetof(struct world, got));
}

/* Kill the writers here, let the reader finish, look, and undo all of it. */
static void trial(void)
{
	static unsigned char stack[CO_STACK];
	struct co *r = &co[READER];
	size_t live = (size_t)(r->stack + CO_STACK - (unsigned char *)r->sp);
	void *sp = r->sp;
	bool done = r->done, was_polite = polite;

	trials++;
	copy_world(&saved, &w);
	co_copy(stack, r->sp, live);
	w.dead = true;
	w.rd.dead = 1;
	if (!done)
		co_run(r);
	drain();
	check_dead();
	co_copy(sp, stack, live);
	r->sp = sp;
	r->done = done;
	polite = was_polite;
	copy_world(&w, &saved);
}

static void put(uint32_t len)
{
	const struct ukp_rec_view *v;
	uint64_t pos;
	struct ukp_rec *rec = ukp_ring_reserve(the_ring(), len, &pos);

	require(rec, "no room in an empty ring");
	rec->event = 99;
	ukp_ring_commit(the_ring(), rec, pos, len);
	require(ukp_reader_next(&w.rd, 0, &v) == UKP_READ_RECORD && v->event == 99,
	        "not read at once");
}

static void reset(void)
{
	struct ukp_chan *c = (struct ukp_chan *)w.mem;

	memset(&w, 0, sizeof(w));
	memset(state, 0, sizeof(state));
	memset(open_at, 0, sizeof(open_at));
	*c = (struct ukp_chan){
		.magic = UKP_CHAN_MAGIC,
		.version = UKP_CHAN_VERSION,
		.nr_shards = 1,
		.nr_rings = 1,
		.nr_subs = nr_subs(),
		.sub_shift = cfg->shift,
		.off_stats = CHAN,
		.off_hists = CHAN,
		.off_rings = CHAN,
		.ring_stride = ukp_ring_stride(nr_subs(), cfg->shift),
		.size = sizeof(w.mem),
	};
	ukp_ring_init(the_ring(), nr_subs(), cfg->shift);
	require(!ukp_reader_init(&w.rd, w.mem, sizeof(w.mem)), "init");
	for (uint32_t done = 0; done < cfg->before; done += 32)
		put(32);
	for (int i = 0; i < WRITERS; i++)
		co_start(&co[i], writer, i);
	co_start(&co[READER], reader, READER);
	co[READER].done = !cfg->polls;
	polite = false;
}

/* When all have finished: the reader gets what is left, and the ring is as good as new. */
static void finish(void)
{
	const struct ukp_rec_view *v;
	struct ukp_ring_counts c;

	for (int idle = 0; idle < 4;) {
		enum ukp_read ret = ukp_reader_next(&w.rd, 0, &v);

		if (ret == UKP_READ_RECORD)
			consume(v);
		else
			idle++;
		if (ret == UKP_READ_BLOCKED)
			ukp_reader_expire(&w.rd, 0);
	}
	ukp_reader_counts(&w.rd, 0, &c);
	if (!cfg->impatient && !cfg->abandon)
		require(!c.missing && !c.passed, "records are missing");
	for (int i = 0; i < 5; i++)
		put(i & 1 ? 32 : 40);
	require(w.rd.rings[0].quarantined <= cfg->abandon, "quarantine does not end");
	check_dead();
}

/* How many may take the next step; order[0] is the one that goes on if nobody preempts. */
static int candidates(int now, int budget, int *order)
{
	int n = 0;

	if (now >= 0 && !co[now].done && !polite)
		order[n++] = now;
	if (n && !budget)
		return n;
	for (int i = 0; i <= WRITERS; i++)
		if (!co[i].done && i != now)
			order[n++] = i;
	if (now >= 0 && !co[now].done && polite)
		order[n++] = now;
	return n;
}

/* One schedule: choice[0..fresh_from) is given, then the first option, or chance. */
static void run(int given)
{
	int now = -1, budget = cfg->preempt, order[WRITERS + 1], n;

	reset();
	fresh_from = given;
	for (depth = 0; (n = candidates(now, budget, order)) > 0; depth++) {
		require(depth < DEPTH, "schedule too long");
		if (depth >= given)
			choice[depth] = 0;
		if (cfg->random)
			choice[depth] = rand() % 4 ? 0 : (uint8_t)(rand() % n);
		options[depth] = (uint8_t)n;
		if (now >= 0 && order[0] == now && choice[depth] && budget > 0 && !polite)
			budget--;
		now = order[choice[depth]];
		polite = false;
		co_run(&co[now]);
		if (depth + 1 >= given)
			trial();
	}
	finish();
}

static void explore(const struct config *c)
{
	unsigned long n = 0;
	int given = 0;

	cfg = c;
	trials = 0;
	srand(1);
	do {
		run(given);
		n++;
		for (given = depth; given > 0; given--)
			if (choice[given - 1] + 1 < options[given - 1])
				break;
		if (given)
			choice[given - 1]++;
	} while (c->random ? n < c->random : given > 0);
	print_message("%s: %lu schedules, %lu kills\n", c->name, n, trials);
}

static void any_two_first_records_survive_a_kill_anywhere(void **s)
{
	explore(&(struct config){ .name = "7 preemptions, one sub-buffer",
	                          .shift = 7,
	                          .recs = 1,
	                          .len = { 40 },
	                          .preempt = 7 });
}

static void any_two_records_at_a_border_survive_a_kill_anywhere(void **s)
{
	explore(&(struct config){ .name = "all, at a border",
	                          .shift = 6,
	                          .recs = 1,
	                          .len = { 40 },
	                          .before = 32,
	                          .preempt = -1 });
}

static void two_writers_and_a_reader_lose_nothing(void **s)
{
	explore(&(struct config){ .name = "3 preemptions, 64",
	                          .shift = 6,
	                          .recs = 2,
	                          .len = { 32, 40 },
	                          .polls = 2,
	                          .preempt = 3 });
	explore(&(struct config){ .name = "2 preemptions, 128",
	                          .shift = 7,
	                          .recs = 3,
	                          .len = { 64, 24, 40 },
	                          .polls = 4,
	                          .preempt = 2 });
}

static void a_reader_without_patience_reads_nothing_wrong(void **s)
{
	explore(&(struct config){ .name = "2 preemptions, impatient",
	                          .shift = 6,
	                          .recs = 3,
	                          .len = { 24, 32, 64 },
	                          .polls = 4,
	                          .impatient = true,
	                          .preempt = 2 });
}

static void a_writer_that_abandons_a_record_harms_no_other(void **s)
{
	explore(&(struct config){ .name = "2 preemptions, abandoned",
	                          .subs = 4,
	                          .shift = 6,
	                          .recs = 2,
	                          .len = { 32, 24 },
	                          .polls = 4,
	                          .impatient = true,
	                          .abandon = true,
	                          .preempt = 2 });
}

static void random_schedules_keep_all_rules(void **s)
{
	explore(&(struct config){ .name = "random, patient",
	                          .shift = 6,
	                          .recs = 3,
	                          .len = { 24, 32, 40 },
	                          .polls = 12,
	                          .preempt = -1,
	                          .random = 60000 });
	explore(&(struct config){ .name = "random, impatient",
	                          .subs = 4,
	                          .shift = 6,
	                          .recs = 3,
	                          .len = { 64, 40, 24 },
	                          .polls = 12,
	                          .preempt = -1,
	                          .impatient = true,
	                          .abandon = true,
	                          .random = 60000 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_two_first_records_survive_a_kill_anywhere),
		cmocka_unit_test(any_two_records_at_a_border_survive_a_kill_anywhere),
		cmocka_unit_test(two_writers_and_a_reader_lose_nothing),
		cmocka_unit_test(a_reader_without_patience_reads_nothing_wrong),
		cmocka_unit_test(a_writer_that_abandons_a_record_harms_no_other),
		cmocka_unit_test(random_schedules_keep_all_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
