/* SPDX-License-Identifier: MIT */
/*
 * Jumps for breakpoints.
 *
 *	   text  cc 57 cc 56 ...      a trap goes on in the detour's copy first,
 *	=> text  e9 rel32 ...         then, once nobody is on the short way of
 *	                              a slot (grace.c), the jump is written
 *
 * A copy leads beyond the whole window, a slot into its middle: that is why
 * the order matters.  All threads stand still for the writing; those inside a
 * window are moved to its detour.
 */
#include "session/optimize.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/client.h"
#include "session/exits.h"
#include "session/jumps.h"

/* After so many windows have been made, so long a rest before the threads stand still. */
#define MANY 64
#define REST_US 1000
/* What is planned so near to a jump is planned together with it. */
#define NEAR 64

struct optimizer {
	bool on;     /* for users' probes */
	bool shared; /* another process runs in the target's memory */
	struct windows *windows;
	bool fresh;         /* what is armed has changed since the last kick */
	struct grace grace; /* since traps go on in the copies of all that wait */
	/* Traps go on in their copies; the jump is to come. */
	struct window *v[2 * WINDOWS_MAX];
	size_t nr;
	/* The jump is in the text. */
	struct window **in;
	size_t nr_in, room_in;
};

bool optimize_allowed(void)
{
	const char *off = getenv("UKPROBES_OPTIMIZATION");

	return !off || off[0] != '0';
}

int optimize_open(struct target *t)
{
	struct optimizer *o;

	if (modules_open(&t->modules))
		return -ENOMEM;
	inject_beside(t->inject, modules_pause(t->modules));
	o = calloc(1, sizeof(*o));
	if (!o || windows_open(&o->windows, t->modules, !optimize_allowed())) {
		free(o);
		return -ENOMEM;
	}
	o->on = optimize_allowed();
	o->fresh = true;
	t->optimizer = o;
	return 0;
}

void optimize_close(struct target *t)
{
	struct optimizer *o = t->optimizer;

	if (o) {
		windows_close(o->windows);
		grace_start(&o->grace);
		free(o->in);
		free(o);
	}
	if (t->modules) {
		inject_beside(t->inject, NULL);
		modules_close(t->modules);
	}
	t->optimizer = NULL;
	t->modules = NULL;
}

bool optimize_is_on(const struct target *t)
{
	return t->optimizer && t->optimizer->on;
}

int optimize_fd(const struct target *t)
{
	return t->optimizer ? modules_fd(t->modules) : -1;
}

void optimize_ready(struct target *t)
{
	if (t->optimizer)
		windows_again(t->optimizer->windows);
}

void optimize_kick(struct target *t)
{
	const struct sym_map *m = NULL;
	size_t i;

	if (!t->optimizer || !t->optimizer->fresh || t->dead)
		return;
	t->optimizer->fresh = false;
	for (i = 0; i < t->nr_sites; i++) {
		const struct site *s = t->sites[i];

		/* Neighbours are of one mapping mostly, whose whole set is wanted then. */
		if (!s->armed || site_is_ours(s) || (!t->optimizer->on && !site_has_hook(s)) ||
		    (m && s->addr - m->start < m->end - m->start))
			continue;
		m = sym_map_find(t->sym, s->addr);
		if (m && !modules_want(t->modules, m->module, s->addr))
			m = NULL;
	}
	if (t->optimizer->on)
		exits_want(t);
}

static bool is_owed(const struct site *s)
{
	return s->jump_only && s->armed && !s->jumped && !s->base;
}

bool optimize_owes(const struct target *t)
{
	size_t i;

	for (i = 0; i < t->nr_sites; i++)
		if (is_owed(t->sites[i]))
			return true;
	return false;
}

/* Are the target sets there of all modules that have such places? */
static bool sets_are_ready(struct target *t)
{
	const struct sym_map *m;
	size_t i;

	for (i = 0; i < t->nr_sites; i++) {
		const struct site *s = t->sites[i];

		if (!is_owed(s))
			continue;
		m = sym_map_find(t->sym, s->addr);
		if (m && !modules_ready(t->modules, m->module, s->addr))
			return false;
	}
	return true;
}

