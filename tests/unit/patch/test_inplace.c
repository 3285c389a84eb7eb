/* SPDX-License-Identifier: MIT */
/*
 * Cancellable system calls: where threads wait that may be cancelled no probe
 * can be, by the check of one place and by that of many.  glibc's are asked of
 * the kernel, thread by thread; musl's in static programs, with symbols and
 * without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "patch/deny.h"
#include "patch/inplace.h"

static int sock[2], full[2];
static pid_t child;

static void waits_in_read(void)
{
	char c;

	(void)!read(sock[0], &c, 1);
}

static void waits_in_readv(void)
{
	char c;
	struct iovec v = { &c, 1 };

	(void)!readv(sock[0], &v, 1);
}

static void waits_in_write(void)
{
	(void)!write(full[1], "", 1);
}

static void waits_in_recv(void)
{
	char c;

	recv(sock[0], &c, 1, 0);
}

static void waits_in_recvmsg(void)
{
	char c;
	struct iovec v = { &c, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };

	recvmsg(sock[0], &m, 0);
}

static void waits_in_poll(void)
{
	poll(NULL, 0, -1);
}

static void waits_in_ppoll(void)
{
	ppoll(NULL, 0, NULL, NULL);
}

static void waits_in_select(void)
{
	select(0, NULL, NULL, NULL, NULL);
}

static void waits_in_epoll(void)
{
	struct epoll_event e;

	epoll_wait(epoll_create1(0), &e, 1, -1);
}

static void waits_in_pause(void)
{
	pause();
}

static void waits_in_sigsuspend(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigsuspend(&none);
}

static void waits_in_nanosleep(void)
{
	struct timespec ts = { 10000, 0 };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

static void waits_in_wait4(void)
{
	wait4(child, NULL, 0, NULL);
}

static void waits_in_waitid(void)
{
	waitid(P_PID, (id_t)child, NULL, WEXITED | WNOWAIT);
}

static void waits_in_accept(void)
{
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	sa_family_t any = AF_UNIX;

	bind(s, (struct sockaddr *)&any, sizeof(any)); /* a name that nobody knows */
	listen(s, 1);
	accept(s, NULL, NULL);
}

static void waits_in_sem_wait(void)
{
	static sem_t sem;

	sem_wait(&sem);
}

static void waits_in_cond_wait(void)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;

	pthread_mutex_lock(&m);
	pthread_cond_wait(&c, &m);
}

struct waiter {
	const char *name;
	void (*wait)(void);
};

static const struct waiter waiters[] = {
#define WAITER(x)                \
	{                        \
#x, waits_in_##x \
	}
	WAITER(read),      WAITER(readv),     WAITER(write),  WAITER(recv),   WAITER(recvmsg),
	WAITER(poll),      WAITER(ppoll),     WAITER(select), WAITER(epoll),  WAITER(pause),
	WAITER(nanosleep), WAITER(wait4),     WAITER(waitid), WAITER(accept), WAITER(sigsuspend),
	WAITER(sem_wait),  WAITER(cond_wait),
};

static volatile pid_t tid;

static void *run(void *arg)
{
	tid = (pid_t)syscall(SYS_gettid);
	((const struct waiter *)arg)->wait();
	return arg;
}

/* Where the thread waits, by what the kernel says of it; 0: it still runs. */
static uint64_t waiting_at(void)
{
	char path[64], line[256] = "", *last;
	FILE *f;

	if (!tid)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	fclose(f);
	if (line[0] < '0' || line[0] > '9')
		return 0;
	last = strrchr(line, ' ');
	return last ? strtoul(last, NULL, 16) : 0;
}

/* Asleep for a signal to wake: not in want of a page or of a lock of the kernel. */
static bool sleeps(void)
{
	char path[64], line[512] = "", *p;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	fclose(f);
	p = strrchr(line, ')');
	return p && !strncmp(p, ") S", 3);
}

/* ... and stays. */
static uint64_t settled_at(void)
{
	uint64_t pc = 0, last;
	unsigned int same = 0;

	while (same < 5) {
		usleep(1000);
		last = pc;
		pc = waiting_at();
		same = pc && pc == last && sleeps() ? same + 1 : 0;
	}
	return pc;
}

static void open_files(void)
{
	char fill[4096] = { 0 };

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sock), 0);
	assert_int_equal(pipe2(full, O_NONBLOCK), 0);
	while (write(full[1], fill, sizeof(fill)) > 0)
		;
	while (write(full[1], fill, 1) > 0)
		;
	fcntl(full[1], F_SETFL, 0);
	child = fork();
	if (!child)
		for (;;)
			pause();
}

