/* SPDX-License-Identifier: MIT */
/*
 * Probes of a channel: from a line of text to a plan.  Nothing here changes
 * the target; plant.c does.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patch/deny.h"
#include "patch/place.h"
#include "session/exits.h"
#include "session/live.h"
#include "session/optimize.h"
#include "session/pending.h"
#include "session/sites.h"
#include "session/target.h"

static void probe_free(struct probe *p)
{
	size_t i;

	if (!p)
		return;
	lang_free(p->def);
	free(p->name);
	free(p->module);
	free(p->event);
	free(p->fields);
	free(p->exit);
	for (i = 0; i < p->nr_members; i++)
		free(p->member[i].exit);
	free(p->member);
	free(p->failed);
	free(p);
}

void probe_free_all(struct target *t, struct probe *list)
{
	while (list) {
		struct probe *next = list->next_mine;

		probe_free(list);
		list = next;
	}
}

struct probe *probe_find(struct chan *c, uint32_t id)
{
	struct probe *p;

	for (p = c->probes; p; p = p->next_mine)
		if (p->id == id)
			return p;
	return NULL;
}

/* The file's bytes must be there, but for those that we have changed. */
static int check_memory(struct target *t, uint64_t addr, int column, struct err *err)
{
	uint8_t code[UKP_INSN_MAX], now[UKP_INSN_MAX];
	size_t len = place_length(t->sym, addr, code);

	if (!len || sites_find(t, addr) || inject_read(t->inject, addr, now, len))
		return 0;
	optimize_undo(t, addr, now, len);
	if (!memcmp(now, code, len))
		return 0;
	return err_at(err, -EBUSY, column,
	              "Failed to register probe event: the bytes in memory differ from the file's, "
	              "someone else has changed them; with --any-text what is there now is "
	              "probed");
}

/* That the return address must stay speaks against some of what catches returns only. */
static int check_returns(struct target *t, struct probe *p, int column, struct err *err)
{
	const char *stays = deny_check(t->sym, p->addr, true, NULL);
	const char *why = exits_decide(t, p, stays);

	if (!why)
		return 0;
	if (stays && why != stays)
		return err_at(err, -EINVAL, column,
		              "Failed to register probe event: %s, and exit sites can't be used: "
		              "%s",
		              stays, why);
	return err_at(err, -EINVAL, column, "Failed to register probe event: %s", why);
}

static int check_place(struct target *t, struct probe *p, int column, struct err *err)
{
	const char *why = NULL;
	int ret;

	p->live = live_is_asked(p->chan, p->addr);
	if (p->live)
		return live_check(t, p->addr, p->kind != PROBE_ENTRY, column, err);
	ret = place_check(t->sym, p->addr, false, &p->jump_only, column, err);

	p->jump_only = jump_only_at(t, p->jump_only);
	if (!ret && p->jump_only)
		why = jump_only_refusal(t, p->def, p->kind != PROBE_ENTRY, p->jump_only);
	if (!ret && !why)
		why = target_has_hook(t, p->addr);
	if (why)
		return err_at(err, -EINVAL, column, "Failed to register probe event: %s", why);
	if (!ret && p->kind != PROBE_ENTRY)
		ret = check_returns(t, p, column, err);
	return ret ? ret : check_memory(t, p->addr, column, err);
}

static int name_probe(struct target *t, struct probe *p)
{
	struct sym_symbol s;
	uint64_t off = 0;

	if (!probe_is_many(p) && !p->late && sym_resolve(t->sym, p->addr, &s, &off)) {
		p->name = strdup(s.name);
		p->module = strdup(sym_module_is_exe(s.module) ? "" : sym_module_name(s.module));
	} else {
		p->name = strdup(p->late && p->def->place.sym ? p->def->place.sym : "");
		p->module = strdup("");
	}
	p->name_off = off;
	return p->name && p->module ? 0 : -ENOMEM;
}

static enum probe_kind kind_of(const struct lang_def *def, enum add_what what)
{
	switch (what) {
	case ADD_LATENCY:
		return PROBE_LATENCY;
	case ADD_COUNT:
		return def->ret ? PROBE_COUNT_RETURN : PROBE_COUNT;
	default:
		return def->ret ? PROBE_RETURN : PROBE_ENTRY;
	}
}

/* What is only counted has no use for what is only in records. */
static int check_count(const struct lang_def *def, struct err *err)
{
	if (def->nr_args)
		return err_at(err, -EINVAL, 0,
		              "arguments have no use here: hits are counted, nothing is recorded");
	return 0;
}

