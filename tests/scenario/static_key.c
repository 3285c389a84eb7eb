/* SPDX-License-Identifier: MIT */
/* Static keys: kinds and states, counting, live changes under threads and signals, probes. */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <ukprobes/jump_label.h>

#include "scenario.h"

#define CONFIG_SET 1

static DEFINE_STATIC_KEY_FALSE(off_key);
static DEFINE_STATIC_KEY_TRUE(on_key);
DEFINE_STATIC_KEY_FALSE_RO(off_ro);
DEFINE_STATIC_KEY_TRUE_RO(on_ro);
DECLARE_STATIC_KEY_TRUE(on_ro);
DECLARE_STATIC_KEY_MAYBE(CONFIG_SET, maybe_set);
DEFINE_STATIC_KEY_MAYBE(CONFIG_SET, maybe_set);
DEFINE_STATIC_KEY_MAYBE(CONFIG_UNSET, maybe_unset);
DEFINE_STATIC_KEY_ARRAY_FALSE(off_array, 3);
DEFINE_STATIC_KEY_ARRAY_TRUE(on_array, 3);
static struct static_key old_key = STATIC_KEY_INIT;
static struct static_key_false unused;

TARGET int test_off(void)
{
	int n = 0;

	if (static_branch_unlikely(&off_key))
		n |= 1;
	if (static_branch_likely(&off_key))
		n |= 2;
	return n;
}

TARGET int test_on(void)
{
	int n = 0;

	if (static_branch_unlikely(&on_key))
		n |= 1;
	if (static_branch_likely(&on_key))
		n |= 2;
	return n;
}

TARGET int test_rest(void)
{
	int n = 0;

	n |= static_branch_unlikely(&off_ro) ? 1 : 0;
	n |= static_branch_unlikely(&on_ro) ? 2 : 0;
	n |= static_branch_maybe(CONFIG_SET, &maybe_set) ? 4 : 0;
	n |= static_branch_maybe(CONFIG_UNSET, &maybe_unset) ? 8 : 0;
	n |= static_branch_unlikely(&off_array[2]) ? 16 : 0;
	n |= static_branch_likely(&on_array[1]) ? 32 : 0;
	n |= static_key_false(&old_key) ? 64 : 0;
	return n;
}

static void tests_follow_their_keys(void **state)
{
	assert_int_equal(test_off(), 0);
	assert_int_equal(test_on(), 3);
	register_ok(static_branch_enable(&off_key));
	register_ok(static_branch_disable(&on_key));
	assert_int_equal(test_off(), 3);
	assert_int_equal(test_on(), 0);
	assert_true(static_key_enabled(&off_key));
	assert_false(static_key_enabled(&on_key));
	register_ok(static_branch_disable(&off_key));
	register_ok(static_branch_enable(&on_key));
	assert_int_equal(test_off(), 0);
	assert_int_equal(test_on(), 3);
}

static void each_kind_of_key_starts_as_it_says(void **state)
{
	assert_int_equal(test_rest(), 2 | 4 | 32);
	register_ok(static_branch_enable(&off_ro));
	register_ok(static_branch_disable(&on_ro));
	register_ok(static_branch_disable(&maybe_set));
	register_ok(static_branch_enable(&maybe_unset));
	register_ok(static_branch_enable(&off_array[2]));
	register_ok(static_branch_disable(&on_array[1]));
	assert_true(static_key_slow_inc(&old_key));
	assert_int_equal(test_rest(), 1 | 8 | 16 | 64);
	assert_true(static_key_enabled(&old_key));
	register_ok(static_branch_disable(&off_ro));
	register_ok(static_branch_enable(&on_ro));
	register_ok(static_branch_enable(&maybe_set));
	register_ok(static_branch_disable(&maybe_unset));
	register_ok(static_branch_disable(&off_array[2]));
	register_ok(static_branch_enable(&on_array[1]));
	assert_int_equal(static_key_slow_dec(&old_key), 0);
	assert_int_equal(test_rest(), 2 | 4 | 32);
	register_ok(static_branch_enable(&unused));
	assert_true(static_key_enabled(&unused));
	register_ok(static_branch_disable(&unused));
}

