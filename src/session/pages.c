/* SPDX-License-Identifier: MIT */
/*
 * Neighbouring pages are read at once, patched here, and written at once, while the
 * target stands still: what is written beside the breakpoints is what was read, and a
 * program may write its own text (static branches).  A few places, and all where it
 * can't be stopped, are written byte by byte.  Where that fails (a library has just
 * gone), a run is halved, down to a single site.  Text that the program may rewrite
 * altogether is single sites from the start.
 */
#include "session/pages.h"

#include "session/live.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 4096ull
#define RUN_MAX (256u << 10)
#define FEW 64 /* sites whose bytes take no longer than a stop */
#define INT3 0xcc

struct patch {
	struct target *t;
	bool arm;
	bool again;   /* a write failed: what stands there may be ours */
	bool no_hold; /* it can't be stopped just now */
	pages_refused_fn refused;
	void *arg;
	uint8_t *buf;
};

static uint64_t page_of(uint64_t addr)
{
	return addr & ~(PAGE - 1);
}

/* True: the byte at now is to be written. */
static bool patch_site(struct patch *p, struct site *s, uint8_t *now)
{
	if (s->armed == p->arm)
		return false;
	if (!p->arm) {
		s->armed = false;
		if (s->jump_only || *now != INT3)
			return false;
		*now = s->first;
		return true;
	}
	/* One that was refused before a run was halved. */
	if (!site_wanted(s))
		return false;
	if (p->again && *now == INT3 && !s->jump_only) {
		s->armed = true;
		return false;
	}
	if (memcmp(now, s->plan.orig, s->plan.len)) {
		p->refused(s, "the bytes in memory differ from the file's", p->arg);
		return false;
	}
	s->armed = true;
	if (s->jump_only)
		return false;
	*now = INT3;
	return true;
}

static void give_up(struct patch *p, struct site *s)
{
	s->armed = false;
	if (p->arm && site_wanted(s))
		p->refused(s, "its code cannot be read or written any more", p->arg);
}

static void patch_live(struct patch *p, struct site *s)
{
	struct err ignored = ERR_INIT;

	if (!p->arm)
		live_disarm(p->t, s);
	else if (site_wanted(s) && live_arm(p->t, s, &ignored))
		p->refused(s, "its program is changing its code, or can't be stopped", p->arg);
}

static void patch_single(struct patch *p, struct site *s)
{
	uint8_t code[UKP_INSN_MAX + 1];

	if (s->armed == p->arm)
		return;
	if (s->live) {
		patch_live(p, s);
		return;
	}
	if (inject_read(p->t->inject, s->addr, code, p->arm ? s->plan.len : 1) ||
	    (patch_site(p, s, code) && inject_write(p->t->inject, s->addr, code, 1)))
		give_up(p, s);
}

/* False: the halves are to find out what can be done. */
static bool patch_bytes(struct patch *p, struct site **v, size_t n)
{
	const uint64_t start = v[0]->addr;
	uint64_t end = start;
	size_t i;

	for (i = 0; i < n; i++)
		if (v[i]->addr + v[i]->plan.len > end)
			end = v[i]->addr + v[i]->plan.len;
	if (inject_read(p->t->inject, start, p->buf, end - start))
		return false;
	for (i = 0; i < n; i++) {
		uint8_t *now = p->buf + (v[i]->addr - start);

		if (patch_site(p, v[i], now) && inject_write(p->t->inject, v[i]->addr, now, 1))
			give_up(p, v[i]);
	}
	return true;
}

/* The same; it stands still. */
static bool patch_pages(struct patch *p, struct site **v, size_t n)
{
	uint64_t start = page_of(v[0]->addr), last = page_of(v[n - 1]->addr) + PAGE;
	uint64_t end = v[n - 1]->addr + v[n - 1]->plan.len, len;
	bool changed = false;
	size_t i;

	len = (end > last ? last + PAGE : last) - start;
	if (inject_read(p->t->inject, start, p->buf, len))
		return false;
	for (i = 0; i < n; i++)
		changed |= patch_site(p, v[i], p->buf + (v[i]->addr - start));
	if (!changed || !inject_write(p->t->inject, start, p->buf, last - start))
		return true;
	/* Up to where it was written. */
	p->again = true;
	for (i = 0; i < n; i++)
		v[i]->armed = !p->arm;
	return false;
}

static bool hold(struct patch *p)
{
	struct err ignored = ERR_INIT;

	p->no_hold = p->no_hold || target_hold(p->t, &ignored);
	return !p->no_hold;
}

static void patch_run(struct patch *p, struct site **v, size_t n)
{
	bool done;

	if (n == 1) {
		patch_single(p, v[0]);
		return;
	}
	if (n > FEW && hold(p)) {
		done = patch_pages(p, v, n);
		target_release(p->t);
	} else {
		done = patch_bytes(p, v, n);
	}
	if (done)
		return;
	patch_run(p, v, n / 2);
	patch_run(p, v + n / 2, n - n / 2);
}

static void patch_all(struct patch *p, struct site **v, size_t n)
{
	size_t i = 0, k;

	p->buf = malloc(RUN_MAX + PAGE);
	for (; i < n; i = k) {
		uint64_t start = page_of(v[i]->addr);

		for (k = i + 1; k < n && p->buf; k++)
			if (v[k]->live || v[k - 1]->live ||
			    page_of(v[k]->addr) - page_of(v[k - 1]->addr) > PAGE ||
			    page_of(v[k]->addr) + PAGE - start > RUN_MAX)
				break;
		patch_run(p, v + i, k - i);
	}
	free(p->buf);
}

void pages_arm(struct target *t, struct site **v, size_t n, pages_refused_fn refused, void *arg)
{
	struct patch p = { .t = t, .arm = true, .refused = refused, .arg = arg };

	patch_all(&p, v, n);
}

void pages_disarm(struct target *t, struct site **v, size_t n)
{
	struct patch p = { .t = t };

	patch_all(&p, v, n);
}
