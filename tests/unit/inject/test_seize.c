/* SPDX-License-Identifier: MIT */
/* Stopping all threads of a process, and letting them go as if nothing had been. */
#include "help.h"
#include "base/pause.h"
#include "inject/internal.h"

#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>

struct shared {
	volatile long ready;
	volatile long count[64];
	volatile long signals;
	volatile long bad;
	volatile long stop;
};

struct job {
	struct shared *s;
	int threads;
	bool busy;
};

static struct shared *shared;

static void *spin(void *arg)
{
	volatile long *count = arg;

	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_RELAXED);
	while (!shared->stop)
		++*count;
	return NULL;
}

static void *doze(void *arg)
{
	volatile long *count = arg;

	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_RELAXED);
	while (!shared->stop) {
		++*count;
		nap_ms(1);
	}
	return NULL;
}

static int run_threads(void *arg)
{
	struct job *job = arg;
	pthread_t th;
	int i;

	shared = job->s;
	for (i = 1; i < job->threads; i++)
		if (pthread_create(&th, NULL, job->busy ? spin : doze, (void *)&shared->count[i]))
			return 1;
	(job->busy ? spin : doze)((void *)&shared->count[0]);
	return 0;
}

static long total(const struct shared *s)
{
	long sum = 0;
	int i;

	for (i = 0; i < 64; i++)
		sum += s->count[i];
	return sum;
}

static void every_thread_stands_still_until_released(void **state)
{
	struct job job = { shared_page(), 50, true };
	pid_t pid = child(run_threads, &job);
	time_t end = patience();
	struct inject *t;
	long before;

	await_word(&job.s->ready, 50);
	t = opened(pid);
	seized(t);
	assert_true(inject_held(t));
	assert_int_equal(inject_nr_threads(t), 50);
	before = total(job.s);
	nap_ms(20);
	assert_int_equal(total(job.s), before);
	assert_int_equal(inject_thread_at(t, 0)->tid, pid);
	assert_int_equal(inject_thread_at(t, 7)->ns_tid, inject_thread_at(t, 7)->tid);
	inject_release(t);
	assert_false(inject_held(t));
	assert_int_equal(inject_nr_threads(t), 0);
	assert_int_equal(status_number(pid, "TracerPid"), 0);
	while (total(job.s) == before && patient(end))
		;
	assert_true(total(job.s) > before);
	inject_close(t);
	child_kill(pid);
}

static void on_counted(int sig)
{
	(void)sig;
	shared->signals++;
}

static int spin_or_call(void *arg)
{
	struct job *job = arg;

	shared = job->s;
	signal(SIGUSR1, on_counted);
	shared->ready = 1;
	for (; !shared->stop; shared->count[0]++)
		if (!job->busy)
			syscall(SYS_getppid);
	return 7;
}

static bool count_looks(void *arg, size_t i)
{
	++*(int *)arg;
	return i != 0;
}

static void one_that_runs_on_by_itself_is_held_again_as_it_was(void **state)
{
	int busy;

	for (busy = 0; busy < 2; busy++) {
		struct job job = { shared_page(), 1, busy };
		pid_t pid = child(spin_or_call, &job);
		struct inject *t;
		uint64_t mask;
		long before, first, i;
		int looks;

		await_word(&job.s->ready, 1);
		t = opened(pid);
		seized(t);
		first = job.s->count[0];
		mask = inject_thread_at(t, 0)->sigblk;
		for (i = 0; i < 20; i++) {
			if (i == 10)
				kill(pid, SIGUSR1);
			looks = 0;
			assert_int_equal(inject_run_on(t, 0, count_looks, &looks), 0);
			assert_in_range(looks, 1, 2);
			before = job.s->count[0];
			nap_ms(1);
			assert_int_equal(job.s->count[0], before);
			assert_int_equal(inject_thread_at(t, 0)->sigblk & mask, mask);
		}
		/* Not each time: on a busy machine it may have waited for a CPU. */
		if (busy)
			assert_true(job.s->count[0] > first);
		inject_close(t);
		await_word(&job.s->signals, 1);
		assert_int_equal(job.s->signals, 1);
		job.s->stop = 1;
		assert_int_equal(child_status(pid), 7 << 8);
	}
	(void)state;
}

