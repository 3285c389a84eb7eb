/* SPDX-License-Identifier: MIT */
/*
 * An instruction that does elsewhere what it did in its place.
 *
 *	straight line	copy; exit
 *	syscall		copy; mov $next,%rcx; exit
 *	jmp, ret	copy, or jump to target
 *	jcc		jcc target; exit
 *	loop, jcxz	loop 1f; exit; 1: jmp target
 *	call		push $next; [movl $hi,4(%rsp);] jmp target or operand
 *	exit		jmp next, or lea -128(%rsp),%rsp; call post; int3,
 *			or nothing where the next copy follows
 *	far operand	see far.c
 *
 * next is the original next pc.  No form here uses a register or changes a flag.
 * Each jump is "jmp rel32", or "jmp *0(%rip); .quad to" where that can't reach.
 * gen_mark() is called at each instruction boundary that is generated; the map
 * that this gives is complete, which the fuzzers check by decoding.
 */
#include "plan/x86/gen.h"

#include <string.h>

void gen_put(struct gen *g, const void *bytes, unsigned int n)
{
	if (n > g->size - g->n) {
		g->why = PLAN_TOO_LONG;
		return;
	}
	memcpy(g->buf + g->n, bytes, n);
	g->n += n;
}

void gen_put32(struct gen *g, uint64_t v)
{
	GEN(g, (uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24));
}

void gen_put64(struct gen *g, uint64_t v)
{
	gen_put32(g, v);
	gen_put32(g, v >> 32);
}

void gen_mark(struct gen *g, uint64_t orig, unsigned int words, unsigned int flags)
{
	int64_t delta = (int64_t)(orig - g->base);

	if (delta != (int32_t)delta) {
		g->why = PLAN_OUT_OF_REACH;
		return;
	}
	/* Nothing was generated since: the place is the later one's. */
	if (g->npc && g->pc[g->npc - 1].off == g->n)
		g->npc--;
	if (g->npc == g->room) {
		g->why = PLAN_TOO_LONG;
		return;
	}
	g->pc[g->npc++] = (struct gen_pc){
		.off = (uint16_t)g->n,
		.flags = (uint8_t)flags,
		.words = (uint8_t)words,
		.delta = (int32_t)delta,
	};
}

bool gen_reaches(const struct gen *g, uint64_t to, unsigned int n, int32_t *rel)
{
	int64_t d = (int64_t)(to - (g->at + g->n + n));

	*rel = (int32_t)d;
	return d == *rel;
}

void gen_short(struct gen *g, unsigned int from)
{
	if (!g->why)
		g->buf[from - 1] = (uint8_t)(g->n - from);
}

void gen_near(struct gen *g, unsigned int from)
{
	int32_t rel = (int32_t)(g->n - from);

	if (!g->why)
		memcpy(g->buf + from - 4, &rel, 4);
}

void gen_jump(struct gen *g, uint64_t to)
{
	int32_t rel;

	if (gen_reaches(g, to, 5, &rel)) {
		GEN(g, 0xe9);
		gen_put32(g, (uint32_t)rel);
	} else {
		GEN(g, 0xff, 0x25, 0, 0, 0, 0);
		gen_put64(g, to);
	}
}

void gen_leave(struct gen *g, unsigned int words)
{
	int32_t rel;

	if (g->exit == GEN_FALL)
		return;
	gen_mark(g, g->next, words, UKP_PC_AFTER);
	if (g->exit == GEN_BACK) {
		gen_jump(g, g->next);
		return;
	}
	if (!words) {
		GEN(g, 0x48, 0x8d, 0x64, 0x24, 0x80);
		gen_mark(g, g->next, 16, UKP_PC_AFTER);
	}
	if (gen_reaches(g, g->post, 5, &rel)) {
		GEN(g, 0xe8);
		gen_put32(g, (uint32_t)rel);
		gen_mark(g, g->next, 17, UKP_PC_AFTER);
		GEN(g, 0xcc); /* so that the pushed address is inside slot_len */
	} else {
		GEN(g, 0xff, 0x15, 0, 0, 0, 0);
		gen_mark(g, g->next, 17, UKP_PC_AFTER);
		gen_put64(g, g->post);
	}
}

/* The instruction's own bytes, its rip operand meaning what it meant. */
static void copy(struct gen *g)
{
	const struct x86_insn *x = &g->x;
	unsigned int at = g->n;
	int64_t disp;
	int32_t old;

	gen_put(g, g->code, x->p.len);
	if (!x->rip || g->why)
		return;
	memcpy(&old, g->code + x->disp, 4);
	disp = (int64_t)(g->next + (uint64_t)(int64_t)old - (g->at + g->n));
	/* With prefix 67 the sum is cut to 32 bits: any distance can be had. */
	if (disp != (int32_t)disp && !x->addr32)
		g->why = PLAN_OUT_OF_REACH;
	memcpy(g->buf + at + x->disp, &(int32_t){ (int32_t)disp }, 4);
}

/*
 * The kernel leaves the address behind its syscall in rcx, and goes back two
 * bytes to restart a call: both bytes' place is a boundary, whatever prefixes
 * stand before them.
 */
