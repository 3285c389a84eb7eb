/* SPDX-License-Identifier: MIT */
/* Which windows there are; cover.h has what one looks like. */
#include "session/windows.h"

#include <stdlib.h>
#include <string.h>

#include "session/cover.h"
#include "session/exits.h"
#include "session/refs.h"
#include "session/sites.h"
#include "session/spare.h"

#define IDLE 128 /* so many more than at the last look */

static const char blocked[] = "another probe is inside the jump's window";

struct windows {
	struct cover cover;
	struct site **v; /* those that want jumps, by address, since the last reset */
	size_t n, at;
	bool hooks_only; /* optimization is off */
	bool sorted;
	bool skipped;  /* a module's target set was not there yet */
	uint64_t upto; /* the end of the last window */
	struct window **by_addr;
	size_t mask, nr;
	uint64_t round;
	size_t wanted; /* in this round */
	size_t left;   /* neither wanted nor spare, after the last look */
	struct spare spare;
};

int windows_open(struct windows **ret, struct modules *m, bool hooks_only)
{
	struct windows *ws = calloc(1, sizeof(*ws));

	*ret = ws;
	if (!ws)
		return -ENOMEM;
	ws->mask = 255;
	ws->hooks_only = hooks_only;
	ws->by_addr = calloc(ws->mask + 1, sizeof(*ws->by_addr));
	ws->cover.windows = ws;
	if (!ws->by_addr || cover_open(&ws->cover, m)) {
		free(ws->by_addr);
		free(ws);
		return -ENOMEM;
	}
	return 0;
}

void windows_close(struct windows *ws)
{
	size_t i;

	for (i = 0; i <= ws->mask; i++)
		while (ws->by_addr[i]) {
			struct window *older = ws->by_addr[i]->older;

			free(ws->by_addr[i]);
			ws->by_addr[i] = older;
		}
	free(ws->by_addr);
	free(ws->v);
	cover_close(&ws->cover);
	free(ws);
}

/* Twice as large, when it has become full; or not, and slower then. */
static void grow(struct windows *ws)
{
	size_t mask = ws->mask * 2 + 1, i;
	struct window **table = calloc(mask + 1, sizeof(*table)), *w;

	for (i = 0; table && i <= ws->mask; i++)
		while ((w = ws->by_addr[i])) {
			struct window **to = &table[ukp_site_hash(w->d.addr) & mask];

			ws->by_addr[i] = w->older;
			w->older = *to;
			*to = w;
		}
	if (!table)
		return;
	free(ws->by_addr);
	ws->by_addr = table;
	ws->mask = mask;
}

static void keep(struct windows *ws, struct window *w)
{
	struct window **to;

	if (ws->nr++ > ws->mask)
		grow(ws);
	to = &ws->by_addr[ukp_site_hash(w->d.addr) & ws->mask];
	w->older = *to;
	*to = w;
}

/* Seldom asked: there is no order by detours. */
const struct window *windows_find(const struct windows *ws, uint64_t pc)
{
	const struct window *w;
	size_t i;

	for (i = 0; i <= ws->mask; i++)
		for (w = ws->by_addr[i]; w; w = w->older)
			if (pc - w->d.buf < w->d.size)
				return w;
	return NULL;
}

struct window *windows_spare(const struct windows *ws, struct window *w, uint32_t code,
                             uint32_t map, uint64_t start)
{
	return spare_next(&ws->spare, w, code, map, start);
}

void windows_forget(struct windows *ws, struct window *w)
{
	struct window **at = &ws->by_addr[ukp_site_hash(w->d.addr) & ws->mask];

	while (*at != w)
		at = &(*at)->older;
	*at = w->older;
	ws->nr--;
	spare_remove(&ws->spare, w);
	free(w);
}

static size_t idle(const struct windows *ws)
{
	return ws->nr - ws->spare.nr - ws->wanted;
}

bool windows_many_idle(const struct windows *ws)
{
	return ws->at == ws->n && idle(ws) >= ws->left + IDLE;
}

/* Those of earlier rounds: traps go on elsewhere, and their jumps are out. */
static size_t list_idle(const struct windows *ws, struct ref_range *v, size_t max)
{
	struct window *w;
	size_t n = 0, i;

	for (i = 0; i <= ws->mask; i++)
		for (w = ws->by_addr[i]; w && n < max; w = w->older)
			if (w->round != ws->round && w->state != WINDOW_IN && !w->spare && !w->lost)
				v[n++] = (struct ref_range){ w->d.buf, w->d.buf + w->d.size, w,
					                     false };
	return n;
}

