/* SPDX-License-Identifier: MIT */
/* See jumps.h. */
#include "session/jumps.h"

#include <stdlib.h>
#include <string.h>

#include "engine/signal.h"
#include "session/exits.h"

#define GAP 4096
#define PIECE_MAX (64u << 10)

/* Where threads and saved contexts stand, by address. */
struct spot {
	uint64_t ip;
	size_t thread; /* NONE: a context, which can't be moved */
};

#define NONE ((size_t)-1)

struct pieces {
	struct target *t;
	bool write;
	struct spot *spot;
	size_t nr_spots;
	uint8_t *buf;
	int failed;
};

static int by_ip(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;

	return x->ip < y->ip ? -1 : x->ip > y->ip;
}

static int find_spots(struct pieces *p)
{
	size_t nr = inject_nr_threads(p->t->inject), contexts, i;
	uint64_t *ip;
	int ret = leave_contexts(p->t, &ip, &contexts);

	if (ret)
		return ret;
	p->spot = malloc((nr + contexts + 1) * sizeof(*p->spot));
	for (i = 0; p->spot && i < contexts; i++)
		p->spot[p->nr_spots++] = (struct spot){ ip[i], NONE };
	for (i = 0; p->spot && i < nr; i++)
		p->spot[p->nr_spots++] =
			(struct spot){ inject_thread_at(p->t->inject, i)->regs.rip, i };
	free(ip);
	if (!p->spot)
		return -ENOMEM;
	qsort(p->spot, p->nr_spots, sizeof(*p->spot), by_ip);
	return 0;
}

