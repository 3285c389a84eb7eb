/* SPDX-License-Identifier: MIT */
/*
 * The out-of-line copy of one instruction.
 *
 *	straight line	copy; exit
 *	syscall		copy; mov $next,%rcx; exit
 *	jmp, ret	copy, or jump to target
 *	jcc		jcc target; jmp next
 *	loop, jcxz	loop 1f; jmp next; 1: jmp target
 *	call		push $next; [movl $hi,4(%rsp);] jmp target or operand
 *	exit		jmp next, or lea -128(%rsp),%rsp; call post; int3
 *
 * next is the original next pc.  No form uses a register or changes a flag.
 * Each jump is "jmp rel32", or "jmp *0(%rip); .quad to" where that can't reach.
 * mark() is called at each instruction boundary that is generated; the map that
 * this gives is complete, which the fuzzer checks by decoding.
 */
#include "plan/x86/insn.h"

#include <string.h>

struct gen {
	const struct plan_request *req;
	struct x86_insn x;
	uint64_t next; /* original pc behind the instruction */
	uint8_t buf[UKP_SLOT_SIZE];
	unsigned int n;
	struct ukp_pc pc[UKP_SITE_PCS];
	unsigned int npc;
	enum plan_refusal why;
};

static void put(struct gen *g, const void *bytes, unsigned int n)
{
	if (n > sizeof(g->buf) - g->n) {
		g->why = PLAN_TOO_LONG;
		return;
	}
	memcpy(g->buf + g->n, bytes, n);
	g->n += n;
}

#define PUT(g, ...) \
	put(g, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void put32(struct gen *g, uint64_t v)
{
	PUT(g, (uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24));
}

static void put64(struct gen *g, uint64_t v)
{
	put32(g, v);
	put32(g, v >> 32);
}

/* From here on a thread stands at original pc orig, its sp being sp_adj lower than there. */
static void mark(struct gen *g, uint64_t orig, int sp_adj, unsigned int flags)
{
	int64_t delta = (int64_t)(orig - g->req->addr);

	if (delta != (int32_t)delta) {
		g->why = PLAN_OUT_OF_REACH;
		return;
	}
	if (g->npc == UKP_SITE_PCS) {
		g->why = PLAN_TOO_LONG;
		return;
	}
	g->pc[g->npc++] = (struct ukp_pc){
		.off = (uint8_t)g->n,
		.flags = (uint8_t)flags,
		.sp_adj = (int16_t)sp_adj,
		.delta = (int32_t)delta,
	};
}

/* Displacement to an address from the end of n more bytes. */
static bool reaches(const struct gen *g, uint64_t to, unsigned int n, int32_t *rel)
{
	int64_t d = (int64_t)(to - (g->req->slot + g->n + n));

	*rel = (int32_t)d;
	return d == *rel;
}

static void jump(struct gen *g, uint64_t to)
{
	int32_t rel;

	if (reaches(g, to, 5, &rel)) {
		PUT(g, 0xe9);
		put32(g, (uint32_t)rel);
	} else {
		PUT(g, 0xff, 0x25, 0, 0, 0, 0);
		put64(g, to);
	}
}

/* The instruction went straight on: back, or to the post handler. */
static void leave(struct gen *g)
{
	int32_t rel;

	mark(g, g->next, 0, UKP_PC_AFTER);
	if (!g->req->post) {
		jump(g, g->next);
		return;
	}
	PUT(g, 0x48, 0x8d, 0x64, 0x24, 0x80);
	mark(g, g->next, 128, UKP_PC_AFTER);
	if (reaches(g, g->req->post, 5, &rel)) {
		PUT(g, 0xe8);
		put32(g, (uint32_t)rel);
		mark(g, g->next, 136, UKP_PC_AFTER);
		PUT(g, 0xcc); /* so that the pushed address is inside slot_len */
	} else {
		PUT(g, 0xff, 0x15, 0, 0, 0, 0);
		mark(g, g->next, 136, UKP_PC_AFTER);
		put64(g, g->req->post);
	}
}

/* The instruction's own bytes, its rip operand meaning what it meant. */
static void copy(struct gen *g)
{
	const struct x86_insn *x = &g->x;
	unsigned int at = g->n;
	int64_t disp;
	int32_t old;

	put(g, g->req->code, x->p.len);
	if (!x->rip || g->why)
		return;
	memcpy(&old, g->req->code + x->disp, 4);
	disp = (int64_t)(g->next + (uint64_t)(int64_t)old - (g->req->slot + g->n));
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
		mark(g, g->next - 2, 0, UKP_PC_BEFORE);
		g->n = at + g->x.p.len;
	}
	mark(g, g->next, 0, UKP_PC_AFTER);
	if (g->next == (uint32_t)g->next) {
		PUT(g, 0xb9);
		put32(g, g->next);
	} else {
		PUT(g, 0x48, 0xb9);
		put64(g, g->next);
	}
	leave(g);
}

