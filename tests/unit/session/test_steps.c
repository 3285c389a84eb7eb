/* SPDX-License-Identifier: MIT */
/*
 * A broker that is killed at any of its steps: each system call by which it changes
 * something, before the call and behind it, from the attach to the end of the detach.
 * Who comes next finds the target serving, attaches or cures, and leaves nothing.
 *
 *	STEPS=N		each N-th step only
 *	FROM=N TO=N	these steps
 *	ROUNDS=4	each with whoever comes next in each way
 *	CORES=1		the target may leave a core where it dies
 */
#include "../inject/help.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/ptrace.h>
#include <sys/resource.h>

#include "session/optimize.h"
#include "session/target.h"
#include "ukprobes/session.h"

#define EVERY 53 /* as long as nothing else is said */

struct shared {
	volatile long rounds, naps, stop, bad;
	volatile bool between; /* a broker and who comes next */
	bool sleeps;           /* the first thread, mostly */
};

static struct shared *shared;

/* --- the target -------------------------------------------------------------- */

long steps_work(long n);
__attribute__((noinline)) long steps_work(long n)
{
	__asm__ volatile("nop; nop; nop; nop; nop; nop" ::: "memory");
	return n * 3 + 1;
}

static void handler(int sig)
{
	(void)sig;
}

/* What the program has set itself reads back. */
static void look_at_signals(struct shared *s)
{
	bool between = s->between;
	struct sigaction sa;
	sigset_t set;

	if (!between && (sigaction(SIGSEGV, NULL, &sa) || sa.sa_handler != handler) && !s->between)
		s->bad |= 8;
	if (sigprocmask(SIG_BLOCK, NULL, &set) || sigismember(&set, SIGTRAP) ||
	    !sigismember(&set, SIGUSR1) || sigismember(&set, SIGUSR2))
		s->bad |= 16;
}

static bool registers_stay(void)
{
	register long a __asm__("r12") = 1;
	long b = 2, c = 3, d = 4;
	double x = 0.5;
	int i;

	for (i = 0; i < 100; i++)
		__asm__ volatile("nop" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+x"(x));
	return a == 1 && b == 2 && c == 3 && d == 4 && x == 0.5;
}

static void one_round(struct shared *s, struct timespec nap)
{
	long n = s->rounds;

	if (steps_work(n) != n * 3 + 1)
		s->bad |= 1;
	if (!registers_stay())
		s->bad |= 2;
	if (nap.tv_nsec && nanosleep(&nap, NULL))
		s->bad |= 4;
}

static void *other_thread(void *arg)
{
	struct shared *s = arg;

	while (!s->stop) {
		one_round(s, (struct timespec){ 0, 300000 });
		s->naps++;
	}
	return NULL;
}

static int run_target(void *arg)
{
	struct shared *s = arg;
	pthread_t other;
	sigset_t set;

	if (getenv("CORES"))
		setrlimit(RLIMIT_CORE, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGSEGV, handler);
	if (pthread_create(&other, NULL, other_thread, s))
		return 1;
	while (!s->stop) {
		one_round(s, (struct timespec){ 0, s->sleeps ? 500000 : 0 });
		if (!(s->rounds++ % 64))
			look_at_signals(s);
	}
	pthread_join(other, NULL);
	return s->bad ? 1 : 7;
}

/* --- what it looks like from outside ------------------------------------------- */

static void add_line(char **to, const char *fmt, ...)
{
	char *was = *to, line[640];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	assert_true(asprintf(to, "%s%s", was ? was : "", line) >= 0);
	free(was);
}

static void add_maps(char **to, pid_t pid)
{
	char path[64], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (!strstr(line, "[heap]") && !strstr(line, "[stack]"))
			add_line(to, "%s", line);
	fclose(f);
}

static void add_files(char **to, pid_t pid)
{
	char path[64], link[200];
	struct dirent *e;
	ssize_t n;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	assert_non_null(d);
	while ((e = readdir(d))) {
		n = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);
		if (n >= 0)
			add_line(to, "fd %s %.*s\n", e->d_name, (int)n, link);
	}
	closedir(d);
}

static void add_status(char **to, pid_t pid, const char *task)
{
	char path[300], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%.200s/status", pid, task);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "Sig", 3) && strncmp(line, "SigQ", 4))
			add_line(to, "%s %s", task, line);
	fclose(f);
}

static char *snapshot(pid_t pid)
{
	char path[64], *text = NULL;
	struct dirent *e;
	DIR *d;

	add_maps(&text, pid);
	add_files(&text, pid);
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	assert_non_null(d);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			add_status(&text, pid, e->d_name);
	closedir(d);
	return text;
}

