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

#define WAIT_MS 400

static const struct timespec wait_ts = { 0, WAIT_MS * 1000000l };
static const struct timeval wait_tv = { 0, WAIT_MS * 1000l };

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
	nap_ms(WAIT_MS);
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
	struct timespec left;

	return result(syscall(SYS_nanosleep, &wait_ts, &left));
}

static long call_clock_nanosleep(void)
{
	struct timespec left;

	return result(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &wait_ts, &left));
}

static long call_poll(void)
{
	return result(syscall(SYS_poll, NULL, 0, WAIT_MS));
}

static long call_ppoll(void)
{
	struct timespec ts = wait_ts;

	return result(syscall(SYS_ppoll, NULL, 0, &ts, NULL, 8));
}

static long call_select(void)
{
	struct timeval tv = wait_tv;

	return result(syscall(SYS_select, 0, NULL, NULL, NULL, &tv));
}

static long call_pselect6(void)
{
	struct timespec ts = wait_ts;

	return result(syscall(SYS_pselect6, 0, NULL, NULL, NULL, &ts, NULL));
}

static long call_epoll_wait(void)
{
	struct epoll_event ev;

	return result(syscall(SYS_epoll_wait, epoll_create1(0), &ev, 1, WAIT_MS));
}

static long call_epoll_pwait(void)
{
	struct epoll_event ev;
	uint64_t none = 0;

	return result(syscall(SYS_epoll_pwait, epoll_create1(0), &ev, 1, WAIT_MS, &none, 8));
}

static long call_futex(void)
{
	int word = 0;
	long ret;

	ret = result(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &wait_ts, NULL, 0));
	return ret == -ETIMEDOUT ? 0 : ret;
}

static long call_futex_bitset(void)
{
	struct timespec ts;
	int word = 0;
	long ret;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += 1;
	ret = result(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &ts, NULL, -1));
	return ret == -ETIMEDOUT ? 0 : ret;
}

static long call_semtimedop(void)
{
	int sem = semget(IPC_PRIVATE, 1, 0600);
	struct sembuf op = { 0, -1, 0 };
	long ret = result(semtimedop(sem, &op, 1, &wait_ts));

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
	sigset_t set;
	long ret;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	ret = result(syscall(SYS_rt_sigtimedwait, &set, NULL, &wait_ts, 8));
	return ret == -EAGAIN ? 0 : ret;
}

static long call_recv_timeout(void)
{
	int fd[2];
	char c;
	long ret;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		return -1;
	setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &wait_tv, sizeof(wait_tv));
	ret = result(recv(fd[0], &c, 1, 0));
	return ret == -EAGAIN ? 0 : ret;
}

static long call_read_timeout(void)
{
	int fd[2];
	char c;
	long ret;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		return -1;
	setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &wait_tv, sizeof(wait_tv));
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
	long ret;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait_tv, sizeof(wait_tv));
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

