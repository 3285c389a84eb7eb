/* SPDX-License-Identifier: MIT */
/*
 * Windows made: the detour's code in a chunk near the module, its description in
 * the control area, where the engine and whoever cures the target find it.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "patch/slots.h"
#include "session/cover.h"
#include "session/spare.h"
#include "wire/instance.h"

#define SPARE_TRIES 16

bool cover_same(const struct window *w, const struct draft *f)
{
	return w->d.addr == f->addr && w->text == f->text && w->probes == f->probes &&
	       w->d.len == f->w.len && w->count == f->count && w->call == f->call &&
	       w->flow == f->flow && w->saves == f->saves &&
	       !memcmp(w->site, f->site, sizeof(f->site)) &&
	       w->len == f->addr - f->text + f->w.covered &&
	       !memcmp(w->code + (f->addr - f->text), f->code, f->w.covered);
}

void cover_begin(struct cover *c)
{
	c->failed = false;
	/* What was mapped since may lie in the old one's place. */
	c->start = c->end = 0;
}

static void flush(struct target *t, struct cover *c)
{
	if (c->used > c->written && inject_write(t->inject, c->chunk_at + c->written,
	                                         c->chunk + c->written, c->used - c->written))
		c->failed = true;
	c->written = c->used;
}

int cover_end(struct target *t, struct cover *c)
{
	flush(t, c);
	return c->failed ? -EIO : 0;
}

/* Where modules take turns, each goes on in its own chunk. */
static void put_aside(struct cover *c)
{
	struct cover_rest *more;

	if (!c->chunk_at || COVER_CHUNK - c->used < PLAN_DETOUR_MAX)
		return;
	more = realloc(c->rest, (c->nr_rest + 1) * sizeof(*more));
	if (!more)
		return;
	c->rest = more;
	more[c->nr_rest++] = (struct cover_rest){ c->chunk_at, c->chunk_lo, c->chunk_hi, c->used };
}

static bool take_up(struct cover *c)
{
	size_t i;

	for (i = 0; i < c->nr_rest; i++) {
		const struct cover_rest r = c->rest[i];

		if (r.lo != c->map_start || r.hi != c->map_end)
			continue;
		c->rest[i] = c->rest[--c->nr_rest];
		c->chunk_at = r.at;
		c->chunk_lo = r.lo;
		c->chunk_hi = r.hi;
		c->used = c->written = r.used;
		return true;
	}
	return false;
}

/* Room for the longest detour. */
static bool room(struct target *t, struct cover *c, uint64_t addr)
{
	struct err err = ERR_INIT;

	if (c->chunk_at && addr >= c->chunk_lo && addr < c->chunk_hi &&
	    COVER_CHUNK - c->used >= PLAN_DETOUR_MAX)
		return true;
	flush(t, c);
	put_aside(c);
	if (take_up(c))
		return true;
	c->chunk_at = slots_get_bytes(t->slots, addr, COVER_CHUNK, &err);
	/* It serves the mapping that it was asked for. */
	c->chunk_lo = c->map_start;
	c->chunk_hi = c->map_end;
	c->used = c->written = 0;
	return c->chunk_at;
}

static uint32_t shape_offset(struct target *t, struct cover *c, const struct ukp_detour_shape *s)
{
	struct ukp_detour_shape *more;
	uint32_t *off;
	size_t i;

	for (i = 0; i < c->nr_shapes; i++)
		if (c->shape[i].saves == s->saves && c->shape[i].flags == s->flags)
			return c->shape_off[i];
	more = realloc(c->shape, (i + 1) * sizeof(*more));
	if (more)
		c->shape = more;
	off = realloc(c->shape_off, (i + 1) * sizeof(*off));
	if (off)
		c->shape_off = off;
	if (!more || !off || !(off[i] = target_alloc(t, sizeof(*s))))
		return 0;
	more[i] = *s;
	memcpy(target_at(t, off[i]), s, sizeof(*s));
	c->nr_shapes++;
	return off[i];
}

/* The detour, if it is at buf. */
static const char *plan(struct target *t, const struct draft *f, uint64_t buf,
                        struct plan_detour *out)
{
	const struct chan *any = t->chans;
	struct plan_count count = { .alive = t->own.priv + offsetof(struct ukp_priv, alive),
		                    .rdpid = t->own.flags & UKP_CTL_RDPID };
	struct plan_detour_request req = {
		.code = f->code,
		.addr = f->addr,
		.window = &f->w,
		.buf = buf,
		.engine = t->own.text + agent_offset(AGENT_DETOUR_HIT),
		.entry = t->own.text + agent_offset(AGENT_DETOUR_ENTRY),
		.form = { .saves = f->saves, .call = f->call, .flow = f->flow },
		.probes = f->probes,
	};
	enum plan_refusal refusal;
	unsigned int i;

	for (i = 0; i < UKP_WINDOW_INSNS; i++) {
		if (!(f->probes >> i & 1))
			continue;
		req.site[i] = t->own.self + f->site[i]->off;
		count.cell[i] = req.site[i] + offsetof(struct ukp_site, counter);
	}
	if (f->count && any) {
		/* The same in every channel. */
		count.stride = (uint64_t)any->layout.nr_counters * sizeof(uint64_t);
		count.shards = any->layout.nr_shards;
		req.count = &count;
	}
	refusal = plan_detour(&req, out);
	return refusal == PLAN_OK ? NULL : plan_reason(refusal);
}

static struct window *record(const struct draft *f)
{
	const size_t before = f->addr - f->text;
	struct window *w = calloc(1, sizeof(*w) + before + f->w.covered);

