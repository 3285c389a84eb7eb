/* SPDX-License-Identifier: MIT */
/* See exits.h. */
#include "session/exits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patch/survey.h"
#include "session/modules.h"
#include "session/optimize.h"

static const char asked[] = "as asked for";
static const char counted[] = "the calls that are on their way at a time are limited";
static const char no_jumps[] = "optimization is off";
static const char copied[] = "the program has coroutines that copy their stacks";
static const char no_exits[] = "the exits of its module's functions could not be found";
static const char no_room[] = "there is no room for its exit sites";
static const char followed[] = "forked children are followed by replaced return addresses alone: "
			       "--ret=slot";
static const char behind[] = "a call may pass its start more than once";

/* At one module after the other. */
struct look {
	struct target *t;
	struct survey *survey;
	const struct sym_map *map;
	const struct plan_exits *exits;
	uint64_t bias;
	bool ready;
	bool copies; /* somebody copies stacks */
	bool found;
};

static void each_return(struct target *t, void (*fn)(struct look *l, struct probe *p),
                        struct look *l)
{
	struct chan *c;
	struct probe *p;
	size_t i;

	l->t = t;
	for (c = t->chans; c; c = c->next)
		for (p = c->probes; p; p = p->next_mine) {
			if (!probe_returns(p))
				continue;
			if (p->site)
				fn(l, p);
			for (i = 0; i < p->nr_members; i++)
				if (p->member[i].site)
					fn(l, &p->member[i]);
		}
}

static struct sym_module *module_of(struct look *l, uint64_t addr)
{
	if (!l->map || addr - l->map->start >= l->map->end - l->map->start)
		l->map = sym_map_find(l->t->sym, addr);
	return l->map ? l->map->module : NULL;
}

/* Go to addr's module; false: its exits are not known yet. */
static bool go_to(struct look *l, uint64_t addr)
{
	const struct sym_map *before = l->map;
	struct sym_module *m = module_of(l, addr);

	if (before && l->map == before)
		return l->ready;
	l->ready = modules_exits_ready(l->t->modules, m);
	l->exits = modules_exits(l->t->modules, m, &l->bias);
	return l->ready;
}

static const struct plan_function *function_of(const struct look *l, const struct probe *p)
{
	return l->exits ? plan_exits_find(l->exits, p->func - l->bias) : NULL;
}

/* Why a probe can't stand at each exit, or NULL. */
static const char *check(struct look *l, const struct plan_function *fn)
{
	const struct plan_way_out *w = plan_exits_ways(l->exits, fn);
	const char *why = NULL;
	uint32_t i;

	if (!l->survey && survey_open(&l->survey, l->t->sym, false))
		return no_room;
	for (i = 0; i < fn->nr_exits && !why; i++)
		why = survey_check(l->survey, w[i].addr + l->bias, NULL);
	return why;
}

static int plant(struct look *l, struct probe *p, const struct plan_function *fn, struct err *err)
{
	const struct plan_way_out *w = plan_exits_ways(l->exits, fn);
	uint32_t i;
	int ret = 0;

	p->exit = calloc(fn->nr_exits + 1, sizeof(*p->exit));
	if (!p->exit)
		return err_set(err, -ENOMEM, "out of memory");
	for (i = 0; i < fn->nr_exits && !ret; i++) {
		struct probe *e = &p->exit[p->nr_exits++];

		e->kind = PROBE_EXIT;
		e->of = p;
		e->chan = p->chan;
		e->addr = w[i].addr + l->bias;
		e->enabled = p->firm;
		ret = probe_ready(l->t, e, err);
	}
	return ret;
}

void exits_unplant(struct target *t, struct probe *p)
{
	uint32_t i;

	for (i = 0; i < p->nr_exits; i++) {
		p->exit[i].enabled = false;
		probe_unplant(&p->exit[i]);
		probe_blocks(&p->exit[i], &p->chan->loose);
	}
	free(p->exit);
	p->exit = NULL;
	p->nr_exits = 0;
}

static void give_records(struct target *t, struct probe *p)
{
	if (!t->frames)
		target_warm_frames(t);
	p->frames = p->drains = t->frames = true;
}

static void mark(struct target *t, const struct probe *p, uint32_t flags)
{
	struct ukp_action *a = target_at(t, p->action_off);

	/* Release: who finds the mark finds what it says. */
	__atomic_store_n(&a->flags, flags, __ATOMIC_RELEASE);
}

/* --- by choice ------------------------------------------------------------------- */

static void copies_stacks(struct look *l)
{
	size_t i;

	for (i = 0; i < sym_nr_maps(l->t->sym) && !l->copies; i++)
		l->copies = strstr(sym_map_at(l->t->sym, i)->path, "greenlet");
}