void optimize_await(struct target *t, unsigned int ms)
{
	const long end = client_now_ms() + ms;
	struct pollfd pfd = { .fd = optimize_fd(t), .events = POLLIN };
	uint64_t count;
	long now;

	if (!t->optimizer)
		return;
	optimize_kick(t);
	while (!sets_are_ready(t) && (now = client_now_ms()) < end) {
		poll(&pfd, 1, (int)(end - now));
		if (read(pfd.fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
			break;
	}
	optimize_ready(t);
}

static void resume_by_slot(struct target *t, struct site *s)
{
	struct ukp_site *shared = target_at(t, s->off);

	if (s->resumes)
		__atomic_store_n(&shared->resume, 0, __ATOMIC_RELEASE);
	s->resumes = false;
}

static void refuse(struct target *t, const struct window *w)
{
	unsigned int i;

	for (i = 0; i < UKP_WINDOW_INSNS; i++)
		if (w->probes >> i & 1)
			resume_by_slot(t, w->site[i]);
}

/* Those that were written go to the others in the text; refused ones are forgotten. */
static int sort_out(struct target *t)
{
	struct optimizer *o = t->optimizer;
	size_t i, left = 0;

	if (o->nr_in + o->nr > o->room_in) {
		size_t room = 2 * (o->nr_in + o->nr);
		struct window **more = realloc(o->in, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		o->in = more;
		o->room_in = room;
	}
	for (i = 0; i < o->nr; i++)
		if (o->v[i]->state == WINDOW_IN)
			o->in[o->nr_in++] = o->v[i];
		else if (o->v[i]->state == WINDOW_WAITS)
			o->v[left++] = o->v[i];
		else
			refuse(t, o->v[i]);
	o->nr = left;
	return 0;
}

static int off(struct target *t, const struct chan *c, bool ours_stay, struct err *err);

/* Exits that have been found since are planted like anything else: while no jump is in. */
static int more_exits(struct target *t)
{
	struct err err = ERR_INIT;
	int ret;

	if (!t->optimizer->on || !exits_wait(t))
		return 0;
	ret = off(t, NULL, true, &err);
	if (ret || t->dead)
		return ret;
	exits_plant(t);
	windows_reset(t, t->optimizer->windows);
	return 0;
}

/* Room for what will be in the text is there before it is. */
static size_t more_windows(struct target *t)
{
	struct optimizer *o = t->optimizer;
	size_t n;

	if (o->nr > WINDOWS_MAX || sort_out(t))
		return 0;
	n = windows_next(t, o->windows, o->v + o->nr);
	o->nr += n;
	if (n) {
		grace_start(&o->grace);
		o->grace.runs = true;
	}
	if (!n || o->nr_in + o->nr <= o->room_in)
		return n;
	return sort_out(t) ? 0 : n;
}

enum optimize_left optimize_on(struct target *t)
{
	struct optimizer *o = t->optimizer;
	struct err err = ERR_INIT;
	bool many;
	size_t n;
	int ret;

	if (!o || t->dead)
		return OPTIMIZE_DONE;
	if (more_exits(t))
		return OPTIMIZE_LATER;
	n = more_windows(t);
	if (!o->nr) {
		exits_on(t);
		return OPTIMIZE_DONE;
	}
	/* What could not be remembered could not be taken back. */
	if (o->nr_in + o->nr > o->room_in)
		return OPTIMIZE_LATER;
	/*
	 * Making them has used up our share of the CPU: on a busy machine we would
	 * be preempted in the middle, and the target with us.
	 */
	if (n > MANY)
		usleep(REST_US);
	/* It would run on while jumps are written. */
	o->shared = target_shares_memory(t);
	if (o->shared)
		return OPTIMIZE_LATER;
	/* A child has the jumps of its parent, as they were. */
	many = windows_many_idle(o->windows) && heap_no_children(t);
	if (target_hold(t, &err))
		return t->dead ? OPTIMIZE_DONE : OPTIMIZE_LATER;
	ret = grace_settle(t, &o->grace, &err);
	if (!ret && many)
		windows_look_for_spare(t, o->windows);
	if (!ret)
		jumps_write(t, o->v, o->nr);
	target_release(t);
	sort_out(t);
	exits_on(t);
	if (ret)
		return ret == -EAGAIN ? OPTIMIZE_LATER : OPTIMIZE_DONE;
	return n ? OPTIMIZE_MORE : o->nr ? OPTIMIZE_LATER : OPTIMIZE_DONE;
}

/* As many as one short stop allows. */
static size_t batch(struct window *const *v, size_t n)
{
	size_t i, pages = 0;

	for (i = 0; i < n && i < WINDOWS_MAX && pages < WINDOWS_PAGES; i++)
		pages += !i || v[i]->text >> 12 != v[i - 1]->text >> 12;
	return i;
}

static bool is_hook(const struct window *w)
{
	unsigned int i;

	for (i = 0; i < WINDOW_SITES; i++)
		if (w->site[i] && site_has_hook(w->site[i]))
			return true;
	return false;
}

static bool is_near(const struct window *w, const struct probe *p)
{
	return probe_is_many(p) || p->late ||
	       (p->addr + NEAR >= w->text && p->addr < w->text + w->len + NEAR);
}

/* Has c probes there, or will it, when it starts what it has added? */
static bool concerns(const struct window *w, const struct chan *c)
{
	const struct probe *p;
	unsigned int i;

	for (i = 0; i < WINDOW_SITES; i++)
		for (p = w->site[i] ? w->site[i]->probes : NULL; p; p = p->next)
			if (p->chan == c)
				return true;
	/* Nobody else's come to ours. */
	for (p = is_hook(w) ? NULL : c->probes; p; p = p->next_mine)
		if (!p->site && !p->gone && !p->planted && is_near(w, p))
			return true;
	return false;
}

/* What can be no breakpoint would not be probed meanwhile. */
static bool may_stay(const struct window *w, const struct chan *c)
{
	unsigned int i;

	for (i = 0; i < WINDOW_SITES; i++)
		if (w->site[i] && (!w->site[i]->jump_only || !site_wanted(w->site[i])))
			return false;
	return !concerns(w, c);
}

/*
 * Our own probes that can be no breakpoint, and nobody else's beside them: what is
 * planted for probes that are in already lies in their functions, so not there.
 */
static bool is_our_own(const struct window *w)
{
	const struct probe *p;
	unsigned int i;

	for (i = 0; i < WINDOW_SITES; i++)
		for (p = w->site[i] ? w->site[i]->probes : NULL; p; p = p->next)
			if (p->kind != PROBE_INTERNAL || !w->site[i]->jump_only)
				return false;
	return true;
}

/* Those that stay go to the end; returns how many do not. */
static size_t set_apart(struct optimizer *o, const struct chan *c, bool ours_stay)
{
	size_t n = o->nr_in, i = 0;

	while ((c || ours_stay) && i < n) {
		struct window *w = o->in[i];

		if (c ? !may_stay(w, c) : !is_our_own(w)) {
			i++;
			continue;
		}
		o->in[i] = o->in[--n];
		o->in[n] = w;
	}
	return n;
}

/* All out but what c is not concerned with, as far as they could be written. */
static int take_back(struct target *t, const struct chan *c, bool ours_stay, struct err *err)
{
	struct optimizer *o = t->optimizer;
	size_t done = 0, left = 0, out = set_apart(o, c, ours_stay), n, i;
	int ret = 0;

	while (!t->dead && done < out && !ret) {
		n = batch(o->in + done, out - done);
		ret = target_hold(t, err);
		if (ret)
			break;
		ret = jumps_take_back(t, o->in + done, n, err);
		target_release(t);
		done += n;
	}
	for (i = 0; i < o->nr_in; i++)
		if (o->in[i]->state == WINDOW_IN)
			o->in[left++] = o->in[i];
	o->nr_in = left;
	return ret == -ESRCH ? 0 : ret;
}

static int off(struct target *t, const struct chan *c, bool ours_stay, struct err *err)
{
	struct optimizer *o = t->optimizer;
	size_t i;
	int ret;

	if (!o)
		return 0;
	exits_off(t);
	ret = take_back(t, c, ours_stay, err);
	if (ret || t->dead)
		return ret;
	/* The copies lead past what may be planted next inside the windows. */
	for (i = 0; i < t->nr_sites; i++)
		if (!t->sites[i]->jumped)
			resume_by_slot(t, t->sites[i]);
	o->nr = 0;
	o->fresh = true;
	windows_reset(t, o->windows);
	return 0;
}

int optimize_off_for(struct target *t, const struct chan *c, struct err *err)
{
	return off(t, c, false, err);
}

int optimize_off(struct target *t, struct err *err)
{
	return off(t, NULL, true, err);
}

int optimize_leave(struct target *t, struct err *err)
{
	return off(t, NULL, false, err);
}

void optimize_undo(const struct target *t, uint64_t addr, uint8_t *buf, size_t len)
{
	size_t i, k;

	for (i = 0; t->optimizer && i < t->optimizer->nr_in; i++) {
		const struct window *w = t->optimizer->in[i];

		for (k = 0; k < sizeof(w->d.jump); k++)
			if (w->d.addr + k - addr < len && buf[w->d.addr + k - addr] == w->d.jump[k])
				buf[w->d.addr + k - addr] = w->d.orig[k];
	}
}

bool optimize_leads(const struct target *t, uint64_t pc, uint64_t *to)
{
	const struct window *w = t->optimizer ? windows_find(t->optimizer->windows, pc) : NULL;

	if (w)
		*to = w->d.addr + w->d.len;
	return w;
}

const char *optimize_form(const struct target *t, const struct site *s)
{
	static char text[256];

	if (s->jumped)
		return "jump";
	snprintf(text, sizeof(text), "%s: %s", s->jump_only ? "none" : "int3",
	         s->gone                ? "its library was unloaded"
	         : s->live              ? "its program may rewrite it"
	         : s->base              ? s->base
	         : site_is_ours(s)      ? "ukprobes has a probe of its own there"
	         : !optimize_is_on(t)   ? "optimization is off"
	         : t->optimizer->shared ? "another process shares the memory"
	                                : "the jump is on its way");
	return text;
}

const char *optimize_mark(const struct site *s)
{
	if (!s->jumped)
		return s->gone ? "[GONE]" : s->jump_only && s->armed ? "[WAITING]" : "";
	return s->window && s->window->ftrace ? "[FTRACE]" : "[OPTIMIZED]";
}
