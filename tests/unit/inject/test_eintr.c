/* SPDX-License-Identifier: MIT */
/*
 * Every kind of blocking system call goes on as if nobody had stopped it, with
 * and without calls of ours in between, and says EINTR where a handler runs.
 */
#include "help.h"

#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>

#define NOT_HERE 77 /* this kernel hasn't got the call */

/*
 * How long the calls wait.  A machine may be too busy for all of them to be met
 * in their wait: then all is done again with longer ones.
 */
static long wait_ms = 400;
#define MOST_MS 120000

static struct timespec wait_ts(void)
{
	return (struct timespec){ wait_ms / 1000, wait_ms % 1000 * 1000000 };
}

static struct timeval wait_tv(void)
{
	return (struct timeval){ wait_ms / 1000, wait_ms % 1000 * 1000 };
}

static long result(long ret)
{
	return ret < 0 ? -errno : ret;
}

static void on_signal(int sig)
{
}

/* Something that another process does a while later. */
static void later(void (*fn)(int), int arg)
{
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	nap_ms(wait_ms);
	fn(arg);
	_exit(0);
}

static void write_byte(int fd)
{
	if (write(fd, "x", 1) != 1)
		_exit(1);
}

static long call_read(void)
{
	int fd[2];
	char c;

	if (pipe(fd))
		return -1;
	later(write_byte, fd[1]);
	return result(read(fd[0], &c, 1)) == 1 ? 0 : -errno;
}

static long call_nanosleep(void)
{
	struct timespec left, ts = wait_ts();

	return result(syscall(SYS_nanosleep, &ts, &left));
}

static long call_clock_nanosleep(void)
{
	struct timespec left, ts = wait_ts();

	return result(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, &left));
}

static long call_poll(void)
{
	return result(syscall(SYS_poll, NULL, 0, wait_ms));
}

static long call_ppoll(void)
{
	struct timespec ts = wait_ts();

	return result(syscall(SYS_ppoll, NULL, 0, &ts, NULL, 8));
}

static long call_select(void)
{
	struct timeval tv = wait_tv();

	return result(syscall(SYS_select, 0, NULL, NULL, NULL, &tv));
}

static long call_pselect6(void)
{
	struct timespec ts = wait_ts();

	return result(syscall(SYS_pselect6, 0, NULL, NULL, NULL, &ts, NULL));
}

static long call_epoll_wait(void)
{
	struct epoll_event ev;

	return result(syscall(SYS_epoll_wait, epoll_create1(0), &ev, 1, wait_ms));
}

static long call_epoll_pwait(void)
{
	struct epoll_event ev;
	uint64_t none = 0;

	return result(syscall(SYS_epoll_pwait, epoll_create1(0), &ev, 1, wait_ms, &none, 8));
}

static long call_futex(void)
{
	struct timespec ts = wait_ts();
	int word = 0;
	long ret;

	ret = result(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0));
	return ret == -ETIMEDOUT ? 0 : ret;
}

static long call_futex_bitset(void)
{
	struct timespec ts;
	int word = 0;
	long ret;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += 1 + wait_ms / 1000;
	ret = result(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &ts, NULL, -1));
	return ret == -ETIMEDOUT ? 0 : ret;
}

static long call_semtimedop(void)
{
	int sem = semget(IPC_PRIVATE, 1, 0600);
	struct sembuf op = { 0, -1, 0 };
	struct timespec ts = wait_ts();
	long ret = result(semtimedop(sem, &op, 1, &ts));

	semctl(sem, 0, IPC_RMID);
	return ret == -EAGAIN ? 0 : ret;
}

static void send_message(int queue)
{
	struct {
		long type;
		char c;
	} msg = { 1, 'x' };

	msgsnd(queue, &msg, 1, 0);
}

static long call_msgrcv(void)
{
	int queue = msgget(IPC_PRIVATE, 0600);
	struct {
		long type;
		char c[8];
	} msg;
	long ret;

	later(send_message, queue);
	ret = result(msgrcv(queue, &msg, 8, 0, 0));
	msgctl(queue, IPC_RMID, NULL);
	return ret == 1 ? 0 : ret;
}

static long call_rt_sigtimedwait(void)
{
	struct timespec ts = wait_ts();
	sigset_t set;
	long ret;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	ret = result(syscall(SYS_rt_sigtimedwait, &set, NULL, &ts, 8));
	return ret == -EAGAIN ? 0 : ret;
}

static long call_recv_timeout(void)
{
	struct timeval tv = wait_tv();
	int fd[2];
	char c;
	long ret;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		return -1;
	setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	ret = result(recv(fd[0], &c, 1, 0));
	return ret == -EAGAIN ? 0 : ret;
}

static long call_read_timeout(void)
{
	struct timeval tv = wait_tv();
	int fd[2];
	char c;
	long ret;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		return -1;
	setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	ret = result(read(fd[0], &c, 1));
	return ret == -EAGAIN ? 0 : ret;
}

static long call_recv(void)
{
	int fd[2];
	char c;
	long ret;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		return -1;
	later(write_byte, fd[1]);
	ret = result(recv(fd[0], &c, 1, 0));
	return ret == 1 ? 0 : ret;
}