static void counting_changes_code_at_the_first_and_the_last(void **state)
{
	struct static_key *key = &off_key.key;

	assert_false(static_key_fast_inc_not_disabled(key));
	assert_int_equal(static_key_count(key), 0);
	assert_true(static_branch_inc(&off_key));
	assert_int_equal(test_off(), 3);
	assert_true(static_branch_inc(&off_key));
	assert_true(static_key_fast_inc_not_disabled(key));
	assert_int_equal(static_key_count(key), 3);
	assert_int_equal(static_branch_dec(&off_key), 0);
	assert_int_equal(static_branch_dec(&off_key), 0);
	assert_int_equal(test_off(), 3);
	assert_int_equal(static_branch_dec(&off_key), 0);
	assert_int_equal(test_off(), 0);
	assert_int_equal(static_key_count(key), 0);
}

static void what_the_kernel_warns_of_is_an_error(void **state)
{
	assert_int_equal(static_branch_dec(&off_key), -EINVAL);
	assert_int_equal(static_branch_disable(&off_key), 0);
	assert_int_equal(static_branch_enable(&on_key), 0);
	assert_true(static_branch_inc(&on_key));
	assert_int_equal(static_branch_enable(&on_key), -EINVAL);
	assert_int_equal(static_branch_disable(&on_key), -EINVAL);
	assert_non_null(strstr(ukp_kprobe_error(), "counted"));
	assert_int_equal(static_key_count(&on_key.key), 2);
	assert_int_equal(static_branch_dec(&on_key), 0);
	on_key.key.enabled = __INT_MAX__;
	assert_false(static_branch_inc(&on_key));
	assert_int_equal(static_key_count(&on_key.key), __INT_MAX__);
	on_key.key.enabled = 1;
}

static DEFINE_STATIC_KEY_DEFERRED_FALSE(later, 30);
static DEFINE_STATIC_KEY_DEFERRED_TRUE(later_on, 3600000);
static struct static_key_deferred bare;

TARGET int test_later(void)
{
	return (static_branch_unlikely(&later.key) ? 1 : 0) |
	       (static_branch_likely(&later_on.key) ? 2 : 0) |
	       (static_key_false(&bare.key) ? 4 : 0);
}

static void a_deferred_key_goes_off_later_or_when_it_is_flushed(void **state)
{
	struct timespec ms = { .tv_nsec = 1000000 };

	assert_int_equal(test_later(), 2);
	assert_true(static_branch_deferred_inc(&later));
	assert_true(static_branch_deferred_inc(&later));
	assert_int_equal(static_branch_slow_dec_deferred(&later), 0);
	assert_int_equal(static_key_count(&later.key.key), 1);
	/* The last one comes by itself. */
	assert_int_equal(static_branch_slow_dec_deferred(&later), 0);
	while (static_key_count(&later.key.key))
		nanosleep(&ms, NULL);
	/* The code is changed when the lock is had by another. */
	register_ok(static_branch_enable(&off_key));
	register_ok(static_branch_disable(&off_key));
	assert_int_equal(test_later(), 2);
	/* This one in an hour, or now. */
	assert_int_equal(static_branch_slow_dec_deferred(&later_on), 0);
	assert_int_equal(test_later(), 2);
	/* Counted up meanwhile it stays on, after the flush, too. */
	assert_true(static_branch_deferred_inc(&later_on));
	assert_int_equal(static_key_deferred_flush(&later_on), 0);
	assert_int_equal(static_key_count(&later_on.key.key), 1);
	assert_int_equal(test_later(), 2);
	assert_int_equal(static_branch_slow_dec_deferred(&later_on), 0);
	assert_int_equal(static_key_deferred_flush(&later_on), 0);
	assert_int_equal(static_key_deferred_flush(&later_on), 0);
	assert_int_equal(test_later(), 0);
	register_ok(static_branch_enable(&later_on.key));
	jump_label_rate_limit(&bare, 3600000);
	assert_true(static_key_slow_inc(&bare.key));
	assert_int_equal(static_key_slow_dec_deferred(&bare), 0);
	assert_int_equal(test_later(), 2 | 4);
	assert_int_equal(static_key_deferred_flush(&bare), 0);
	assert_int_equal(test_later(), 2);
}