/* --- the broker ------------------------------------------------------------------- */

static void jump(struct target *t)
{
	enum optimize_left left;
	uint64_t n;
	int tries;

	optimize_kick(t);
	for (tries = 0; tries < 100; tries++) {
		nap_ms(1);
		if (read(optimize_fd(t), &n, sizeof(n)) > 0)
			optimize_ready(t);
		left = optimize_on(t);
		if (tries > 3 && left != OPTIMIZE_MORE && left != OPTIMIZE_LATER)
			break;
	}
}

static void add(struct chan *c, const char *text, enum add_what what)
{
	struct err err = ERR_INIT;
	struct probe *p;

	if (probe_add(c, text, what, 0, &p, &err)) {
		fprintf(stderr, "%s\n", err.text);
		_exit(2);
	}
}

static void check(int ret, const struct err *err)
{
	if (!ret)
		return;
	fprintf(stderr, "broker: %s\n", err->text);
	_exit(2);
}

/* All that a broker does in a target, from its beginning to its end. */
static int run_broker(void *arg)
{
	struct err err = ERR_INIT;
	struct target *t;
	struct chan *c;

	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	check(target_attach(&t, *(pid_t *)arg, NULL, &err), &err);
	check(chan_open(t, &c, &err), &err);
	add(c, "p:e steps_work $arg1:u64", ADD_EVENT);
	add(c, "p:i steps_work+1 %di:u64", ADD_EVENT);
	add(c, "r:x steps_work $retval:u64", ADD_EVENT);
	chan_warm(c);
	check(probe_start(c, &err), &err);
	nap_ms(1);
	jump(t);
	check(optimize_off(t, &err), &err);
	check(chan_close(c, &err), &err);
	check(target_detach(t, &err), &err);
	target_free(t);
	return 0;
}

/* --- its steps ---------------------------------------------------------------------- */

struct step {
	long nr;
	uint64_t arg;
	bool behind;
};

static bool changes_something(const struct step *s)
{
	switch (s->nr) {
	case SYS_ptrace:
		switch (s->arg) {
		case PTRACE_CONT:
		case PTRACE_SYSCALL:
		case PTRACE_SETREGS:
		case PTRACE_DETACH:
		case PTRACE_SETREGSET:
		case PTRACE_SEIZE:
		case PTRACE_INTERRUPT:
		case 0x420b: /* PTRACE_SETSIGMASK */
			return true;
		}
		return false;
	case SYS_pwrite64:
	case SYS_process_vm_writev:
	case SYS_ftruncate:
	case SYS_fcntl:
	case SYS_mmap:
	case SYS_munmap:
		return true;
	}
	return false;
}

/* At a stop: is it a step? */
static bool look(pid_t broker, int status, struct step *s)
{
	struct __ptrace_syscall_info info;
	static long nr;
	static uint64_t arg;

	if (WSTOPSIG(status) != (SIGTRAP | 0x80) ||
	    ptrace(PTRACE_GET_SYSCALL_INFO, broker, sizeof(info), &info) <= 0)
		return false;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		nr = info.entry.nr;
		arg = info.entry.args[0];
	}
	*s = (struct step){ nr, arg, info.op == PTRACE_SYSCALL_INFO_EXIT };
	return changes_something(s);
}

static void say_step(char *buf, size_t len, long n, const struct step *s)
{
	snprintf(buf, len, "step %ld, %s call %ld(%#lx)", n, s->behind ? "behind" : "before", s->nr,
	         (unsigned long)s->arg);
}

