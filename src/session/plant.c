/* SPDX-License-Identifier: MIT */
/*
 * Planting: slots, sites, actions and the one byte.
 *
 * While the threads run: the slot is written, then the site, then the action is
 * linked, then the table names the site, and last the int3 goes in.  So a
 * thread that hits it finds everything; and it is one byte of an instruction.
 * Only where a slot's memory has to be mapped do they stand still.  Taking out
 * goes the other way round: the byte first.  Sites and slots stay for the
 * agent's life, for a thread may be on its way through them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "patch/area.h"
#include "patch/place.h"
#include "plan/plan.h"
#include "patch/slots.h"
#include "session/exits.h"
#include "session/live.h"
#include "session/optimize.h"
#include "session/sites.h"
#include "session/target.h"

static int write_slot(struct target *t, struct site *s, struct err *err)
{
	uint8_t code[UKP_INSN_MAX], out[UKP_SLOT_SIZE];
	struct plan_request req = { .code = code, .addr = s->addr };
	const struct place_live live = live_text(t);
	enum plan_refusal why;
	int ret;

	ret = s->live ? 0 : place_original(t->sym, s->addr, code, &req.avail);
	if (ret)
		return err_set(err, ret, "cannot read the original code at %#lx", s->addr);
	req.slot = slots_get(t->slots, s->addr, err);
	if (!req.slot)
		return err->code;
	why = s->live ? place_copy_live(&live, &req, out, &s->plan)
	              : plan_copy(&req, out, &s->plan);
	if (why != PLAN_OK) {
		slots_put(t->slots, req.slot);
		return err_set(err, plan_errno(why), "Failed to register probe event: %s",
		               plan_reason(why));
	}
	s->first = s->plan.orig[0];
	ret = inject_write(t->inject, req.slot, out, sizeof(out));
	return ret ? err_set(err, ret, "cannot write to process %d: %s", t->pid, strerror(-ret))
	           : 0;
}

uint8_t site_flags(const struct site *s)
{
	return (s->jump_only ? UKP_SITE_JUMP_ONLY : 0) | (s->live ? UKP_SITE_LIVE : 0);
}

static int new_site(struct target *t, const struct probe *p, struct site **ret_s, struct err *err)
{
	struct site *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	s->addr = p->addr;
	s->jump_only = p->jump_only;
	s->live = p->live;
	ret = write_slot(t, s, err);
	if (!ret && !sites_reserve(t, 1))
		s->off = target_alloc(t, sizeof(struct ukp_site));
	if (!ret && !s->off)
		ret = err_set(err, -ENOSPC, "the control area of process %d is full", t->pid);
	if (ret) {
		free(s);
		return ret;
	}
	s->plan.flags |= site_flags(s);
	memcpy(target_at(t, s->off), &s->plan, sizeof(s->plan));
	sites_add(t, s);
	*ret_s = s;
	return 0;
}

/* Someone else's breakpoint, or a rewritten page, is not ours to cover. */
static int arm(struct target *t, struct site *s, struct err *err)
{
	unsigned char now[UKP_INSN_MAX + 1], int3 = 0xcc;
	int ret;

	if (s->live)
		return live_arm(t, s, err);
	if (s->armed)
		return 0;
	/* All of it: the site may be as old as a library that was there before. */
	ret = inject_read(t->inject, s->addr, now, s->plan.len);
	if (!ret && memcmp(now, s->plan.orig, s->plan.len))
		return err_set(err, -EBUSY, "the code at %#lx has changed, it is not probed",
		               s->addr);
	if (!ret && !s->jump_only)
		ret = inject_write(t->inject, s->addr, &int3, 1);
	if (ret)
		return err_set(err, ret, "cannot write code of process %d: %s", t->pid,
		               strerror(-ret));
	s->armed = true;
	return 0;
}