/* A branch that has rel8 only: over the way back to a jump of its own. */
static void short_branch(struct gen *g, uint8_t opcode)
{
	unsigned int from;

	PUT(g, opcode, 0);
	from = g->n;
	mark(g, g->next, 0, UKP_PC_AFTER);
	jump(g, g->next);
	if (g->why)
		return;
	g->buf[from - 1] = (uint8_t)(g->n - from);
	mark(g, g->x.p.target, 0, UKP_PC_AFTER);
	jump(g, g->x.p.target);
}

static void copy_jcc(struct gen *g)
{
	const struct plan_insn *p = &g->x.p;
	int32_t rel;

	if (!reaches(g, p->target, 6, &rel)) {
		short_branch(g, 0x70 | p->cond);
		return;
	}
	PUT(g, 0x0f, 0x80 | p->cond);
	put32(g, (uint32_t)rel);
	mark(g, g->next, 0, UKP_PC_AFTER);
	jump(g, g->next);
}

static void copy_loop(struct gen *g)
{
	if (g->x.p.ecx)
		PUT(g, 0x67);
	short_branch(g, 0xe0 | g->x.p.cond);
}

/* push has a sign-extended imm32; the upper half is put right where that is wrong. */
static void push_return(struct gen *g)
{
	int32_t lo = (int32_t)g->next;

	PUT(g, 0x68);
	put32(g, (uint32_t)lo);
	mark(g, g->req->addr, 8, UKP_PC_BEFORE);
	if ((uint64_t)(int64_t)lo == g->next)
		return;
	PUT(g, 0xc7, 0x44, 0x24, 0x04);
	put32(g, g->next >> 32);
	mark(g, g->req->addr, 8, UKP_PC_BEFORE);
}

/* An operand that counts from rsp, with 8 more for what was pushed. */
static void rsp_operand(struct gen *g, uint8_t *modrm)
{
	int64_t disp = g->x.p.disp + 8;

	*modrm &= 0x3f;
	if (disp == (int8_t)disp) {
		*modrm |= 0x40;
		PUT(g, (uint8_t)disp);
	} else {
		*modrm |= 0x80;
		put32(g, (uint64_t)disp);
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
		put(g, g->req->code, x->disp ? x->disp : x->p.len);
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

static void generate(struct gen *g)
{
	mark(g, g->req->addr, 0, UKP_PC_BEFORE);
	switch (g->x.p.flow) {
	case PLAN_FLOW_NONE:
		if (g->x.p.is_syscall) {
			copy_syscall(g);
		} else {
			copy(g);
			leave(g);
		}
		break;
	case PLAN_FLOW_JMP:
		jump(g, g->x.p.target);
		break;
	case PLAN_FLOW_JCC:
		copy_jcc(g);
		break;
	case PLAN_FLOW_LOOP:
		copy_loop(g);
		break;
	case PLAN_FLOW_CALL:
		push_return(g);
		jump(g, g->x.p.target);
		break;
	case PLAN_FLOW_CALL_IND:
		copy_call_indirect(g);
		break;
	default: /* jmp operand, ret */
		copy(g);
		break;
	}
}

enum plan_refusal plan_copy(const struct plan_request *req, uint8_t out[UKP_SLOT_SIZE],
                            struct ukp_site *site)
{
	struct gen g = { .req = req };
	enum plan_refusal why;

	why = x86_decode(req->code, req->avail, req->addr, &g.x);
	if (why)
		return why;
	g.next = req->addr + g.x.p.len;
	memset(g.buf, 0xcc, sizeof(g.buf));
	generate(&g);
	if (g.why)
		return g.why;
	memcpy(out, g.buf, sizeof(g.buf));
	site->addr = req->addr;
	site->slot = req->slot;
	site->len = g.x.p.len;
	site->slot_len = (uint8_t)g.n;
	site->npc = (uint8_t)g.npc;
	site->flags &= (uint8_t) ~(UKP_SITE_CONTROL | UKP_SITE_POST);
	if (g.x.p.flow != PLAN_FLOW_NONE)
		site->flags |= UKP_SITE_CONTROL;
	else if (req->post)
		site->flags |= UKP_SITE_POST;
	memset(site->orig, 0, sizeof(site->orig));
	memcpy(site->orig, req->code, site->len);
	memset(site->pc, 0, sizeof(site->pc));
	memcpy(site->pc, g.pc, g.npc * sizeof(g.pc[0]));
	return PLAN_OK;
}