/* The first one behind addr. */
static size_t behind(const struct pieces *p, uint64_t addr)
{
	size_t low = 0, high = p->nr_spots;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (p->spot[mid].ip <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool move(struct pieces *p, struct spot *s, uint64_t to)
{
	struct user_regs_struct regs = inject_thread_at(p->t->inject, s->thread)->regs;

	regs.rip = to;
	return !inject_set_regs(p->t->inject, s->thread, &regs);
}

/* It has met a breakpoint: the engine will say where that goes on. */
static bool is_trapped(struct pieces *p, const struct spot *s)
{
	return inject_pending(p->t->inject, s->thread, UKP_SIGTRAP, UKP_SI_KERNEL);
}

/* Threads inside the window go on in the detour; false: something there can't. */
static bool clear(struct pieces *p, const struct window *w)
{
	const struct ukp_detour *d = &w->d;
	size_t first = behind(p, d->addr), i;

	/* All is asked before one of them is moved. */
	for (i = first; i < p->nr_spots && p->spot[i].ip <= d->addr + d->len; i++)
		if (p->spot[i].thread == NONE
		            ? p->spot[i].ip < d->addr + sizeof(d->jump)
		            : !ukp_detour_park(d, p->spot[i].ip) && !is_trapped(p, &p->spot[i]))
			return false;
	for (i = first; i < p->nr_spots && p->spot[i].ip <= d->addr + d->len; i++) {
		uint64_t to = ukp_detour_park(d, p->spot[i].ip);

		if (p->spot[i].thread != NONE && to != p->spot[i].ip &&
		    !is_trapped(p, &p->spot[i]) && !move(p, &p->spot[i], to))
			return false;
	}
	return true;
}

static void decide(struct window *w, enum window_state state, const char *why)
{
	unsigned int i;

	w->state = state;
	for (i = 0; i < WINDOW_SITES; i++) {
		if (!w->site[i])
			continue;
		w->site[i]->jumped = state == WINDOW_IN;
		if (why)
			w->site[i]->base = why;
	}
}

/* Calls that have records come to a breakpoint at their exits: is is what the text should have. */
static void drain(struct window *w, const uint8_t *is, uint8_t *now)
{
	const size_t jump = w->jump + sizeof(w->d.jump);
	unsigned int i;

	for (i = 0; i < WINDOW_SITES; i++) {
		struct site *s = w->site[i];

		if (!s || s->armed || !site_drains(s))
			continue;
		if (s->addr - w->text >= jump) {
			if (now[s->addr - w->text] != is[s->addr - w->text])
				continue;
			now[s->addr - w->text] = 0xcc;
		}
		s->armed = true;
	}
}

/* True: the bytes at now have been changed. */
static bool change(struct pieces *p, struct window *w, uint8_t *now)
{
	uint8_t was[WINDOW_BYTES], is[WINDOW_BYTES];

	window_jump(w, is);
	if (!p->write) {
		decide(w, WINDOW_OUT, NULL);
		/* What others have put there since is theirs; ours comes back with what they saved.
		 */
		if (memcmp(now, is, w->jump + sizeof(w->d.jump))) {
			w->lost = true;
			return false;
		}
		drain(w, is, now);
		window_breakpoints(w, was);
		memcpy(now, was, w->jump + sizeof(w->d.jump));
		return true;
	}
	if (w->state != WINDOW_WAITS)
		return false;
	window_breakpoints(w, was);
	/* Asked before a thread is moved: what lies there may be another library's by now. */
	if (memcmp(now, was, w->len)) {
		decide(w, WINDOW_OUT, "the code has changed");
		w->lost = true;
		return false;
	}
	if (!clear(p, w))
		return false;
	decide(w, WINDOW_IN, NULL);
	memcpy(now, is, w->len);
	return true;
}

static uint64_t end_of(const struct window *w)
{
	return w->text + w->len;
}

static void change_piece(struct pieces *p, struct window **v, size_t n)
{
	const uint64_t start = v[0]->text, len = end_of(v[n - 1]) - start;
	bool changed = false, there;
	size_t i;
	int ret;

	ret = inject_read(p->t->inject, start, p->buf, len);
	there = !ret;
	for (i = 0; there && i < n; i++)
		changed |= change(p, v[i], p->buf + (v[i]->text - start));
	if (changed)
		ret = inject_write(p->t->inject, start, p->buf, len);
	if (!ret)
		return;
	/* Who was moved to a detour comes back behind its window. */
	for (i = 0; i < n; i++)
		decide(v[i], p->write ? WINDOW_WAITS : WINDOW_IN, NULL);
	if (n > 1) {
		change_piece(p, v, n / 2);
		change_piece(p, v + n / 2, n - n / 2);
		return;
	}
	v[0]->lost = true;
	if (p->write)
		decide(v[0], WINDOW_OUT, "its code cannot be read or written any more");
	else if (there)
		p->failed = ret;
	else
		decide(v[0], WINDOW_OUT, NULL); /* and its jump has gone with it */
}

static int by_text(const void *a, const void *b)
{
	const struct window *x = *(struct window *const *)a, *y = *(struct window *const *)b;

	return x->text < y->text ? -1 : x->text > y->text;
}

static void change_all(struct pieces *p, struct window **v, size_t n)
{
	size_t i = 0, k;

	qsort(v, n, sizeof(*v), by_text);
	p->buf = malloc(PIECE_MAX);
	for (; p->buf && i < n; i = k) {
		for (k = i + 1; k < n; k++)
			if (v[k]->text - end_of(v[k - 1]) > GAP ||
			    end_of(v[k]) - v[i]->text > PIECE_MAX)
				break;
		change_piece(p, v + i, k - i);
	}
	if (!p->buf)
		p->failed = -ENOMEM;
	free(p->buf);
}

void jumps_write(struct target *t, struct window **v, size_t n)
{
	struct pieces p = { .t = t, .write = true };

	if (!find_spots(&p))
		change_all(&p, v, n);
	free(p.spot);
}

int jumps_take_back(struct target *t, struct window **v, size_t n, struct err *err)
{
	struct pieces p = { .t = t };

	change_all(&p, v, n);
	return p.failed ? err_set(err, p.failed, "cannot write code of process %d: %s", t->pid,
	                          strerror(-p.failed))
	                : 0;
}