static void arm_alarm(void)
{
	struct itimerval timer = { { 0, 0 }, wait_tv };

	signal(SIGALRM, on_signal);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static long call_pause(void)
{
	struct timespec a, b;

	arm_alarm();
	clock_gettime(CLOCK_MONOTONIC, &a);
	pause();
	clock_gettime(CLOCK_MONOTONIC, &b);
	return (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 >= WAIT_MS - 50
	               ? 0
	               : -EINTR;
}

static long call_sigsuspend(void)
{
	struct timespec a, b;
	sigset_t none;

	sigemptyset(&none);
	arm_alarm();
	clock_gettime(CLOCK_MONOTONIC, &a);
	sigsuspend(&none);
	clock_gettime(CLOCK_MONOTONIC, &b);
	return (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 >= WAIT_MS - 50
	               ? 0
	               : -EINTR;
}

static long call_io_getevents(void)
{
	struct timespec ts = wait_ts;
	struct io_event ev;
	aio_context_t ctx = 0;

	if (syscall(SYS_io_setup, 8, &ctx))
		return 0; /* no AIO in this kernel */
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
	nap_ms(20);
	rmdir(path);
	return ret > 0 ? 0 : ret;
}

static const struct {
	const char *name;
	long (*fn)(void);
} calls[] = {
	{ "read", call_read },
	{ "nanosleep", call_nanosleep },
	{ "clock_nanosleep", call_clock_nanosleep },
	{ "poll", call_poll },
	{ "ppoll", call_ppoll },
	{ "select", call_select },
	{ "pselect6", call_pselect6 },
	{ "epoll_wait", call_epoll_wait },
	{ "epoll_pwait", call_epoll_pwait },
	{ "futex WAIT", call_futex },
	{ "futex WAIT_BITSET", call_futex_bitset },
	{ "semtimedop", call_semtimedop },
	{ "msgrcv", call_msgrcv },
	{ "rt_sigtimedwait", call_rt_sigtimedwait },
	{ "recv with SO_RCVTIMEO", call_recv_timeout },
	{ "read with SO_RCVTIMEO", call_read_timeout },
	{ "recv", call_recv },
	{ "accept with SO_RCVTIMEO", call_accept_timeout },
	{ "wait4", call_wait4 },
	{ "pause", call_pause },
	{ "sigsuspend", call_sigsuspend },
	{ "io_getevents", call_io_getevents },
	{ "inotify read", call_inotify_read },
};
#define NR_CALLS (sizeof(calls) / sizeof(calls[0]))

struct waiter {
	long (*fn)(void);
	volatile long *result;
	volatile long *done; /* the child stays until then: it can be attached to at any time */
};

static void stay(struct waiter *w)
{
	while (!*w->done)
		nap_ms(1);
}

static int run_waiter(void *arg)
{
	struct waiter *w = arg;

	*w->result = w->fn();
	stay(w);
	return 0;
}

/* All calls in children at the same time; each is stopped twice in its wait. */
static void disturb_all(bool with_call)
{
	struct waiter w[NR_CALLS];
	volatile long *results = shared_page();
	pid_t pid[NR_CALLS];
	size_t i;
	int round;

	for (i = 0; i < NR_CALLS; i++) {
		results[i] = -9999;
		w[i] = (struct waiter){ calls[i].fn, &results[i], &results[NR_CALLS] };
		pid[i] = child(run_waiter, &w[i]);
	}
	for (i = 0; i < NR_CALLS; i++)
		await_state(pid[i], 'S');
	nap_ms(100);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < NR_CALLS; i++) {
			struct inject *t = opened(pid[i]);

			seized(t);
			if (with_call) {
				begun(t);
				assert_int_equal(inject_syscall(t, SYS_getpid, 0, 0, 0, 0, 0, 0),
				                 pid[i]);
				inject_end(t);
			}
			inject_close(t);
		}
	}
	results[NR_CALLS] = 1;
	for (i = 0; i < NR_CALLS; i++) {
		child_status(pid[i]);
		if (results[i])
			fail_msg("%s: %ld", calls[i].name, results[i]);
	}
	munmap((void *)results, 4096);
}

static void no_blocking_call_sees_a_stop(void **state)
{
	disturb_all(false);
}

static void no_blocking_call_sees_a_stop_with_a_call_of_ours(void **state)
{
	disturb_all(true);
}

static int epoll_with_handler(void *arg)
{
	struct waiter *w = arg;

	signal(SIGUSR1, on_signal);
	*w->result = call_epoll_wait();
	stay(w);
	return 0;
}

static void epoll_pwait_like(void **state, int when)
{
	volatile long *results = shared_page();
	struct waiter w = { NULL, results, results + 1 };
	struct inject *t;
	pid_t pid;

	*results = -9999;
	pid = child(epoll_with_handler, &w);
	await_state(pid, 'S');
	nap_ms(50);
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
	results[1] = 1;
	child_status(pid);
	assert_int_equal(*results, -EINTR);
	munmap((void *)results, 4096);
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

static int epoll_with_ignored(void *arg)
{
	struct waiter *w = arg;

	signal(SIGUSR1, SIG_IGN);
	*w->result = call_epoll_wait();
	stay(w);
	return 0;
}

static void an_ignored_signal_does_not_interrupt_epoll_wait(void **state)
{
	volatile long *results = shared_page();
	struct waiter w = { NULL, results, results + 1 };
	struct inject *t;
	pid_t pid;

	*results = -9999;
	pid = child(epoll_with_ignored, &w);
	await_state(pid, 'S');
	t = opened(pid);
	seized(t);
	kill(pid, SIGUSR1);
	inject_close(t);
	results[1] = 1;
	child_status(pid);
	assert_int_equal(*results, 0);
	munmap((void *)results, 4096);
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