/* The right to go first, which this process may lack anyway. */
static void let_go_first(bool may)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct cap[2];

	assert_int_equal(syscall(SYS_capget, &head, cap), 0);
	cap[0].effective &= ~(1u << CAP_SYS_NICE);
	if (may)
		cap[0].effective |= cap[0].permitted & (1u << CAP_SYS_NICE);
	assert_int_equal(syscall(SYS_capset, &head, cap), 0);
}

static bool may_go_first(void)
{
	const int own = getpriority(PRIO_PROCESS, 0);

	if (setpriority(PRIO_PROCESS, 0, own - 1))
		return false;
	assert_int_equal(setpriority(PRIO_PROCESS, 0, own), 0);
	return true;
}

static void who_holds_goes_first_and_is_what_it_was_afterwards(void **state)
{
	struct job job = { shared_page(), 2, true };
	pid_t pid = child(run_threads, &job);
	struct inject *t;
	int rights, k;

	await_word(&job.s->ready, 2);
	t = opened(pid);
	for (rights = 1; rights >= 0; rights--) {
		const int own = getpriority(PRIO_PROCESS, 0);
		bool may;

		let_go_first(rights);
		may = may_go_first();
		for (k = 0; k < 3; k++) {
			assert_int_equal(inject_seize(t, NULL), 0);
			assert_int_equal(getpriority(PRIO_PROCESS, 0), may ? -20 : own);
			/* Whose budget others use up would stand still, and the target with it. */
			assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
			inject_release(t);
			assert_int_equal(getpriority(PRIO_PROCESS, 0), own);
		}
	}
	let_go_first(true);
	inject_close(t);
	child_kill(pid);
	(void)state;
}

static void who_works_beside_makes_a_pause_while_the_target_stands(void **state)
{
	struct job job = { shared_page(), 2, true };
	pid_t pid = child(run_threads, &job);
	struct pause pause;
	struct inject *t;

	await_word(&job.s->ready, 2);
	t = opened(pid);
	pause_init(&pause);
	inject_beside(t, &pause);
	assert_false(pause.on);
	assert_int_equal(inject_seize(t, NULL), 0);
	assert_true(pause.on);
	assert_int_equal(inject_breathe(t, 1000, NULL), 0);
	assert_true(pause.on);
	inject_release(t);
	assert_false(pause.on);

	assert_int_equal(inject_seize(t, NULL), 0);
	inject_beside(t, NULL);
	assert_false(pause.on);
	inject_beside(t, &pause);
	assert_true(pause.on);
	inject_close(t);
	assert_false(pause.on);
	pause_destroy(&pause);
	child_kill(pid);
	(void)state;
}

static void *churn_once(void *arg)
{
	return NULL;
}

static void *churn(void *arg)
{
	pthread_t th;

	while (!shared->stop) {
		if (pthread_create(&th, NULL, churn_once, NULL))
			continue;
		pthread_join(th, NULL);
		++*(volatile long *)arg;
	}
	return NULL;
}

static int run_churn(void *arg)
{
	pthread_t th[3];
	int i;

	shared = arg;
	for (i = 0; i < 3; i++)
		if (pthread_create(&th[i], NULL, churn, (void *)&shared->count[i]))
			return 1;
	for (i = 0; i < 3; i++)
		pthread_join(th[i], NULL);
	return 7;
}

static void threads_born_and_dying_meanwhile_are_caught(void **state)
{
	struct shared *s = shared_page();
	pid_t pid = child(run_churn, s);
	struct inject *t;
	int i;

	await_word(&s->count[0], 10);
	t = opened(pid);
	for (i = 0; i < 200; i++) {
		long before;

		seized(t);
		before = total(s);
		usleep(300);
		assert_int_equal(total(s), before);
		inject_release(t);
		usleep(500);
	}
	inject_close(t);
	s->stop = 1;
	assert_int_equal(child_status(pid), 7 << 8);
}

