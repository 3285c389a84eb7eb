/* SPDX-License-Identifier: MIT */
/* Exact counts with many threads, signals in between, fork, and probes that come and go. */
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "scenario.h"

enum { THREADS = 8, CALLS = 20000 };

static unsigned long pre_hits, post_hits, ret_hits, from_signal;
static volatile sig_atomic_t stop;

TARGET unsigned long target(unsigned long a)
{
	__asm__ volatile("");
	return a + 3;
}

static void count(unsigned long *n)
{
	__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
}

static int pre(struct kprobe *p, struct pt_regs *regs)
{
	count(&pre_hits);
	return 0;
}

static void post(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
	count(&post_hits);
}

static int on_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	/* Also while it is being unregistered. */
	if (get_kretprobe(ri)->handler != on_return)
		abort();
	count(&ret_hits);
	return 0;
}

static int reset(void **state)
{
	pre_hits = post_hits = ret_hits = from_signal = 0;
	stop = 0;
	return 0;
}

static void *calls(void *arg)
{
	unsigned long i;

	for (i = 0; i < CALLS; i++)
		if (target(i) != i + 3)
			abort();
	return NULL;
}

static struct kprobe kp = { .pre_handler = pre };
static struct kretprobe rp = { .handler = on_return };

static void plant_both(void)
{
	kp.addr = rp.kp.addr = NULL;
	kp.symbol_name = rp.kp.symbol_name = "target";
	/* It would keep the breakpoint. */
	kp.post_handler = in_jumps ? NULL : post;
	register_ok(register_kprobe(&kp));
	register_ok(register_kretprobe(&rp));
	if (in_jumps)
		has_form(&kp);
}

static void take_both(void)
{
	unregister_kprobe(&kp);
	unregister_kretprobe(&rp);
}

static void counts_are_exact_with_many_threads(void **state)
{
	plant_both();
	run_threads(THREADS, calls);
	take_both();
	assert_int_equal(pre_hits, THREADS * CALLS);
	assert_int_equal(post_hits, in_jumps ? 0 : THREADS * CALLS);
	assert_int_equal(ret_hits, THREADS * CALLS);
	assert_int_equal(kp.nmissed + rp.kp.nmissed + rp.nmissed, 0);
}

static void on_signal(int sig)
{
	int saved = errno;

	if (target(5) != 8)
		abort();
	count(&from_signal);
	errno = saved;
}

static void a_signal_handler_may_call_what_is_probed(void **state)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct itimerval every = { { 0, 500 }, { 0, 500 } }, off = { { 0, 0 }, { 0, 0 } };
	unsigned long all = 0;

	assert_int_equal(sigaction(SIGPROF, &sa, NULL), 0);
	plant_both();
	assert_int_equal(setitimer(ITIMER_PROF, &every, NULL), 0);
	/* Where each thread has a CPU it may be done before the first tick. */
	do {
		run_threads(THREADS, calls);
		all += THREADS * CALLS;
	} while (!__atomic_load_n(&from_signal, __ATOMIC_RELAXED));
	setitimer(ITIMER_PROF, &off, NULL);
	take_both();
	all += from_signal;
	/* A signal in the middle of a handler finds the guard on: counted as a miss. */
	assert_int_equal(pre_hits + kp.nmissed, all);
	assert_int_equal(ret_hits + rp.kp.nmissed + (unsigned long)rp.nmissed, all);
	assert_int_equal(post_hits, in_jumps ? 0 : pre_hits);
}

