/* SPDX-License-Identifier: MIT */
/*
 * Jumps that come and go under fire: eight threads and a profiling signal run
 * through windows that lie across cache lines and pages, of one, two and three
 * instructions, while TOGGLES (from the environment) of them are written and
 * taken back.  No result is wrong, and no call is counted twice or not at all.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#include "scenario.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { THREADS = 8, FORMS = 3, BYTES = 4, PLACES = 2, COPIES = 10 };
enum { WINDOWS = FORMS * BYTES * PLACES * COPIES };

/*
 * toggled[]: each returns its argument plus 3.  Of the five bytes of the jump, 1 to
 * 4 lie before a multiple of 64 or of 4096; forms go round.
 */
__asm__(".text\n"
        ".macro body form\n"
        " .if \\form == 0\n .byte 0x48, 0x8d, 0x87, 3, 0, 0, 0\n"
        " .elseif \\form == 1\n mov %rdi, %rax\n lea 3(%rax), %rax\n"
        " .else\n push %rbx\n pop %rax\n lea 3(%rdi), %rax\n .endif\n ret\n"
        ".endm\n"
        ".macro named name align bytes form\n"
        " .p2align \\align, 0xcc\n .skip (1 << \\align) - \\bytes, 0xcc\n"
        " .type \\name, @function\n \\name: body \\form\n .size \\name, . - \\name\n"
        " .pushsection .data.rel.ro\n .quad \\name\n .popsection\n"
        ".endm\n"
        ".macro window copy align bytes form\n"
        " named toggled_\\align\\()_\\bytes\\()_\\form\\()_\\copy, \\align, \\bytes, \\form\n"
        ".endm\n"
        ".pushsection .data.rel.ro, \"aw\"\n .balign 8\n .globl toggled\n toggled:\n"
        ".popsection\n"
        ".irp copy, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9\n"
        ".irp align, 6, 12\n .irp bytes, 1, 2, 3, 4\n .irp form, 0, 1, 2\n"
        " window \\copy \\align \\bytes \\form\n .endr\n .endr\n .endr\n .endr\n");

typedef unsigned long (*toggled_fn)(unsigned long);
extern const toggled_fn toggled[WINDOWS];

static struct kprobe kp[WINDOWS];
static unsigned long hits[WINDOWS], from_signal[WINDOWS];
static unsigned long calls[THREADS][WINDOWS];
static unsigned long toggles, signals;
static int stop;

static int pre(struct kprobe *p, struct pt_regs *regs)
{
	__atomic_fetch_add(&hits[p - kp], 1, __ATOMIC_RELAXED);
	return 0;
}

static void call(unsigned int i, unsigned long x)
{
	if (toggled[i](x) != x + 3)
		abort();
}

/*
 * A thousand times a second, for each thread by the clock: a timer of CPU time fires
 * with the kernel's tick, and one of the process would wait for whichever thread it
 * has chosen.
 */
static timer_t profile(void)
{
	struct sigevent ev = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF };
	struct itimerspec every = { { 0, 1000000 }, { 0, 1000000 } };
	timer_t timer;

	ev.sigev_notify_thread_id = syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &ev, &timer) || timer_settime(timer, 0, &every, NULL))
		abort();
	return timer;
}

static void *run(void *arg)
{
	unsigned long *n = arg, x = 0;
	timer_t timer = profile();
	unsigned int i;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		for (i = 0; i < WINDOWS; i++, x++) {
			call(i, x);
			n[i]++;
		}
	timer_delete(timer);
	return NULL;
}

static void on_profile(int sig)
{
	static unsigned int next;
	unsigned int i = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % WINDOWS;
	int saved = errno;

	call(i, 7);
	__atomic_fetch_add(&from_signal[i], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&signals, 1, __ATOMIC_RELAXED);
	errno = saved;
}

static pthread_t thread[THREADS];

static void start(void)
{
	unsigned int i;

	memset(hits, 0, sizeof(hits));
	memset(calls, 0, sizeof(calls));
	memset(from_signal, 0, sizeof(from_signal));
	stop = 0;
	signals = 0;
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, run, calls[i]), 0);
	while (!__atomic_load_n(&signals, __ATOMIC_RELAXED))
		sched_yield();
}