static void breathing_lets_all_run_and_finds_new_threads(void **state)
{
	struct shared *s = shared_page();
	pid_t pid = child(run_churn, s);
	struct err err = ERR_INIT;
	struct inject *t;
	int i, k;

	await_word(&s->count[0], 1);
	t = opened(pid);
	seized(t);
	for (i = 0; i < 20; i++) {
		long before = total(s);

		/* On a busy machine its turn may not come at once. */
		for (k = 0; k < 2000 && total(s) == before; k++)
			assert_int_equal(inject_breathe(t, 5000, &err), 0);
		assert_true(total(s) > before);
		before = total(s);
		usleep(300);
		assert_int_equal(total(s), before);
	}
	inject_close(t);
	child_kill(pid);
}

static void a_stopped_process_stays_stopped(void **state)
{
	struct job job = { shared_page(), 4, true };
	pid_t pid = child(run_threads, &job);
	struct inject *t;
	long before;
	int i;

	await_word(&job.s->ready, 4);
	kill(pid, SIGSTOP);
	await_state(pid, 'T');
	before = total(job.s);
	t = opened(pid);
	for (i = 0; i < 5; i++) {
		seized(t);
		begun(t);
		assert_int_equal(inject_syscall(t, SYS_getpid, 0, 0, 0, 0, 0, 0), pid);
		inject_end(t);
		inject_release(t);
		await_state(pid, 'T');
	}
	inject_close(t);
	nap_ms(20);
	assert_int_equal(total(job.s), before);
	kill(pid, SIGCONT);
	await_word(&job.s->count[0], job.s->count[0] + 1);
	child_kill(pid);
}

static void a_stop_signal_during_the_hold_takes_effect_after_it(void **state)
{
	struct job job = { shared_page(), 4, true };
	pid_t pid = child(run_threads, &job);
	struct inject *t;
	int i;

	await_word(&job.s->ready, 4);
	t = opened(pid);
	for (i = 0; i < 20; i++) {
		seized(t);
		begun(t);
		kill(pid, SIGSTOP);
		assert_int_equal(inject_syscall(t, SYS_getpid, 0, 0, 0, 0, 0, 0), pid);
		inject_end(t);
		inject_release(t);
		await_state(pid, 'T');
		kill(pid, SIGCONT);
	}
	inject_close(t);
	child_kill(pid);
}

static void on_rt(int sig)
{
	__atomic_add_fetch(&shared->signals, 1, __ATOMIC_RELAXED);
}

static void on_prof(int sig)
{
	__atomic_add_fetch(&shared->count[10], 1, __ATOMIC_RELAXED);
}

