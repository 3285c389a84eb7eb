/* SPDX-License-Identifier: MIT */
/*
 * The table of frames: every interleaving of two threads on a tiny one (stopped
 * at each access to shared memory, bounded preemptions), then real threads and
 * signals, then the pair of entry and exit.
 */
static void step(void);
#define UKP_STEP() step()
#include "engine/frames.c"

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

static struct co co[2];
static bool modelling;

static void step(void)
{
	if (modelling && co_now)
		co_yield ();
}

/* --- the model -------------------------------------------------------------- */

#define N 16
#define KEYS 4
#define DEPTH 400

/*
 * a: a call of key a begins; A: it ends at an exit; -: all calls of this thread
 * that are on their way are left by longjmp; s: a look at both buckets.
 */
static const char *script[2];

static union {
	struct ukp_frames t;
	unsigned char bytes[sizeof(struct ukp_frames) + 2 * sizeof(struct ukp_frames_bucket) +
	                    N * sizeof(struct ukp_instance)];
} table;
static enum { FREE, LIVE, DEAD, OWNED } state[N];
static unsigned int swept, stales;

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	printf("%s (scripts %s, %s)\n", what, script[0], script[1]);
	fflush(stdout);
	abort();
}

/* Keys that nothing tells apart but the record: of one bucket and one tag. */
static uint64_t key(char c)
{
	static uint64_t found[KEYS];

	for (uint64_t frame = 0x7000, n = 0; !found[KEYS - 1]; frame += 8)
		if (!((frames_hash(frame, 1) ^ frames_hash(0x7000, 1)) & 0x1ffff00))
			found[n++] = frame;
	return found[c - 'a'];
}

static unsigned int place_of(const struct ukp_instance *inst)
{
	return (unsigned int)(inst - frames_records(&table.t));
}

static bool model_is_dead(const struct ukp_instance *inst, void *arg)
{
	return state[place_of(inst)] == DEAD;
}

static void begin_call(char c, struct ukp_instance **mine)
{
	bool stale;
	struct ukp_instance *inst = ukp_frames_claim(&table.t, key(c), 1, &stale);

	must(inst != NULL, "no room");
	must(state[place_of(inst)] == (stale ? DEAD : FREE), "a claim took what was somebody's");
	must(!stale || inst->frame == key(c), "a record is stale for another key");
	stales += stale;
	state[place_of(inst)] = OWNED;
	step();
	inst->frame = key(c);
	step();
	inst->key = 1;
	state[place_of(inst)] = LIVE; /* it will be, before anybody else can look */
	ukp_frames_publish(&table.t, inst);
	*mine = inst;
}

static void give_back(struct ukp_instance *inst)
{
	state[place_of(inst)] = OWNED;
	step();
	must(state[place_of(inst)] == OWNED, "two owners");
	state[place_of(inst)] = FREE;
	ukp_frames_free(&table.t, inst);
}

static void end_call(char c, struct ukp_instance **mine)
{
	struct ukp_instance *inst = ukp_frames_take(&table.t, key(c), 1);

	must(inst == *mine, "an exit didn't find its entry");
	must(state[place_of(inst)] == LIVE, "an exit found a dead entry");
	give_back(inst);
	*mine = NULL;
}

static void look(void)
{
	for (uint64_t w = 0, seen = 0; seen != 3; w++) {
		uint64_t b = frames_hash(w, 0) >> 24 & 1;
		struct ukp_instance *inst;

		if (seen >> b & 1)
			continue;
		seen |= 1ULL << b;
		inst = ukp_frames_sweep(&table.t, w, model_is_dead, NULL);
		if (!inst)
			continue;
		must(state[place_of(inst)] == DEAD, "a live record was swept");
		swept++;
		give_back(inst);
	}
}