/* The first test of a function; it is at most a few bytes in. */
static unsigned char *first_test(void *fn)
{
	unsigned char *p = fn;

	while (!jump_label_text_reserved(p, p))
		p++;
	return p;
}

static void a_test_is_a_nop_or_a_jmp_of_five_bytes(void **state)
{
	static const unsigned char nop[] = { 0x0f, 0x1f, 0x44, 0, 0 };
	unsigned char *p = first_test((void *)test_off);

	assert_true(p - (unsigned char *)test_off < 32);
	assert_memory_equal(p, nop, 5);
	register_ok(static_branch_enable(&off_key));
	assert_int_equal(*p, 0xe9);
	register_ok(static_branch_disable(&off_key));
	assert_memory_equal(p, nop, 5);
	assert_int_equal(jump_label_text_reserved(p + 4, p + 4), 1);
	assert_int_equal(jump_label_text_reserved(p - 10, p - 1), 0);
	assert_int_equal(jump_label_text_reserved(p - 10, p), 1);
	assert_int_equal(jump_label_text_reserved(p - 10, p + 100), 1);
	assert_int_equal(jump_label_text_reserved((void *)untouched, (void *)untouched), 0);
}

/* --- with probes ------------------------------------------------------------------ */

static int hits, handler_ret;

static int pre(struct kprobe *p, struct pt_regs *regs)
{
	hits++;
	return 0;
}

static int changing_pre(struct kprobe *p, struct pt_regs *regs)
{
	hits++;
	handler_ret = static_branch_enable(&off_key);
	assert_true(static_key_fast_inc_not_disabled(&on_key.key));
	return 0;
}

static void probes_on_tests_are_refused(void **state)
{
	struct kprobe kp = { .addr = first_test((void *)test_off), .pre_handler = pre };
	struct kprobe entry = { .symbol_name = "test_off", .pre_handler = pre };

	assert_true(within_kprobe_blacklist((unsigned long)kp.addr));
	assert_int_equal(register_kprobe(&kp), -EINVAL);
	assert_non_null(strstr(ukp_kprobe_error(), "static branch"));
	kp.addr++;
	assert_int_equal(register_kprobe(&kp), -EINVAL);
	/* A function with tests may be probed elsewhere, in any state of theirs. */
	if (first_test((void *)test_off) != (unsigned char *)test_off) {
		hits = 0;
		register_ok(register_kprobe(&entry));
		assert_int_equal(test_off(), 0);
		register_ok(static_branch_enable(&off_key));
		assert_int_equal(test_off(), 3);
		unregister_kprobe(&entry);
		assert_int_equal(test_off(), 3);
		entry.addr = NULL;
		register_ok(register_kprobe(&entry));
		register_ok(static_branch_disable(&off_key));
		assert_int_equal(test_off(), 0);
		unregister_kprobe(&entry);
		assert_int_equal(hits, 3);
	}
}

TARGET int target(int x)
{
	__asm__ volatile("");
	return x;
}

static void handlers_may_count_but_not_change_code(void **state)
{
	struct kprobe kp = { .symbol_name = "target", .pre_handler = changing_pre };

	register_ok(register_kprobe(&kp));
	target(1);
	unregister_kprobe(&kp);
	assert_int_equal(handler_ret, -EBUSY);
	assert_int_equal(static_key_count(&off_key.key), 0);
	assert_int_equal(static_key_count(&on_key.key), 2);
	assert_int_equal(static_branch_dec(&on_key), 0);
}