static void finish(void)
{
	unsigned int i;

	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

static unsigned long called(unsigned int i)
{
	unsigned long n = __atomic_load_n(&from_signal[i], __ATOMIC_RELAXED);

	for (unsigned int t = 0; t < THREADS; t++)
		n += calls[t][i];
	return n;
}

static void plant_all(unsigned int flags)
{
	for (unsigned int i = 0; i < WINDOWS; i++) {
		kp[i] = (struct kprobe){ .addr = (kprobe_opcode_t *)toggled[i],
			                 .pre_handler = pre,
			                 .flags = flags | UKP_NOVEC };
		register_ok(register_kprobe(&kp[i]));
	}
}

static void take_all(void)
{
	for (unsigned int i = 0; i < WINDOWS; i++)
		unregister_kprobe(&kp[i]);
}

/* How many are jumps now: what the test has toggled. */
static unsigned long jumps(unsigned long by_form[FORMS])
{
	unsigned long n = 0;

	for (unsigned int i = 0; i < WINDOWS; i++)
		if (kp[i].flags & KPROBE_FLAG_OPTIMIZED) {
			assert_int_equal(*(volatile unsigned char *)toggled[i], 0xe9);
			by_form[i % FORMS]++;
			n++;
		}
	return n;
}

static double since(const struct timespec *from)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - from->tv_sec) + (double)(now.tv_nsec - from->tv_nsec) / 1e9;
}

static void report(const char *what, const unsigned long by_form[FORMS],
                   const struct timespec *from)
{
	unsigned long all = 0, counted = 0, missed = 0;
	double s = since(from);

	for (unsigned int i = 0; i < WINDOWS; i++) {
		all += called(i);
		counted += hits[i];
		missed += kp[i].nmissed;
	}
	print_message(
		"%s: %lu + %lu + %lu jumps (1, 2, 3 instructions) in %.1f s; %lu calls, %lu of "
		"them from SIGPROF (%.0f/s), %lu counted, %lu nested\n",
		what, by_form[0], by_form[1], by_form[2], s, all, signals, (double)signals / s,
		counted, missed);
}

/* The probes are there all the time, as breakpoints or as jumps: every call counts. */
static void every_call_is_counted_while_forms_change(void **state)
{
	unsigned long n = 0, by_form[FORMS] = { 0 };
	struct timespec from;
	unsigned int i;

	clock_gettime(CLOCK_MONOTONIC, &from);
	plant_all(0);
	start();
	while (n < toggles / 2) {
		wait_for_kprobe_optimizer();
		n += jumps(by_form);
		register_ok(ukp_set_kprobes_optimization(false));
		register_ok(ukp_set_kprobes_optimization(true));
	}
	finish();
	report("forms", by_form, &from);
	for (i = 0; i < WINDOWS; i++)
		assert_int_equal(hits[i] + kp[i].nmissed, called(i));
	for (i = 0; i < FORMS; i++)
		assert_true(by_form[i] > 0);
	take_all();
	for (i = 0; i < WINDOWS; i++)
		call(i, 1);
	for (i = 0; i < WINDOWS; i++)
		assert_int_equal(hits[i] + kp[i].nmissed, called(i));
	text_is_as_in_the_file();
}

/* They come and go: what passes unprobed isn't counted, all that is is a call. */
static void probes_come_and_go(void **state)
{
	unsigned long n = 0, rounds = 0, by_form[FORMS] = { 0 };
	unsigned long before;
	struct timespec from;
	unsigned int i;

	clock_gettime(CLOCK_MONOTONIC, &from);
	plant_all(KPROBE_FLAG_DISABLED);
	start();
	while (n < toggles - toggles / 2) {
		for (i = 0; i < WINDOWS; i++)
			register_ok(enable_kprobe(&kp[i]));
		wait_for_kprobe_optimizer();
		n += jumps(by_form);
		for (i = 0; i < WINDOWS; i++)
			register_ok(disable_kprobe(&kp[i]));
		if (++rounds % 100 == 0)
			text_is_as_in_the_file();
	}
	finish();
	report("come and go", by_form, &from);
	before = 0;
	for (i = 0; i < WINDOWS; i++) {
		assert_true(hits[i] + kp[i].nmissed <= called(i));
		before += hits[i];
	}
	assert_true(before > 0);
	for (i = 0; i < WINDOWS; i++)
		call(i, 1);
	for (i = 0; i < WINDOWS; i++)
		before -= hits[i];
	assert_int_equal(before, 0);
	take_all();
	text_is_as_in_the_file();
}