void windows_look_for_spare(struct target *t, struct windows *ws)
{
	const size_t max = idle(ws);
	struct ref_range *v = malloc((max + 1) * sizeof(*v));
	size_t n = v ? list_idle(ws, v, max) : 0, i;

	if (n && !refs_look(t, v, n))
		for (i = 0; i < n; i++)
			if (!v[i].found)
				spare_add(&ws->spare, v[i].of);
	free(v);
	ws->left = idle(ws);
}

void windows_reset(struct target *t, struct windows *ws)
{
	size_t i;

	for (i = 0; i < t->nr_sites; i++) {
		/* One that stays in the text is left as it is. */
		if (t->sites[i]->jumped)
			continue;
		t->sites[i]->window = NULL;
		t->sites[i]->base = NULL;
	}
	ws->sorted = ws->skipped = false;
	ws->n = ws->at = 0;
	ws->upto = 0;
	ws->wanted = 0;
	ws->round++;
}

void windows_again(struct windows *ws)
{
	if (!ws->skipped)
		return;
	ws->skipped = false;
	ws->at = 0;
	ws->upto = 0;
}

static int by_addr(const void *a, const void *b)
{
	const struct site *x = *(struct site *const *)a, *y = *(struct site *const *)b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int sort(struct target *t, struct windows *ws)
{
	size_t i;

	free(ws->v);
	ws->n = ws->at = 0;
	ws->v = malloc((t->nr_sites + 1) * sizeof(*ws->v));
	if (!ws->v)
		return -ENOMEM;
	for (i = 0; i < t->nr_sites; i++)
		if (site_wants_jump(t->sites[i]))
			ws->v[ws->n++] = t->sites[i];
	qsort(ws->v, ws->n, sizeof(*ws->v), by_addr);
	ws->sorted = true;
	return 0;
}

bool site_is_ours(const struct site *s)
{
	const struct probe *p;

	for (p = s->probes; p; p = p->next)
		if (p->kind == PROBE_INTERNAL && !p->jump_only)
			return true;
	return false;
}

bool site_has_hook(const struct site *s)
{
	const struct probe *p;

	for (p = s->probes; p; p = p->next)
		if (p->kind == PROBE_INTERNAL && p->jump_only)
			return true;
	return false;
}

/* Why no window has it, or NULL. */
static const char *why_barred(const struct windows *ws, const struct site *s)
{
	if (site_is_ours(s))
		return "ukprobes has a probe of its own there";
	return ws->hooks_only && !site_has_hook(s) ? "optimization is off" : NULL;
}

/* The first of the sorted ones at or behind addr, looked for backward from i. */
static size_t first_from(const struct windows *ws, size_t i, uint64_t addr)
{
	while (i && ws->v[i - 1]->addr >= addr)
		i--;
	while (i < ws->n && ws->v[i]->addr < addr)
		i++;
	return i;
}

/* Where a site's place is in a draft; WINDOW_SITES: it can't be in it. */
static unsigned int member(const struct windows *ws, const struct draft *f, const struct site *s)
{
	unsigned int k;

	if (why_barred(ws, s))
		return WINDOW_SITES;
	for (k = 0; k < f->w.nr; k++)
		if (f->addr + f->w.insn[k].off == s->addr)
			return k;
	for (k = UKP_WINDOW_INSNS; k < WINDOW_SITES && f->site[k]; k++)
		;
	return s->addr >= f->addr + f->w.len ? k : WINDOW_SITES;
}

/*
 * The sites that a window at addr covers, by instruction; false: one of them can't
 * be in it.
 */
static bool members(const struct windows *ws, size_t near, struct draft *f)
{
	const uint64_t end = f->addr + f->w.covered;
	size_t i = first_from(ws, near, f->addr);
	unsigned int k;

	f->probes = 0;
	memset(f->site, 0, sizeof(f->site));
	for (; i < ws->n && ws->v[i]->addr < end; i++) {
		k = member(ws, f, ws->v[i]);
		if (k == WINDOW_SITES || ws->v[i]->jumped)
			return false;
		f->site[k] = ws->v[i];
		if (k < UKP_WINDOW_INSNS)
			f->probes |= 1u << k;
	}
	return f->probes;
}

/*
 * Taken along is what is probed, comes right behind, and would have no window
 * by itself.
 */
static void take_along(struct target *t, struct windows *ws, size_t i, struct draft *f)
{
	struct draft next, longer;

	for (;;) {
		i = first_from(ws, i, f->addr + f->w.len);
		if (i == ws->n || ws->v[i]->addr != f->addr + f->w.len || ws->v[i]->jumped ||
		    why_barred(ws, ws->v[i]))
			return;
		longer = *f;
		if (!cover_extend(&ws->cover, &longer))
			return;
		if (!cover_at(t, &ws->cover, ws->v[i]->addr, &next) && members(ws, i, &next))
			return;
		*f = longer;
	}
}

static bool fits(struct target *t, struct windows *ws, size_t i, struct draft *f)
{
	if (f->addr < ws->upto || !members(ws, i, f))
		return false;
	take_along(t, ws, i, f);
	return members(ws, i, f) && cover_form(t, f);
}

/* The reason why a site is in no window, or NULL with the window in f. */
static const char *draft(struct target *t, struct windows *ws, size_t i, struct draft *f)
{
	const uint64_t addr = ws->v[i]->addr;
	const char *why;
	unsigned int k;

	/* Behind endbr64: nothing of the program's own code is touched. */
	if (cover_ftrace(t, &ws->cover, ws->v[i], f) && f->addr >= ws->upto &&
	    (i + 1 == ws->n || ws->v[i + 1]->addr >= f->addr + f->w.covered) && cover_form(t, f))
		return NULL;
	why = cover_at(t, &ws->cover, addr, f);
	if (!why && fits(t, ws, i, f))
		return NULL;
	for (k = 1; k < PLAN_WINDOW_LONG && addr - k >= ws->upto; k++) {
		if (cover_entered(&ws->cover, addr, k))
			break;
		if (cover_back(t, &ws->cover, addr, k, f) && fits(t, ws, i, f))
			return NULL;
	}
	return why ? why : blocked;
}

static struct window *known(struct windows *ws, const struct draft *f)
{
	struct window *w = ws->by_addr[ukp_site_hash(f->addr) & ws->mask];

	while (w && !cover_same(w, f))
		w = w->older;
	return w;
}

/* False: it is no site for a window now. */
static bool open_site(struct target *t, struct windows *ws, struct site *s)
{
	if (s->jumped && ws->upto < s->window->d.addr + s->window->d.len)
		ws->upto = s->window->d.addr + s->window->d.len;
	if (!site_wants_jump(s) || s->window || s->base)
		return false;
	s->base = why_barred(ws, s);
	if (s->base)
		return false;
	if (cover_module(t, &ws->cover, s->addr))
		return true;
	ws->skipped = true;
	return false;
}

static struct window *next_window(struct target *t, struct windows *ws, size_t i)
{
	struct site *s = ws->v[i];
	struct draft f;
	struct window *w;
	unsigned int k;

	s->base = draft(t, ws, i, &f);
	if (s->base)
		return NULL;
	w = known(ws, &f);
	if (!w) {
		s->base = cover_make(t, &ws->cover, &f, &w);
		if (s->base)
			return NULL;
		keep(ws, w);
	}
	if (w->spare)
		spare_remove(&ws->spare, w);
	w->round = ws->round;
	ws->wanted++;
	ws->upto = f.addr + f.w.covered;
	for (k = 0; k < WINDOW_SITES; k++)
		if (w->site[k]) {
			w->site[k]->window = w;
			w->site[k]->base = NULL;
		}
	return w;
}

/* Published: from now on a trap goes on in the window's copies. */
static void resume(struct target *t, struct window *w)
{
	unsigned int k;

	w->state = WINDOW_WAITS;

	for (k = 0; k < UKP_WINDOW_INSNS; k++) {
		struct ukp_site *shared;

		if (!(w->probes >> k & 1))
			continue;
		shared = target_at(t, w->site[k]->off);
		if (w->count)
			cover_count(t, w->site[k]);
		/* Release: whoever goes on there finds all of it. */
		w->site[k]->resumes = true;
		__atomic_store_n(&shared->resume, w->d.buf + w->d.insn[k].copy, __ATOMIC_RELEASE);
	}
}

size_t windows_next(struct target *t, struct windows *ws, struct window **v)
{
	size_t n = 0, pages = 0, i;
	uint64_t last = 0;

	if (!ws->sorted && sort(t, ws))
		return 0;
	cover_begin(&ws->cover);
	while (ws->at < ws->n && n < WINDOWS_MAX && pages < WINDOWS_PAGES) {
		struct window *w;

		if (!open_site(t, ws, ws->v[ws->at++]))
			continue;
		w = next_window(t, ws, ws->at - 1);
		if (!w)
			continue;
		v[n++] = w;
		pages += n == 1 || w->text >> 12 != last;
		last = w->text >> 12;
	}
	/* What isn't there can't be led to, nor found again. */
	if (cover_end(t, &ws->cover)) {
		for (i = 0; i < n; i++) {
			cover_drop(v[i], "its detour cannot be written");
			v[i]->len = 0;
		}
		return 0;
	}
	for (i = 0; i < n; i++)
		resume(t, v[i]);
	return n;
}