static long call_accept_timeout(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct timeval tv = wait_tv();
	long ret;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	if (listen(fd, 1))
		return -1;
	ret = result(accept(fd, NULL, NULL));
	return ret == -EAGAIN ? 0 : ret;
}

static void nothing(int arg)
{
}

static long call_wait4(void)
{
	later(nothing, 0);
	return result(wait4(-1, NULL, 0, NULL)) > 0 ? 0 : -errno;
}

/* Again and again: the first may come before the wait for it has begun. */
static void arm_alarm(struct timespec *when)
{
	struct itimerval timer = { wait_tv(), wait_tv() };

	clock_gettime(CLOCK_MONOTONIC, when);
	signal(SIGALRM, on_signal);
	setitimer(ITIMER_REAL, &timer, NULL);
}

/* Not before the alarm that was armed then. */
static long woken_by_alarm(const struct timespec *a)
{
	struct timespec b;

	clock_gettime(CLOCK_MONOTONIC, &b);
	return (b.tv_sec - a->tv_sec) * 1000 + (b.tv_nsec - a->tv_nsec) / 1000000 >= wait_ms - 50
	               ? 0
	               : -EINTR;
}

static long call_pause(void)
{
	struct timespec begin;

	arm_alarm(&begin);
	pause();
	return woken_by_alarm(&begin);
}

static long call_sigsuspend(void)
{
	struct timespec begin;
	sigset_t none;

	sigemptyset(&none);
	arm_alarm(&begin);
	sigsuspend(&none);
	return woken_by_alarm(&begin);
}

static long call_io_getevents(void)
{
	struct timespec ts = wait_ts();
	struct io_event ev;
	aio_context_t ctx = 0;

	if (syscall(SYS_io_setup, 8, &ctx))
		return NOT_HERE;
	return result(syscall(SYS_io_getevents, ctx, 1, 1, &ev, &ts));
}

static void touch(int arg)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/ukp-inotify-%d/x", getppid());
	fclose(fopen(path, "w"));
	unlink(path);
}

static long call_inotify_read(void)
{
	char buf[4096], path[64];
	int fd = inotify_init();
	long ret;

	snprintf(path, sizeof(path), "/tmp/ukp-inotify-%d", getpid());
	mkdir(path, 0700);
	inotify_add_watch(fd, path, IN_CREATE);
	later(touch, 0);
	ret = result(read(fd, buf, sizeof(buf)));
	wait(NULL); /* for who has touched it */
	rmdir(path);
	return ret > 0 ? 0 : ret;
}

static const struct {
	const char *name;
	long (*fn)(void);
	const char *nr; /* of the system call, as /proc/PID/syscall begins */
} calls[] = {
	{ "read", call_read, "0 " },
	{ "nanosleep", call_nanosleep, "35 " },
	{ "clock_nanosleep", call_clock_nanosleep, "230 " },
	{ "poll", call_poll, "7 " },
	{ "ppoll", call_ppoll, "271 " },
	{ "select", call_select, "23 " },
	{ "pselect6", call_pselect6, "270 " },
	{ "epoll_wait", call_epoll_wait, "232 " },
	{ "epoll_pwait", call_epoll_pwait, "281 " },
	{ "futex WAIT", call_futex, "202 " },
	{ "futex WAIT_BITSET", call_futex_bitset, "202 " },
	{ "semtimedop", call_semtimedop, "220 " },
	{ "msgrcv", call_msgrcv, "70 " },
	{ "rt_sigtimedwait", call_rt_sigtimedwait, "128 " },
	{ "recv with SO_RCVTIMEO", call_recv_timeout, "45 " },
	{ "read with SO_RCVTIMEO", call_read_timeout, "0 " },
	{ "recv", call_recv, "45 " },
	{ "accept with SO_RCVTIMEO", call_accept_timeout, "43 " },
	{ "wait4", call_wait4, "61 " },
	{ "pause", call_pause, "34 " },
	{ "sigsuspend", call_sigsuspend, "130 " },
	{ "io_getevents", call_io_getevents, "208 " },
	{ "inotify read", call_inotify_read, "0 " },
};
#define NR_CALLS (sizeof(calls) / sizeof(calls[0]))

struct waiter {
	long (*fn)(void);
	volatile long *result;
	volatile long *done; /* the child stays until then: it can be attached to at any time */
};

static int run_waiter(void *arg)
{
	struct waiter *w = arg;

	*w->result = w->fn();
	stay_until(w->done);
	return 0;
}

#define WAITS (-9999) /* there is no result yet */

static void disturb(pid_t pid, bool with_call)
{
	struct inject *t = opened(pid);

	seized(t);
	if (with_call) {
		begun(t);
		assert_int_equal(inject_syscall(t, SYS_getpid, 0, 0, 0, 0, 0, 0), pid);
		inject_end(t);
	}
	inject_close(t);
}

/* Until each is in its call, or has been. */
static void await_all(const pid_t *pid, volatile long *results)
{
	time_t end = patience();
	size_t i;

	for (i = 0; i < NR_CALLS; i++)
		while (results[i] == WAITS && !in_call(pid[i], calls[i].nr))
			if (!patient(end))
				fail_msg("%s doesn't begin", calls[i].name);
}

