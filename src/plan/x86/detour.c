/* SPDX-License-Identifier: MIT */
/*
 * Detours.  See plan/detour.h and wire/detour.h.
 *
 * An entry's length depends on its form alone, so its map is kept apart, as a
 * shape: addresses are in constants behind the code or have a fixed width.
 */
#include "plan/detour.h"
#include "plan/x86/count.h"

#include <string.h>

enum { RED_ZONE = 16 }; /* words */

/* Words of struct pt_regs from the bottom, by their index. */
enum word {
	W_R15,
	W_AX = offsetof(struct pt_regs, ax) / 8,
	W_SI = offsetof(struct pt_regs, si) / 8,
	W_DI = offsetof(struct pt_regs, di) / 8,
	W_ORIG_AX = offsetof(struct pt_regs, orig_ax) / 8,
	W_IP = offsetof(struct pt_regs, ip) / 8,
	W_CS = offsetof(struct pt_regs, cs) / 8,
	W_FLAGS = offsetof(struct pt_regs, flags) / 8,
	W_SP = offsetof(struct pt_regs, sp) / 8,
	W_SS = offsetof(struct pt_regs, ss) / 8,
};

#define USER_CS 0x33
#define USER_SS 0x2b

/* The hardware's number of a word that is a general register. */
static const uint8_t number[W_ORIG_AX] = { 15, 14, 13, 12, 5, 3, 11, 10, 9, 8, 0, 1, 2, 6, 7 };

struct detour {
	struct gen g;
	const struct plan_detour_request *req;
	struct plan_detour *out;
	uint32_t saves;
	/* Where constants and the tail are referred to: rel32s to fill in. */
	unsigned int jnz[UKP_WINDOW_INSNS], ip[UKP_WINDOW_INSNS], call[UKP_WINDOW_INSNS];
	unsigned int nr;
	/* What the entry's map is about. */
	uint64_t orig;
	unsigned int words;
};

uint32_t plan_form_saves(const struct plan_form *form)
{
	uint32_t saves = form->saves & PLAN_SAVE_ALL;

	saves |= PLAN_SAVE(di) | PLAN_SAVE(si) | PLAN_SAVE(flags);
	if (form->flow)
		saves |= PLAN_SAVE(ax) | PLAN_SAVE(ip) | PLAN_SAVE(cs) | PLAN_SAVE(sp) |
		         PLAN_SAVE(ss);
	return saves;
}

static void here(struct detour *d, unsigned int flags)
{
	gen_mark(&d->g, d->orig, d->words, flags);
}

/* sp changes by words, without a flag. */
static void move_sp(struct gen *g, int words)
{
	int bytes = 8 * words;

	if (bytes >= -128 && bytes < 128) {
		GEN(g, 0x48, 0x8d, 0x64, 0x24, (uint8_t)bytes);
	} else {
		GEN(g, 0x48, 0x8d, 0xa4, 0x24);
		gen_put32(g, (uint32_t)bytes);
	}
}

static unsigned int hole(struct gen *g)
{
	gen_put32(g, 0);
	return g->n;
}

/* Make the rel32 that ends at from lead here. */
static void fill(struct gen *g, unsigned int from)
{
	int32_t rel = (int32_t)(g->n - from);

	if (!g->why)
		memcpy(g->buf + from - 4, &rel, 4);
}

static void push_word(struct detour *d, unsigned int w)
{
	struct gen *g = &d->g;

	switch (w) {
	case W_SS:
		GEN(g, 0x6a, USER_SS);
		break;
	case W_SP: /* put right when registers are saved */
		GEN(g, 0x54);
		break;
	case W_FLAGS:
		GEN(g, 0x9c);
		d->words++;
		here(d, UKP_PC_BEFORE);
		GEN(g, 0xfc); /* cld */
		return;
	case W_CS:
		GEN(g, 0x6a, USER_CS);
		break;
	case W_IP:
		GEN(g, 0xff, 0x35);
		d->ip[d->nr] = hole(g);
		break;
	case W_ORIG_AX:
		GEN(g, 0x6a, 0xff);
		break;
	default:
		if (number[w] >= 8)
			GEN(g, 0x41);
		GEN(g, (uint8_t)(0x50 | (number[w] & 7)));
	}
	d->words++;
}