static void keep_slot(struct probe *p, const char *why)
{
	p->by = PLAN_BY_SLOT;
	p->why = why;
	p->decided = true;
}

static const struct plan_function *choose(struct look *l, struct probe *p)
{
	struct plan_return_request req = { .fn = function_of(l, p) };
	struct plan_return r;

	if (!l->exits || l->copies) {
		keep_slot(p, l->copies ? copied : no_exits);
		return NULL;
	}
	/* Where it is refused the slot stays, as before this was known. */
	plan_return(&req, &r);
	keep_slot(p, plan_return_reason(&r));
	if (r.by != PLAN_BY_EXIT)
		return NULL;
	if (req.fn->entry != req.fn->start)
		p->why = behind;
	else
		p->by = PLAN_BY_EXIT;
	return p->by == PLAN_BY_EXIT ? req.fn : NULL;
}

static void plant_one(struct look *l, struct probe *p)
{
	const struct plan_function *fn;
	struct err ignored = ERR_INIT;
	const char *why;

	if (p->decided || !go_to(l, p->addr))
		return;
	p->func = p->addr;
	fn = choose(l, p);
	if (!fn)
		return;
	why = check(l, fn);
	if (!why && plant(l, p, fn, &ignored))
		why = no_room;
	if (!why) {
		mark(l->t, p, UKP_ACTION_EXITS);
		return;
	}
	exits_unplant(l->t, p);
	keep_slot(p, why);
}

static void want_one(struct look *l, struct probe *p)
{
	if (!p->decided)
		modules_want_exits(l->t->modules, module_of(l, p->addr));
}

static void find_one(struct look *l, struct probe *p)
{
	l->found = l->found || (!p->decided && go_to(l, p->addr));
}

static void switch_one(struct look *l, struct probe *p)
{
	uint32_t i;

	if (!p->decided || p->by != PLAN_BY_EXIT || p->firm || p->frames)
		return;
	for (i = 0; i < p->nr_exits; i++)
		if (!p->exit[i].site->jumped)
			return;
	give_records(l->t, p);
	mark(l->t, p, UKP_ACTION_EXITS | UKP_ACTION_FRAMES);
}

static void switch_back(struct look *l, struct probe *p)
{
	if (!p->frames || p->firm)
		return;
	p->frames = false;
	mark(l->t, p, UKP_ACTION_EXITS);
}

void exits_want(struct target *t)
{
	struct look l = { 0 };

	each_return(t, want_one, &l);
}

bool exits_wait(struct target *t)
{
	struct look l = { 0 };

	each_return(t, find_one, &l);
	return l.found;
}

void exits_plant(struct target *t)
{
	struct look l = { .t = t };

	copies_stacks(&l);
	each_return(t, plant_one, &l);
	survey_close(l.survey);
	target_warm_sites(t);
}

void exits_on(struct target *t)
{
	struct look l = { 0 };

	each_return(t, switch_one, &l);
}

void exits_off(struct target *t)
{
	struct look l = { 0 };

	each_return(t, switch_back, &l);
}

/* --- firm ones -------------------------------------------------------------------- */

/* Why it is not looked for, or NULL. */
static const char *never(const struct target *t, const struct probe *p)
{
	const struct lang_def *def = p->head ? p->head->def : p->def;

	if (p->want == PLAN_BY_SLOT)
		return asked;
	if (def->maxactive)
		return counted;
	return optimize_is_on(t) ? NULL : no_jumps;
}

static const char *decide_firm(struct look *l, struct probe *p, const char *stays)
{
	struct plan_return_request req = { .want = p->want, .stays = stays };
	struct sym_module *m = module_of(l, p->addr);
	struct plan_return r;
	const char *why;

	if (!l->t->modules)
		return no_exits;
	modules_want_exits(l->t->modules, m);
	modules_wait_exits(l->t->modules, m);
	l->map = NULL;
	go_to(l, p->addr);
	if (!l->exits)
		return no_exits;
	req.fn = function_of(l, p);
	if (!plan_return(&req, &r))
		return plan_return_reason(&r);
	why = check(l, req.fn);
	if (!why)
		why = survey_check(l->survey, req.fn->entry + l->bias, NULL);
	if (why)
		return why;
	p->by = PLAN_BY_EXIT;
	p->firm = p->decided = true;
	p->why = plan_return_reason(&r);
	p->addr = req.fn->entry + l->bias;
	return NULL;
}

/* As far as files say: what else may keep the entry from its jump is for the list. */
static enum plan_window_why window_at(struct look *l, uint64_t addr)
{
	uint8_t code[PLAN_WINDOW_MAX];
	uint64_t bias = 0;
	struct plan_window_request req = {
		.targets = modules_targets(l->t->modules, module_of(l, addr), addr, &bias),
		.code = code,
		.avail = sizeof(code),
		.addr = addr - bias,
	};
	struct plan_window w = { .why = PLAN_WINDOW_UNKNOWN };

