/* SPDX-License-Identifier: MIT */
/*
 * What a hit costs in the jump form: thread-CPU nanoseconds of a small
 * function's call over the unprobed one, in one process whose probes come and
 * go from outside.  Medians of ROUNDS; the counts must be exact.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ukprobes/session.h"

#define ROUNDS 9
#define CALLS 20000
#define MAX_THREADS 8

struct shared {
	volatile unsigned long go, done; /* rounds asked for, rounds finished */
	volatile unsigned int threads;   /* that call, in the next round */
	volatile double ns;              /* a call, of the last round */
};

static struct shared *shared;

/* Long enough for a window, and nothing in it that depends on the loop. */
unsigned long jump_bench_work(unsigned long a, unsigned long b);

__attribute__((noinline, noclone)) unsigned long jump_bench_work(unsigned long a, unsigned long b)
{
	__asm__ volatile("" : "+r"(a), "+r"(b));
	return a * 33 + (b ^ a) + 17;
}

static double thread_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

static void *calls(void *ns)
{
	volatile unsigned long sink = 0;
	double start = thread_ns();

	for (unsigned long i = 0; i < CALLS; i++)
		sink += jump_bench_work(i, sink);
	*(double *)ns = (thread_ns() - start) / CALLS;
	return NULL;
}

static void target(void)
{
	pthread_t t[MAX_THREADS];
	double ns[MAX_THREADS], sum;
	unsigned int i, n;

	for (;;) {
		while (shared->go == shared->done)
			usleep(100);
		n = shared->threads;
		for (i = 1; i < n; i++)
			if (pthread_create(&t[i], NULL, calls, &ns[i]))
				_exit(1);
		calls(&ns[0]);
		for (i = 1, sum = ns[0]; i < n; sum += ns[i++])
			pthread_join(t[i], NULL);
		shared->ns = sum / n;
		shared->done++;
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static int drop(const struct ukp_record *r, void *arg)
{
	return 0;
}

static double median(struct ukp_session *s)
{
	double ns[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		shared->go++;
		while (shared->done != shared->go)
			if (s)
				ukp_session_read(s, drop, NULL, 1);
			else
				usleep(100);
		ns[i] = shared->ns;
	}
	qsort(ns, ROUNDS, sizeof(*ns), by_value);
	return ns[ROUNDS / 2];
}

/* Until the listing says so; false: it stays a breakpoint. */
static bool optimized(pid_t pid)
{
	for (int i = 0; i < 200; i++) {
		char text[512] = "";
		FILE *f = fmemopen(text, sizeof(text), "w");
		const char *why;

		ukp_list(pid, f, &why);
		fclose(f);
		if (strstr(text, "[OPTIMIZED]"))
			return true;
		usleep(20000);
	}
	return false;
}

static int sum(const struct ukp_place_hits *place, void *arg)
{
	*(uint64_t *)arg += place->hits;
	return 0;
}

static int add_count(struct ukp_session *s)
{
	return ukp_session_add_stat(s, "p jump_bench_work", NULL);
}

static int add_all(struct ukp_session *s)
{
	return ukp_session_add_stat(s, "p jump_bench_work+*", NULL);
}

static int row(pid_t pid, const char *name, int (*add)(struct ukp_session *s), double plain)
{
	unsigned long want = 2ul * ROUNDS * CALLS * shared->threads;
	struct ukp_session *s;
	struct ukp_counts c;
	uint64_t places = 1;
	double ns;

	if (ukp_session_open(&s, pid) || add(s) || ukp_session_start(s)) {
		fprintf(stderr, "%s: %s\n", name, ukp_session_error(s));
		return 1;
	}
	if (!optimized(pid)) {
		fprintf(stderr, "%s: no jump came\n", name);
		return 1;
	}
	median(s); /* warms up: the first hits meet pages that are not there yet */
	ns = median(s);
	ukp_session_stop(s);
	ukp_session_counts(s, 0, &c);
	if (add == add_count || add == add_all) {
		ukp_session_stat(s, 0, sum, &c.hits);
		places = c.hits / want;
	}
	printf("%-44s %8.1f %8.1f", name, ns, ns - plain);
	if (places > 1)
		printf(", %.1f each of %lu", (ns - plain) / places, (unsigned long)places);
	printf("\n");
	ukp_session_close(s);
	if (places && c.hits == want * places)
		return 0;
	fprintf(stderr, "%s: %lu hits, %lu calls\n", name, (unsigned long)c.hits, want);
	return 1;
}

static int add_entry(struct ukp_session *s)
{
	return ukp_session_add(s, "p jump_bench_work", NULL);
}

static int add_args(struct ukp_session *s)
{
	return ukp_session_add(s, "p jump_bench_work a=$arg1:u64 b=$arg2:u64", NULL);
}

static int add_return(struct ukp_session *s)
{
	return ukp_session_add(s, "r jump_bench_work $retval $duration", NULL);
}

static int add_latency(struct ukp_session *s)
{
	return ukp_session_add_latency(s, "jump_bench_work", NULL);
}

int main(void)
{
	double plain;
	pid_t pid;
	int bad;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	              0);
	shared->threads = 1;
	pid = fork();
	if (!pid)
		target();
	plain = median(NULL);
	printf("the jump form, ns a call and over the plain one (%.1f)\n", plain);
	bad = row(pid, "entry, counted", add_count, plain);
	bad |= row(pid, "each instruction, counted", add_all, plain);
	bad |= row(pid, "entry, a record", add_entry, plain);
	bad |= row(pid, "entry, a record with two arguments", add_args, plain);
	bad |= row(pid, "entry and return, a record", add_return, plain);
	bad |= row(pid, "entry and return, a latency histogram", add_latency, plain);
	shared->threads = MAX_THREADS;
	plain = median(NULL);
	printf("%u threads, plain %.1f\n", MAX_THREADS, plain);
	bad |= row(pid, "entry, counted", add_count, plain);
	bad |= row(pid, "entry, a record", add_entry, plain);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return bad;
}
