/* SPDX-License-Identifier: MIT */
/*
 * ukprobe latency: functions timed inside the target.  On a terminal the table
 * is shown live; in the end it is printed once, or as JSON.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "front/display.h"
#include "front/latency.h"
#include "front/run.h"

#define DRAW_NS 1000000000ull
#define WAIT_MS 250 /* how late the end of the run may be seen at worst */

struct watch {
	const struct options *o;
	struct run run;
	FILE *out;
	unsigned int nr, *id;
	struct latency *state;
	bool live;
	uint64_t drawn; /* when */
};

static int failed(struct watch *w, int err)
{
	const char *why = err == -ENOMEM ? "" : ukp_session_error(w->run.s);

	complain("%s", *why ? why : strerror(-err));
	return err;
}

static void forget_states(struct watch *w)
{
	for (unsigned int i = 0; i < w->nr; i++)
		latency_free(&w->state[i]);
}

static int read_states(struct watch *w)
{
	int err = 0;

	forget_states(w);
	for (unsigned int i = 0; i < w->nr && !err; i++)
		err = latency_read(&w->state[i], w->run.s, w->id[i]);
	return err;
}

static int draw(struct watch *w)
{
	char *text = NULL, foot[96];
	uint64_t now = run_now();
	size_t len = 0;
	FILE *f;
	int err;

	w->drawn = now;
	err = read_states(w);
	if (err)
		return err;
	f = open_memstream(&text, &len);
	if (!f)
		return -errno;
	latency_table(f, w->state, w->nr);
	snprintf(foot, sizeof(foot), "process %d, %u s; Ctrl-C ends", ukp_session_pid(w->run.s),
	         (unsigned int)((now - w->run.started) / DRAW_NS));
	if (!fclose(f))
		display_draw(text, foot);
	free(text);
	return 0;
}

/* Latency functions write no records. */
static int no_record(const struct ukp_record *r, void *arg)
{
	return 0;
}

static int watch(struct watch *w)
{
	long n = 0;
	int err = 0;

	if (w->live) {
		display_enter();
		err = draw(w);
	}
	while (!err && !run_over(&w->run)) {
		n = ukp_session_read(w->run.s, no_record, NULL, run_timeout(&w->run, WAIT_MS));
		if (n == -ESRCH)
			run_gone(&w->run);
		else if (n < 0 && n != -EINTR)
			err = (int)n;
		else if (w->live && run_now() - w->drawn >= DRAW_NS)
			err = draw(w);
	}
	if (w->live)
		display_leave();
	return err ? failed(w, err) : 0;
}

static int print(struct watch *w, double seconds)
{
	const char *where = w->o->output ? w->o->output : "standard output";
	bool bad;
	int err;

	err = read_states(w);
	if (err)
		return failed(w, err);
	if (w->o->json)
		err = latency_json(w->out, w->state, w->nr, ukp_session_pid(w->run.s), seconds);
	else
		latency_table(w->out, w->state, w->nr);
	if (err)
		return failed(w, err);
	errno = 0;
	bad = fflush(w->out) || ferror(w->out);
	if (w->out != stdout && fclose(w->out))
		bad = true;
	w->out = NULL;
	/* Nobody reads any more: that is no failure. */
	if (bad && errno != EPIPE)
		return -complain("can't write to %s: %s", where, strerror(errno));
	return 0;
}

static int prepare(struct watch *w)
{
	int err;

	w->id = calloc(w->o->nr_words, sizeof(*w->id));
	w->state = calloc(w->o->nr_words, sizeof(*w->state));
	if (!w->id || !w->state)
		return failed(w, -ENOMEM);
	for (; w->nr < w->o->nr_words; w->nr++) {
		err = ukp_session_add_latency(w->run.s, w->o->words[w->nr], &w->id[w->nr]);
		if (err)
			return failed(w, err);
	}
	/* Last, so that a refused function leaves the old file as it was. */
	w->out = w->o->output ? fopen(w->o->output, w->o->again ? "ae" : "we") : stdout;
	if (w->out)
		return 0;
	err = -errno;
	complain("can't open %s: %s", w->o->output, strerror(errno));
	return err;
}

static void forget(struct watch *w)
{
	forget_states(w);
	free(w->id);
	free(w->state);
	if (w->out && w->out != stdout)
		fclose(w->out);
}

int cmd_latency(const struct options *o)
{
	/* A command writes to the same terminal: then only the final table. */
	struct watch w = { .o = o, .live = !o->json && !o->cmd && display_possible() };
	uint64_t stopped;
	int status;

	if (run_open(&w.run, o) || prepare(&w) || run_start(&w.run, o)) {
		forget(&w);
		return run_abandon(&w.run);
	}
	status = watch(&w) ? 1 : 0;
	stopped = run_now();
	if (run_stop(&w.run))
		status = 1;
	if (print(&w, (double)(stopped - w.run.started) / 1e9))
		status = 1;
	run_hint(&w.run, w.nr);
	forget(&w);
	return run_close(&w.run, status);
}