static void save(struct detour *d)
{
	struct gen *g = &d->g;
	int gap = RED_ZONE;

	here(d, UKP_PC_BEFORE);
	for (int w = W_SS; w >= W_R15; w--) {
		if (!(d->saves >> w & 1)) {
			gap++;
			continue;
		}
		if (gap) {
			move_sp(g, -gap);
			d->words += (unsigned int)gap;
			here(d, UKP_PC_BEFORE);
			gap = 0;
		}
		push_word(d, (unsigned int)w);
		here(d, UKP_PC_BEFORE);
	}
	if (gap) {
		move_sp(g, -gap);
		d->words += (unsigned int)gap;
		here(d, UKP_PC_BEFORE);
	}
}

/* popfq takes as long as all else together: it is for flags that sahf doesn't have. */
static bool by_sahf(const struct detour *d)
{
	return d->saves & PLAN_SAVE(ax) && d->saves & PLAN_SAVE(cx);
}

#define PUT(d, ...)                        \
	do {                               \
		GEN(&(d)->g, __VA_ARGS__); \
		here(d, UKP_PC_BEFORE);    \
	} while (0)

/*
 * Flags from the frame, while ax and cx are still there.  A C function leaves all
 * but the arithmetic ones clear, as they mostly were.
 */
static void flags_back(struct detour *d)
{
	const uint8_t at = 8 * W_FLAGS;
	unsigned int plain, end;
	struct gen *g = &d->g;

	PUT(d, 0x8b, 0x84, 0x24, at, 0, 0, 0); /* mov flags,%eax */
	PUT(d, 0xa9, 0x00, 0x45, 0x24, 0x00);  /* test $TF|DF|NT|AC|ID,%eax */
	PUT(d, 0x74, 0);                       /* jz 1f */
	plain = g->n;
	GEN(g, 0xff, 0xb4, 0x24, at, 0, 0, 0); /* push flags */
	d->words++;
	here(d, UKP_PC_BEFORE);
	d->words--;
	PUT(d, 0x9d);    /* popfq */
	PUT(d, 0xeb, 0); /* jmp 2f */
	end = g->n;
	gen_short(g, plain);
	PUT(d, 0x89, 0xc1);       /* 1: mov %eax,%ecx */
	PUT(d, 0x88, 0xc4);       /* mov %al,%ah */
	PUT(d, 0xc1, 0xe9, 0x04); /* shr $4,%ecx: OF is bit 7 of it */
	PUT(d, 0x80, 0xe1, 0x80); /* and $0x80,%cl */
	PUT(d, 0x00, 0xc9);       /* add %cl,%cl: overflows if that is set */
	PUT(d, 0x9e);             /* sahf */
	gen_short(g, end);        /* 2: */
}

static void restore(struct detour *d)
{
	struct gen *g = &d->g;
	bool popfq = !by_sahf(d);
	int gap = 0;

	if (!popfq)
		flags_back(d);
	for (unsigned int w = W_R15; w <= W_SS; w++) {
		bool pops = d->saves >> w & 1 && (w < W_ORIG_AX || (w == W_FLAGS && popfq));

		if (!pops) {
			gap++;
			continue;
		}
		if (gap) {
			move_sp(g, gap);
			d->words -= (unsigned int)gap;
			here(d, UKP_PC_BEFORE);
			gap = 0;
		}
		if (w == W_FLAGS)
			GEN(g, 0x9d);
		else if (number[w] >= 8)
			GEN(g, 0x41, (uint8_t)(0x58 | (number[w] & 7)));
		else
			GEN(g, (uint8_t)(0x58 | number[w]));
		d->words--;
		here(d, UKP_PC_BEFORE);
	}
	move_sp(g, gap + RED_ZONE);
	d->words = 0;
}

