/* SPDX-License-Identifier: MIT */
/*
 * What peers trace: thread-CPU nanoseconds of a call of peer_work over one of a
 * copy that nobody traces, the median of CHUNKS; and how many calls there were.
 *
 *	peer [jump]		first wait until peer_work begins with a jump
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef PEER_LTTNG
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "bench/peer_lttng.h"
#define HIT(a) lttng_ust_tracepoint(ukp_bench, hit, a)
#else
#define HIT(a) ((void)0)
#endif

#define CHUNKS 41
#define CALLS 5000
#define UNTRACED __attribute__((no_instrument_function, noinline, noclone))

__attribute__((noinline, noclone)) long peer_work(long a, long b);

long peer_work(long a, long b)
{
	long r = a * 3 + b;

	HIT(a);
	__asm__ volatile("" : "+r"(r));
	r ^= r >> 7;
	return r + a;
}

static UNTRACED long plain(long a, long b)
{
	long r = a * 3 + b;

	__asm__ volatile("" : "+r"(r));
	r ^= r >> 7;
	return r + a;
}

static UNTRACED double slice(long (*volatile fn)(long, long))
{
	struct timespec from, to;
	long i, s = 1;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	for (i = 0; i < CALLS; i++)
		s += fn(i, s);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	__asm__ volatile("" ::"r"(s));
	return ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) /
	       CALLS;
}

static UNTRACED int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

UNTRACED int main(int argc, char **argv)
{
	const volatile unsigned char *code = (const unsigned char *)(size_t)peer_work;
	double over[CHUNKS];

	for (int i = 0; argc > 1 && !strcmp(argv[1], "jump") && *code != 0xe9; i++) {
		if (i == 3000) {
			fprintf(stderr, "no jump came\n");
			return 1;
		}
		usleep(10000);
	}
	slice(peer_work);
	for (int i = 0; i < CHUNKS; i++)
		over[i] = slice(peer_work) - slice(plain);
	qsort(over, CHUNKS, sizeof(*over), compare);
	printf("PEER %.2f %d\n", over[CHUNKS / 2], (CHUNKS + 1) * CALLS);
	return 0;
}