/*
 * All calls in children at the same time; each is stopped twice in its wait.
 * False: one of them had ended before the second stop.
 */
static bool disturbed_all(bool with_call)
{
	volatile long *results = shared_page();
	struct waiter w[NR_CALLS];
	pid_t pid[NR_CALLS];
	bool all = true;
	size_t i;
	int round;

	for (i = 0; i < NR_CALLS; i++) {
		results[i] = WAITS;
		w[i] = (struct waiter){ calls[i].fn, &results[i], &results[NR_CALLS] };
		pid[i] = child(run_waiter, &w[i]);
	}
	await_all(pid, results);
	for (round = 0; round < 2; round++)
		for (i = 0; i < NR_CALLS; i++)
			disturb(pid[i], with_call);
	for (i = 0; i < NR_CALLS; i++)
		all = all && (results[i] == WAITS || results[i] == NOT_HERE);
	results[NR_CALLS] = 1;
	for (i = 0; i < NR_CALLS; i++) {
		child_status(pid[i]);
		if (results[i] && results[i] != NOT_HERE)
			fail_msg("%s: %ld", calls[i].name, results[i]);
	}
	munmap((void *)results, 4096);
	return all;
}

static void disturb_all(bool with_call)
{
	while (!disturbed_all(with_call)) {
		wait_ms *= 4;
		assert_true(wait_ms < MOST_MS);
	}
}

static void no_blocking_call_sees_a_stop(void **state)
{
	disturb_all(false);
}

static void no_blocking_call_sees_a_stop_with_a_call_of_ours(void **state)
{
	disturb_all(true);
}

#define IN_EPOLL "232 "

/* It waits for an event of a pipe, as good as for ever. */
struct epoll_waiter {
	void (*disposition)(int);
	int fd[2];
	volatile long *result;
};

static int wait_for_event(void *arg)
{
	struct epoll_waiter *w = arg;
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = epoll_create1(0);

	signal(SIGUSR1, w->disposition);
	if (epoll_ctl(ep, EPOLL_CTL_ADD, w->fd[0], &ev))
		return 1;
	*w->result = result(syscall(SYS_epoll_wait, ep, &ev, 1, 1000 * PATIENCE_S));
	stay_until(w->result + 1);
	return 0;
}

static pid_t epoll_waiter(struct epoll_waiter *w, void (*disposition)(int))
{
	pid_t pid;

	w->disposition = disposition;
	w->result = shared_page();
	*w->result = WAITS;
	assert_int_equal(pipe(w->fd), 0);
	pid = child(wait_for_event, w);
	await_call(pid, IN_EPOLL);
	return pid;
}

static void epoll_ends(struct epoll_waiter *w, pid_t pid, long want)
{
	w->result[1] = 1;
	child_status(pid);
	assert_int_equal(*w->result, want);
	munmap((void *)w->result, 4096);
	close(w->fd[0]);
	close(w->fd[1]);
}

static void epoll_pwait_like(void **state, int when)
{
	struct epoll_waiter w;
	pid_t pid = epoll_waiter(&w, on_signal);
	struct inject *t;

	t = opened(pid);
	if (when == 0)
		kill(pid, SIGUSR1);
	seized(t);
	if (when == 1)
		kill(pid, SIGUSR1);
	if (when == 2) {
		begun(t);
		kill(pid, SIGUSR1);
		inject_syscall(t, SYS_getpid, 0, 0, 0, 0, 0, 0);
		inject_end(t);
	}
	inject_close(t);
	epoll_ends(&w, pid, -EINTR);
}

static void a_handler_before_the_stop_interrupts_epoll_wait(void **state)
{
	epoll_pwait_like(state, 0);
}

static void a_handler_during_the_stop_interrupts_epoll_wait(void **state)
{
	epoll_pwait_like(state, 1);
}

static void a_handler_during_a_call_of_ours_interrupts_epoll_wait(void **state)
{
	epoll_pwait_like(state, 2);
}

static void an_ignored_signal_does_not_interrupt_epoll_wait(void **state)
{
	struct epoll_waiter w;
	pid_t pid = epoll_waiter(&w, SIG_IGN);
	struct inject *t = opened(pid);

	seized(t);
	kill(pid, SIGUSR1);
	inject_close(t);
	await_call(pid, IN_EPOLL);
	assert_int_equal(write(w.fd[1], "x", 1), 1);
	epoll_ends(&w, pid, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_blocking_call_sees_a_stop),
		cmocka_unit_test(no_blocking_call_sees_a_stop_with_a_call_of_ours),
		cmocka_unit_test(a_handler_before_the_stop_interrupts_epoll_wait),
		cmocka_unit_test(a_handler_during_the_stop_interrupts_epoll_wait),
		cmocka_unit_test(a_handler_during_a_call_of_ours_interrupts_epoll_wait),
		cmocka_unit_test(an_ignored_signal_does_not_interrupt_epoll_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) +
	       cmocka_run_group_tests_name("with the runner", tests, use_runner, NULL);
}