static void where_threads_wait_for_what_may_be_cancelled_is_refused(void **state)
{
	struct err err = ERR_INIT;
	struct sym_proc *sym;
	unsigned int by_place = 0;

	(void)state;
	open_files();
	assert_int_equal(sym_open(&sym, getpid(), &err), 0);
	for (size_t i = 0; i < sizeof(waiters) / sizeof(waiters[0]); i++) {
		struct sym_module *m;
		struct denied *d;
		const char *why;
		pthread_t t;
		uint64_t pc;
		void *ret;

		tid = 0;
		assert_int_equal(pthread_create(&t, NULL, run, (void *)&waiters[i]), 0);
		pc = settled_at();
		m = sym_module_of(sym, pc);
		why = deny_check(sym, pc - 2, false, NULL);
		if (!why) {
			print_error("%s waits at %#lx, where a probe would be\n", waiters[i].name,
			            pc);
			fail();
		}
		assert_int_equal(denied_open(&d, sym, m, false), 0);
		assert_ptr_equal(denied_at(d, pc - 2, NULL), why);
		denied_close(d);
		by_place += inplace_check(sym, m, pc - 2) != NULL;
		pthread_cancel(t);
		pthread_join(t, &ret);
		assert_ptr_equal(ret, PTHREAD_CANCELED);
	}
	/* The others are in functions without a name, as all of them are where glibc has labels. */
	print_message("%u of %zu by their place\n", by_place, sizeof(waiters) / sizeof(waiters[0]));
	kill(child, SIGKILL);
	sym_close(sym);
}

static void the_check_of_one_and_of_many_agree(void **state)
{
	static const char *const names[] = { "read",   "write",  "poll",  "recv",   "send",  "open",
		                             "memcpy", "usleep", "close", "strlen", "system" };
	struct err err = ERR_INIT;
	struct sym_module *m;
	struct sym_proc *sym;
	struct denied *d;
	unsigned int refused = 0;

	(void)state;
	assert_int_equal(sym_open(&sym, getpid(), &err), 0);
	m = sym_module_find(sym, "libc");
	assert_non_null(m);
	assert_int_equal(denied_open(&d, sym, m, false), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct sym_symbol s;

		assert_true(sym_lookup(sym, m, names[i], &s, 1) > 0);
		assert_null(deny_check(sym, s.addr, false, NULL)); /* the entry */
		for (uint64_t at = s.addr; at < s.addr + s.size; at++) {
			const char *why = deny_check(sym, at, false, NULL);

			assert_ptr_equal(why, denied_at(d, at, NULL));
			refused += why != NULL;
		}
	}
	print_message("%u bytes refused\n", refused);
	denied_close(d);
	sym_close(sym);
}

static pid_t run_program(const char *path)
{
	int out[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (!pid) {
		dup2(out[1], 1);
		close(out[0]);
		execl(path, path, NULL);
		_exit(127);
	}
	close(out[1]);
	assert_int_equal(read(out[0], &c, 1), 1);
	close(out[0]);
	return pid;
}

#define MUSL "build/tests/musl-cancel"

static int build_musl(void)
{
	return system(
		"mkdir -p build/tests && cd build/tests && "
		"echo 'int write(int, const void *, long), pause(void), pthread_cancel(void *);"
		"int main(void) { char c = 10; write(1, &c, 1); pause(); pthread_cancel(&c); }' > "
		"musl-cancel.c && "
		"musl-gcc -static -O1 -w -o musl-cancel musl-cancel.c 2>/dev/null && "
		"strip -o musl-cancel-stripped musl-cancel");
}

static void expect_labels(struct sym_proc *sym, uint64_t begin, uint64_t end)
{
	struct sym_module *m = sym_module_of(sym, begin);
	struct denied *d;

	assert_int_equal(denied_open(&d, sym, m, false), 0);
	for (uint64_t at = begin - 4; at < end + 4; at++) {
		const char *why = deny_check(sym, at, false, NULL);

		assert_ptr_equal(why, denied_at(d, at, NULL));
		assert_int_equal(why && strstr(why, "cancelled here by their place"),
		                 at >= begin && at < end);
	}
	denied_close(d);
}

static void musls_labels_are_found_with_symbols_and_without(void **state)
{
	struct err err = ERR_INIT;
	struct sym_symbol begin, end;
	struct sym_proc *sym;
	pid_t pid;

	(void)state;
	if (build_musl()) {
		print_message("skip: there is no musl-gcc that builds static programs\n");
		skip();
	}
	pid = run_program(MUSL);
	assert_int_equal(sym_open(&sym, pid, &err), 0);
	assert_int_equal(sym_lookup(sym, NULL, "__cp_begin", &begin, 1), 1);
	assert_int_equal(sym_lookup(sym, NULL, "__cp_end", &end, 1), 1);
	assert_in_range(end.addr - begin.addr, 30, 80);
	expect_labels(sym, begin.addr, end.addr);
	sym_close(sym);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* at the same place, and nothing says so */
	pid = run_program(MUSL "-stripped");
	assert_int_equal(sym_open(&sym, pid, &err), 0);
	assert_int_equal(sym_lookup(sym, NULL, "__cp_begin", &end, 1), 0);
	expect_labels(sym, begin.addr, end.addr);
	sym_close(sym);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_threads_wait_for_what_may_be_cancelled_is_refused),
		cmocka_unit_test(the_check_of_one_and_of_many_agree),
		cmocka_unit_test(musls_labels_are_found_with_symbols_and_without),
	};

	alarm(900);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