/* Only what is still ours is put back. */
static void disarm(struct target *t, struct site *s)
{
	unsigned char now = 0;

	if (s->live) {
		live_disarm(t, s);
		return;
	}
	/* A jump that could not be taken back stays until the end: it leads to no action. */
	if (!s->armed || s->jumped || (!s->jump_only && inject_read(t->inject, s->addr, &now, 1)))
		return;
	if (now == 0xcc)
		inject_write(t->inject, s->addr, &s->first, 1);
	s->armed = false;
}

bool site_wanted(const struct site *s)
{
	const struct probe *p;

	for (p = s->probes; p; p = p->next)
		if (p->enabled)
			return true;
	/* Not planted for them, but kept. */
	return s->armed && site_drains(s);
}

static uint32_t put_event(struct target *t, struct probe *p)
{
	size_t steps = (p->event->nr_entry + p->event->nr_steps) * sizeof(struct ukp_fetch);
	/* One whose library comes again has it already, and nobody is there to see it change. */
	uint32_t off = p->ctx_off ? p->ctx_off : target_alloc(t, sizeof(*p->event) + steps);

	if (!off)
		return 0;
	p->event->chan = p->chan->addr;
	p->event->id = p->id;
	p->event->enabled = p->enabled;
	p->event->maxactive = p->def->maxactive;
	memcpy(target_at(t, off), p->event, sizeof(*p->event) + steps);
	return off;
}

static uint32_t put_latency(struct target *t, struct probe *p)
{
	uint32_t off = target_alloc(t, sizeof(struct ukp_latency)), i;
	uint64_t stride = area_page_up(sizeof(struct ukp_hist)), hist;
	struct chan *c = p->chan;
	const uint32_t shards = ukp_chan_hist_shards(&c->layout);

	if (!off)
		return 0;
	hist = c->layout.off_hists + (uint64_t)p->hist * shards * stride;
	for (i = 0; i < shards; i++)
		((struct ukp_hist *)((char *)c->map + hist + i * stride))->min = UINT64_MAX;
	*(struct ukp_latency *)target_at(t, off) = (struct ukp_latency){
		.chan = c->addr,
		.hist = c->addr + hist,
		.stride = stride,
		.nr_shards = c->layout.nr_shards,
		.id = p->id,
		.kind = p->err_kind,
		.enabled = p->enabled,
	};
	return off;
}

static uint32_t put_counter(struct target *t, struct probe *p)
{
	uint32_t off = target_alloc(t, sizeof(struct ukp_counter));
	const struct ukp_chan *layout = &p->chan->layout;

	if (off)
		*(struct ukp_counter *)target_at(t, off) = (struct ukp_counter){
			.counter = p->chan->addr + layout->off_counters +
			           (uint64_t)p->counter * sizeof(uint64_t),
			.stride = (uint64_t)layout->nr_counters * sizeof(uint64_t),
			.event = p->kind == PROBE_COUNT_RETURN ? t->own.self + p->head->ctx_off : 0,
			.nr_shards = layout->nr_shards,
			.enabled = p->enabled,
		};
	return off;
}

uint32_t probe_context(struct target *t, struct probe *p)
{
	if (p->head)
		return probe_counts(p) ? put_counter(t, p) : p->head->ctx_off;
	switch (p->kind) {
	case PROBE_ENTRY:
	case PROBE_RETURN:
	case PROBE_COUNT_RETURN:
		return put_event(t, p);
	case PROBE_LATENCY:
		return p->ctx_off ? p->ctx_off : put_latency(t, p);
	case PROBE_EXIT:
		return p->of->action_off;
	default:
		return 0;
	}
}

static size_t context_size(const struct probe *p)
{
	if (p->head)
		return probe_counts(p) ? sizeof(struct ukp_counter) : 0;
	switch (p->kind) {
	case PROBE_ENTRY:
	case PROBE_RETURN:
	case PROBE_COUNT_RETURN:
		if (!p->event)
			return 0;
		return sizeof(*p->event) +
		       (p->event->nr_entry + p->event->nr_steps) * sizeof(struct ukp_fetch);
	case PROBE_LATENCY:
		return sizeof(struct ukp_latency);
	default:
		return 0;
	}
}