static void actor(int self)
{
	struct ukp_instance *mine[KEYS] = { NULL };

	for (const char *p = script[self]; *p; p++) {
		if (*p >= 'a' && *p < 'a' + KEYS) {
			begin_call(*p, &mine[*p - 'a']);
		} else if (*p >= 'A' && *p < 'A' + KEYS) {
			end_call((char)(*p + 32), &mine[*p - 'A']);
		} else if (*p == 's') {
			look();
		} else {
			for (int i = 0; i < KEYS; i++) {
				if (mine[i])
					state[place_of(mine[i])] = DEAD;
				mine[i] = NULL;
			}
		}
	}
}

static void start_model(void)
{
	memset(&table, 0, sizeof(table));
	memset(state, 0, sizeof(state));
	ukp_frames_init(&table.t, 1);
	must(table.t.mask == 1 && ukp_frames_size(1) == sizeof(table), "two buckets");
}

/* Nothing is left but what is dead, and that can be swept. */
static void end_model(void)
{
	for (int i = 0; i < N; i++)
		look();
	for (unsigned int i = 0; i < N; i++) {
		must(state[i] == FREE, "a record is gone");
		must(!table.t.bucket[i / UKP_FRAMES_WORDS].word[i % UKP_FRAMES_WORDS],
		     "a word is left");
	}
}

static int run(uint8_t *choice, uint8_t *options, int given, int budget)
{
	int depth = 0, now = 0;

	start_model();
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
	end_model();
	return depth;
}

static void explore(const char *a, const char *b, int budget)
{
	static uint8_t choice[DEPTH], options[DEPTH];
	unsigned long runs = 0;
	int given = 0;

	script[0] = a;
	script[1] = b;
	swept = stales = 0;
	modelling = true;
	do {
		int depth = run(choice, options, given, budget);

		runs++;
		while (depth && choice[depth - 1] + 1 >= options[depth - 1])
			depth--;
		if (depth)
			choice[depth - 1]++;
		given = depth;
	} while (given);
	modelling = false;
	printf("%s | %s: %lu schedules, %u swept, %u stale\n", a, b, runs, swept, stales);
}

static void each_exit_finds_its_entry_in_any_interleaving(void **state)
{
	explore("abBA", "cdDC", 2);
	explore("aAaA", "cCcC", 2);
	assert_int_equal(swept + stales, 0);
}

static void records_that_are_left_behind_come_out_once(void **state)
{
	explore("ab-s", "cCs", 2);
	assert_true(swept > 0);
	explore("a-aA", "ss", 3);
	assert_true(swept > 0 && stales > 0);
	/* The word is as it was when it was dead, but for gen. */
	explore("a-abABaA", "s", 3);
	assert_true(swept > 0 && stales > 0);
	explore("ab-abBA", "sss", 2);
	assert_true(swept > 0 && stales > 0);
}

/* --- threads and signals -------------------------------------------------------- */

#define THREADS 4
#define MANY 4096
#define STACK_WORDS 256
#define STUBBED 64

struct worker {
	pthread_t thread;
	uint64_t *stack; /* frames are words of it, as of a real one */
	uint64_t seed;
	uint64_t calls, returns, dropped, no_room;
	volatile uint64_t *sp;
	bool handling; /* a signal: no longjmp over what was interrupted */
	volatile int handled, to_handle;
	jmp_buf out;
};

static struct ukp_ctl ctl;
static unsigned char *memory;
static __thread struct worker *self;