	while (req.avail && sym_original(l->t->sym, addr, code, req.avail))
		req.avail--;
	if (req.targets && req.avail)
		plan_window(&req, &w);
	return w.why;
}

static const char *decide_call(struct look *l, struct probe *p, const char *stays)
{
	struct plan_return_request req = { .want = PLAN_BY_CALL };
	struct sym_module *m = module_of(l, p->addr);
	struct plan_return r;

	if (stays || !optimize_is_on(l->t))
		return stays ? stays : no_jumps;
	modules_want_exits(l->t->modules, m);
	modules_wait_exits(l->t->modules, m);
	l->map = NULL;
	go_to(l, p->addr);
	req.fn = function_of(l, p);
	req.entry = window_at(l, p->addr);
	if (!plan_return(&req, &r))
		return plan_return_reason(&r);
	keep_slot(p, plan_return_reason(&r));
	p->by = PLAN_BY_CALL;
	return NULL;
}

const char *exits_decide(struct target *t, struct probe *p, const char *stays)
{
	struct look l = { .t = t };
	const struct chan *c = p->head ? p->head->chan : p->chan;
	const char *why;

	p->func = p->addr;
	p->by = PLAN_BY_SLOT;
	/* A child has the exit sites that were there when it was forked, if at all. */
	if (c->follow && p->want != PLAN_BY_SLOT && p->want != PLAN_BY_NONE)
		return followed;
	if (c->follow)
		p->want = PLAN_BY_SLOT;
	if (p->want == PLAN_BY_CALL)
		return decide_call(&l, p, stays);
	if (p->want == PLAN_BY_EXIT || (stays && p->want != PLAN_BY_SLOT)) {
		why = decide_firm(&l, p, stays);
		survey_close(l.survey);
		return why;
	}
	if (stays)
		return stays;
	why = never(t, p);
	if (why)
		keep_slot(p, why);
	return NULL;
}

int exits_plant_firm(struct target *t, struct probe *p, struct err *err)
{
	struct look l = { .t = t };
	const struct plan_function *fn;
	uint32_t i;
	int ret;

	if (!p->firm)
		return 0;
	go_to(&l, p->addr);
	fn = function_of(&l, p);
	p->action_off = target_alloc(t, sizeof(struct ukp_action));
	if (!fn || !p->action_off)
		return err_set(err, -ENOSPC, "Failed to register probe event: %s",
		               fn ? no_room : no_exits);
	ret = plant(&l, p, fn, err);
	for (i = 0; i < p->nr_exits && !ret; i++)
		ret = probe_arm(t, &p->exit[i], err);
	if (ret) {
		exits_unplant(t, p);
		return ret;
	}
	give_records(t, p);
	return 0;
}

/* --- what others ask --------------------------------------------------------------- */

bool site_wants_jump(const struct site *s)
{
	const struct probe *p;

	for (p = s->probes; p && !s->gone; p = p->next)
		if (p->kind == PROBE_EXIT && p->of->enabled)
			return true;
	return s->armed && !s->live;
}

bool site_drains(const struct site *s)
{
	const struct probe *p;

	for (p = s->probes; p && !s->gone; p = p->next)
		if (p->kind == PROBE_EXIT && p->of->drains && !p->chan->leaving)
			return true;
	return false;
}

/* What keeps a chosen one from having them. */
static const char *hindrance(const struct probe *p)
{
	uint32_t i;

	for (i = 0; i < p->nr_exits; i++)
		if (p->exit[i].site && p->exit[i].site->base)
			return p->exit[i].site->base;
	return NULL;
}

int exits_print(const struct probe *p, char *buf, size_t len)
{
	const bool jump = p->site && p->site->jumped;
	const char *by = jump && p->want != PLAN_BY_SLOT ? "call" : "slot", *base;

	if (!p->decided)
		return snprintf(buf, len, "%s (its exits are being looked for)", by);
	if (p->by == PLAN_BY_CALL && !jump) {
		base = p->site ? p->site->base : NULL;
		return base ? snprintf(buf, len, "slot (no jump at its entry: %s)", base)
		            : snprintf(buf, len, "slot (the jump at its entry is on its way)");
	}
	if (p->by != PLAN_BY_EXIT)
		return snprintf(buf, len, "%s (%s)", by, p->why);
	if (p->frames)
		return snprintf(buf, len, "exit (%s)", p->why);
	base = hindrance(p);
	return base ? snprintf(buf, len, "%s (no jump at one of its exits: %s)", by, base)
	            : snprintf(buf, len, "%s (its exit sites wait for their jumps)", by);
}