	if (!w)
		return NULL;
	w->text = f->text;
	w->jump = before;
	w->len = before + f->w.covered;
	w->probes = f->probes;
	w->ftrace = f->w.ftrace;
	w->count = f->count;
	w->call = f->call;
	w->flow = f->flow;
	w->saves = f->saves;
	memcpy(w->site, f->site, sizeof(w->site));
	memcpy(w->code + before, f->code, f->w.covered);
	if (before)
		memcpy(w->code, f->site[0]->plan.orig, before);
	return w;
}

/* Where a detour and its description are. */
struct place {
	uint64_t buf;
	uint32_t off, next;
	uint16_t code_room, map_room;
	bool again; /* others had it */
};

/* A place that is free again: out is the detour for it then. */
static bool old_place(struct target *t, struct cover *c, const struct draft *f,
                      struct plan_detour *out, struct place *at)
{
	const uint32_t code = out->d.size, map = (uint32_t)plan_detour_size(&out->d);
	static struct plan_detour there;
	struct window *w = NULL;
	unsigned int tries;

	for (tries = 0; tries < SPARE_TRIES; tries++) {
		w = windows_spare(c->windows, w, code, map, c->map_start);
		if (!w)
			return false;
		/* Distances differ, and what is short by them. */
		if (plan(t, f, w->d.buf, &there) || there.d.size > w->code_room ||
		    plan_detour_size(&there.d) > w->map_room)
			continue;
		*at = (struct place){
			w->d.buf, w->off, w->d.next, w->code_room, w->map_room, true
		};
		*out = there;
		windows_forget(c->windows, w);
		return true;
	}
	return false;
}

static bool new_place(struct target *t, struct cover *c, const struct plan_detour *out,
                      struct place *at)
{
	const uint32_t code = spare_round(out->d.size);
	const uint32_t map = spare_round((uint32_t)plan_detour_size(&out->d));

	*at = (struct place){
		c->chunk_at + c->used, target_alloc(t, map), t->own.detours, code, map, false
	};
	return at->off;
}

static void put_code(struct target *t, struct cover *c, const struct plan_detour *out,
                     const struct place *at)
{
	if (at->again) {
		if (inject_write(t->inject, at->buf, out->code, out->d.size))
			c->failed = true;
		return;
	}
	memcpy(c->chunk + c->used, out->code, out->d.size);
	memset(c->chunk + c->used + out->d.size, 0xcc, at->code_room - out->d.size);
	c->used += at->code_room;
}

/*
 * Of a place that is used again: it is nobody's until all is there.  The list goes on
 * through it, and buf stays what it was.
 */
static void put_map(struct target *t, const struct plan_detour *out, const struct place *at)
{
	const size_t size = plan_detour_size(&out->d);
	struct ukp_detour *d = target_at(t, at->off);

	if (at->again) {
		__atomic_store_n(&d->size, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&d->addr, 0, __ATOMIC_RELEASE);
		memcpy(&d->shape, &out->d.shape, sizeof(d->shape));
		memcpy(&d->len, &out->d.len, size - offsetof(struct ukp_detour, len));
		__atomic_store_n(&d->addr, out->d.addr, __ATOMIC_RELEASE);
		__atomic_store_n(&d->size, out->d.size, __ATOMIC_RELEASE);
		return;
	}
	memcpy(d, &out->d, size);
	t->own.detours = at->off;
	/* Release: whoever finds the detour finds all of it. */
	__atomic_store_n(&t->ctl->detours, at->off, __ATOMIC_RELEASE);
}

const char *cover_make(struct target *t, struct cover *c, const struct draft *f,
                       struct window **ret)
{
	static struct plan_detour out;
	struct place at;
	const char *why;
	struct window *w;
	uint32_t shape;

	if (!room(t, c, f->addr))
		return "no address space near it";
	why = plan(t, f, c->chunk_at + c->used, &out);
	if (why)
		return why;
	shape = shape_offset(t, c, &out.shape);
	w = shape ? record(f) : NULL;
	if (!w || (!old_place(t, c, f, &out, &at) && !new_place(t, c, &out, &at))) {
		free(w);
		return "no memory for its detour";
	}
	out.d.shape = shape;
	out.d.next = at.next;
	put_code(t, c, &out, &at);
	put_map(t, &out, &at);
	w->d = out.d;
	w->off = at.off;
	w->serves = c->map_start;
	w->code_room = at.code_room;
	w->map_room = at.map_room;
	*ret = w;
	return NULL;
}

void cover_drop(struct window *w, const char *why)
{
	unsigned int i;

	for (i = 0; i < WINDOW_SITES; i++)
		if (w->site[i]) {
			w->site[i]->base = why;
			w->site[i]->window = NULL;
		}
}

void cover_count(struct target *t, struct site *s)
{
	const struct probe *p = s->probes;
	struct ukp_site *shared = target_at(t, s->off);
	uint64_t base = p->chan->addr + p->chan->layout.off_counters +
	                (uint64_t)p->counter * sizeof(uint64_t);

	__atomic_store_n(&shared->counter, base, __ATOMIC_RELEASE);
}

void window_breakpoints(const struct window *w, uint8_t *bytes)
{
	unsigned int i;

	memcpy(bytes, w->code, w->len);
	for (i = 0; i < WINDOW_SITES; i++)
		if (w->site[i] && w->site[i]->armed && !w->site[i]->jump_only)
			bytes[w->site[i]->addr - w->text] = 0xcc;
}

void window_jump(const struct window *w, uint8_t *bytes)
{
	window_breakpoints(w, bytes);
	memcpy(bytes, w->code, w->jump);
	memcpy(bytes + w->jump, w->d.jump, sizeof(w->d.jump));
}
