/* SPDX-License-Identifier: MIT */
/*
 * ukprobe trace: a line for each record, until Ctrl-C, --for, -n or the end of
 * the target; then what was lost, in one line on stderr.
 *
 * Lines are collected into big blocks and written when a block is full, when
 * the target is idle, and at least every 100 ms.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "front/format.h"
#include "front/out.h"
#include "front/run.h"

#define FLUSH_MS 100
#define FLUSH_NS (FLUSH_MS * 1000000ull)
#define FORGET_NS 1000000000ull
#define CLOCK_PERIOD 64 /* look at the clock once in so many lines */

struct trace {
	const struct options *o;
	struct run run;
	struct out out;
	struct format *format;
	uint64_t lines;
	uint64_t flushed, forgotten; /* when */
	bool draining;
	int signals; /* that had come when draining began */
	int err;
};

/* A signal after the probes were taken out: the rest of the lines isn't wanted. */
static bool gave_up(const struct trace *t)
{
	return t->draining && run_signals() > t->signals;
}

static int flush(struct trace *t, uint64_t now)
{
	int ret = -EINTR;

	/* Before the probes are out, a signal ends a write: detaching can't wait. */
	while (ret == -EINTR && !gave_up(t)) {
		ret = out_flush(&t->out, true);
		if (!t->draining)
			break;
	}
	t->flushed = now;
	if (ret && ret != -EINTR)
		t->err = ret;
	return ret;
}

/* Symbols of unloaded libraries mustn't live on in the cache. */
static void refresh(struct trace *t, uint64_t now)
{
	if (now - t->forgotten < FORGET_NS)
		return;
	format_forget(t->format);
	t->forgotten = now;
}

static bool enough(const struct trace *t)
{
	if (t->err || (t->o->count && t->lines >= t->o->count))
		return true;
	return gave_up(t);
}

/* Returns nonzero to have no more records now. */
static int on_record(const struct ukp_record *rec, void *arg)
{
	struct trace *t = arg;
	size_t bound;
	uint64_t now;
	char *p;

	bound = format_bound(t->format, rec);
	p = bound ? out_room(&t->out, bound) : NULL;
	if (!p) {
		t->err = -ENOMEM;
		return 1;
	}
	t->out.len += (size_t)(format_line(t->format, p, rec) - p);
	t->lines++;
	if (t->out.len >= OUT_BLOCK && flush(t, t->flushed))
		return 1;
	if (t->lines % CLOCK_PERIOD == 0) {
		now = run_now();
		if (now - t->flushed >= FLUSH_NS)
			flush(t, now);
		refresh(t, now);
		if (!t->draining && run_over(&t->run))
			return 1;
	}
	return enough(t);
}

/* All that was recorded before the probes were taken out. */
static void drain(struct trace *t)
{
	int nothing = 0;
	long n;

	t->draining = true;
	t->signals = run_signals();
	/* An interrupt may still be pending, so one zero doesn't say "empty". */
	while (nothing < 2 && !enough(t)) {
		n = ukp_session_read(t->run.s, on_record, t, 0);
		if (n < 0)
			break;
		nothing = n ? 0 : nothing + 1;
	}
	flush(t, 0);
}

static void watch(struct trace *t)
{
	long n;

	t->flushed = t->forgotten = run_now();
	while (!enough(t) && !run_over(&t->run)) {
		n = ukp_session_read(t->run.s, on_record, t, run_timeout(&t->run, FLUSH_MS));
		if (n == -ESRCH)
			run_gone(&t->run);
		else if (n < 0 && n != -EINTR)
			t->err = (int)n;
		/* When it is over, detach first: a write may take long. */
		if (!run_over(&t->run))
			flush(t, run_now());
		refresh(t, run_now());
		run_dropped(&t->run);
	}
}

/* Returns the exit status. */
static int summary(struct trace *t)
{
	const char *sep = " (", *damage = ukp_session_damage(t->run.s);
	struct ukp_counts c;

	if (damage)
		complain("%s", damage);
	if (ukp_session_counts(t->run.s, UINT_MAX, &c))
		return complain("%s", ukp_session_error(t->run.s));
	fprintf(stderr, "ukprobe: %" PRIu64 " hits, %" PRIu64 " records, %" PRIu64 " misses",
	        c.hits, c.records, c.misses);
	for (unsigned int i = 0; i < UKP_NR_MISSES; i++) {
		if (!c.miss[i])
			continue;
		fprintf(stderr, "%s%s %" PRIu64, sep, ukp_miss_name(i), c.miss[i]);
		sep = ", ";
	}
	fprintf(stderr, "%s\n", *sep == ',' ? ")" : "");
	for (unsigned int i = 0; i < UKP_NR_MISSES; i++)
		if (c.miss[i] && !strcmp(ukp_miss_name(i), "ring full"))
			complain("lines came faster than they were written: with fewer arguments "
			         "or probes "
			         "there are less, and 'ukprobe stat' and 'latency' write none");
	run_hint(&t->run, t->o->nr_words);
	return damage ? 1 : 0;
}

/* What went wrong while it ran.  Nobody reads any more: that is no failure. */
static int status(struct trace *t, int write_err)
{
	const char *why;

	if (write_err == -EPIPE && (!t->err || t->err == -EPIPE))
		return 0;
	if (write_err)
		return complain("can't write to %s: %s",
		                t->o->output ? t->o->output : "standard output",
		                strerror(-write_err));
	if (gave_up(t))
		return complain("interrupted again: the last lines are not written");
	if (!t->err)
		return 0;
	why = t->err == -ENOMEM ? "" : ukp_session_error(t->run.s);
	return complain("%s", *why ? why : strerror(-t->err));
}

/* A definition cut to pieces by the shell is the commonest mistake of all. */
static bool unquoted(const struct options *o)
{
	if (o->nr_words && !o->words[0][strspn(o->words[0], "0123456789")]) {
		complain(
			"'%s' is no definition; a command works on one process, pidof -s gives one",
			o->words[0]);
		return true;
	}
	if (o->nr_words < 2 || strpbrk(o->words[0], " \t"))
		return false;
	complain("'%s' is no definition; write each as one word in single quotes: '%s %s ...'",
	         o->words[0], o->words[0], o->words[1]);
	return true;
}

static int prepare(struct trace *t)
{
	int err;

	for (unsigned int i = 0; i < t->o->nr_words; i++) {
		err = ukp_session_add(t->run.s, t->o->words[i], NULL);
		if (err) {
			complain("%s", ukp_session_error(t->run.s));
			return err;
		}
	}
	t->format = format_new(t->run.s);
	if (!t->format) {
		complain("%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	/* Last, so that a refused definition leaves the old file as it was. */
	err = out_open(&t->out, t->o->output, t->o->again);
	if (err)
		complain("can't open %s: %s", t->o->output, strerror(-err));
	return err;
}

int cmd_trace(const struct options *o)
{
	struct trace t = { .o = o };
	int err, write_err, ret;

	t.out.fd = -1;
	if (unquoted(o))
		return 1;
	if (run_open(&t.run, o) || prepare(&t) || run_start(&t.run, o)) {
		if (t.out.fd >= 0)
			out_close(&t.out);
		format_free(t.format);
		return run_abandon(&t.run);
	}
	watch(&t);
	err = run_stop(&t.run);
	drain(&t);
	if (gave_up(&t))
		t.out.len = 0;
	write_err = out_close(&t.out);
	ret = status(&t, write_err);
	if (summary(&t))
		ret = 1;
	format_free(t.format);
	return run_close(&t.run, err ? 1 : ret);
}
