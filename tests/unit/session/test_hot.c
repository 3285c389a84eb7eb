/* SPDX-License-Identifier: MIT */
/* Code so hot that its threads are inside the engine whenever they are looked at. */
#include "victim.h"

#define LOOKS 40
#define THREADS 2

struct hot {
	volatile long ready, stop, bad, calls;
};

static struct hot *hot;

long hot_one(long n);
long hot_two(long n);
__asm__(".text\n"
        ".globl hot_one, hot_two\n"
        ".type hot_one, @function\n"
        ".type hot_two, @function\n"
        "hot_one:\n"
        "	nop\n"
        "	lea 1(%rdi), %rax\n"
        "	ret\n"
        ".size hot_one, . - hot_one\n"
        "hot_two:\n"
        "	nop\n"
        "	lea 2(%rdi), %rax\n"
        "	ret\n"
        ".size hot_two, . - hot_two\n");

static void *run_hot(void *arg)
{
	long n, calls = 0;

	__atomic_add_fetch(&hot->ready, 1, __ATOMIC_RELAXED);
	for (n = 0; !hot->stop; n++, calls++)
		if (hot_one(hot_two(n)) != n + 3)
			hot->bad++;
	__atomic_add_fetch(&hot->calls, calls, __ATOMIC_RELAXED);
	return arg;
}

static int program(void *arg)
{
	pthread_t th[THREADS];
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&th[i], NULL, run_hot, arg))
			return 1;
	for (i = 0; i < THREADS; i++)
		pthread_join(th[i], NULL);
	return hot->bad ? 1 : 7;
}

/* In how many of LOOKS stops all threads have been outside the engine. */
static int outside(struct target *t)
{
	struct err err = ERR_INIT;
	struct grace g = { .begun = false };
	int i, n = 0;

	for (i = 0; i < LOOKS; i++) {
		nap_ms(1);
		grace_start(&g);
		g.runs = true;
		must(target_hold(t, &err), &err);
		n += grace_over(t, &g);
		target_release(t);
	}
	grace_start(&g);
	return n;
}

static uint64_t hits(const struct chan *c)
{
	const struct ukp_stat *s = (void *)((char *)c->map + UKP_CHAN_OFF_STATS);
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < c->layout.nr_shards * c->layout.nr_stats; i++)
		n += s[i].hits;
	return n;
}

/* No jumps are written here: what is asked is whether one stop is enough for them. */
static void threads_that_run_from_breakpoint_to_breakpoint_come_out_in_one_stop(void **state)
{
	struct err err = ERR_INIT;
	struct target *t;
	struct chan *c;
	uint64_t seen;
	pid_t pid;
	int n;

	hot = shared_page();
	pid = child(program, NULL);
	await_word(&hot->ready, THREADS);
	must(target_attach(&t, pid, NULL, &err), &err);
	must(chan_open(t, &c, &err), &err);
	must(add(c, "p hot_one", &err), &err);
	must(add(c, "p hot_two", &err), &err);
	must(probe_start(c, &err), &err);
	n = outside(t);
	hot->stop = 1;
	assert_int_equal(child_status(pid), 7 << 8);
	seen = hits(c);
	printf("outside in %d of %d stops, %lu hits of %ld calls\n", n, LOOKS, seen, hot->calls);
	assert_in_range(n, LOOKS * 3 / 4, LOOKS);
	assert_in_range(seen, 1, 2 * hot->calls);
	chan_close(c, &err);
	target_detach(t, &err);
	target_free(t);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			threads_that_run_from_breakpoint_to_breakpoint_come_out_in_one_stop),
	};

	setenv("UKPROBES_OPTIMIZATION", "0", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