static void *sleeper(void *arg)
{
	struct timespec ts = { 0, 200000 };
	char events[64];
	sigset_t all;

	/* with all signals blocked, no call has a reason to say EINTR */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_RELAXED);
	while (!shared->stop) {
		if (syscall(SYS_epoll_wait, *(int *)arg, events, 1, 1) < 0)
			__atomic_add_fetch(&shared->bad, 1, __ATOMIC_RELAXED);
		if (syscall(SYS_nanosleep, &ts, NULL) < 0)
			__atomic_add_fetch(&shared->bad, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static int run_signals(void *arg)
{
	struct itimerval timer = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction sa = { .sa_flags = SA_RESTART };
	pthread_t th;
	int i, ep = syscall(SYS_epoll_create1, 0);

	shared = arg;
	sa.sa_handler = on_rt;
	sigaction(SIGRTMIN, &sa, NULL);
	sa.sa_handler = on_prof;
	sigaction(SIGPROF, &sa, NULL);
	setitimer(ITIMER_PROF, &timer, NULL);
	for (i = 0; i < 3; i++)
		if (pthread_create(&th, NULL, i ? spin : sleeper,
		                   i ? (void *)&shared->count[i] : (void *)&ep))
			return 1;
	spin((void *)&shared->count[0]);
	return 7;
}

static void no_signal_is_lost_over_300_attaches(void **state)
{
	struct shared *s = shared_page();
	pid_t pid = child(run_signals, s);
	union sigval value = { 0 };
	struct inject *t;
	long sent = 0, prof;
	int i, j;

	await_word(&s->ready, 4);
	prof = s->count[10];
	for (i = 0; i < 300; i++) {
		t = opened(pid);
		sent += !sigqueue(pid, SIGRTMIN, value);
		seized(t);
		sent += !sigqueue(pid, SIGRTMIN, value);
		begun(t);
		for (j = 0; j < 3; j++) {
			sent += !sigqueue(pid, SIGRTMIN, value);
			assert_int_equal(inject_syscall(t, SYS_getpid, 0, 0, 0, 0, 0, 0), pid);
		}
		inject_end(t);
		sent += !sigqueue(pid, SIGRTMIN, value);
		inject_close(t);
		sent += !sigqueue(pid, SIGRTMIN, value);
		usleep(500);
	}
	await_word(&s->signals, sent);
	nap_ms(20);
	assert_int_equal(s->signals, sent);
	await_word(&s->count[10], prof + 1);
	assert_int_equal(s->bad, 0);
	s->stop = 1;
	assert_int_equal(child_status(pid), 7 << 8);
}

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* Works under a timer of its own, as threads of a Go program do under its profiler. */
static void *profiled(void *count)
{
	struct sigevent ev = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF };
	struct itimerspec often = { { 0, 50000 }, { 0, 50000 } };
	timer_t timer;

	ev.sigev_notify_thread_id = syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &ev, &timer) || timer_settime(timer, 0, &often, NULL))
		return NULL;
	return spin(count);
}

static int run_profiled(void *arg)
{
	struct sigaction sa = { .sa_handler = on_prof, .sa_flags = SA_RESTART };
	pthread_t th;
	int i;

	shared = arg;
	sigaction(SIGPROF, &sa, NULL);
	for (i = 1; i < 4; i++)
		if (pthread_create(&th, NULL, profiled, (void *)&shared->count[i]))
			return 1;
	profiled((void *)&shared->count[0]);
	return 7;
}

static void timers_of_its_threads_do_not_keep_it_from_stopping(void **state)
{
	struct shared *s = shared_page();
	pid_t pid = child(run_profiled, s);
	struct inject *t;
	long prof;
	int i;

	await_word(&s->ready, 4);
	t = opened(pid);
	for (i = 0; i < 1000; i++) {
		seized(t);
		assert_int_equal(inject_nr_threads(t), 4);
		inject_release(t);
	}
	inject_close(t);
	prof = s->count[10];
	await_word(&s->count[10], prof + 1);
	s->stop = 1;
	assert_int_equal(child_status(pid), 7 << 8);
}

static void a_kill_at_any_moment_ends_in_esrch(void **state)
{
	struct err err;
	struct inject *t;
	int i, j, after_begin = 0;

	for (i = 0; i < 100; i++) {
		struct job job = { shared_page(), 4, true };
		pid_t pid = child(run_threads, &job), killer;
		long ret = 0;

		await_word(&job.s->ready, 4);
		killer = fork();
		if (!killer) {
			usleep(i * 37 % 2000);
			kill(pid, SIGKILL);
			_exit(0);
		}
		for (j = 0; j < 1000000 && !ret; j++) {
			t = NULL;
			ret = inject_open(&t, pid, &err);
			if (!ret)
				ret = inject_seize(t, &err);
			if (!ret)
				ret = inject_begin(t, &err);
			if (!ret) {
				ret = inject_syscall(t, SYS_getuid, 0, 0, 0, 0, 0, 0);
				after_begin += ret != 0;
				inject_end(t);
			}
			inject_close(t);
		}
		if (ret != -ESRCH && ret != -EOPNOTSUPP)
			fail_msg("round %d: %ld %s", i, ret, err.text);
		child_status(killer);
		assert_int_equal(child_status(pid), SIGKILL);
		munmap(job.s, 4096);
	}
	print_message("%d of 100 kills fell into a remote call\n", after_begin);
}