/* Further probes in the windows of two and three instructions. */
static struct kprobe inner[WINDOWS][FORMS - 1];
static unsigned long inner_hits[WINDOWS * (FORMS - 1)];

static int pre_inner(struct kprobe *p, struct pt_regs *regs)
{
	__atomic_fetch_add(&inner_hits[p - inner[0]], 1, __ATOMIC_RELAXED);
	return 0;
}

static unsigned int inner_probes(unsigned int i)
{
	return i % FORMS;
}

static void plant_inner(void)
{
	static const unsigned int at[FORMS][FORMS - 1] = { { 0, 0 }, { 3, 0 }, { 1, 2 } };

	memset(inner_hits, 0, sizeof(inner_hits));
	for (unsigned int i = 0; i < WINDOWS; i++)
		for (unsigned int k = 0; k < inner_probes(i); k++) {
			inner[i][k] = (struct kprobe){ .addr = (kprobe_opcode_t *)toggled[i] +
				                               at[i % FORMS][k],
				                       .pre_handler = pre_inner,
				                       .flags = UKP_NOVEC };
			register_ok(register_kprobe(&inner[i][k]));
		}
}

static void switch_inner(int (*to)(struct kprobe *), unsigned long which)
{
	for (unsigned int i = 0; i < WINDOWS; i++)
		for (unsigned int k = 0; k < inner_probes(i); k++)
			if ((i + k + which) % 3)
				register_ok(to(&inner[i][k]));
}

static void inner_is_exact(void)
{
	for (unsigned int i = 0; i < WINDOWS; i++)
		for (unsigned int k = 0; k < inner_probes(i); k++) {
			unsigned long n = inner_hits[i * (FORMS - 1) + k] + inner[i][k].nmissed;

			assert_int_equal(n, called(i));
		}
}

/* First all are there all the time; then the heads alone, and the sets behind them change. */
static void windows_with_several_probes_count_each(void **state)
{
	unsigned long n = 0, rounds = 0, by_form[FORMS] = { 0 };
	struct timespec from;
	unsigned int i;

	clock_gettime(CLOCK_MONOTONIC, &from);
	plant_all(0);
	plant_inner();
	start();
	while (n < toggles / 8) {
		wait_for_kprobe_optimizer();
		n += jumps(by_form);
		register_ok(ukp_set_kprobes_optimization(false));
		register_ok(ukp_set_kprobes_optimization(true));
	}
	finish();
	report("several, forms", by_form, &from);
	inner_is_exact();
	for (i = 0; i < WINDOWS; i++)
		assert_int_equal(hits[i] + kp[i].nmissed, called(i));
	for (i = 0; i < WINDOWS; i++)
		kp[i].nmissed = 0;
	start();
	for (n = 0; n < toggles / 8; rounds++) {
		switch_inner(disable_kprobe, rounds);
		wait_for_kprobe_optimizer();
		n += jumps(by_form);
		switch_inner(enable_kprobe, rounds);
		wait_for_kprobe_optimizer();
		n += jumps(by_form);
	}
	finish();
	report("several, sets", by_form, &from);
	for (i = 0; i < WINDOWS; i++)
		assert_int_equal(hits[i] + kp[i].nmissed, called(i));
	for (i = 0; i < WINDOWS; i++)
		for (unsigned int k = 0; k < inner_probes(i); k++)
			unregister_kprobe(&inner[i][k]);
	take_all();
	text_is_as_in_the_file();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_is_counted_while_forms_change),
		cmocka_unit_test(probes_come_and_go),
		cmocka_unit_test(windows_with_several_probes_count_each),
	};
	struct sigaction sa = { .sa_handler = on_profile, .sa_flags = SA_RESTART };
	const char *n = getenv("TOGGLES");

	toggles = n ? strtoul(n, NULL, 10) : 1000;
	sigaction(SIGPROF, &sa, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
