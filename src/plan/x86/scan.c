/* SPDX-License-Identifier: MIT */
/*
 * Branch targets, boundaries and exits of a run of instructions.
 *
 * Decoding is linear.  What can't be decoded makes its region BROKEN, and the
 * pass goes on a byte further: it may still see targets.
 */
#include "plan/x86/scan.h"

#include <stdlib.h>
#include <string.h>

struct scan *scan_new(struct plan_targets *t, const struct plan_module *m)
{
	struct scan *s = calloc(1, sizeof(*s));

	if (s) {
		s->t = t;
		s->m = m;
	}
	return s;
}

void scan_free(struct scan *s)
{
	if (s)
		free(s->lea);
	free(s);
}

static void remember_lea(struct scan *s, const struct brief *b, uint64_t addr)
{
	if (s->nr_leas == s->room_leas) {
		size_t room = s->room_leas ? 2 * s->room_leas : 64;
		struct scan_lea *grown = realloc(s->lea, room * sizeof(*grown));

		if (!grown) {
			s->t->failed = true;
			return;
		}
		s->lea = grown;
		s->room_leas = room;
	}
	s->lea[s->nr_leas++] = (struct scan_lea){ addr, (uint8_t)brief_reg(b) };
}

/* Addresses that an instruction makes without going there. */
static void made_addresses(struct scan *s, const struct brief *b)
{
	bool lea = b->map == BRIEF_ONE && b->op == 0x8d;

	if (lea && brief_is_rip(b)) {
		uint64_t addr = brief_next(b) + (uint64_t)(int64_t)b->disp;

		targets_add(s->t, addr);
		if (s->r)
			remember_lea(s, b, addr);
	}
	if (!s->m->fixed)
		return;
	if (!b->relative && b->imm_size >= 4)
		targets_add(s->t, (uint64_t)b->imm);
	if (lea && brief_is_memory(b) && !brief_is_rip(b) && b->disp)
		targets_add(s->t, (uint64_t)(int64_t)b->disp);
	/* mov $table,%reg */
	if (s->r && b->map == BRIEF_ONE && (b->op & 0xf8) == 0xb8 && b->imm_size >= 4) {
		struct brief as_lea = *b;

		as_lea.modrm = (uint8_t)((b->op & 7) << 3);
		as_lea.rex = (uint8_t)((b->rex & 1) << 2);
		remember_lea(s, &as_lea, (uint64_t)b->imm);
	}
}

static void leaves(struct scan *s, const struct brief *b, enum plan_exit_kind kind, uint64_t target,
                   bool conditional)
{
	const struct plan_exit e = {
		.addr = b->addr,
		.target = target,
		.kind = (uint8_t)kind,
		.len = b->len,
		.conditional = conditional,
	};

	targets_add_exit(s->t, &e);
}

static bool is_jcc(const struct brief *b)
{
	return b->map == BRIEF_ONE ? (b->op & 0xf0) == 0x70 || (b->op & 0xfc) == 0xe0
	                           : b->map == BRIEF_0F && (b->op & 0xf0) == 0x80;
}

static bool is_jmp(const struct brief *b)
{
	return b->map == BRIEF_ONE && (b->op == 0xe9 || b->op == 0xeb);
}

static void direct(struct scan *s, const struct brief *b)
{
	uint64_t target = brief_target(b);
	const struct plan_bounds *f;

	targets_add(s->t, target);
	if (!s->r || !(is_jmp(b) || is_jcc(b)) || (target >= s->r->start && target < s->r->end))
		return;
	f = bounds_at(s->m, target);
	/* What isn't described at all, as a PLT, is entered at its start alone. */
	if (!f && !bounds_around(s->m, target))
		leaves(s, b, PLAN_EXIT_TAIL, target, is_jcc(b));
	else
		leaves(s, b,
		       f && !f->part && !(s->r->flags & PLAN_REGION_PART) ? PLAN_EXIT_TAIL
		                                                          : PLAN_EXIT_PART,
		       target, is_jcc(b));
}

static void indirect(struct scan *s, const struct brief *b)
{
	switch (scan_indirect(s)) {
	case JUMP_SWITCH:
		break;
	case JUMP_TAIL:
		leaves(s, b, PLAN_EXIT_TAIL, 0, false);
		break;
	case JUMP_UNKNOWN:
		s->r->flags |= PLAN_REGION_INDIRECT;
		leaves(s, b, PLAN_EXIT_INDIRECT, 0, false);
		break;
	}
}

static void visit(struct scan *s, const struct brief *b)
{
	const unsigned int reg = b->modrm >> 3 & 7;

	made_addresses(s, b);
	if (b->relative)
		direct(s, b);
	if (!s->r)
		return;
	targets_add_boundary(s->t, b->addr);
	s->history[s->seen++ % SCAN_HISTORY] = *b;
	if (b->map == BRIEF_ONE) {
		if (b->op == 0xc3 || b->op == 0xc2 || b->op == 0xcb || b->op == 0xca ||
		    b->op == 0xcf)
			leaves(s, b, PLAN_EXIT_RET, 0, false);
		else if (b->op == 0xff && (reg == 4 || reg == 5))
			indirect(s, b);
		else if (b->op == 0xf4)
			leaves(s, b, PLAN_EXIT_NORETURN, 0, false);
	} else if (b->map == BRIEF_0F && b->op == 0x0b) {
		leaves(s, b, PLAN_EXIT_NORETURN, 0, false);
	}
}

static bool is_call(const struct brief *b)
{
	return b->map == BRIEF_ONE &&
	       (b->op == 0xe8 || (b->op == 0xff && (b->modrm >> 3 & 7) == 2));
}

void scan_region(struct scan *s, struct plan_region *r, const uint8_t *code)
{
	const uint64_t size = r->end - r->start;
	uint64_t off = 0;

	s->r = r;
	s->seen = 0;
	s->nr_leas = 0;
	memset(s->taken, 0, sizeof(s->taken));
	while (off < size) {
		struct brief b;

		if (!brief_decode(code + off, size - off, r->start + off, &b)) {
			r->flags |= PLAN_REGION_BROKEN;
			off++;
			continue;
		}
		visit(s, &b);
		off += b.len;
		if (off == size && is_call(&b))
			leaves(s, &b, PLAN_EXIT_NORETURN, 0, false);
	}
	s->r = NULL;
}

void scan_gap(struct scan *s, uint64_t start, uint64_t end, const uint8_t *code)
{
	uint64_t off = 0;

	s->r = NULL;
	while (start < end && off < end - start) {
		struct brief b;

		if (brief_decode(code + off, end - start - off, start + off, &b)) {
			visit(s, &b);
			off += b.len;
		} else {
			off++;
		}
	}
}