/* --- threads ---------------------------------------------------------------------- */

enum { THREADS = 4, TOGGLES = 300 };

static unsigned long epoch; /* 4n: off, 4n + 2: on, odd: in between */
static bool stop;
static unsigned long looks, wrong, signals;

static void look(void)
{
	unsigned long before = __atomic_load_n(&epoch, __ATOMIC_SEQ_CST), after;
	int got = test_off();

	after = __atomic_load_n(&epoch, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED);
	if (before == after && !(before & 1) && got != (before & 2 ? 3 : 0))
		__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
	/* On the way some tests have changed and others not. */
	if (got < 0 || got > 3)
		__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

static void on_signal(int sig)
{
	__atomic_fetch_add(&signals, 1, __ATOMIC_RELAXED);
	look();
}

static void *look_on(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		look();
	return NULL;
}

static void all_threads_see_a_change_when_it_returns(void **state)
{
	struct itimerval every = { { 0, 1000 }, { 0, 1000 } }, none = { { 0, 0 }, { 0, 0 } };
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	pthread_t t[THREADS];
	int i;

	sigaction(SIGPROF, &sa, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, look_on, NULL), 0);
	for (i = 0; i < TOGGLES; i++) {
		__atomic_fetch_add(&epoch, 1, __ATOMIC_SEQ_CST);
		if (i % 2)
			register_ok(static_branch_disable(&off_key));
		else
			register_ok(static_branch_enable(&off_key));
		__atomic_fetch_add(&epoch, 1, __ATOMIC_SEQ_CST);
		look();
	}
	/* Our own looks are no more than that. */
	while (__atomic_load_n(&looks, __ATOMIC_RELAXED) <= TOGGLES)
		sched_yield();
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	setitimer(ITIMER_PROF, &none, NULL);
	signal(SIGPROF, SIG_IGN);
	assert_int_equal(wrong, 0);
	assert_false(static_key_enabled(&off_key));
}

static void *count_up_and_down(void *arg)
{
	int i;

	for (i = 0; i < TOGGLES; i++) {
		if (!static_branch_inc(&off_key))
			abort();
		/* Whoever counts one has all tests taken. */
		if (test_off() != 3)
			abort();
		if (static_branch_dec(&off_key))
			abort();
	}
	return NULL;
}

static void counts_of_many_threads_agree_with_the_code(void **state)
{
	run_threads(THREADS, count_up_and_down);
	assert_int_equal(static_key_count(&off_key.key), 0);
	assert_int_equal(test_off(), 0);
}

static void a_forked_child_keeps_its_keys(void **state)
{
	struct kprobe kp = { .symbol_name = "target", .pre_handler = pre };
	int status;
	pid_t pid;

	/* From here on there are probes, which are the parent's. */
	register_ok(register_kprobe(&kp));
	unregister_kprobe(&kp);
	register_ok(static_branch_enable(&off_key));
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(test_off() != 3 || static_branch_disable(&off_key) != -EOPNOTSUPP ||
		      test_off() != 3);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	register_ok(static_branch_disable(&off_key));
}

#define T(name) cmocka_unit_test_teardown(name, untouched)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(tests_follow_their_keys),
		T(each_kind_of_key_starts_as_it_says),
		T(counting_changes_code_at_the_first_and_the_last),
		T(what_the_kernel_warns_of_is_an_error),
		T(a_deferred_key_goes_off_later_or_when_it_is_flushed),
		T(a_test_is_a_nop_or_a_jmp_of_five_bytes),
		T(probes_on_tests_are_refused),
		T(handlers_may_count_but_not_change_code),
		T(all_threads_see_a_change_when_it_returns),
		T(counts_of_many_threads_agree_with_the_code),
		T(a_forked_child_keeps_its_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
