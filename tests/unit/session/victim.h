/* SPDX-License-Identifier: MIT */
/*
 * For tests that kill: a target that looks whether all is as it should be, a broker
 * that does in it all that there is to do, and what is looked at from outside then.
 */
#ifndef UKP_TESTS_SESSION_VICTIM_H
#define UKP_TESTS_SESSION_VICTIM_H

#include "../inject/help.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "session/optimize.h"
#include "session/target.h"
#include "ukprobes/session.h"

struct shared {
	volatile long rounds, naps, stop, bad;
	volatile bool between; /* a broker and who comes next */
	unsigned int mode;
};

enum {
	SLEEPS = 1,  /* the first thread, mostly */
	HANDLES = 2, /* all signals, so that calls in it are made one by one */
};

static struct shared *shared;

/* --- the target -------------------------------------------------------------- */

long steps_work(long n);
__attribute__((noinline)) long steps_work(long n)
{
	__asm__ volatile("nop; nop; nop; nop; nop; nop" ::: "memory");
	return n * 3 + 1;
}

static inline void handler(int sig)
{
	(void)sig;
}

/* What the program has set itself reads back. */
static inline void look_at_signals(struct shared *s)
{
	bool between = s->between;
	struct sigaction sa;
	sigset_t set;

	if (!between && (sigaction(SIGSEGV, NULL, &sa) || sa.sa_handler != handler) && !s->between)
		s->bad |= 8;
	if (!between && s->mode & HANDLES &&
	    (sigaction(SIGUSR2, NULL, &sa) || !sigismember(&sa.sa_mask, SIGTRAP)) && !s->between)
		s->bad |= 64;
	if (sigprocmask(SIG_BLOCK, NULL, &set) || sigismember(&set, SIGTRAP) ||
	    !sigismember(&set, SIGUSR1) || sigismember(&set, SIGUSR2))
		s->bad |= 16;
}

