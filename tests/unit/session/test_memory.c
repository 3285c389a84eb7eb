/* SPDX-License-Identifier: MIT */
/*
 * Random mixtures of probes come and go in code that threads and signal handlers run
 * through, each mixture with detours of its own.  Memory of both sides grows until the
 * first of them have been given up, and then no more; results stay right.
 *
 *	MIXTURES=N	so many
 *	KILLS=N
 *	SEED=N
 */
#include "victim.h"

#include <malloc.h>
#include <sys/time.h>

#include "session/sites.h"

#define MIXTURES 32
#define KILLS 2
#define LIFE 16 /* mixtures */
#define THREADS 1

/* What may come to be a little more each time: allocators, exits that are found late. */
#define AREA_MORE (16u << 10)
#define CODE_MORE (64u << 10) /* a mapping */
#define CODE_MOST (512u << 10)
#define BROKER_MORE (64u << 10)

struct pattern {
	volatile long stop, bad, runs, handled;
	volatile long mixtures;
	volatile long fork, child, child_runs, child_stop;
	volatile long go, waiter; /* the thread that waits inside a detour */
	int pipe[2];
};

static struct pattern *pattern;

/* Short instructions: many mixtures fit into a jump's window. */
#define GROUPS 16
#define GROUP_LEN 7
#define IN_GROUP 5
#define START 4

long memory_work(long n);
__asm__(".text\n"
        ".globl memory_work\n"
        ".type memory_work, @function\n"
        "memory_work:\n"
        "	lea (%rdi), %rax\n"
        "	nop\n"
        ".rept 16\n"
        "	push %rax\n"
        "	pop %rcx\n"
        "	push %rcx\n"
        "	pop %rax\n"
        "	inc %rax\n"
        ".endr\n"
        "	ret\n"
        ".size memory_work, . - memory_work\n");

/* A system call whose thread waits in a detour's copy of it. */
long memory_call(long a, void *b, long c, long d, long nr);
__asm__(".globl memory_call\n"
        ".type memory_call, @function\n"
        "memory_call:\n"
        "	mov %r8, %rax\n"
        "	syscall\n"
        "	ret\n"
        ".size memory_call, . - memory_call\n");

/* --- the target ---------------------------------------------------------------- */

static void on_alarm(int sig)
{
	long n = pattern->handled++;

	(void)sig;
	if (memory_work(n) != n + GROUPS)
		pattern->bad |= 1;
}

static void *work(void *arg)
{
	const size_t len = 64 << 10;
	stack_t st = { .ss_sp = malloc(len), .ss_size = len };
	long n = (long)arg << 32;

	if (!st.ss_sp || sigaltstack(&st, NULL))
		pattern->bad |= 2;
	for (; !pattern->stop; n++) {
		if (memory_work(n) != n + GROUPS)
			pattern->bad |= 4;
		__atomic_fetch_add(&pattern->runs, 1, __ATOMIC_RELAXED);
		if (n % 32 == 0)
			nap_ms(1);
	}
	st.ss_flags = SS_DISABLE;
	sigaltstack(&st, NULL);
	free(st.ss_sp);
	return NULL;
}

/* A child: with the jumps of its parent in its text, for as long as it is told. */
static void run_child(void)
{
	long n = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (; !pattern->child_stop; n++) {
		if (memory_work(n) != n + GROUPS)
			pattern->bad |= 16;
		pattern->child_runs = n;
		nap_ms(1);
	}
	_exit(7);
}

static void *fork_when_told(void *arg)
{
	pid_t pid;
	int st;

	(void)arg;
	stay_until(&pattern->fork);
	if (pattern->fork < 0)
		return NULL;
	pid = fork();
	if (!pid)
		run_child();
	pattern->child = pid;
	if (waitpid(pid, &st, 0) != pid || st != 7 << 8)
		pattern->bad |= 32;
	return NULL;
}

static void *wait_inside(void *arg)
{
	sigset_t all;
	char byte = 0;

	(void)arg;
	/* What interrupts it brings it out of there. */
	sigemptyset(&all);
	sigaddset(&all, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	pattern->waiter = syscall(SYS_gettid);
	stay_until(&pattern->go);
	if (memory_call(pattern->pipe[0], &byte, 1, 0, SYS_read) != 1 || byte != 'x')
		pattern->bad |= 8;
	return NULL;
}

static int run_program(void *arg)
{
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART | SA_ONSTACK };
	pthread_t thread[THREADS], waiter, forks;
	long i;

	(void)arg;
	if (pthread_create(&waiter, NULL, wait_inside, NULL) ||
	    pthread_create(&forks, NULL, fork_when_told, NULL))
		return 1;
	sigaction(SIGALRM, &sa, NULL);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, work, (void *)i))
			return 1;
	setitimer(ITIMER_REAL, &often, NULL);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	pthread_join(waiter, NULL);
	pthread_join(forks, NULL);
	return pattern->bad ? 1 : 7;
}