void probe_blocks(const struct probe *p, struct heap_blocks *b)
{
	size_t i;

	heap_add(b, p->action_off, sizeof(struct ukp_action));
	heap_add(b, p->ctx_off, p->ctx_off ? context_size(p) : 0);
	for (i = 0; i < p->nr_members; i++)
		probe_blocks(&p->member[i], b);
}

static enum agent_fn action_of(const struct probe *p)
{
	switch (p->kind) {
	case PROBE_ENTRY:
		return AGENT_EVENT_HIT;
	case PROBE_RETURN:
		return AGENT_EVENT_ENTRY;
	case PROBE_LATENCY:
		return AGENT_LATENCY_ENTRY;
	case PROBE_COUNT:
		return AGENT_COUNT_HIT;
	case PROBE_COUNT_RETURN:
		return AGENT_COUNT_ENTRY;
	case PROBE_EXIT:
		return AGENT_EXIT_HIT;
	default:
		return (enum agent_fn)p->id;
	}
}

/* Where a function is one instruction, which leaves it: the entry, that comes first. */
static struct probe *entry_of(const struct site *s, const struct probe *p)
{
	struct probe *e = p->kind == PROBE_EXIT ? s->probes : NULL;

	while (e && e != p->of)
		e = e->next;
	return e;
}

/* The action at the head of its site's chain: newest first. */
int probe_link(struct target *t, struct site *s, struct probe *p, struct err *err)
{
	struct ukp_site *shared = target_at(t, s->off);
	struct probe *before, **at;
	struct ukp_action *a;
	uint32_t *head;

	p->ctx_off = probe_context(t, p);
	if (!p->action_off)
		p->action_off = target_alloc(t, sizeof(*a));
	if (!p->action_off || (p->kind != PROBE_INTERNAL && !p->ctx_off))
		return err_set(err, -ENOSPC, "the control area of process %d is full", t->pid);
	a = target_at(t, p->action_off);
	a->fn = t->own.text + agent_offset(action_of(p));
	a->ctx = p->ctx_off ? t->own.self + p->ctx_off : 0;
	a->flags = p->kind == PROBE_INTERNAL ? UKP_ACTION_ALWAYS
	           : p->frames               ? UKP_ACTION_EXITS | UKP_ACTION_FRAMES
	           : p->want == PLAN_BY_SLOT ? UKP_ACTION_SLOT
	                                     : 0;
	if (p->chan && p->chan->follow && p->chan->born)
		a->flags |= UKP_ACTION_FOLLOW | p->chan->born << UKP_ACTION_CHANS_SHIFT;
	before = entry_of(s, p);
	at = before ? &before->next : &s->probes;
	head = before ? &((struct ukp_action *)target_at(t, before->action_off))->next
	              : &shared->action;
	a->next = *at ? (*at)->action_off : 0;
	__atomic_store_n(head, p->action_off, __ATOMIC_RELEASE);
	p->next = *at;
	*at = p;
	p->site = s;
	return 0;
}

void probe_unlink(struct target *t, struct probe *p)
{
	struct ukp_site *shared = target_at(t, p->site->off);
	struct probe **q, *before = NULL;
	uint32_t next;

	/* An entry of an earlier jump may be on its way to count. */
	if (p->kind == PROBE_COUNT)
		__atomic_store_n(&shared->counter, 0, __ATOMIC_RELEASE);

	for (q = &p->site->probes; *q != p; q = &(*q)->next)
		before = *q;
	*q = p->next;
	next = p->next ? p->next->action_off : 0;
	/* A thread that is at this action still finds its way to the next. */
	if (before)
		__atomic_store_n(&((struct ukp_action *)target_at(t, before->action_off))->next,
		                 next, __ATOMIC_RELEASE);
	else
		__atomic_store_n(&shared->action, next, __ATOMIC_RELEASE);
	p->site = NULL;
}

int probe_ready(struct target *t, struct probe *p, struct err *err)
{
	int ret = live_ready(t, p, err);
	struct site *s = ret ? NULL : sites_find(t, p->addr);

	if (!ret && !s)
		ret = new_site(t, p, &s, err);
	return ret ? ret : probe_link(t, s, p, err);
}

