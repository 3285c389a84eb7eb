/* SPDX-License-Identifier: MIT */
/*
 * Detours.  See plan/detour.h and wire/detour.h.
 *
 * An entry's length depends on its form alone, so its map is kept apart, as a
 * shape: addresses are in constants behind the code or have a fixed width.
 */
#include "plan/x86/count.h"
#include "plan/x86/entry.h"

#include <string.h>

/* The map of an entry that began at off goes to the form's shape. */
static void take_shape(struct detour *d, unsigned int off, unsigned int first)
{
	struct ukp_detour_shape *s = &d->out->shape;
	const struct gen_pc *pc = d->g.pc;

	s->saves = d->saves;
	s->len = (uint16_t)(d->g.n - off);
	s->flags = d->req->count ? UKP_DETOUR_COUNT
	                         : (uint8_t)((d->req->form.flow ? UKP_DETOUR_FLOW : 0) |
	                                     (d->req->form.near ? UKP_DETOUR_NEAR : 0) |
	                                     (d->req->form.call ? UKP_DETOUR_CALL : 0));
	if (d->g.npc - first > UKP_SHAPE_PCS) {
		d->g.why = PLAN_TOO_LONG;
		return;
	}
	s->npc = (uint8_t)(d->g.npc - first);
	for (unsigned int i = 0; i < s->npc; i++)
		s->pc[i] = (struct ukp_detour_pc){
			.off = (uint16_t)(pc[first + i].off - off),
			.flags = pc[first + i].flags,
			.words = pc[first + i].words,
		};
	d->g.npc = first;
}

static void entry(struct detour *d, unsigned int i)
{
	const unsigned int off = d->g.n;
	unsigned int first;

	/* A mark that stands here already is this entry's place too. */
	first = d->g.npc;
	if (first && d->g.pc[first - 1].off == off)
		first--;
	d->orig = d->req->addr + d->req->window->insn[i].off;
	if (d->req->count)
		count_entry(&d->g, d->req->count, d->req->count->cell[i], d->orig);
	else
		entry_gen(d, d->req->site[i]);
	take_shape(d, off, first);
}

static void constants(struct detour *d)
{
	struct gen *g = &d->g;
	unsigned int i, k = 0;

	while (g->n & 7 && !g->why)
		GEN(g, 0xcc);
	for (i = 0; i < d->req->window->nr && d->nr; i++) {
		if (!(d->req->probes >> i & 1))
			continue;
		if (d->saves & PLAN_SAVE(ip)) {
			gen_near(g, d->ip[k]);
			gen_put64(g, d->req->addr + d->req->window->insn[i].off + 1);
		}
		k++;
	}
	if (d->req->form.near)
		return;
	i = 0;
	if (d->nr && d->req->form.call) {
		gen_near(g, d->call[i++]);
		gen_put64(g, d->req->entry);
	}
	if (i == d->nr)
		return;
	for (; i < d->nr; i++)
		gen_near(g, d->call[i]);
	gen_put64(g, d->req->engine);
}

static void copy(struct detour *d, unsigned int i)
{
	const struct plan_window *w = d->req->window;
	struct ukp_detour_insn *insn = &d->out->d.insn[i];
	struct gen *g = &d->g;
	const unsigned int off = w->insn[i].off;

	g->code = d->req->code + off;
	g->addr = d->req->addr + off;
	g->exit = i + 1 < w->nr ? GEN_FALL : GEN_BACK;
	if (!g->why)
		g->why = x86_decode(g->code, w->insn[i].len, g->addr, &g->x);
	insn->copy = (uint16_t)g->n;
	if (g->x.nop && !g->why) {
		gen_mark(g, g->addr, 0, UKP_PC_BEFORE);
		if (g->exit == GEN_BACK)
			gen_jump(g, g->addr + g->x.p.len);
	} else if (!g->why) {
		gen_insn(g);
	}
	if (g->x.p.is_syscall)
		d->out->d.after_syscall = g->x.p.len;
}

static bool sane(const struct plan_detour_request *req)
{
	const struct plan_window *w = req->window;

	if (!w->nr || w->nr > UKP_WINDOW_INSNS || w->len > PLAN_WINDOW_LONG)
		return false;
	if (req->form.call && !req->count && !(req->probes & 1))
		return false;
	for (unsigned int i = 0; i < w->nr; i++)
		if (w->insn[i].off + w->insn[i].len > w->len)
			return false;
	return true;
}

static void generate(struct detour *d)
{
	const struct plan_window *w = d->req->window;
	struct ukp_detour *u = &d->out->d;

	for (unsigned int i = 0; i < w->nr; i++) {
		u->insn[i].off = w->insn[i].off;
		u->insn[i].len = w->insn[i].len;
		u->insn[i].entry = UKP_DETOUR_NO_ENTRY;
		if (d->req->probes >> i & 1) {
			u->insn[i].entry = (uint16_t)d->g.n;
			entry(d, i);
		}
		copy(d, i);
	}
	if (d->nr && d->req->form.flow)
		entry_tail(d);
	if (d->nr && d->req->form.call)
		entry_call(d);
	constants(d);
}

static enum plan_refusal finish(struct detour *d)
{
	const struct plan_detour_request *req = d->req;
	struct ukp_detour *u = &d->out->d;
	const struct gen *g = &d->g;
	int64_t rel = (int64_t)(req->buf - (req->addr + PLAN_JUMP_SIZE));

	if (g->why)
		return g->why;
	if (rel != (int32_t)rel)
		return PLAN_OUT_OF_REACH;
	if (g->npc > UKP_DETOUR_PCS)
		return PLAN_TOO_LONG;
	u->addr = req->addr;
	u->buf = req->buf;
	u->size = (uint16_t)g->n;
	u->len = req->window->len;
	u->nr = req->window->nr;
	u->npc = (uint8_t)g->npc;
	for (unsigned int i = 0; i < g->npc; i++)
		d->out->pc[i] = (struct ukp_detour_pc){ g->pc[i].off, g->pc[i].flags,
			                                g->pc[i].words, g->pc[i].delta };
	u->jump[0] = 0xe9;
	memcpy(u->jump + 1, &(int32_t){ (int32_t)rel }, 4);
	memcpy(u->orig, req->code, PLAN_JUMP_SIZE);
	return PLAN_OK;
}

enum plan_refusal plan_detour(const struct plan_detour_request *req, struct plan_detour *out)
{
	struct gen_pc pc[UKP_DETOUR_PCS + UKP_SHAPE_PCS];
	struct detour d = {
		.req = req,
		.out = out,
		.saves = req->count ? COUNT_SAVES : plan_form_saves(&req->form),
		.g = {
			.buf = out->code,
			.size = PLAN_DETOUR_MAX,
			.at = req->buf,
			.base = req->addr,
			.pc = pc,
			.room = UKP_DETOUR_PCS + UKP_SHAPE_PCS,
		},
	};

	if (!sane(req))
		return PLAN_NOT_BOUNDARY;
	memset(&out->d, 0, sizeof(out->d));
	memset(&out->shape, 0, sizeof(out->shape));
	generate(&d);
	return finish(&d);
}