static int run_on(void *arg)
{
	while (pause())
		;
	return 0;
}

/* On a busy machine it is asked for again and again when its time is over. */
static void who_has_died_is_not_waited_for_past_the_deadline(void **state)
{
	pid_t pid = child(run_on, NULL);
	struct inject *t = opened(pid);
	struct stop stop;

	assert_int_equal(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
	kill(pid, SIGKILL);
	await_state(pid, 'Z');
	assert_int_equal(wait_stop(t, pid, 1, &stop), -ESRCH);
	inject_close(t);
	assert_int_equal(child_status(pid), SIGKILL);
}

/* Its child, which it waits for, stays until it is told to end. */
static int run_vfork(void *arg)
{
	static const struct timespec ts = { 0, 1000000 };
	volatile long *end = arg;

	if (!vfork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!*end)
			syscall(SYS_nanosleep, &ts, NULL);
		_exit(0);
	}
	return 5;
}

static void a_vfork_parent_times_out_by_name_and_is_not_touched(void **state)
{
	volatile long *end = shared_page();
	struct err err = ERR_INIT;
	struct inject *t;
	pid_t pid;

	pid = child(run_vfork, (void *)end);
	await_state(pid, 'D');
	t = opened(pid);
	assert_int_equal(inject_seize(t, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "vfork"));
	assert_int_equal(status_number(pid, "TracerPid"), 0);
	assert_int_equal(inject_settle(t), 0);
	*end = 1;
	assert_int_equal(child_status(pid), 5 << 8);
	inject_close(t);
}

static int run_zombie_leader(void *arg)
{
	pthread_t th;

	shared = arg;
	if (pthread_create(&th, NULL, spin, (void *)&shared->count[0]))
		return 1;
	syscall(SYS_exit, 0);
	return 1;
}

static void a_process_whose_leader_has_ended_can_be_held(void **state)
{
	struct shared *s = shared_page();
	pid_t pid = child(run_zombie_leader, s);
	struct inject *t;

	await_word(&s->ready, 1);
	await_state(pid, 'Z');
	t = opened(pid);
	seized(t);
	assert_int_equal(inject_nr_threads(t), 1);
	begun(t);
	assert_int_equal(inject_syscall(t, SYS_getpid, 0, 0, 0, 0, 0, 0), pid);
	inject_end(t);
	inject_close(t);
	s->stop = 1;
	child_status(pid);
}

static int run_in_namespaces(void *arg)
{
	volatile long *inner = arg;
	pid_t pid;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS)) {
		*inner = -1;
		return 1;
	}
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (pause())
			;
	}
	*inner = pid;
	return child_status(pid) == SIGKILL ? 7 : 1;
}

static void a_process_in_another_pid_namespace_has_its_own_ids(void **state)
{
	volatile long *inner = shared_page();
	time_t end = patience();
	struct inject *t;
	pid_t pid;

	skip_without_cap_sys_admin();
	pid = child(run_in_namespaces, (void *)inner);
	while (!*inner && patient(end))
		;
	if (*inner < 0) {
		child_status(pid);
		print_message("skipped: this kernel makes no namespaces\n");
		skip();
	}
	assert_true(*inner > 0);
	t = opened(*inner);
	seized(t);
	assert_int_equal(inject_thread_at(t, 0)->tid, *inner);
	assert_int_equal(inject_thread_at(t, 0)->ns_tid, 1);
	begun(t);
	assert_int_equal(inject_syscall(t, SYS_gettid, 0, 0, 0, 0, 0, 0), 1);
	inject_end(t);
	inject_close(t);
	kill(*inner, SIGKILL);
	assert_int_equal(child_status(pid), 7 << 8);
}

