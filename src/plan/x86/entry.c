/* SPDX-License-Identifier: MIT */
/* Entries, and what their answers lead to.  See entry.h. */
#include "plan/x86/entry.h"

enum { RED_ZONE = 16 };   /* words */
enum { CALL_WORDS = 14 }; /* from the frame's word down to where a stub's way in begins */

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

uint32_t plan_form_saves(const struct plan_form *form)
{
	uint32_t saves = form->saves & PLAN_SAVE_ALL;

	saves |= PLAN_SAVE(di) | PLAN_SAVE(si) | PLAN_SAVE(flags);
	if (form->flow || form->call)
		saves |= PLAN_SAVE(ax);
	if (form->flow)
		saves |= PLAN_SAVE(ip) | PLAN_SAVE(cs) | PLAN_SAVE(sp) | PLAN_SAVE(ss);
	return saves;
}

static void here(struct detour *d)
{
	gen_mark(&d->g, d->orig, d->words, d->flags);
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
		here(d);
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

	here(d);
	for (int w = W_SS; w >= W_R15; w--) {
		if (!(d->saves >> w & 1)) {
			gap++;
			continue;
		}
		if (gap) {
			move_sp(g, -gap);
			d->words += (unsigned int)gap;
			here(d);
			gap = 0;
		}
		push_word(d, (unsigned int)w);
		here(d);
	}
	if (gap) {
		move_sp(g, -gap);
		d->words += (unsigned int)gap;
		here(d);
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
		here(d);                   \
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
	here(d);
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

/* The function's copy to the word where the return address was; di is free until it is popped. */
static void take_word(struct detour *d)
{
	struct gen *g = &d->g;
	const uint32_t copy = d->out->d.insn[0].copy;

	GEN(g, 0x48, 0x8d, 0x3d);
	gen_put32(g, copy - (g->n + 4));
	here(d);
	GEN(g, 0x48, 0x89, 0xbc, 0x24);
	gen_put32(g, 8 * d->words);
	d->flags = UKP_PC_CALLS | UKP_PC_CALLED;
	here(d);
}

/* Leaves out words that are not given back; returns how many are left to leave out: none. */
static int skip_words(struct detour *d, int gap)
{
	if (!gap)
		return 0;
	move_sp(&d->g, gap);
	d->words -= (unsigned int)gap;
	here(d);
	return 0;
}

/* All registers back; sp comes to be left words below where it was. */
static void restore(struct detour *d, unsigned int left)
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
		gap = skip_words(d, gap);
		if (w == W_DI && d->flags & UKP_PC_CALLS)
			take_word(d);
		if (w == W_FLAGS)
			GEN(g, 0x9d);
		else if (number[w] >= 8)
			GEN(g, 0x41, (uint8_t)(0x58 | (number[w] & 7)));
		else
			GEN(g, (uint8_t)(0x58 | number[w]));
		d->words--;
		here(d);
	}
	move_sp(g, gap + RED_ZONE - (int)left);
	d->words = left;
}

static void call_engine(struct detour *d, uint64_t site)
{
	const bool first = d->req->form.call && !d->nr;
	struct gen *g = &d->g;
	int32_t rel;

	if (d->saves & PLAN_SAVE(sp)) { /* rdi is saved: lea sp,%rdi; mov %rdi,regs->sp */
		GEN(g, 0x48, 0x8d, 0xbc, 0x24);
		gen_put32(g, UKP_DETOUR_FRAME);
		here(d);
		GEN(g, 0x48, 0x89, 0xbc, 0x24);
		gen_put32(g, 8 * W_SP);
		here(d);
	}
	GEN(g, 0x48, 0x89, 0xe7);
	here(d);
	GEN(g, 0x48, 0xbe);
	gen_put64(g, site);
	here(d);
	if (d->req->form.near) {
		if (!gen_reaches(g, first ? d->req->entry : d->req->engine, 5, &rel))
			g->why = PLAN_OUT_OF_REACH;
		GEN(g, 0xe8);
		gen_put32(g, (uint32_t)rel);
	} else {
		GEN(g, 0xff, 0x15);
		d->call[d->nr] = hole(g);
	}
	here(d);
	if (!d->req->form.flow && !d->req->form.call)
		return;
	GEN(g, 0x85, 0xc0);
	here(d);
	if (d->req->form.call) { /* other entries than the first have nothing to call */
		GEN(g, 0x0f, 0x88);
		if (first)
			d->js = hole(g);
		else
			hole(g);
		here(d);
	}
	if (d->req->form.flow) {
		GEN(g, 0x0f, 0x85);
		d->jnz[d->nr] = hole(g);
		here(d);
	}
}

void entry_gen(struct detour *d, uint64_t site)
{
	d->words = 0;
	d->flags = UKP_PC_BEFORE;
	save(d);
	call_engine(d, site);
	restore(d, 0);
	d->nr++;
}

/* All of the frame's registers, and iretq: it works for any ip, flags and sp. */
void entry_tail(struct detour *d)
{
	struct gen *g = &d->g;
	int gap = 0;

	for (unsigned int i = 0; i < d->nr; i++)
		gen_near(g, d->jnz[i]);
	d->orig = d->req->addr;
	d->words = UKP_DETOUR_FRAME / 8;
	d->flags = UKP_PC_MOVED;
	here(d);
	for (unsigned int w = W_R15; w < W_IP; w++) {
		if (w == W_ORIG_AX || !(d->saves >> w & 1)) {
			gap++;
			continue;
		}
		gap = skip_words(d, gap);
		if (number[w] >= 8)
			GEN(g, 0x41);
		GEN(g, (uint8_t)(0x58 | (number[w] & 7)));
		d->words--;
		here(d);
	}
	move_sp(g, gap);
	d->words -= (unsigned int)gap;
	here(d);
	GEN(g, 0x48, 0xcf);
}

/*
 * The way to the stub that calls the copy.  sp stays low enough for the word with
 * the stub's address to be left alone by signals, and high enough for the stub to
 * be short.
 */
void entry_call(struct detour *d)
{
	struct gen *g = &d->g;

	gen_near(g, d->js);
	d->orig = d->req->addr;
	d->words = UKP_DETOUR_FRAME / 8;
	d->flags = UKP_PC_CALLS;
	here(d);
	restore(d, CALL_WORDS);
	here(d);
	GEN(g, 0xff, 0x64, 0x24, (uint8_t)(8 * CALL_WORDS + 8 * W_SS - UKP_DETOUR_FRAME));
}
