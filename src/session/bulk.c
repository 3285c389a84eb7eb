/* SPDX-License-Identifier: MIT */
/*
 * Planting thousands of places at once.
 *
 *	1. slots are mapped: the only thing for which the threads stand still
 *	2. each place gets its copy, its site, its action and its entry in the
 *	   table; slots are written in large pieces
 *	3. breakpoints are written page by page, while the threads run
 *
 * Until 3 nothing of it is visible to the program; from the moment on in which
 * a breakpoint is, all that a hit needs is there.  So the time for which the
 * target stands still does not depend on how many places there are.  Taking
 * out is the same the other way round.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "patch/slots.h"
#include "patch/survey.h"
#include "session/exits.h"
#include "session/live.h"
#include "session/pages.h"
#include "session/sites.h"
#include "session/target.h"

#define PIECE (64u << 10)
#define BYTES_A_SITE 192 /* in the control area: site, action, counter */

/* Slots that follow each other, to be written at once. */
struct piece {
	uint64_t start;
	size_t len;
	uint8_t buf[PIECE];
};

struct bulk {
	struct chan *c;
	struct target *t;
	struct probe **v; /* members, by address */
	size_t nr;
	struct survey *survey;
	struct piece piece;
	struct tally tally;
};

static bool is_fresh(const struct probe *head)
{
	return probe_is_many(head) && !head->planted && !head->gone;
}

