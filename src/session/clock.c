/* SPDX-License-Identifier: MIT */
/*
 * The TSC against CLOCK_MONOTONIC.  The rate comes from two pairs of readings;
 * the longer apart, the better, so it is measured again as time goes by, and
 * each conversion counts from the last pair.
 */
#include <time.h>

#include "session/client.h"

#define FIRST_NS 20000000ull /* apart, for a first rate: a few ppm */
#define AGAIN_NS 1000000000ull

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

uint64_t clock_now(void)
{
	return __builtin_ia32_rdtsc();
}

/* A pair read as close together as five tries bring. */
static void pair(uint64_t *tsc, uint64_t *ns)
{
	uint64_t best = UINT64_MAX;
	int i;

	for (i = 0; i < 5; i++) {
		uint64_t a = clock_now(), n = now_ns(), b = clock_now();

		if (b - a >= best)
			continue;
		best = b - a;
		*tsc = a + (b - a) / 2;
		*ns = n;
	}
}

void clock_open(struct clock *c)
{
	pair(&c->first_tsc, &c->first_ns);
	c->tsc = c->first_tsc;
	c->ns = c->first_ns;
	c->rate = 0;
}

static void set_rate(struct clock *c)
{
	pair(&c->tsc, &c->ns);
	c->rate = (double)(c->ns - c->first_ns) / (double)(c->tsc - c->first_tsc);
}

void clock_adjust(struct clock *c)
{
	uint64_t age = now_ns() - c->first_ns;
	struct timespec rest;

	if (c->rate == 0) {
		if (age < FIRST_NS) {
			rest = (struct timespec){ 0, (long)(FIRST_NS - age) };
			nanosleep(&rest, NULL);
		}
		set_rate(c);
	} else if (now_ns() - c->ns > AGAIN_NS) {
		set_rate(c);
	}
}

uint64_t clock_ns(const struct clock *c, uint64_t tsc)
{
	return c->ns + (int64_t)((double)(int64_t)(tsc - c->tsc) * c->rate);
}

uint64_t clock_ticks_to_ns(const struct clock *c, uint64_t ticks)
{
	return (uint64_t)((double)ticks * c->rate + 0.5);
}