static volatile long sigchld_seen;

static void on_sigchld(int sig)
{
	sigchld_seen++;
}

static int run_end(void *arg)
{
	return 0;
}

static void a_sigchld_handler_of_the_caller_still_hears_of_its_children(void **state)
{
	struct job job = { shared_page(), 4, true };
	pid_t pid = child(run_threads, &job), other;
	struct inject *t;
	int i;

	await_word(&job.s->ready, 4);
	signal(SIGCHLD, on_sigchld);
	t = opened(pid);
	for (i = 0; i < 20; i++) {
		sigchld_seen = 0;
		other = child(run_end, NULL);
		seized(t);
		inject_release(t);
		await_word(&sigchld_seen, 1);
		child_status(other);
	}
	inject_close(t);
	signal(SIGCHLD, SIG_DFL);
	child_kill(pid);
}

static int run_other_tracer(void *arg)
{
	pid_t pid = *(pid_t *)arg;

	prctl(PR_SET_NAME, "the-tracer");
	if (ptrace(PTRACE_SEIZE, pid, 0, 0))
		return 1;
	while (pause())
		;
	return 0;
}

static void another_tracer_is_named(void **state)
{
	struct job job = { shared_page(), 2, false };
	pid_t pid = child(run_threads, &job), other;
	struct err err = ERR_INIT;
	time_t end = patience();
	struct inject *t;

	await_word(&job.s->ready, 2);
	t = opened(pid);
	other = child(run_other_tracer, &pid);
	while (!status_number(pid, "TracerPid") && patient(end))
		;
	assert_int_equal(inject_seize(t, &err), -EBUSY);
	assert_non_null(strstr(err.text, "the-tracer"));
	inject_close(t);
	child_kill(other);
	child_kill(pid);
}

static void the_exit_status_of_ones_own_child_is_left_to_its_parent(void **state)
{
	struct shared *s = shared_page();
	pid_t pid = child(run_churn, s);
	struct inject *t;

	await_word(&s->count[0], 1);
	t = opened(pid);
	seized(t);
	kill(pid, SIGKILL);
	nap_ms(5);
	inject_close(t);
	assert_int_equal(child_status(pid), SIGKILL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_thread_stands_still_until_released),
		cmocka_unit_test(who_holds_goes_first_and_is_what_it_was_afterwards),
		cmocka_unit_test(who_works_beside_makes_a_pause_while_the_target_stands),
		cmocka_unit_test(one_that_runs_on_by_itself_is_held_again_as_it_was),
		cmocka_unit_test(threads_born_and_dying_meanwhile_are_caught),
		cmocka_unit_test(breathing_lets_all_run_and_finds_new_threads),
		cmocka_unit_test(a_stopped_process_stays_stopped),
		cmocka_unit_test(a_stop_signal_during_the_hold_takes_effect_after_it),
		cmocka_unit_test(no_signal_is_lost_over_300_attaches),
		cmocka_unit_test(timers_of_its_threads_do_not_keep_it_from_stopping),
		cmocka_unit_test(a_kill_at_any_moment_ends_in_esrch),
		cmocka_unit_test(who_has_died_is_not_waited_for_past_the_deadline),
		cmocka_unit_test(a_vfork_parent_times_out_by_name_and_is_not_touched),
		cmocka_unit_test(a_process_whose_leader_has_ended_can_be_held),
		cmocka_unit_test(a_process_in_another_pid_namespace_has_its_own_ids),
		cmocka_unit_test(a_sigchld_handler_of_the_caller_still_hears_of_its_children),
		cmocka_unit_test(another_tracer_is_named),
		cmocka_unit_test(the_exit_status_of_ones_own_child_is_left_to_its_parent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) +
	       cmocka_run_group_tests_name("with the runner", tests, use_runner, NULL);
}