static uint64_t rnd(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* The action of a record: once at its exit, or once where it is dropped. */
static int at_return(struct ukp_hit *hit, uint64_t ctx)
{
	struct worker *w = (struct worker *)ctx;

	if (hit->flags & UKP_HIT_UNWOUND) {
		__atomic_fetch_add(&w->dropped, 1, __ATOMIC_RELAXED);
		return 0;
	}
	if (hit->regs->ip != hit->inst->data[0] || hit->regs->sp != hit->inst->frame + 8)
		abort();
	__atomic_fetch_add(&w->returns, 1, __ATOMIC_RELAXED);
	return 0;
}

static struct ukp_hit a_hit(struct pt_regs *regs, struct ukp_site *site, uint64_t *sp)
{
	regs->sp = (uint64_t)sp;
	return (struct ukp_hit){ .ctl = &ctl,
		                 .site = site,
		                 .regs = regs,
		                 .tsc = ukp_arch_clock(),
		                 .cpu = ukp_arch_cpu(&ctl) };
}

/* Each return address differs, so that a record of another call is found out. */
static bool enter(struct worker *w, uint64_t *sp, uint64_t addr)
{
	struct ukp_site site = { .addr = 0x1000 };
	struct pt_regs regs = { 0 };
	struct ukp_hit hit = a_hit(&regs, &site, sp);
	struct ukp_instance *in;
	enum ukp_miss why;

	*(volatile uint64_t *)sp = addr;
	in = ukp_frame_get(&hit, at_return, (uint64_t)w, &why);
	if (!in)
		return false;
	in->data[0] = addr;
	ukp_frame_hook(&hit, in);
	return true;
}

static void leave(struct worker *w, uint64_t *sp)
{
	struct ukp_site site = { .addr = 0x1010 };
	struct pt_regs regs = { .ip = 77 };
	struct ukp_hit hit = a_hit(&regs, &site, sp);

	ukp_exit_hit(&hit, (uint64_t)w);
	if (regs.ip != 77 || regs.sp != (uint64_t)sp)
		abort();
}

static void call(struct worker *w, uint64_t *sp, int depth)
{
	uint64_t what = rnd(&w->seed), before;
	uint64_t *frame = sp - 1 - what % 3;
	volatile uint64_t *const above = w->sp;

	w->sp = frame;
	__atomic_fetch_add(&w->calls, 1, __ATOMIC_RELAXED);
	if (!enter(w, frame, what | 1)) {
		__atomic_fetch_add(&w->no_room, 1, __ATOMIC_RELAXED);
		w->sp = above;
		return;
	}
	for (int i = 1; !(what >> 16 & 3) && i <= 4; i++) /* locals, where calls had been */
		*(volatile uint64_t *)(frame - i) = 0;
	for (int i = 0; depth && i < (int)(what >> 8 & 1) + 1; i++)
		call(w, frame, depth - 1);
	if ((what >> 20) % 61 == 0 && !w->handling)
		longjmp(w->out, 1);
	before = __atomic_load_n(&w->returns, __ATOMIC_RELAXED);
	leave(w, frame);
	if (__atomic_load_n(&w->returns, __ATOMIC_RELAXED) == before)
		abort();
	w->sp = above;
}

static void in_signal(int sig)
{
	/* Below the red zone and whatever the interrupted call is about to write. */
	if (!self || self->handling)
		return;
	self->handling = true;
	call(self, (uint64_t *)self->sp - 16, 1);
	self->handling = false;
	self->handled++;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	volatile int rounds = 0;

	self = w;
	while (rounds++ < 6000 || w->handled < w->to_handle) {
		w->sp = w->stack + STACK_WORDS;
		if (!setjmp(w->out))
			call(w, w->stack + STACK_WORDS, 5);
	}
	self = NULL;
	return NULL;
}

static void make_ctl(uint32_t n)
{
	const uint64_t off_frames = (sizeof(struct ukp_priv) + 63) & ~63ull;
	const uint64_t off_stubbed = off_frames + ukp_frames_size(n);
	const uint64_t size = off_stubbed + STUBBED * sizeof(struct ukp_instance);
	struct ukp_priv *priv;

	memory = aligned_alloc(4096, (size + 4095) & ~4095ull);
	assert_non_null(memory);
	memset(memory, 0, size);
	priv = (struct ukp_priv *)memory;
	priv->alive = 1;
	priv->off_frames = off_frames;
	priv->off_instances = off_stubbed;
	ukp_frames_init((struct ukp_frames *)(memory + off_frames), n);
	ctl = (struct ukp_ctl){ .priv = (uint64_t)memory,
		                .stubs = 0xffff000000000000,
		                .stub_chunk = 1 << 20,
		                .stubs_per_chunk = (1 << 20) / UKP_STUB_SIZE,
		                .nr_instances = STUBBED };
}

static struct ukp_frames *frames(const struct ukp_ctl *c)
{
	struct ukp_priv *priv = (struct ukp_priv *)c->priv;

	return (struct ukp_frames *)((char *)priv + priv->off_frames);
}

/* Places that aren't free. */
static uint32_t still_in(void)
{
	struct ukp_frames *t = frames(&ctl);
	uint32_t n = 0;

	for (uint32_t i = 0; i <= t->mask; i++)
		for (int k = 0; k < UKP_FRAMES_WORDS; k++) {
			n += t->bucket[i].word[k] != 0;
			assert_int_not_equal(STATE(t->bucket[i].word[k]), UKP_FRAME_CLAIMED);
		}
	return n;
}

static void check_workers(struct worker *w, int n)
{
	uint64_t calls = 0, accounted = 0, returns = 0, dropped = 0;
	const uint32_t in = still_in();

	for (int i = 0; i < n; i++) {
		calls += w[i].calls;
		returns += w[i].returns;
		dropped += w[i].dropped;
		accounted += w[i].returns + w[i].dropped + w[i].no_room;
	}
	printf("%lu calls: %lu returned, %lu dropped, %u left behind\n", calls, returns, dropped,
	       in);
	assert_int_equal(calls, accounted + in);
	assert_true(dropped > 100);
	/* A key for each word of the stacks and no more. */
	assert_true(in <= (uint32_t)n * STACK_WORDS);
	free(memory);
}

static void calls_of_many_threads_find_their_records(void **state)
{
	static struct worker w[THREADS];

	make_ctl(MANY);
	memset(w, 0, sizeof(w));
	for (int i = 0; i < THREADS; i++) {
		w[i].seed = 88172645463325252UL + (uint64_t)i;
		w[i].stack = calloc(STACK_WORDS, 8);
		assert_non_null(w[i].stack);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(w[i].thread, NULL);
	check_workers(w, THREADS);
	for (int i = 0; i < THREADS; i++)
		free(w[i].stack);
}

static void calls_in_signal_handlers_find_theirs(void **state)
{
	static struct worker w;
	struct itimerval every = { { 0, 50 }, { 0, 50 } }, off = { 0 };
	struct sigaction sa = { .sa_handler = in_signal }, old;

	make_ctl(MANY);
	memset(&w, 0, sizeof(w));
	w.seed = 1234567;
	w.to_handle = 1000;
	w.stack = calloc(STACK_WORDS, 8);
	assert_non_null(w.stack);
	sigaction(SIGALRM, &sa, &old);
	setitimer(ITIMER_REAL, &every, NULL);
	work(&w);
	setitimer(ITIMER_REAL, &off, NULL);
	sigaction(SIGALRM, &old, NULL);
	check_workers(&w, 1);
	free(w.stack);
}

/* --- the pair ------------------------------------------------------------------ */

static struct {
	int hits, unwound;
	uint64_t ip, sp, func, data;
} seen;

static int look_at_return(struct ukp_hit *hit, uint64_t ctx)
{
	if (hit->flags & UKP_HIT_UNWOUND) {
		seen.unwound++;
		return 0;
	}
	seen.hits++;
	seen.ip = hit->regs->ip;
	seen.sp = hit->regs->sp;
	seen.func = hit->inst->func;
	seen.data = hit->inst->data[0];
	hit->regs->ax += ctx;
	return 0;
}

static uint64_t words[64];

/* False, with the reason in *why. */
static bool entry(int frame, uint64_t ctx, uint64_t data, enum ukp_miss *why)
{
	struct ukp_site site = { .addr = 0x4000 };
	struct pt_regs regs = { 0 };
	struct ukp_hit hit = a_hit(&regs, &site, &words[frame]);
	struct ukp_instance *in = ukp_frame_get(&hit, look_at_return, ctx, why);

	if (!in)
		return false;
	in->data[0] = data;
	ukp_frame_hook(&hit, in);
	return true;
}

static uint64_t leave_at(int frame, uint64_t ctx)
{
	struct ukp_site site = { .addr = 0x4020 };
	struct pt_regs regs = { .ip = 0x4020, .ax = 1000 };
	struct ukp_hit hit = a_hit(&regs, &site, &words[frame]);

	assert_int_equal(ukp_exit_hit(&hit, ctx), 0);
	assert_int_equal(regs.ip, 0x4020);
	assert_ptr_equal(regs.sp, &words[frame]);
	assert_null(hit.inst);
	return regs.ax;
}

static int fresh(void **state)
{
	make_ctl(64);
	memset(&seen, 0, sizeof(seen));
	for (int i = 0; i < 64; i++)
		words[i] = 0x5000 + (uint64_t)i;
	return 0;
}

static int stale(void **state)
{
	free(memory);
	return 0;
}

static void the_exit_has_what_the_entry_left(void **state)
{
	enum ukp_miss why;

	assert_true(entry(9, 5, 123, &why));
	assert_true(entry(9, 7, 124, &why)); /* somebody else's probe of the same call */
	assert_true(entry(4, 5, 125, &why)); /* a nested call */
	assert_int_equal(leave_at(4, 5), 1005);
	assert_int_equal(seen.data, 125);
	assert_int_equal(leave_at(9, 5), 1005);
	assert_int_equal(seen.data, 123);
	assert_int_equal(seen.ip, 0x5009);
	assert_ptr_equal(seen.sp, &words[10]);
	assert_int_equal(seen.func, 0x4000);
	assert_int_equal(leave_at(9, 7), 1007);
	assert_int_equal(seen.data, 124);
	assert_int_equal(seen.hits, 3);
	assert_int_equal(seen.unwound, 0);
	assert_int_equal(still_in(), 0);
}

static void a_return_that_pops_arguments_shows_sp_behind_them(void **state)
{
	static const uint8_t code[][4] = { { 0xc2, 0x18, 0x02 }, { 0xf2, 0xc2, 0x18, 0x02 } };
	enum ukp_miss why;

	for (size_t i = 0; i < 2; i++) {
		struct ukp_site site = { .addr = 0x4020 };
		struct pt_regs regs = { .ip = 0x4020 };
		struct ukp_hit hit = a_hit(&regs, &site, &words[3]);

		memcpy(site.orig, code[i], sizeof(code[i]));
		assert_true(entry(3, 5, 1, &why));
		ukp_exit_hit(&hit, 5);
		assert_int_equal(seen.sp, (uint64_t)&words[4] + 0x218);
		assert_ptr_equal(regs.sp, &words[3]);
	}
}

static void an_exit_without_an_entry_is_none(void **state)
{
	enum ukp_miss why;

	assert_int_equal(leave_at(3, 5), 1000);
	assert_true(entry(3, 5, 1, &why));
	assert_int_equal(leave_at(3, 6), 1000);
	assert_int_equal(leave_at(2, 5), 1000);
	assert_int_equal(leave_at(3, 5), 1005);
	assert_int_equal(leave_at(3, 5), 1000);
	assert_int_equal(seen.hits, 1);
}

static void a_call_in_the_frame_of_one_that_was_left_drops_it(void **state)
{
	enum ukp_miss why;

	for (int i = 0; i < 1000; i++)
		assert_true(entry(3, 5, (uint64_t)i, &why));
	assert_int_equal(seen.unwound, 999);
	assert_int_equal(leave_at(3, 5), 1005);
	assert_int_equal(seen.data, 999);
	assert_int_equal(still_in(), 0);
}

static void a_call_whose_word_was_overwritten_is_dropped_by_others(void **state)
{
	enum ukp_miss why;

	assert_true(entry(3, 5, 1, &why));
	assert_true(entry(20, 5, 2, &why));
	words[3] = 0; /* it was left, and the stack has been used since */
	for (int i = 0; i < 100000 && !seen.unwound; i++) {
		assert_true(entry(30, 5, 3, &why));
		leave_at(30, 5);
	}
	assert_int_equal(seen.unwound, 1);
	assert_int_equal(leave_at(3, 5), 1000);
	assert_int_equal(leave_at(20, 5), 1005);
}

static void a_stub_in_the_frame_stands_for_its_owner_s_return_address(void **state)
{
	struct ukp_priv *priv = (struct ukp_priv *)memory;
	struct ukp_instance *owner = (struct ukp_instance *)(memory + priv->off_instances) + 60;
	enum ukp_miss why;

	owner->ret_addr = 0x9999;
	words[3] = ukp_ctl_stub(&ctl, 60);
	assert_true(entry(3, 5, 1, &why));
	for (int i = 0; i < 1000; i++) { /* it isn't dead, with the stub and without */
		assert_true(entry(30, 5, 3, &why));
		leave_at(30, 5);
		words[3] = i & 1 ? 0x9999 : ukp_ctl_stub(&ctl, 60);
	}
	assert_int_equal(seen.unwound, 0);
	assert_int_equal(leave_at(3, 5), 1005);
	assert_int_equal(seen.ip, 0x9999);
}

static bool has_key(const struct ukp_instance *inst, void *arg)
{
	return inst->key == *(uint64_t *)arg;
}

static void records_are_dropped_by_what_they_are(void **state)
{
	struct pt_regs regs = { 0 };
	struct ukp_site site = { .addr = 0x4000 };
	struct ukp_hit hit = a_hit(&regs, &site, &words[0]);
	enum ukp_miss why;
	uint64_t key = 5;

	/* More than there is room for in the first buckets. */
	for (int i = 0; i < 60; i++)
		assert_true(entry(i, i % 2 ? 5 : 7, (uint64_t)i, &why));
	ukp_frames_drop(&hit, 3, UINT64_MAX, has_key, &key);
	assert_int_equal(seen.unwound, 30);
	assert_int_equal(still_in(), 30);
	for (int i = 0; i < 60; i++)
		assert_int_equal(leave_at(i, i % 2 ? 5 : 7), i % 2 ? 1000 : 1007);
	assert_int_equal(seen.hits, 30);
}

static void a_declined_call_leaves_nothing(void **state)
{
	struct ukp_site site = { .addr = 0x4000 };
	struct pt_regs regs = { 0 };
	struct ukp_hit hit = a_hit(&regs, &site, &words[3]);
	enum ukp_miss why;

	ukp_frame_put(&ctl, ukp_frame_get(&hit, look_at_return, 5, &why));
	assert_int_equal(leave_at(3, 5), 1000);
	assert_int_equal(still_in(), 0);
}

/* Keys that all belong into one bucket. */
static void what_has_no_room_is_a_miss(void **state)
{
	static uint64_t ctx[2 * UKP_FRAMES_WORDS + 1];
	const uint64_t mask = frames(&ctl)->mask;
	enum ukp_miss why;
	unsigned int n = 0;

	for (uint64_t c = 1; n < 2 * UKP_FRAMES_WORDS + 1; c++)
		if ((frames_hash((uint64_t)&words[3], c) >> 24 & mask) == 1)
			ctx[n++] = c;
	for (unsigned int i = 0; i < n - 1; i++) {
		assert_true(entry(3, ctx[i], i, &why));
		assert_int_equal(frames(&ctl)->spilled, i >= UKP_FRAMES_WORDS);
	}
	assert_false(entry(3, ctx[n - 1], 1, &why));
	assert_int_equal(why, UKP_MISS_ARENA);
	for (unsigned int i = 0; i < n - 1; i++) {
		assert_int_equal(leave_at(3, ctx[i]), 1000 + ctx[i]);
		assert_int_equal(seen.data, i);
	}
	assert_int_equal(leave_at(3, ctx[n - 1]), 1000);
	assert_int_equal(still_in(), 0);
}

/* The bucket has room again, but the record is in the next one. */
static void a_record_in_the_next_bucket_is_found(void **state)
{
	const uint64_t mask = frames(&ctl)->mask;
	uint64_t ctx[UKP_FRAMES_WORDS + 1];
	enum ukp_miss why;
	unsigned int n = 0;

	for (uint64_t c = 1; n < UKP_FRAMES_WORDS + 1; c++)
		if ((frames_hash((uint64_t)&words[3], c) >> 24 & mask) == 1)
			ctx[n++] = c;
	for (unsigned int i = 0; i < n; i++)
		assert_true(entry(3, ctx[i], i, &why));
	for (unsigned int i = 0; i < n - 1; i++)
		leave_at(3, ctx[i]);
	assert_int_equal(still_in(), 1);
	assert_true(entry(3, ctx[n - 1], 77, &why)); /* the earlier one is stale */
	assert_int_equal(seen.unwound, 1);
	assert_int_equal(leave_at(3, ctx[n - 1]), 1000 + ctx[n - 1]);
	assert_int_equal(seen.data, 77);
	assert_int_equal(still_in(), 0);
}

/* Few calls at a time stay where few pages are touched; many have room all the same. */
static void calls_beyond_the_first_buckets_are_found(void **state)
{
	const uint64_t near = UKP_FRAMES_NEAR * UKP_FRAMES_WORDS, n = 8 * near;
	struct ukp_frames *t;
	enum ukp_miss why;

	make_ctl(4 * n);
	t = frames(&ctl);
	for (uint64_t c = 1; c <= n; c++) {
		assert_true(entry(3, c, c, &why));
		for (uint32_t i = UKP_FRAMES_NEAR; !t->spilled && i <= t->mask; i++)
			for (int k = 0; k < UKP_FRAMES_WORDS; k++)
				assert_int_equal(t->bucket[i].word[k], 0);
	}
	assert_true(t->spilled);
	assert_int_equal(still_in(), n);
	for (uint64_t c = n; c; c--) {
		assert_int_equal(leave_at(3, c), 1000 + c);
		assert_int_equal(seen.data, c);
	}
	assert_int_equal(still_in(), 0);
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_exit_finds_its_entry_in_any_interleaving),
		cmocka_unit_test(records_that_are_left_behind_come_out_once),
		cmocka_unit_test(calls_of_many_threads_find_their_records),
		cmocka_unit_test(calls_in_signal_handlers_find_theirs),
		cmocka_unit_test_setup_teardown(the_exit_has_what_the_entry_left, fresh, stale),
		cmocka_unit_test_setup_teardown(a_return_that_pops_arguments_shows_sp_behind_them,
		                                fresh, stale),
		cmocka_unit_test_setup_teardown(an_exit_without_an_entry_is_none, fresh, stale),
		cmocka_unit_test_setup_teardown(a_call_in_the_frame_of_one_that_was_left_drops_it,
		                                fresh, stale),
		cmocka_unit_test_setup_teardown(
			a_call_whose_word_was_overwritten_is_dropped_by_others, fresh, stale),
		cmocka_unit_test_setup_teardown(
			a_stub_in_the_frame_stands_for_its_owner_s_return_address, fresh, stale),
		cmocka_unit_test_setup_teardown(records_are_dropped_by_what_they_are, fresh, stale),
		cmocka_unit_test_setup_teardown(a_declined_call_leaves_nothing, fresh, stale),
		cmocka_unit_test_setup_teardown(what_has_no_room_is_a_miss, fresh, stale),
		cmocka_unit_test_setup_teardown(a_record_in_the_next_bucket_is_found, fresh, stale),
		cmocka_unit_test(calls_beyond_the_first_buckets_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