/* Lets a broker go its way to its n-th step; false: it has come to its end before. */
static bool broker_up_to(pid_t pid, long n, char *what, size_t len)
{
	pid_t broker;
	struct step s = { 0 };
	long at = 0;
	int st, sig = 0;

	shared->between = true;
	broker = child(run_broker, &pid);
	assert_int_equal(waitpid(broker, &st, 0), broker);
	assert_true(WIFSTOPPED(st));
	ptrace(PTRACE_SETOPTIONS, broker, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	for (;;) {
		if (ptrace(PTRACE_SYSCALL, broker, 0, (long)sig))
			fail_msg("the broker is gone");
		assert_int_equal(waitpid(broker, &st, 0), broker);
		if (WIFEXITED(st)) {
			assert_int_equal(st, 0);
			printf("a broker has %ld steps\n", at);
			shared->between = false;
			return false;
		}
		assert_true(WIFSTOPPED(st));
		sig = WSTOPSIG(st) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(st);
		if (look(broker, st, &s) && at++ == n)
			break;
	}
	say_step(what, len, n, &s);
	child_kill(broker);
	return true;
}

/* --- and who comes next --------------------------------------------------------------- */

static char what[128];
static bool failed; /* at this step: the target is given up */

static void wrong(const char *fmt, ...)
{
	va_list ap;

	if (failed)
		return;
	failed = true;
	printf("%s: ", what);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

static bool is_alive(pid_t pid, const char *when)
{
	int st;

	if (waitpid(pid, &st, WNOHANG) == pid)
		wrong("the target (%d) ended %s with %#x, bad %#lx", pid, when, st, shared->bad);
	else if (shared->bad)
		wrong("%s the target finds something wrong: %#lx", when, shared->bad);
	return !failed;
}

static void check_serves(pid_t pid, const char *when)
{
	long rounds = shared->rounds, naps = shared->naps;
	time_t end = patience();

	while (is_alive(pid, when) && (shared->rounds < rounds + 3 || shared->naps < naps + 3))
		if (!patient(end))
			wrong("the target stands still %s", when);
}

static void next_broker(pid_t pid)
{
	struct err err = ERR_INIT;
	struct target *t;

	if (target_attach(&t, pid, NULL, &err)) {
		wrong("the next attach: %s", err.text);
		return;
	}
	is_alive(pid, "under the next broker");
	if (target_detach(t, &err))
		wrong("the next detach: %s", err.text);
	target_free(t);
}

/* At once, or when it has served a while; by a broker, or by the cure. */
static void come_next(pid_t pid, long variant)
{
	const char *why = "";

	if (variant & 1)
		check_serves(pid, "behind the kill");
	if (!(variant & 2))
		next_broker(pid);
	else if (ukp_cure(pid, NULL, &why))
		wrong("cure: %s", why);
	shared->between = false;
	if (is_alive(pid, "behind that"))
		check_serves(pid, "in the end");
}

/* Lines of a that are not in b. */
static void print_others(const char *title, const char *a, const char *b)
{
	char line[600];
	size_t n;

	for (; *a; a += n) {
		n = strcspn(a, "\n") + 1;
		snprintf(line, sizeof(line), "%.*s", (int)n, a);
		if (!strstr(b, line))
			printf("%s %s", title, line);
	}
}

static void check_untouched(pid_t pid, const char *before)
{
	time_t end = patience() - PATIENCE_S + 2;
	const char *why = "";
	char *now;

	if (ukp_verify(pid, NULL, &why))
		wrong("verify: %s", why);
	/* A thread may just have blocked signals for a moment. */
	while (now = snapshot(pid), strcmp(now, before) && patient(end))
		free(now);
	if (strcmp(now, before)) {
		wrong("something has changed");
		print_others("  was", before, now);
		print_others("  is ", now, before);
	}
	free(now);
}

static long number(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text ? atol(text) : otherwise;
}

static pid_t start_target(bool sleeps)
{
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	shared->sleeps = sleeps;
	pid = child(run_target, shared);
	await_word(&shared->rounds, 3);
	await_word(&shared->naps, 3);
	return pid;
}

/* From step n on with one target; the step behind the last one, -1: that was all. */
static long kill_at(bool sleeps, long round, long n, long every, long end)
{
	pid_t pid = start_target(sleeps);
	char *before = snapshot(pid);
	bool more = true;

	failed = false;
	while (n < end && (more = broker_up_to(pid, n, what, sizeof(what)))) {
		come_next(pid, n / every + round);
		if (!failed)
			check_untouched(pid, before);
		n += every;
		if (failed)
			break;
	}
	free(before);
	if (failed) {
		child_kill(pid);
		return n;
	}
	shared->stop = 1;
	assert_int_equal(child_status(pid), 7 << 8);
	return more ? -1 : -n;
}

static void kills(bool sleeps)
{
	long every = number("STEPS", EVERY), from = number("FROM", 0), n;
	long end = number("TO", 1l << 40), rounds = number("ROUNDS", 1), i;
	unsigned int bad = 0;

	shared = shared_page();
	for (i = 0; i < rounds; i++) {
		n = from;
		while ((n = kill_at(sleeps, i, n, every, end)) > 0)
			bad++;
	}
	if (bad)
		fail_msg("%u kills have left something", bad);
}

static void a_target_that_runs(void **state)
{
	kills(false);
}

static void a_target_that_sleeps(void **state)
{
	kills(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_target_that_runs),
		cmocka_unit_test(a_target_that_sleeps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
