/* SPDX-License-Identifier: MIT */
/*
 * The places of one definition: found, checked by their files, and made
 * members of its probe.  Nothing in the target changes.
 */
#include <errno.h>
#include <stdlib.h>

#include "patch/place.h"
#include "patch/survey.h"
#include "session/exits.h"
#include "session/live.h"
#include "session/target.h"

struct gather {
	struct target *t;
	struct survey *survey;
	struct survey *stays; /* of returns: why the return address must stay */
	struct tally tally;
	struct probe *v; /* members to be */
	size_t nr, room;
	const struct probe *head;
};

static int take(uint64_t addr, const char *why, const char *jump_only, void *arg)
{
	struct gather *g = arg;
	struct probe *m;

	if (!why)
		why = target_has_hook(g->t, addr);
	jump_only = jump_only_at(g->t, jump_only);
	if (!why && jump_only)
		why = jump_only_refusal(g->t, g->head->def, g->stays, jump_only);
	if (g->nr == g->room) {
		size_t room = g->room ? g->room * 2 : 256;
		struct probe *more = realloc(g->v, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		g->v = more;
		g->room = room;
	}
	m = &g->v[g->nr];
	*m = (struct probe){ .head = (struct probe *)g->head,
		             .addr = addr,
		             .jump_only = jump_only,
		             .want = g->head->want };
	if (!why && g->stays)
		why = exits_decide(g->t, m, survey_check(g->stays, addr, NULL));
	if (why)
		tally_add(&g->tally, why, 1);
	else
		g->nr++;
	return 0;
}

static int take_func(const struct sym_symbol *func, void *arg)
{
	struct gather *g = arg;
	const char *why = lang_no_entry(g->head->def, func), *jump_only = NULL;

	if (!why)
		why = survey_check(g->survey, func->addr, &jump_only);
	return take(func->addr, why, jump_only, g);
}

static int take_return(struct gather *g, uint64_t addr, const char *jump_only, int column,
                       struct err *err)
{
	int ret = take(addr, NULL, jump_only, g);

	if (ret || g->nr)
		return ret;
	return err_at(err, -EINVAL, column, "Failed to register probe event: %s",
	              tally_most(&g->tally));
}

/* A single place has its own, longer words for what is wrong with it. */
static int take_one(struct gather *g, const struct lang_def *def, struct err *err)
{
	const char *jump_only;
	struct sym_symbol func;
	uint64_t addr;
	int ret = lang_resolve(def, g->t->sym, &addr, &func, err);

	if (!ret && live_is_asked(g->head->chan, addr)) {
		ret = live_check(g->t, addr, def->ret, def->place.column, err);
		if (!ret)
			ret = take(addr, NULL, NULL, g);
		if (!ret)
			g->v[0].live = true;
		return ret;
	}
	if (!ret)
		ret = place_check(g->t->sym, addr, false, &jump_only, def->place.column, err);
	if (!ret && def->ret)
		return take_return(g, addr, jump_only, def->place.column, err);
	return ret ? ret : take(addr, NULL, jump_only, g);
}

static int take_code(uint64_t start, uint64_t end, void *arg)
{
	struct gather *g = arg;

	return survey_insns(g->survey, start, end, take, g);
}

static int gather(struct gather *g, const struct lang_def *def, struct err *err)
{
	switch (def->many) {
	case LANG_FUNCS:
		return lang_resolve_all(def, g->t->sym, take_func, g, err);
	case LANG_INSNS:
		return lang_resolve_code(def, g->t->sym, take_code, g, err);
	default:
		return take_one(g, def, err);
	}
}

static void make_members(struct chan *c, struct probe *p, const struct gather *g)
{
	size_t i;

	p->member = g->v;
	p->nr_members = g->nr;
	p->counter = c->next_counter;
	for (i = 0; i < g->nr; i++) {
		struct probe *m = &p->member[i];

		m->head = p;
		m->chan = c;
		m->kind = p->kind;
		m->enabled = true;
		if (probe_counts(m))
			m->counter = c->next_counter++;
	}
}

static int judge(const struct chan *c, const struct probe *p, const struct gather *g,
                 struct err *err)
{
	size_t all = g->nr + g->tally.total;
	int column = p->def->place.column;

	if (!g->nr)
		return err_at(err, -EINVAL, column,
		              "Failed to register probe event: none of the %zu places can be "
		              "probed: %s",
		              all, tally_most(&g->tally));
	if (probe_counts(p) && g->nr > UKP_CHAN_COUNTERS - c->next_counter)
		return err_at(err, -ENOSPC, column,
		              "%zu places are too many: one session counts %u", g->nr,
		              UKP_CHAN_COUNTERS);
	if (c->strict && g->tally.total)
		return err_at(err, -EINVAL, column,
		              "Failed to register probe event: %zu of %zu places cannot be probed, "
		              "and all are wanted: %s%s",
		              g->tally.total, all, tally_most(&g->tally),
		              g->tally.nr > 1 ? ", and other reasons" : "");
	return 0;
}

int many_fill(struct chan *c, struct probe *p, struct err *err)
{
	struct gather g = { .t = c->target, .head = p };
	int ret = survey_open(&g.survey, c->target->sym, false);

	if (!ret && p->def->ret)
		ret = survey_open(&g.stays, c->target->sym, true);
	if (!ret)
		ret = gather(&g, p->def, err);
	survey_close(g.survey);
	survey_close(g.stays);
	if (!ret)
		ret = judge(c, p, &g, err);
	if (!ret)
		make_members(c, p, &g);
	else
		free(g.v);
	if (ret == -ENOMEM)
		return err_set(err, ret, "out of memory");
	if (!ret)
		tally_merge(&c->refused, &g.tally);
	return ret;
}
