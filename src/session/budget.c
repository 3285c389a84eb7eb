/* SPDX-License-Identifier: MIT */
/* See budget.h. */
#include "session/budget.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "session/optimize.h"

#define LOOK_MS 500
/* What is used by then says nothing yet. */
#define CPU_MIN_NS 20000000ull

struct budget {
	double share;
	bool begun; /* hits were looked at once, when breakpoints had become jumps */
	uint64_t cpu, wall;
};

/* One probe, or one place of many that are counted. */
struct item {
	struct probe *p;
	uint64_t hits, cost;
};

struct items {
	struct item *v;
	size_t nr, room;
	uint64_t cost;
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	return clock_gettime(clock, &ts) ? 0 : ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static uint64_t now_ms(void)
{
	return now_ns(CLOCK_MONOTONIC) / 1000000;
}

/* All threads', also of those that have ended. */
static uint64_t cpu_ns(pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) ? 0 : now_ns(clock);
}

int budget_set(struct chan *c, double share)
{
	if (!c->budget)
		c->budget = calloc(1, sizeof(*c->budget));
	if (!c->budget)
		return -ENOMEM;
	c->budget->share = share;
	c->budget->begun = false;
	c->target->budget_at = now_ms() + LOOK_MS;
	return 0;
}

void budget_free(struct chan *c)
{
	free(c->budget);
	c->budget = NULL;
}

int budget_wait(const struct target *t)
{
	uint64_t now = now_ms();
	const struct chan *c;

	for (c = t->chans; c && !c->budget; c = c->next)
		;
	if (!c || t->dead)
		return -1;
	return t->budget_at > now ? (int)(t->budget_at - now) : 0;
}

/* Nanoseconds a hit, as docs/bench.md has them, rounded up. */
static uint64_t cost_of(const struct probe *p, const struct site *s)
{
	uint64_t trap = s && !s->jumped ? 2500 : 0;

	switch (p->kind) {
	case PROBE_COUNT:
		return trap + 2;
	case PROBE_ENTRY:
		return trap + 50;
	default:
		return trap + 100;
	}
}

/* The target may have written anything there: it can only get its probes taken out. */
static uint64_t hits_of(const struct chan *c, const struct probe *p)
{
	const struct ukp_chan *l = &c->layout;
	const char *map = (const char *)c->map;
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < l->nr_shards; i++) {
		const uint64_t *at = p->head ? (const uint64_t *)(map + l->off_counters) +
		                                       (uint64_t)i * l->nr_counters + p->counter
		                             : &((const struct ukp_stat *)(map + l->off_stats) +
		                                 (uint64_t)i * l->nr_stats + p->id)
		                                        ->hits;

		n += __atomic_load_n(at, __ATOMIC_RELAXED);
	}
	return n;
}

static void add(struct items *it, struct chan *c, struct probe *p, const struct site *s)
{
	uint64_t hits = hits_of(c, p), new = hits - p->seen;

	p->seen = hits;
	if (!new || new > INT64_MAX / 4096)
		return;
	if (it->nr == it->room) {
		size_t room = it->room ? it->room * 2 : 64;
		struct item *more = realloc(it->v, room * sizeof(*more));

		if (!more)
			return;
		it->v = more;
		it->room = room;
	}
	it->v[it->nr++] = (struct item){ p, new, new *cost_of(p, s) };
	it->cost += new *cost_of(p, s);
}

static void collect(struct items *it, struct chan *c)
{
	struct probe *p;
	size_t i;

	for (p = c->probes; p; p = p->next_mine) {
		if (p->gone)
			continue;
		if (!probe_counts(p)) {
			if (p->site || p->planted)
				add(it, c, p, p->site ? p->site : p->member[0].site);
			continue;
		}
		for (i = 0; i < p->nr_members; i++)
			if (p->member[i].site)
				add(it, c, &p->member[i], p->member[i].site);
	}
}

static int by_cost(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return x->cost < y->cost ? 1 : x->cost > y->cost ? -1 : 0;
}

static void say(struct chan *c, const struct item *it, uint64_t cpu, uint64_t wall)
{
	chan_say(c, it->p, "%.0f hits a second take about %.1f %% of the program's time",
	         (double)it->hits * 1e9 / (double)wall, 100 * (double)it->cost / (double)cpu);
}

static void take_out(struct chan *c, struct probe *p)
{
	struct err ignored = ERR_INIT;

	if (p->head)
		bulk_drop(p);
	else
		probe_remove(c, p->id, &ignored);
}

/* The dearest first, until what is left fits. */
static bool cut(struct chan *c, struct items *it, uint64_t cpu, uint64_t wall)
{
	uint64_t may = (uint64_t)(c->budget->share * (double)cpu);
	struct err ignored = ERR_INIT;
	size_t i;

	if (it->cost <= may || !it->nr || optimize_off(c->target, &ignored))
		return false;
	target_refresh(c->target, &ignored);
	qsort(it->v, it->nr, sizeof(*it->v), by_cost);
	for (i = 0; i < it->nr && it->cost > may; i++) {
		say(c, &it->v[i], cpu, wall);
		take_out(c, it->v[i].p);
		it->cost -= it->v[i].cost;
	}
	return true;
}

static bool look(struct chan *c)
{
	uint64_t cpu = cpu_ns(c->target->pid), wall = now_ns(CLOCK_MONOTONIC);
	struct budget *b = c->budget;
	struct items it = { .nr = 0 };
	bool changed = false;

	if (!cpu || (b->begun && cpu - b->cpu < CPU_MIN_NS))
		return false;
	collect(&it, c);
	if (b->begun)
		changed = cut(c, &it, cpu - b->cpu, wall - b->wall);
	free(it.v);
	b->begun = true;
	b->cpu = cpu;
	b->wall = wall;
	return changed;
}

bool budget_look(struct target *t)
{
	bool changed = false;
	struct chan *c;

	if (budget_wait(t))
		return false;
	for (c = t->chans; c; c = c->next)
		if (c->budget)
			changed |= look(c);
	t->budget_at = now_ms() + LOOK_MS;
	return changed;
}