static void call_engine(struct detour *d, uint64_t site)
{
	struct gen *g = &d->g;
	int32_t rel;

	if (d->saves & PLAN_SAVE(sp)) { /* rdi is saved: lea sp,%rdi; mov %rdi,regs->sp */
		GEN(g, 0x48, 0x8d, 0xbc, 0x24);
		gen_put32(g, UKP_DETOUR_FRAME);
		here(d, UKP_PC_BEFORE);
		GEN(g, 0x48, 0x89, 0xbc, 0x24);
		gen_put32(g, 8 * W_SP);
		here(d, UKP_PC_BEFORE);
	}
	GEN(g, 0x48, 0x89, 0xe7);
	here(d, UKP_PC_BEFORE);
	GEN(g, 0x48, 0xbe);
	gen_put64(g, site);
	here(d, UKP_PC_BEFORE);
	if (d->req->form.near) {
		if (!gen_reaches(g, d->req->engine, 5, &rel))
			g->why = PLAN_OUT_OF_REACH;
		GEN(g, 0xe8);
		gen_put32(g, (uint32_t)rel);
	} else {
		GEN(g, 0xff, 0x15);
		d->call[d->nr] = hole(g);
	}
	here(d, UKP_PC_BEFORE);
	if (!d->req->form.flow)
		return;
	GEN(g, 0x85, 0xc0);
	here(d, UKP_PC_BEFORE);
	GEN(g, 0x0f, 0x85);
	d->jnz[d->nr] = hole(g);
	here(d, UKP_PC_BEFORE);
}

/* The map of an entry that began at off goes to the form's shape. */
static void take_shape(struct detour *d, unsigned int off, unsigned int first)
{
	struct ukp_detour_shape *s = &d->out->shape;
	const struct gen_pc *pc = d->g.pc;

	s->saves = d->saves;
	s->len = (uint16_t)(d->g.n - off);
	s->flags = d->req->count ? UKP_DETOUR_COUNT
	                         : (uint8_t)((d->req->form.flow ? UKP_DETOUR_FLOW : 0) |
	                                     (d->req->form.near ? UKP_DETOUR_NEAR : 0));
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
	d->words = 0;
	if (d->req->count) {
		count_entry(&d->g, d->req->count, d->req->count->cell[i], d->orig);
	} else {
		save(d);
		call_engine(d, d->req->site[i]);
		restore(d);
		d->nr++;
	}
	take_shape(d, off, first);
}

/* All of the frame's registers, and iretq: it works for any ip, flags and sp. */
static void tail(struct detour *d)
{
	struct gen *g = &d->g;
	int gap = 0;

	for (unsigned int i = 0; i < d->nr; i++)
		fill(g, d->jnz[i]);
	d->orig = d->req->addr;
	d->words = UKP_DETOUR_FRAME / 8;
	here(d, UKP_PC_MOVED);
	for (unsigned int w = W_R15; w < W_IP; w++) {
		if (w == W_ORIG_AX || !(d->saves >> w & 1)) {
			gap++;
			continue;
		}
		if (gap) {
			move_sp(g, gap);
			d->words -= (unsigned int)gap;
			here(d, UKP_PC_MOVED);
			gap = 0;
		}
		if (number[w] >= 8)
			GEN(g, 0x41);
		GEN(g, (uint8_t)(0x58 | (number[w] & 7)));
		d->words--;
		here(d, UKP_PC_MOVED);
	}
	move_sp(g, gap);
	d->words -= (unsigned int)gap;
	here(d, UKP_PC_MOVED);
	GEN(g, 0x48, 0xcf);
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
			fill(g, d->ip[k]);
			gen_put64(g, d->req->addr + d->req->window->insn[i].off + 1);
		}
		k++;
	}
	for (i = 0; i < d->nr && !d->req->form.near; i++)
		fill(g, d->call[i]);
	if (d->nr && !d->req->form.near)
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
		tail(d);
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