static void a_forked_child_runs_on_and_reports_nothing(void **state)
{
	int status;
	pid_t pid;

	plant_both();
	target(1);
	pid = fork();
	if (!pid) {
		struct kprobe mine = { .symbol_name = "target" };
		int bad = target(1) != 4 || pre_hits != 1 || ret_hits != 1 ||
		          register_kprobe(&mine) != -EOPNOTSUPP;

		unregister_kprobe(&kp);
		_exit(bad || target(2) != 5);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	target(1);
	take_both();
	assert_int_equal(pre_hits, 2);
	assert_int_equal(ret_hits, 2);
}

static void *calls_until_stopped(void *arg)
{
	unsigned long i, *n = arg;

	for (i = 0; !stop; i++)
		if (target(i) != i + 3)
			abort();
	__atomic_fetch_add(n, i, __ATOMIC_RELAXED);
	return NULL;
}

/* Its memory is poisoned as soon as unregistering has returned. */
static void probes_come_and_go_under_load(void **state)
{
	pthread_t t[THREADS];
	unsigned long n = 0;
	int i;

	for (i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, calls_until_stopped, &n);
	/* Each jump is a stop of all of them, which takes as long as the machine is busy. */
	for (i = 0; i < (in_jumps ? 20 : 200); i++) {
		struct kprobe *p = calloc(1, sizeof(*p));
		struct kretprobe *r = calloc(1, sizeof(*r));

		p->symbol_name = r->kp.symbol_name = "target";
		p->pre_handler = pre;
		p->post_handler = in_jumps ? NULL : post;
		r->handler = on_return;
		register_ok(register_kprobe(p));
		register_ok(register_kretprobe(r));
		while (__atomic_load_n(&pre_hits, __ATOMIC_RELAXED) < (unsigned long)i)
			sched_yield();
		unregister_kprobe(p);
		unregister_kretprobe(r);
		memset(p, 0x5a, sizeof(*p));
		memset(r, 0x5a, sizeof(*r));
		free(p);
		free(r);
	}
	stop = 1;
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_true(pre_hits > 0 && ret_hits > 0 && (post_hits > 0 || in_jumps));
	assert_true(n >= pre_hits);
}

static int inside, release, unregistered;

static int wait_inside(struct kprobe *p, struct pt_regs *regs)
{
	__atomic_store_n(&inside, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&release, __ATOMIC_ACQUIRE))
		sched_yield();
	return 0;
}

static void *one_call(void *arg)
{
	target(1);
	return NULL;
}

static void *unregister(void *arg)
{
	unregister_kprobe(arg);
	__atomic_store_n(&unregistered, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void unregistering_waits_for_a_handler_that_runs(void **state)
{
	struct kprobe slow = { .symbol_name = "target", .pre_handler = wait_inside };
	pthread_t caller, taker;

	inside = release = unregistered = 0;
	register_ok(register_kprobe(&slow));
	pthread_create(&caller, NULL, one_call, NULL);
	while (!__atomic_load_n(&inside, __ATOMIC_ACQUIRE))
		sched_yield();
	pthread_create(&taker, NULL, unregister, &slow);
	while (get_kprobe((void *)target))
		sched_yield();
	usleep(50000);
	assert_int_equal(__atomic_load_n(&unregistered, __ATOMIC_ACQUIRE), 0);
	__atomic_store_n(&release, 1, __ATOMIC_RELEASE);
	pthread_join(caller, NULL);
	pthread_join(taker, NULL);
	assert_int_equal(unregistered, 1);
}

static volatile sig_atomic_t faults;
static sigjmp_buf again;

static void on_fault(int sig, siginfo_t *info, void *uc)
{
	faults++;
	siglongjmp(again, 1);
}

static void the_programs_own_fault_handler_works(void **state)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO }, old, back;
	int *volatile nowhere = (int *)8;

	faults = 0;
	plant_both();
	assert_int_equal(sigaction(SIGSEGV, &sa, &old), 0);
	assert_int_equal(sigaction(SIGSEGV, NULL, &back), 0);
	assert_ptr_equal(back.sa_sigaction, on_fault);
	if (!sigsetjmp(again, 1))
		*nowhere = 1;
	target(1);
	sigaction(SIGSEGV, &old, NULL);
	take_both();
	assert_int_equal(faults, 1);
	assert_int_equal(pre_hits, 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, reset, untouched)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(counts_are_exact_with_many_threads),
		T(a_signal_handler_may_call_what_is_probed),
		T(a_forked_child_runs_on_and_reports_nothing),
		T(probes_come_and_go_under_load),
		T(unregistering_waits_for_a_handler_that_runs),
		T(the_programs_own_fault_handler_works),
	};

	return run_in_both_forms(tests);
}
