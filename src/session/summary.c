/* SPDX-License-Identifier: MIT */
/* Counters and latencies of a session. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/quantile.h"
#include "session/client.h"

_Static_assert(UKP_NR_MISSES == UKP_MISS_NR, "the public header counts the reasons");

const struct ukp_event_info *ukp_session_event(struct ukp_session *s, unsigned int id)
{
	return id < s->nr_events ? &s->events[id]->info : NULL;
}

const char *ukp_miss_name(unsigned int reason)
{
	static const char *const names[UKP_MISS_NR] = {
		[UKP_MISS_MAXACTIVE] = "maxactive",   [UKP_MISS_ARENA] = "arena",
		[UKP_MISS_RING] = "ring full",        [UKP_MISS_RECURSION] = "recursion",
		[UKP_MISS_UNRETURNED] = "unreturned", [UKP_MISS_UNWOUND] = "unwound",
		[UKP_MISS_FRAME] = "frame",
	};

	return reason < UKP_MISS_NR ? names[reason] : "?";
}

static void add_row(struct ukp_counts *c, const struct ukp_stat *st)
{
	unsigned int i;

	c->hits += st->hits;
	c->records += st->records;
	for (i = 0; i < UKP_MISS_NR; i++) {
		c->miss[i] += st->miss[i];
		c->misses += st->miss[i];
	}
}

/*
 * With its process ended what was on its way: calls that never came back.  Those of
 * children aren't looked for, when probes are taken out.
 */
static void add_unfinished(struct ukp_counts *c)
{
	uint64_t done = c->records + c->misses;

	if (done >= c->hits)
		return;
	c->miss[UKP_MISS_UNRETURNED] += c->hits - done;
	c->misses = c->hits - c->records;
}

int session_damaged(struct ukp_session *s)
{
	return session_fail(s, -EBADMSG,
	                    "the channel is damaged: process %d has written to its counters",
	                    s->pid);
}

const char *ukp_session_damage(struct ukp_session *s)
{
	struct ukp_ring_counts c;
	uint64_t bad = s->odd;
	uint32_t i;

	for (i = 0; s->reader && i < s->reader->geo.nr_rings; i++) {
		ukp_reader_counts(s->reader, i, &c);
		bad += c.bad;
	}
	if (!bad)
		return NULL;
	session_fail(
		s, -EBADMSG,
		"the channel is damaged: process %d has written something else than records to "
		"its rings, in %" PRIu64 " places; some are lost",
		s->pid, bad);
	return s->error;
}

/* No CPU hits more than once a nanosecond. */
static bool is_possible(const struct ukp_session *s, const struct ukp_counts *c)
{
	uint64_t ns = (uint64_t)(client_now_ms() + 1) * 1000000 - s->clock.first_ns;
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	uint64_t most = ns * (uint64_t)(cpus > 0 ? cpus : 1);

	return c->hits <= most && c->records <= most && c->misses <= most;
}

/* What the target counted of one event.  A latency function's records are in its histogram. */
static int read_row(struct ukp_session *s, unsigned int i, struct ukp_stat *st)
{
	const struct event *e = s->events[i];
	uint64_t in_hist = 0;
	int ret = ukp_stat_sum(s->reader, i, st);

	if (!ret && e->latency)
		ret = ukp_hist_count(s->reader, e->hist_off, e->hist_stride, e->hist_shards,
		                     &in_hist);
	st->records += in_hist;
	return ret;
}

int ukp_session_counts(struct ukp_session *s, unsigned int id, struct ukp_counts *c)
{
	unsigned int i, first = id == UINT_MAX ? 0 : id,
			last = id == UINT_MAX ? s->nr_events : id + 1;
	struct ukp_stat st;

	memset(c, 0, sizeof(*c));
	if (last > s->nr_events)
		return session_fail(s, -EINVAL, "there is no probe %u", id);
	for (i = first; i < last; i++) {
		int ret = read_row(s, i, &st);

		if (ret == -EBADMSG)
			return session_damaged(s);
		if (ret)
			return session_fail(s, ret, "the counters cannot be read");
		add_row(c, &st);
	}
	if (!is_possible(s, c))
		return session_damaged(s);
	if (!ukp_session_alive(s) || (s->follow && s->stopped))
		add_unfinished(c);
	return 0;
}

static int by_count(const void *a, const void *b)
{
	const struct ukp_latency_error *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return x->value < y->value ? -1 : x->value > y->value;
}

static unsigned int take_errors(struct ukp_session *s)
{
	unsigned int i, n = 0;

	for (i = 0; i < UKP_HIST_ERRS; i++)
		if (s->hist.err[i].claimed == 2 && s->hist.err[i].count)
			s->by_value[n++] = (struct ukp_latency_error){ s->hist.err[i].value,
				                                       s->hist.err[i].count };
	qsort(s->by_value, n, sizeof(*s->by_value), by_count);
	return n;
}

static int read_hist(struct ukp_session *s, unsigned int id)
{
	struct event *e;
	int ret;

	if (id >= s->nr_events || !s->events[id]->latency)
		return session_fail(s, -EINVAL, "there is no latency function %u", id);
	e = s->events[id];
	ret = ukp_hist_read(s->reader, e->hist_off, e->hist_stride, e->hist_shards, &s->hist);
	if (ret == -EBADMSG)
		return session_damaged(s);
	return ret ? session_fail(s, -EIO, "the histogram cannot be read") : 0;
}

int ukp_session_latency(struct ukp_session *s, unsigned int id, struct ukp_latency_info *info)
{
	static const char *const kinds[] = { "auto", "ptr", "s32", "s64", "none" };
	const struct ukp_hist *h = &s->hist;
	int ret = read_hist(s, id);

	if (ret)
		return ret;
	clock_adjust(&s->clock);
	memset(info, 0, sizeof(*info));
	info->name = s->events[id]->latency_name;
	info->kind = kinds[s->events[id]->err_kind % 5];
	info->count = h->count;
	info->errors = h->errors;
	if (h->count) {
		info->min = clock_ticks_to_ns(&s->clock, h->min);
		info->max = clock_ticks_to_ns(&s->clock, h->max);
		info->mean = clock_ticks_to_ns(&s->clock, h->sum / h->count);
	}
	info->nr_errors = take_errors(s);
	info->by_value = s->by_value;
	info->other = h->err_other;
	return 0;
}

uint64_t ukp_latency_quantile(struct ukp_session *s, unsigned int id, double q)
{
	return clock_ticks_to_ns(&s->clock, hist_quantile(&s->hist, q));
}

static uint64_t to_ticks(const struct ukp_session *s, uint64_t ns)
{
	double t = (double)ns / s->clock.rate;

	return t >= 1.8e19 ? UINT64_MAX : (uint64_t)t;
}

uint64_t ukp_latency_between(struct ukp_session *s, unsigned int id, uint64_t lo, uint64_t hi)
{
	return hist_between(&s->hist, to_ticks(s, lo), to_ticks(s, hi));
}