static int by_addr(const void *a, const void *b)
{
	const struct probe *x = *(struct probe *const *)a, *y = *(struct probe *const *)b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int collect(struct bulk *b)
{
	bool sorted = true;
	struct probe *h;
	size_t n = 0, i;

	for (h = b->c->probes; h; h = h->next_mine)
		n += is_fresh(h) ? h->nr_members : 0;
	b->v = n ? malloc(n * sizeof(*b->v)) : NULL;
	if (n && !b->v)
		return -ENOMEM;
	for (h = b->c->probes; h; h = h->next_mine)
		for (i = 0; is_fresh(h) && i < h->nr_members; i++) {
			sorted = sorted && (!b->nr || b->v[b->nr - 1]->addr <= h->member[i].addr);
			b->v[b->nr++] = &h->member[i];
		}
	if (!sorted)
		qsort(b->v, b->nr, sizeof(*b->v), by_addr);
	return 0;
}

/* The memory of all new sites; a mapping of a module's slots is reserved at once. */
static int reserve(struct bulk *b, struct err *err)
{
	size_t i = 0, k, fresh, all = 0;
	const struct sym_map *m;
	uint64_t start, end;
	int ret = 0;

	while (i < b->nr && !ret) {
		m = sym_map_find(b->t->sym, b->v[i]->addr);
		start = b->v[i]->addr;
		end = m ? m->end : start + 1;
		for (k = i, fresh = 0; k < b->nr && b->v[k]->addr < end; k++)
			fresh += (k == i || b->v[k]->addr != b->v[k - 1]->addr) &&
			         !sites_find(b->t, b->v[k]->addr);
		if (m && fresh)
			ret = slots_reserve(b->t->slots, start, fresh, err);
		all += fresh;
		i = k;
	}
	/* A page fault for each page of it costs more than all that is written there. */
	target_populate(b->t, all * BYTES_A_SITE);
	if (!ret && sites_reserve(b->t, all))
		ret = err_set(err, -ENOSPC, "the control area of process %d is full", b->t->pid);
	return ret;
}

static int flush(struct bulk *b, struct err *err)
{
	struct piece *p = &b->piece;
	int ret = p->len ? inject_write(b->t->inject, p->start, p->buf, p->len) : 0;

	p->len = 0;
	return ret ? err_set(err, ret, "cannot write to process %d: %s", b->t->pid, strerror(-ret))
	           : 0;
}

static int put_slot(struct bulk *b, uint64_t slot, const uint8_t *code, struct err *err)
{
	struct piece *p = &b->piece;
	int ret = 0;

	if (p->len && (slot != p->start + p->len || p->len == PIECE))
		ret = flush(b, err);
	if (!p->len)
		p->start = slot;
	memcpy(p->buf + p->len, code, UKP_SLOT_SIZE);
	p->len += UKP_SLOT_SIZE;
	return ret;
}

static void refuse(struct bulk *b, struct probe *m, const char *why)
{
	tally_add(&b->tally, why, 1);
	m->gone = true;
}

/* *ret_s NULL: refused, with *why. */
static int make_site(struct bulk *b, const struct probe *m, struct site **ret_s, const char **why,
                     struct err *err)
{
	const uint64_t addr = m->addr;
	struct plan_request req = { .addr = addr };
	const struct place_live live = live_text(b->t);
	struct site *s = calloc(1, sizeof(*s));
	uint8_t out[UKP_SLOT_SIZE];
	enum plan_refusal refusal;
	int ret;

	*ret_s = NULL;
	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	if (!m->live)
		req.code = survey_code(b->survey, addr, &req.avail);
	req.slot = slots_get(b->t->slots, addr, err);
	if (!req.slot) {
		free(s);
		return err->code;
	}
	s->addr = addr;
	s->live = m->live;
	refusal = m->live ? place_copy_live(&live, &req, out, &s->plan)
	                  : plan_copy(&req, out, &s->plan);
	if (refusal) {
		slots_put(b->t->slots, req.slot);
		*why = plan_reason(refusal);
		free(s);
		return 0;
	}
	s->first = s->plan.orig[0];
	s->jump_only = m->jump_only;
	s->plan.flags |= site_flags(s);
	/* Exits have sites as well, which were not foreseen. */
	s->off = sites_reserve(b->t, 1) ? 0 : target_alloc(b->t, sizeof(struct ukp_site));
	ret = s->off ? put_slot(b, req.slot, out, err)
	             : err_set(err, -ENOSPC, "the control area of process %d is full", b->t->pid);
	if (ret) {
		free(s);
		return ret;
	}
	memcpy(target_at(b->t, s->off), &s->plan, sizeof(s->plan));
	sites_add(b->t, s);
	*ret_s = s;
	return 0;
}

static int link_member(struct bulk *b, struct site *s, struct probe *m, struct err *err)
{
	int ret = exits_plant_firm(b->t, m, err);

	if (!ret)
		ret = probe_link(b->t, s, m, err);
	if (ret)
		exits_unplant(b->t, m);
	return ret;
}

static int build(struct bulk *b, struct err *err)
{
	const char *why = NULL;
	struct site *s = NULL;
	size_t i;
	int ret = 0;

	for (i = 0; i < b->nr && !ret; i++) {
		struct probe *m = b->v[i];

		/* A second member of a place fares as the first. */
		if (!i || b->v[i - 1]->addr != m->addr) {
			ret = live_ready(b->t, m, err);
			s = sites_find(b->t, m->addr);
			if (!ret && !s)
				ret = make_site(b, m, &s, &why, err);
		}
		if (!ret && s)
			ret = link_member(b, s, m, err);
		else if (!ret)
			refuse(b, m, why);
	}
	return ret ? ret : flush(b, err);
}

static void on_refused(struct site *s, const char *why, void *arg)
{
	struct probe *p = s->probes, *next;
	struct bulk *b = arg;

	for (; p; p = next) {
		next = p->next;
		if (!p->head || !is_fresh(p->head))
			continue;
		probe_unlink(b->t, p);
		exits_unplant(b->t, p);
		refuse(b, p, why);
	}
}

/* The distinct sites of members, in their order; malloc'ed. */
static struct site **sites_of(struct probe **v, size_t n, size_t *nr)
{
	struct site **s = malloc((n + 1) * sizeof(*s));
	size_t i;

	*nr = 0;
	for (i = 0; s && i < n; i++)
		if (v[i]->site && (!*nr || s[*nr - 1] != v[i]->site))
			s[(*nr)++] = v[i]->site;
	return s;
}

static int arm(struct bulk *b, struct err *err)
{
	size_t n;
	struct site **s = sites_of(b->v, b->nr, &n);

	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	pages_arm(b->t, s, n, on_refused, b);
	free(s);
	return 0;
}

int bulk_judge(struct chan *c, const struct tally *refused, size_t nr, struct err *err)
{
	struct probe *h;
	size_t i;

	for (h = c->probes; h; h = h->next_mine) {
		if (!probe_is_many(h) || !h->fresh)
			continue;
		h->nr_planted = 0;
		for (i = 0; i < h->nr_members; i++)
			h->nr_planted += h->member[i].site != NULL;
		if (!h->nr_planted)
			return err_set(err, -EINVAL,
			               "Failed to register probe event: none of the places of %s "
			               "can be probed: %s",
			               h->def->event, tally_most(refused));
	}
	if (c->strict && refused->total)
		return err_set(err, -EINVAL,
		               "Failed to register probe event: %zu of %zu places cannot be "
		               "probed, and all are wanted: %s",
		               refused->total, nr, tally_most(refused));
	return 0;
}

static int contexts(struct bulk *b, struct err *err)
{
	struct probe *h;

	for (h = b->c->probes; h; h = h->next_mine) {
		/* Members that count hits have one each, and need no more. */
		if (!is_fresh(h) || h->ctx_off || h->kind == PROBE_COUNT)
			continue;
		h->ctx_off = probe_context(b->t, h);
		if (!h->ctx_off)
			return err_set(err, -ENOSPC, "the control area of process %d is full",
			               b->t->pid);
	}
	return 0;
}

static int plant(struct bulk *b, struct err *err)
{
	struct probe *h;
	int ret = reserve(b, err);

	/* After the last look at the mappings: a survey knows one view of them. */
	if (!ret && survey_open(&b->survey, b->t->sym, false))
		ret = err_set(err, -ENOMEM, "out of memory");
	if (!ret)
		ret = contexts(b, err);
	if (!ret)
		ret = build(b, err);
	survey_close(b->survey);
	if (!ret)
		ret = arm(b, err);
	for (h = b->c->probes; h; h = h->next_mine)
		if (is_fresh(h))
			h->fresh = h->planted = true;
	return ret ? ret : bulk_judge(b->c, &b->tally, b->nr, err);
}

int bulk_start(struct chan *c, struct err *err)
{
	struct bulk *b = calloc(1, sizeof(*b));
	struct probe *h;
	int ret;

	if (!b)
		return err_set(err, -ENOMEM, "out of memory");
	b->c = c;
	b->t = c->target;
	ret = collect(b) ? err_set(err, -ENOMEM, "out of memory") : 0;
	if (!ret && b->nr)
		ret = plant(b, err);
	if (!ret)
		tally_merge(&c->refused, &b->tally);
	for (h = c->probes; h && ret; h = h->next_mine)
		if (h->fresh)
			bulk_stop(c, h);
	free(b->v);
	free(b);
	return ret;
}

static int site_by_addr(const void *a, const void *b)
{
	const struct site *x = *(struct site *const *)a, *y = *(struct site *const *)b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Those that are not wanted (any more) among n, sorted, out. */
static void disarm_unwanted(struct target *t, struct site **s, size_t n)
{
	size_t i, out = 0;

	for (i = 0; i < n; i++)
		if (s[i]->armed && !s[i]->jumped && !site_wanted(s[i]))
			s[out++] = s[i];
	qsort(s, out, sizeof(*s), site_by_addr);
	pages_disarm(t, s, out);
}

static void stop_one(struct target *t, struct probe *h)
{
	struct site **s = malloc((h->nr_members + 1) * sizeof(*s));
	size_t i, n = 0;

	for (i = 0; i < h->nr_members; i++) {
		struct site *site = h->member[i].site;

		if (!site)
			continue;
		probe_unlink(t, &h->member[i]);
		exits_unplant(t, &h->member[i]);
		if (s)
			s[n++] = site;
		else
			disarm_unwanted(t, &site, 1);
	}
	if (s)
		disarm_unwanted(t, s, n);
	free(s);
	h->planted = h->fresh = false;
	h->gone = true;
}

void bulk_stop(struct chan *c, struct probe *p)
{
	struct probe *h;

	for (h = c->probes; h; h = h->next_mine)
		if (probe_is_many(h) && h->planted && (!p || h == p))
			stop_one(c->target, h);
}

void bulk_drop(struct probe *m)
{
	struct target *t = m->head->chan->target;
	struct site *site = m->site;

	probe_unlink(t, m);
	disarm_unwanted(t, &site, 1);
}

static void on_late(struct site *s, const char *why, void *arg)
{
	tally_add(arg, why, 1);
}

static void enable_count(struct target *t, const struct probe *m)
{
	struct ukp_counter *c = target_at(t, m->ctx_off);
	struct ukp_site *shared = target_at(t, m->site->off);

	__atomic_store_n(&c->enabled, m->enabled, __ATOMIC_RELAXED);
	/* Entries that count by themselves look at nothing else. */
	if (!m->enabled)
		__atomic_store_n(&shared->counter, 0, __ATOMIC_RELEASE);
}

int bulk_enable(struct probe *p, struct err *err)
{
	struct target *t = p->chan->target;
	struct tally late = { .nr = 0 };
	struct site **s = malloc((p->nr_members + 1) * sizeof(*s));
	size_t i, n = 0;

	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	for (i = 0; i < p->nr_members; i++) {
		struct probe *m = &p->member[i];

		m->enabled = p->enabled;
		if (!m->site)
			continue;
		s[n++] = m->site;
		if (probe_counts(m))
			enable_count(t, m);
	}
	if (p->enabled)
		pages_arm(t, s, n, on_late, &late);
	else
		disarm_unwanted(t, s, n);
	free(s);
	return late.total ? err_set(err, -EBUSY, "%zu places cannot be probed any more: %s",
	                            late.total, tally_most(&late))
	                  : 0;
}

/* Breakpoints of our own stay: they keep the program's handlers ours until the end. */
static bool is_internal(const struct site *s)
{
	const struct probe *p;

	for (p = s->probes; p; p = p->next)
		if (p->kind == PROBE_INTERNAL)
			return true;
	return false;
}

void bulk_restore(struct target *t)
{
	struct site **s = malloc((t->nr_sites + 1) * sizeof(*s));
	size_t i, n = 0;

	for (i = 0; i < t->nr_sites; i++) {
		if (!t->sites[i]->armed || is_internal(t->sites[i]))
			continue;
		if (s)
			s[n++] = t->sites[i];
		else
			pages_disarm(t, &t->sites[i], 1);
	}
	if (n)
		qsort(s, n, sizeof(*s), site_by_addr);
	if (s)
		pages_disarm(t, s, n);
	free(s);
}

void bulk_restore_own(struct target *t)
{
	struct probe *p;

	for (p = t->internal; p; p = p->next_mine)
		if (p->site)
			pages_disarm(t, &p->site, 1);
}