/* --- the broker ------------------------------------------------------------------ */

static uint64_t hits;
static bool fork_now; /* when jumps are in */

/* Another module's turn, with detours of its own: nobody comes there. */
static void add_one_elsewhere(struct chan *c, const char *args)
{
	static const char *const names[] = { "qsort",  "bsearch", "strtol",    "strtoul",
		                             "strtod", "rand",    "srand",     "perror",
		                             "mktime", "fopen",   "setlocale", "ungetc",
		                             "fseek",  "ftell",   "rewind",    "atol" };
	struct err ignored = ERR_INIT;
	struct probe *p;
	char text[128];

	snprintf(text, sizeof(text), "p libc.so.6:%s%s",
	         names[(size_t)rand() % (sizeof(names) / sizeof(*names))], args);
	probe_add(c, text, ADD_EVENT, 0, &p, &ignored);
}

/* A mixture: some places, each with what reads this or that. */
static void add_some(struct chan *c)
{
	static const char *const args[] = { "", " %di:x64", " %ax:u64", " %sp %r15", " $comm" };
	struct err err = ERR_INIT;
	struct probe *p;
	char text[128];
	int i;

	for (i = 0; i < GROUPS * IN_GROUP; i++) {
		const bool count = rand() % 3 == 0;

		if (rand() % 3)
			continue;
		snprintf(text, sizeof(text), "p memory_work+%d%s",
		         START + i / IN_GROUP * GROUP_LEN + i % IN_GROUP,
		         count ? "" : args[rand() % 5]);
		must(probe_add(c, text, count ? ADD_COUNT : ADD_EVENT, 0, &p, &err), &err);
	}
	for (i = 0; i < 3; i++)
		add_one_elsewhere(c, args[rand() % 5]);
	if (rand() % 2)
		must(probe_add(c, "r memory_work $retval", ADD_EVENT, 0, &p, &err), &err);
}

static void count_hits(const struct chan *c)
{
	const struct ukp_stat *s = (void *)((char *)c->map + UKP_CHAN_OFF_STATS);
	uint32_t i;

	for (i = 0; i < c->layout.nr_shards * c->layout.nr_stats; i++)
		hits += s[i].hits;
}

static unsigned int jumped(const struct target *t)
{
	unsigned int n = 0;
	size_t i;

	for (i = 0; i < t->nr_sites; i++)
		n += t->sites[i]->jumped;
	return n;
}

static bool is_code(const struct target *t, uint64_t pc)
{
	uint32_t i;

	for (i = 0; i < t->own.nr_mappings; i++)
		if (t->own.mapping[i].kind == UKP_MAP_SLOTS &&
		    pc - t->own.mapping[i].addr < t->own.mapping[i].len)
			return true;
	return false;
}

/* The pc of the thread that waits; 0: it doesn't wait in a call. */
static uint64_t pc_of_waiter(const struct target *t)
{
	char path[64], line[256] = "", *p;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%ld/syscall", t->pid, pattern->waiter);
	f = fopen(path, "r");
	assert_non_null(f);
	p = fgets(line, sizeof(line), f) ? strrchr(line, ' ') : NULL;
	fclose(f);
	return p && !strncmp(line, "0 ", 2) ? strtoull(p, NULL, 16) : 0;
}

static void put_inside(struct target *t)
{
	time_t end = patience();

	pattern->go = 1;
	while (!pc_of_waiter(t) && patient(end))
		;
	assert_true(is_code(t, pc_of_waiter(t)));
}

static bool has_jump(const struct target *t)
{
	const struct site *s = sites_find(t, (uint64_t)memory_call);

	return s && s->jumped;
}

/* Returns how many sites had jumps. */
static unsigned int come_and_go(struct target *t)
{
	struct err err = ERR_INIT;
	const time_t end = patience() - PATIENCE_S + 30;
	struct probe *p;
	unsigned int n;
	bool done;
	uint64_t seen;
	struct chan *c;

	must(chan_open(t, &c, &err), &err);
	add_some(c);
	if (!pattern->go)
		must(probe_add(c, "p memory_call", ADD_EVENT, 0, &p, &err), &err);
	must(optimize_off(t, &err), &err);
	must(probe_start(c, &err), &err);
	optimize_kick(t);
	/* The first time until what jumps need is made. */
	do {
		if (read(optimize_fd(t), &seen, sizeof(seen)) > 0)
			optimize_ready(t);
		done = optimize_on(t) == OPTIMIZE_DONE;
		n = jumped(t);
	} while (!(done && (pattern->go || has_jump(t))) && patient(end));
	if (!pattern->go)
		put_inside(t);
	if (fork_now) {
		fork_now = false;
		pattern->fork = 1;
		await_word(&pattern->child, 1);
	}
	must(optimize_off(t, &err), &err);
	count_hits(c);
	must(chan_close(c, &err), &err);
	return n;
}

struct usage {
	uint64_t area, code, broker;
};

