/* SPDX-License-Identifier: MIT */
/*
 * Does a counted entry cost the same with 1 to 8 threads that hit it, and with
 * 1 to 100,000 probes planted?  The target calls one function of a library of
 * 100,000 (argv[1]); plain and probed slices of it are in the same round, on two
 * functions of the same bytes.  Counts must be exact.
 */
#include "bench.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/arch.h"
#include "patch/area.h"
#include "ukprobes/session.h"

#define ROUNDS 31
#define CALLS 20000
#define MAX_THREADS 8

static struct shared {
	volatile unsigned long go, done; /* rounds asked for, rounds finished */
	volatile unsigned int threads;
	volatile double plain, probed; /* ns a call, of the last round */
	uint64_t addr;                 /* of the probed function; 0: not there yet */
} * shared;

static long (*volatile probed)(long, long), (*volatile plain)(long, long);

static double slice(long (*volatile fn)(long, long))
{
	struct timespec from, to;
	long s = 1;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	for (long i = 0; i < CALLS; i++)
		s += fn(i, s);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	__asm__ volatile("" ::"r"(s));
	return ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) /
	       CALLS;
}

/* The two instructions that a count can't do without, and nothing else: no flags, no registers. */
static __attribute__((noinline)) long floor_count(long a, long b)
{
	static struct {
		_Alignas(64) uint64_t n;
	} cell[64];
	uint64_t *n = &cell[ukp_arch_cpu_by(true) & 63].n;

	__asm__ volatile("lock incq %0" : "+m"(*n));
	return a + b;
}

static __attribute__((noinline)) long floor_plain(long a, long b)
{
	__asm__ volatile("" : "+r"(a));
	return a + b;
}

static void measure_floor(void)
{
	double with[ROUNDS], without[ROUNDS], over[ROUNDS];

	if (!(area_cpu_flags() & UKP_CTL_RDPID)) {
		printf("%-34s skipped: no rdpid here\n", "floor: rdpid, lock inc");
		return;
	}
	for (int i = 0; i < ROUNDS; i++) {
		without[i] = slice(floor_plain);
		with[i] = slice(floor_count);
		over[i] = with[i] - without[i];
	}
	printf("%-34s %8u %8.1f %8.1f\n", "floor: rdpid, lock inc", 1, median(without, ROUNDS),
	       median(over, ROUNDS));
}

static void *both(void *arg)
{
	double *ns = arg;

	ns[0] = slice(plain);
	ns[1] = slice(probed);
	return NULL;
}

static void target(const char *library)
{
	void *so = dlopen(library, RTLD_NOW);
	pthread_t t[MAX_THREADS];
	double ns[MAX_THREADS][2];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!so)
		die("%s", dlerror());
	probed = dlsym(so, "f_050000");
	plain = dlsym(so, "plain");
	shared->addr = (uint64_t)(uintptr_t)probed;
	for (;;) {
		unsigned int i, n = shared->threads;
		double sum[2] = { 0, 0 };

		while (shared->go == shared->done)
			usleep(100);
		for (i = 0, n = shared->threads; i < n; i++)
			if (pthread_create(&t[i], NULL, both, ns[i]))
				_exit(1);
		for (i = 0; i < n; i++) {
			pthread_join(t[i], NULL);
			sum[0] += ns[i][0];
			sum[1] += ns[i][1];
		}
		shared->plain = sum[0] / n;
		shared->probed = sum[1] / n;
		shared->done++;
	}
}

static void wait_for_jump(pid_t pid)
{
	char path[64];
	unsigned char byte = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < 3000 && byte != 0xe9; i++) {
		usleep(20000);
		if (pread(fd, &byte, 1, (off_t)shared->addr) != 1)
			die("the target is gone");
	}
	close(fd);
	if (byte != 0xe9)
		die("no jump came");
}

static int sum(const struct ukp_place_hits *place, void *arg)
{
	if (place->hits)
		*(uint64_t *)arg += place->hits;
	return 0;
}

static void measure(pid_t pid, const char *what, const char *def, unsigned int threads)
{
	double over[ROUNDS], base[ROUNDS];
	struct ukp_session *s;
	uint64_t hits = 0;

	if (ukp_session_open(&s, pid) || ukp_session_add_stat(s, def, NULL) || ukp_session_start(s))
		die("%s: %s", def, ukp_session_error(s));
	wait_for_jump(pid);
	shared->threads = threads;
	for (int i = 0; i < ROUNDS; i++) {
		shared->go++;
		while (shared->done != shared->go)
			usleep(100);
		base[i] = shared->plain;
		over[i] = shared->probed - shared->plain;
	}
	ukp_session_stop(s);
	ukp_session_stat(s, 0, sum, &hits);
	printf("%-34s %8u %8.1f %8.1f\n", what, threads, median(base, ROUNDS),
	       median(over, ROUNDS));
	fflush(stdout);
	if (hits != 1ull * ROUNDS * CALLS * threads)
		die("%lu hits, not %lu", (unsigned long)hits,
		    (unsigned long)ROUNDS * CALLS * threads);
	ukp_session_close(s);
}

int main(int argc, char **argv)
{
	pid_t pid;

	if (argc != 2)
		die("usage: flat LIBRARY");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	              0);
	shared->threads = 1;
	pid = fork();
	if (!pid)
		target(argv[1]);
	while (!shared->addr)
		usleep(1000);
	printf("%-34s %8s %8s %8s\n", "an entry counted from outside, ns", "threads", "plain",
	       "over (aim <= 5)");
	measure_floor();
	for (unsigned int n = 1; n <= MAX_THREADS; n *= 2)
		measure(pid, "1 function probed", "f many.so:f_050000", n);
	measure(pid, "10 probed", "f many.so:f_05000?", 1);
	measure(pid, "1,000 probed", "f many.so:f_050???", 1);
	measure(pid, "100,000 probed", "f many.so:f_*", 1);
	measure(pid, "100,000 probed", "f many.so:f_*", MAX_THREADS);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}