static void copy_syscall(struct gen *g)
{
	unsigned int at = g->n;

	copy(g);
	if (g->x.p.len > 2) {
		g->n -= 2;
		gen_mark(g, g->next - 2, 0, UKP_PC_BEFORE);
		g->n = at + g->x.p.len;
	}
	gen_mark(g, g->next, 0, UKP_PC_AFTER);
	if (g->next == (uint32_t)g->next) {
		GEN(g, 0xb9);
		gen_put32(g, g->next);
	} else {
		GEN(g, 0x48, 0xb9);
		gen_put64(g, g->next);
	}
	gen_leave(g, 0);
}

/* A branch was not taken: its post handler, if any, is emulated for. */
static void not_taken(struct gen *g)
{
	if (g->exit == GEN_FALL)
		return;
	gen_mark(g, g->next, 0, UKP_PC_AFTER);
	gen_jump(g, g->next);
}

static void set_rel8(struct gen *g, unsigned int from)
{
	if (!g->why)
		g->buf[from - 1] = (uint8_t)(g->n - from);
}

/* A branch that has rel8 only: over the way on to a jump of its own. */
static void short_branch(struct gen *g, uint8_t opcode)
{
	unsigned int taken, over = 0;

	GEN(g, opcode, 0);
	taken = g->n;
	if (g->exit == GEN_FALL) {
		gen_mark(g, g->next, 0, UKP_PC_AFTER);
		GEN(g, 0xeb, 0);
		over = g->n;
	} else {
		not_taken(g);
	}
	set_rel8(g, taken);
	gen_mark(g, g->x.p.target, 0, UKP_PC_AFTER);
	gen_jump(g, g->x.p.target);
	if (over)
		set_rel8(g, over);
}

static void copy_jcc(struct gen *g)
{
	const struct plan_insn *p = &g->x.p;
	int32_t rel;

	if (!gen_reaches(g, p->target, 6, &rel)) {
		short_branch(g, 0x70 | p->cond);
		return;
	}
	GEN(g, 0x0f, 0x80 | p->cond);
	gen_put32(g, (uint32_t)rel);
	not_taken(g);
}

static void copy_loop(struct gen *g)
{
	if (g->x.p.ecx)
		GEN(g, 0x67);
	short_branch(g, 0xe0 | g->x.p.cond);
}

/* push has a sign-extended imm32; the upper half is put right where that is wrong. */
static void push_return(struct gen *g)
{
	int32_t lo = (int32_t)g->next;

	GEN(g, 0x68);
	gen_put32(g, (uint32_t)lo);
	gen_mark(g, g->addr, 1, UKP_PC_BEFORE);
	if ((uint64_t)(int64_t)lo == g->next)
		return;
	GEN(g, 0xc7, 0x44, 0x24, 0x04);
	gen_put32(g, g->next >> 32);
	gen_mark(g, g->addr, 1, UKP_PC_BEFORE);
}

/* An operand that counts from rsp, with 8 more for what was pushed. */
static void rsp_operand(struct gen *g, uint8_t *modrm)
{
	int64_t disp = g->x.p.disp + 8;

	*modrm &= 0x3f;
	if (disp == (int8_t)disp) {
		*modrm |= 0x40;
		GEN(g, (uint8_t)disp);
	} else {
		*modrm |= 0x80;
		gen_put32(g, (uint64_t)disp);
	}
	if (disp != (int32_t)disp)
		g->why = PLAN_OUT_OF_REACH;
}

static void copy_call_indirect(struct gen *g)
{
	const struct x86_insn *x = &g->x;
	unsigned int at, modrm;

	push_return(g);
	at = g->n;
	modrm = at + x->modrm;
	if (x->p.mem && x->p.base == X86_RSP) {
		gen_put(g, g->code, x->disp ? x->disp : x->p.len);
		if (!g->why)
			rsp_operand(g, &g->buf[modrm]);
	} else {
		copy(g);
	}
	if (g->n - at > UKP_INSN_MAX)
		g->why = PLAN_TOO_LONG;
	if (!g->why) /* ff /2 call becomes ff /4 jmp */
		g->buf[modrm] = (uint8_t)((g->buf[modrm] & ~0x38) | 4 << 3);
}

void gen_insn(struct gen *g)
{
	g->next = g->addr + g->x.p.len;
	gen_mark(g, g->addr, 0, UKP_PC_BEFORE);
	if (g->scratch && gen_is_far(g)) {
		gen_far(g);
		return;
	}
	switch (g->x.p.flow) {
	case PLAN_FLOW_NONE:
		if (g->x.p.is_syscall) {
			copy_syscall(g);
		} else {
			copy(g);
			gen_leave(g, 0);
		}
		break;
	case PLAN_FLOW_JMP:
		gen_jump(g, g->x.p.target);
		break;
	case PLAN_FLOW_JCC:
		copy_jcc(g);
		break;
	case PLAN_FLOW_LOOP:
		copy_loop(g);
		break;
	case PLAN_FLOW_CALL:
		push_return(g);
		gen_jump(g, g->x.p.target);
		break;
	case PLAN_FLOW_CALL_IND:
		copy_call_indirect(g);
		break;
	default: /* jmp operand, ret */
		copy(g);
		break;
	}
}