static struct usage usage(const struct target *t)
{
	struct usage u = { .area = t->own.next_free, .broker = mallinfo2().uordblks };
	uint32_t i;

	for (i = 0; i < t->own.nr_mappings; i++)
		if (t->own.mapping[i].kind == UKP_MAP_SLOTS)
			u.code += t->own.mapping[i].len;
	return u;
}

static void say(const char *when, struct usage u, long n, unsigned int jumps)
{
	printf("%s: area %lu, code %lu, broker %lu KiB; %u jumps in %ld mixtures\n", when,
	       u.area >> 10, u.code >> 10, u.broker >> 10, jumps, n);
}

static unsigned int mix(struct target *t, long n)
{
	unsigned int jumps = 0;

	for (; n; n--)
		jumps += come_and_go(t);
	return jumps;
}

static pid_t start_program(void)
{
	pid_t pid;

	srand((unsigned int)number("SEED", 1));
	pattern = shared_page();
	assert_int_equal(pipe(pattern->pipe), 0);
	pid = child(run_program, NULL);
	await_word(&pattern->runs, 1000);
	await_word(&pattern->waiter, 1);
	return pid;
}

static void end_program(pid_t pid)
{
	assert_int_equal(write(pattern->pipe[1], "x", 1), 1);
	pattern->go = pattern->stop = 1;
	if (!pattern->fork)
		pattern->fork = -1;
	assert_int_equal(child_status(pid), 7 << 8);
}

static void memory_stops_growing(void **state)
{
	const long n = number("MIXTURES", MIXTURES);
	struct err err = ERR_INIT;
	struct usage first, warm, last;
	unsigned int jumps;
	struct target *t;
	pid_t pid = start_program();

	must(target_attach(&t, pid, NULL, &err), &err);
	optimize_await(t, 60000);
	mix(t, 1);
	first = usage(t);
	jumps = mix(t, n / 2);
	warm = usage(t);
	say("warm", warm, n / 2, jumps);
	jumps = mix(t, n - n / 2);
	last = usage(t);
	say("last", last, n - n / 2, jumps);
	/* Else nothing would have grown. */
	assert_true(jumps > (unsigned long)n && hits > (uint64_t)n);
	assert_true(warm.area > first.area);
	assert_true(last.area <= warm.area + AREA_MORE);
	assert_true(last.code <= warm.code + CODE_MORE);
	assert_true(last.code <= CODE_MOST);
	assert_true(last.broker <= warm.broker + BROKER_MORE);
	assert_int_equal(pattern->bad, 0);
	assert_true(pattern->handled > 100);
	/* What it is in is as it was. */
	assert_true(is_code(t, pc_of_waiter(t)));
	assert_int_equal(write(pattern->pipe[1], "x", 1), 1);
	must(target_detach(t, &err), &err);
	target_free(t);
	end_program(pid);
}

/* It is cured by the descriptions of the detours that its jumps lead to. */
static void a_child_keeps_its_detours(void **state)
{
	struct err err = ERR_INIT;
	pid_t pid = start_program();
	struct target *t;
	long runs;

	must(target_attach(&t, pid, NULL, &err), &err);
	pattern->go = 1;
	mix(t, LIFE / 2);
	fork_now = true;
	mix(t, LIFE);
	assert_true(pattern->child > 0);
	must(target_detach(t, &err), &err);
	must(family_cure(&t->family, &err), &err);
	target_free(t);
	runs = pattern->child_runs;
	await_word(&pattern->child_runs, runs + 3);
	assert_int_equal(pattern->bad, 0);
	pattern->child_stop = 1;
	end_program(pid);
}

static int run_broker(void *arg)
{
	struct err err = ERR_INIT;
	struct target *t;

	if (target_attach(&t, *(pid_t *)arg, NULL, &err)) {
		fprintf(stderr, "broker: %s\n", err.text);
		return 1;
	}
	for (;; pattern->mixtures++)
		mix(t, 1);
}

/* At a moment when places have been used again for a while. */
static void a_killed_broker_can_be_cured(void **state)
{
	const long kills = number("KILLS", KILLS);
	pid_t pid = start_program(), broker;
	const char *why = "";
	long i;

	pattern->go = 1;
	for (i = 0; i < kills; i++) {
		pattern->mixtures = 0;
		broker = child(run_broker, &pid);
		await_word(&pattern->mixtures, LIFE);
		nap_ms(rand() % 50);
		assert_int_equal(waitpid(broker, NULL, WNOHANG), 0);
		child_kill(broker);
		if (ukp_cure(pid, NULL, &why))
			fail_msg("cure: %s", why);
		if (ukp_verify(pid, NULL, &why))
			fail_msg("verify: %s", why);
		assert_int_equal(pattern->bad, 0);
	}
	end_program(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_stops_growing),
		cmocka_unit_test(a_child_keeps_its_detours),
		cmocka_unit_test(a_killed_broker_can_be_cured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