static int find_places(struct chan *c, struct probe *p, struct err *err)
{
	struct target *t = c->target;
	struct sym_symbol func;
	int ret;

	if (p->def->many || probe_counts(p))
		return many_fill(c, p, err);
	if (!p->late && !c->strict && pending_may(t, p->def)) {
		p->late = true;
		return pending_check(t, p->def->place.column, err);
	}
	ret = lang_resolve(p->def, t->sym, &p->addr, &func, err);
	return ret ? ret : check_place(t, p, p->def->place.column, err);
}

void probe_place(const struct probe *p, char *buf, size_t len)
{
	const struct lang_place *pl = &p->def->place;

	snprintf(buf, len, pl->sym && !pl->offset ? "%s:%s" : "%s:%s%s%#" PRIx64, pl->module,
	         pl->sym ? pl->sym : "", pl->sym ? "+" : "", (uint64_t)pl->offset);
}

/* What it reads where; of one whose library is to come, what its records look like. */
static int compile(struct target *t, struct probe *p, struct err *err)
{
	if (p->kind == PROBE_LATENCY || p->kind == PROBE_COUNT)
		return 0;
	free(p->event);
	free(p->fields);
	p->event = NULL;
	p->fields = NULL;
	if (p->late && !p->started)
		return lang_fields(p->def, &p->fields, err);
	return lang_compile(p->def, t->sym, &p->event, &p->fields, err);
}

int probe_land(struct probe *p, struct err *err)
{
	struct target *t = p->chan->target;
	int ret = find_places(p->chan, p, err);

	if (!ret)
		ret = compile(t, p, err);
	return ret ? ret : probe_plant(t, p, err);
}

bool probe_follows(const struct probe *p)
{
	return p->kind == PROBE_RETURN || p->kind == PROBE_LATENCY || p->kind == PROBE_COUNT_RETURN;
}

static int fill_probe(struct chan *c, struct probe *p, const char *text, enum add_what what,
                      struct err *err)
{
	struct target *t = c->target;
	int ret;

	ret = what == ADD_LATENCY ? lang_parse_latency(&p->def, &p->err_kind, text, err)
	                          : lang_parse(&p->def, text, err);
	if (!ret && what == ADD_COUNT)
		ret = check_count(p->def, err);
	if (!ret)
		ret = target_refresh(t, err);
	if (ret)
		return ret;
	p->kind = kind_of(p->def, what);
	ret = probe_follows(p) ? target_stubs(t, err) : 0;
	if (!ret)
		ret = find_places(c, p, err);
	if (!ret)
		ret = compile(t, p, err);
	if (!ret && name_probe(t, p))
		ret = err_set(err, -ENOMEM, "out of memory");
	return ret;
}

int probe_add(struct chan *c, const char *text, enum add_what what, enum plan_mechanism want,
              struct probe **ret_p, struct err *err)
{
	bool latency = what == ADD_LATENCY;
	struct probe *p, **tail;
	int ret;

	if (c->next_id >= UKP_CHAN_STATS || (latency && c->next_hist >= UKP_CHAN_HISTS))
		return err_set(err, -ENOSPC, "too many probes in one session");
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(err, -ENOMEM, "out of memory");
	p->chan = c;
	p->want = want;
	ret = fill_probe(c, p, text, what, err);
	if (ret) {
		probe_free(p);
		return ret;
	}
	p->id = c->next_id++;
	p->enabled = true;
	if (latency)
		p->hist = c->next_hist++;
	for (tail = &c->probes; *tail; tail = &(*tail)->next_mine)
		;
	*tail = p;
	*ret_p = p;
	return 0;
}

int probe_internal(struct target *t, const char *sym, uint32_t agent_fn, struct err *err)
{
	struct sym_symbol s[8];
	size_t n = sym_lookup(t->sym, NULL, sym, s, 8), i;
	struct err ignored = ERR_INIT;

	for (i = 0; i < n && i < 8; i++) {
		const char *jump_only = NULL;
		struct probe *p;

		/* Where it can't be probed we do without: the program runs as before. */
		if (!s[i].func || s[i].ifunc ||
		    place_check(t->sym, s[i].addr, false, &jump_only, -1, &ignored))
			continue;
		p = calloc(1, sizeof(*p));
		if (!p)
			return err_set(err, -ENOMEM, "out of memory");
		p->kind = PROBE_INTERNAL;
		p->addr = s[i].addr;
		p->enabled = true;
		p->id = agent_fn;
		p->jump_only = jump_only;
		p->next_mine = t->internal;
		t->internal = p;
	}
	return 0;
}
