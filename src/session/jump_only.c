/* SPDX-License-Identifier: MIT */
/*
 * Places where no breakpoint may stand: code that libc runs, or may run, with all
 * signals blocked, or in the child of posix_spawn() when the handlers are gone.
 * There the text goes from its own bytes to a jump, while all threads stand
 * still, and back.
 *
 *	text	f3 0f 1e fa 41 55 ...     never cc here
 *	=>	e9 rel32 .. .. ..
 *
 * A hit needs no signal then, and makes no system call.  It may be one of a child
 * that shares the memory: fs is its parent's then, and so is the thread that a
 * record names.  What can't be had there is a read that may fault: with SIGSEGV
 * blocked it would end the process.
 *
 * Where a thread of the process blocks SIGTRAP for good, to wait for it with sigwait()
 * or because it waits for all signals, all places are such ones.
 *
 * Until its jump is in, such a place is not probed; so a start waits for it.  One of
 * our own probes is among them, sigaction()'s.
 */
#include <errno.h>
#include <unistd.h>

#include "session/client.h"
#include "session/optimize.h"

#define SETS_MS 10000 /* for the code to be looked at */
#define LAND_MS 3000  /* for the threads to be out of the way, for as many as one stop writes */
#define ALL_MS 30000
#define REST_US 1000
#define REST_MAX 64000

const char *jump_only_refusal(const struct target *t, const struct lang_def *def, bool ret,
                              const char *jump_only)
{
	if (ret && jump_only == t->no_traps)
		return "a thread of the process blocks SIGTRAP: returns are not followed there";
	if (ret)
		return "it may run with all signals blocked, on the way to another program: it can "
		       "be "
		       "probed by a jump, but its returns cannot";
	if (!optimize_is_on(t))
		return tally_both(jump_only, "optimization is off");
	if (jump_only == t->no_traps && lang_reads_memory(def))
		return "a thread of the process blocks SIGTRAP, and maybe SIGSEGV, where reading "
		       "memory that is not there kills: only registers can be recorded";
	if (lang_reads_memory(def))
		return "it may run with all signals blocked, where reading memory that is not "
		       "there "
		       "kills: only registers can be recorded";
	return NULL;
}

/* Why it gets no jump; NULL: it has one, or will. */
static const char *lost(const struct site *s)
{
	return s->jump_only && s->base ? tally_both(s->jump_only, s->base) : NULL;
}

static bool is_concerned(const struct probe *p)
{
	size_t i;

	if (!p->fresh)
		return false;
	for (i = 0; i < p->nr_members; i++)
		if (p->member[i].site && p->member[i].site->jump_only)
			return true;
	return p->site && p->site->jump_only;
}

static void land(struct target *t)
{
	const long last = client_now_ms() + ALL_MS;
	long end = client_now_ms() + LAND_MS, now;
	unsigned int us = REST_US;

	while (optimize_owes(t) && (now = client_now_ms()) < end && now < last) {
		enum optimize_left left = optimize_on(t);

		if (left == OPTIMIZE_DONE)
			return;
		if (left == OPTIMIZE_MORE) {
			end = client_now_ms() + LAND_MS;
			us = REST_US;
		} else if (us < REST_MAX) {
			us *= 2;
		}
		usleep(us);
	}
}

/* Of h's members: those without a jump go, those whose jump is to come are counted. */
static size_t drop(struct probe *h, struct tally *refused)
{
	struct target *t = h->chan->target;
	size_t i, waiting = 0;
	const char *why;

	for (i = 0; i < h->nr_members; i++) {
		struct probe *m = &h->member[i];
		struct site *s = m->site;

		if (!s || !s->jump_only || s->jumped)
			continue;
		why = lost(s);
		if (!why) {
			waiting++;
			continue;
		}
		probe_unlink(t, m);
		/* Its code is as it was. */
		s->armed = s->armed && site_wanted(s);
		m->gone = true;
		tally_add(refused, why, 1);
	}
	return waiting;
}

static int judge_many(struct chan *c, struct err *err)
{
	struct tally refused = { .nr = 0 };
	struct probe *h;
	size_t nr = 0;
	int ret;

	for (h = c->probes; h; h = h->next_mine) {
		if (!probe_is_many(h) || !h->fresh)
			continue;
		nr += h->nr_members;
		c->waiting += drop(h, &refused);
	}
	ret = refused.total ? bulk_judge(c, &refused, nr, err) : 0;
	if (!ret)
		tally_merge(&c->refused, &refused);
	return ret;
}

static int judge_singles(struct chan *c, struct err *err)
{
	const struct probe *p;
	const char *why;

	for (p = c->probes; p; p = p->next_mine) {
		if (!p->fresh || !p->site || !p->site->jump_only || p->site->jumped)
			continue;
		why = lost(p->site);
		if (why)
			return err_set(err, -EINVAL, "Failed to register probe event: %s: %s",
			               p->def->event, why);
		c->waiting++;
	}
	return 0;
}

/*
 * Our own land before anybody's breakpoint: a program that blocks all signals, as libuv
 * and python do, would die of one.  One that can have no jump we do without.
 */
int jump_only_land_hooks(struct target *t, struct err *err)
{
	int ret;

	if (t->taken && !optimize_owes(t))
		return 0;
	if (optimize_owes(t)) {
		optimize_await(t, SETS_MS);
		land(t);
	}
	ret = target_take(t, err);
	return ret ? ret : 1;
}

int jump_only_land(struct chan *c, struct err *err)
{
	const struct probe *p;
	int ret;

	c->waiting = 0;
	for (p = c->probes; p && !is_concerned(p); p = p->next_mine)
		;
	if (!p && !optimize_owes(c->target))
		return 0;
	optimize_await(c->target, SETS_MS);
	land(c->target);
	ret = judge_many(c, err);
	return ret ? ret : judge_singles(c, err);
}
