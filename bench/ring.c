/* SPDX-License-Identifier: MIT */
/*
 * Writing to a ring, without a trap and without a reader: reserve, 16 bytes of
 * payload, commit.  A full ring is started anew, cleared as a reader would
 * leave it, outside of the time that counts.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/ring.h"
#include "wire/record.h"
#include "wire/ring.h"

#define SUBS 8
#define SHIFT 16
#define LEN 40
#define ROUNDS 101

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static double fill(struct ukp_ring *r, size_t size)
{
	struct ukp_rec *rec;
	double from;
	uint64_t pos;
	long n = 0;

	memset(r, 0, size);
	ukp_ring_init(r, SUBS, SHIFT);
	from = now_ns();
	while ((rec = ukp_ring_reserve(r, LEN, &pos))) {
		rec->event = 1;
		rec->cpu = 0;
		rec->tid = 1;
		rec->tsc = (uint64_t)n;
		((uint64_t *)rec->payload)[0] = (uint64_t)n++;
		((uint64_t *)rec->payload)[1] = 0;
		ukp_ring_commit(r, rec, pos, LEN);
	}
	return (now_ns() - from) / (double)n;
}

int main(void)
{
	size_t size = ukp_ring_stride(SUBS, SHIFT);
	struct ukp_ring *r = aligned_alloc(4096, size);
	double ns[ROUNDS];
	int i;

	if (!r)
		die("no memory");
	for (i = 0; i < ROUNDS; i++)
		ns[i] = fill(r, size);
	printf("ring write: %.1f ns a record of %d bytes, median of %d fills (%.1f M/s a thread)\n",
	       median(ns, ROUNDS), LEN, ROUNDS, 1e3 / median(ns, ROUNDS));
	free(r);
	return 0;
}