static inline bool registers_stay(void)
{
	register long a __asm__("r12") = 1;
	long b = 2, c = 3, d = 4;
	double x = 0.5;
	int i;

	for (i = 0; i < 100; i++)
		__asm__ volatile("nop" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+x"(x));
	return a == 1 && b == 2 && c == 3 && d == 4 && x == 0.5;
}

static inline void one_round(struct shared *s, struct timespec nap)
{
	long n = s->rounds;

	if (steps_work(n) != n * 3 + 1)
		s->bad |= 1;
	if (!registers_stay())
		s->bad |= 2;
	if (nap.tv_nsec && nanosleep(&nap, NULL))
		s->bad |= 4;
}

#define PIECES 4

/* Memory that comes and goes: where a broker has just unmapped something, maybe. */
static inline void map_pieces(struct shared *s, unsigned char *p[PIECES])
{
	static const size_t size[PIECES] = { 64 << 10, 1 << 20, 26 << 20, 600 << 20 };
	int i;

	for (i = 0; i < PIECES; i++) {
		if (p[i] && (p[i][0] != i + 1 || p[i][size[i] - 1] != i + 2))
			s->bad |= 32;
		if (p[i] && munmap(p[i], size[i]))
			s->bad |= 32;
		p[i] = s->between ? mmap(NULL, size[i], PROT_READ | PROT_WRITE,
		                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
		                  : NULL;
		if (p[i] == MAP_FAILED)
			p[i] = NULL;
		if (p[i]) {
			p[i][0] = i + 1;
			p[i][size[i] - 1] = i + 2;
		}
	}
}

static inline void *other_thread(void *arg)
{
	unsigned char *p[PIECES] = { NULL };
	struct shared *s = arg;

	while (!s->stop) {
		one_round(s, (struct timespec){ 0, 300000 });
		map_pieces(s, p);
		s->naps++;
	}
	return NULL;
}

static inline int run_target(void *arg)
{
	struct shared *s = arg;
	struct sigaction sa = { .sa_handler = handler };
	pthread_t other;
	sigset_t set;

	if (getenv("CORES"))
		setrlimit(RLIMIT_CORE, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGSEGV, handler);
	if (s->mode & HANDLES) {
		signal(SIGURG, handler);
		signal(SIGWINCH, handler);
		signal(SIGCHLD, handler);
		sigfillset(&sa.sa_mask);
		sigaction(SIGUSR2, &sa, NULL);
	}
	if (pthread_create(&other, NULL, other_thread, s))
		return 1;
	while (!s->stop) {
		one_round(s, (struct timespec){ 0, s->mode & SLEEPS ? 500000 : 0 });
		if (!(s->rounds++ % 64))
			look_at_signals(s);
	}
	pthread_join(other, NULL);
	return s->bad ? 1 : 7;
}

/* --- what it looks like from outside ------------------------------------------- */

static inline void add_line(char **to, const char *fmt, ...)
{
	char *was = *to, line[640];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	assert_true(asprintf(to, "%s%s", was ? was : "", line) >= 0);
	free(was);
}

static inline void add_maps(char **to, pid_t pid)
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

static inline void add_files(char **to, pid_t pid)
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

static inline void add_status(char **to, pid_t pid, const char *task)
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

static inline char *snapshot(pid_t pid)
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

static inline void jump(struct target *t)
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

static inline int add(struct chan *c, const char *text, struct err *err)
{
	struct probe *p;

	return probe_add(c, text, ADD_EVENT, 0, &p, err);
}

static unsigned int stay_ms; /* with jumps in */

static inline void must(int ret, const struct err *err)
{
	if (ret)
		fail_msg("%s", err->text);
}

/* All that a broker does in a target, from its beginning to its end; err says what failed. */
static inline int live(pid_t pid, struct err *err)
{
	struct target *t;
	struct chan *c;
	int ret = target_attach(&t, pid, NULL, err);

	if (ret)
		return ret;
	ret = chan_open(t, &c, err);
	if (!ret)
		ret = add(c, "p:e steps_work $arg1:u64", err);
	if (!ret)
		ret = add(c, "p:i steps_work+1 %di:u64", err);
	if (!ret)
		ret = add(c, "r:x steps_work $retval:u64", err);
	if (!ret) {
		chan_warm(c);
		ret = probe_start(c, err);
	}
	if (!ret) {
		nap_ms(1);
		jump(t);
		nap_ms(stay_ms);
		ret = optimize_off(t, err);
	}
	if (!ret)
		ret = chan_close(c, err);
	if (!ret)
		ret = target_detach(t, err);
	target_free(t);
	return ret;
}

/* --- and who comes next --------------------------------------------------------------- */

static char what[128];
static bool failed; /* at this step: the target is given up */

static inline void wrong(const char *fmt, ...)
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

static inline bool is_alive(pid_t pid, const char *when)
{
	int st;

	if (waitpid(pid, &st, WNOHANG) == pid)
		wrong("the target (%d) ended %s with %#x, bad %#lx", pid, when, st, shared->bad);
	else if (shared->bad)
		wrong("%s the target finds something wrong: %#lx", when, shared->bad);
	return !failed;
}

static inline void check_serves(pid_t pid, const char *when)
{
	long rounds = shared->rounds, naps = shared->naps;
	time_t end = patience();

	while (is_alive(pid, when) && (shared->rounds < rounds + 3 || shared->naps < naps + 3))
		if (!patient(end))
			wrong("the target stands still %s", when);
}

static inline void next_broker(pid_t pid)
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
static inline void come_next(pid_t pid, long variant)
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
static inline void print_others(const char *title, const char *a, const char *b)
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

static inline void check_untouched(pid_t pid, const char *before)
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

static inline long number(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text ? atol(text) : otherwise;
}

static inline pid_t start_target(unsigned int mode)
{
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	shared->mode = mode;
	pid = child(run_target, shared);
	await_word(&shared->rounds, 3);
	await_word(&shared->naps, 3);
	return pid;
}

#endif