int probe_arm(struct target *t, struct probe *p, struct err *err)
{
	return arm(t, p->site, err);
}

void probe_disarm(struct target *t, struct probe *p)
{
	disarm(t, p->site);
}

int probe_plant(struct target *t, struct probe *p, struct err *err)
{
	int ret = exits_plant_firm(t, p, err);

	if (!ret)
		ret = probe_ready(t, p, err);
	if (!ret && p->enabled)
		ret = probe_arm(t, p, err);
	if (ret && p->site)
		probe_unlink(t, p);
	if (ret)
		exits_unplant(t, p);
	return ret;
}

void probe_unplant(struct probe *p)
{
	struct target *t = p->chan->target;
	struct site *s = p->site;

	if (!s)
		return;
	probe_unlink(t, p);
	p->gone = true;
	if (!site_wanted(s))
		disarm(t, s);
	exits_unplant(t, p);
}

static int start_singles(struct chan *c, struct err *err)
{
	struct probe *p;
	int ret = 0;

	for (p = c->probes; p && !ret; p = p->next_mine)
		if (!p->site && !p->gone && !p->late && !probe_is_many(p)) {
			p->fresh = true;
			ret = probe_plant(c->target, p, err);
		}
	return ret;
}

static void undo(struct chan *c)
{
	struct err ignored = ERR_INIT;
	struct probe *p;

	/* Taking out starts from breakpoints. */
	optimize_off(c->target, &ignored);
	for (p = c->probes; p; p = p->next_mine) {
		if (!p->fresh)
			continue;
		if (probe_is_many(p))
			bulk_stop(c, p);
		else
			probe_unplant(p);
	}
}

int probe_start(struct chan *c, struct err *err)
{
	struct probe *p;
	/* First those of our own that keep the program alive under the others. */
	int ret = jump_only_land_hooks(c->target, err);

	/* What is planted next is looked at as if nothing had been. */
	if (ret > 0)
		ret = optimize_off_for(c->target, c, err);
	if (!ret)
		ret = bulk_start(c, err);
	if (!ret)
		ret = start_singles(c, err);
	if (!ret)
		ret = jump_only_land(c, err);
	if (ret)
		undo(c);
	for (p = c->probes; p; p = p->next_mine) {
		p->fresh = false;
		p->started = p->started || !ret;
	}
	return ret;
}

int probe_remove(struct chan *c, uint32_t id, struct err *err)
{
	struct probe *p = probe_find(c, id);
	bool in = p && (p->site || p->planted);
	int ret;

	if (!p)
		return err_set(err, -ENOENT, "there is no probe %u", id);
	p->gone = true;
	if (!in)
		return 0;
	bulk_stop(c, p);
	ret = target_hold(c->target, err);
	if (ret)
		return ret == -ESRCH ? 0 : ret;
	probe_unplant(p);
	ret = chan_mute(c, err);
	target_release(c->target);
	return ret == -ESRCH || ret == -EAGAIN ? 0 : ret;
}

int probe_enable(struct chan *c, uint32_t id, bool on, struct err *err)
{
	struct probe *p = probe_find(c, id);
	void *ctx;

	if (!p || p->gone)
		return err_set(err, -EINVAL, "there is no probe %u", id);
	p->enabled = on;
	if (!p->site && !p->planted)
		return 0;
	if (p->kind == PROBE_COUNT)
		return bulk_enable(p, err);
	ctx = target_at(c->target, p->ctx_off);
	if (p->kind == PROBE_LATENCY)
		__atomic_store_n(&((struct ukp_latency *)ctx)->enabled, on, __ATOMIC_RELEASE);
	else
		__atomic_store_n(&((struct ukp_event *)ctx)->enabled, on, __ATOMIC_RELEASE);
	if (probe_is_many(p))
		return bulk_enable(p, err);
	/* One byte: no thread has to stand still for it. */
	if (on)
		return arm(c->target, p->site, err);
	if (!site_wanted(p->site))
		disarm(c->target, p->site);
	return 0;
}
