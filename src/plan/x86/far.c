/* SPDX-License-Identifier: MIT */
/*
 * An operand that counts from rip and is out of reach of the copy: its address
 * goes through a register S that the instruction doesn't use, as uprobes does
 * it.  S is kept on the stack, below the red zone, and the map says so.
 *
 *	straight line	lea -128(%rsp),%rsp; push S; movabs $operand,S
 *			copy with (S) for the operand
 *			pop S; lea 128(%rsp),%rsp; exit
 *	jmp *m		lea -128(%rsp),%rsp; push S; movabs $operand,S
 *			mov (S),S; xchg S,(%rsp); ret $128
 *	call *m		the same with 8 bytes more, and before the ret
 *			movl $next,136(%rsp); movl $next>>32,140(%rsp)
 *
 * A fault of any of these is the instruction's: nothing that the program sees
 * has changed before it is through.  Refused is what uses rsp itself (push and
 * pop of m, mov %rsp,m): it would meet another rsp here.
 */
#include "plan/x86/gen.h"

#include <string.h>

#include <Zydis/Zydis.h>

enum { RED_ZONE = 16 }; /* words */

static bool reaches(const struct gen *g, unsigned int before)
{
	int32_t old;
	int64_t disp;

	memcpy(&old, g->code + g->x.disp, 4);
	disp = (int64_t)(g->next + (uint64_t)(int64_t)old - (g->at + g->n + before + g->x.p.len));
	return disp == (int32_t)disp;
}

bool gen_is_far(const struct gen *g)
{
	/* With prefix 67 the sum is cut to 32 bits: any distance can be had. */
	if (!g->x.rip || g->x.addr32)
		return false;
	/* A call's copy has pushes before it. */
	return !reaches(g, 0) || !reaches(g, 16);
}

static uint32_t register_bit(ZydisRegister r)
{
	r = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
	if (ZydisRegisterGetClass(r) != ZYDIS_REGCLASS_GPR64)
		return 0;
	return 1u << ZydisRegisterGetId(r);
}

/* Bit n: general register n is used, be it without being named. */
static uint32_t used_registers(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *ops)
{
	uint32_t used = 0;

	for (unsigned int i = 0; i < z->operand_count; i++) {
		if (ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER)
			used |= register_bit(ops[i].reg.value);
		if (ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
			used |= register_bit(ops[i].mem.base) | register_bit(ops[i].mem.index);
	}
	return used;
}

/* One that needs neither REX.B nor a SIB byte and has ds as its segment; -1: none. */
static int free_register(uint32_t used)
{
	static const uint8_t order[] = { 6, 7, 3, 0, 1, 2 };

	for (unsigned int i = 0; i < sizeof(order); i++)
		if (!(used >> order[i] & 1))
			return order[i];
	return -1;
}

/* disp32(%rip) becomes 0(S): the same length, whatever the encoding. */
static void patch_operand(uint8_t *p, const ZydisDecodedInstruction *z, unsigned int s)
{
	p[z->raw.modrm.offset] = (uint8_t)((p[z->raw.modrm.offset] & 0x38) | 0x80 | s);
	memset(p + z->raw.disp.offset, 0, 4);
	/* Bit 3 of the register: not looked at with rip, so it may be set. */
	switch (z->encoding) {
	case ZYDIS_INSTRUCTION_ENCODING_VEX:
		if (z->raw.vex.size == 3)
			p[z->raw.vex.offset + 1] |= 0x20;
		break;
	case ZYDIS_INSTRUCTION_ENCODING_XOP:
		p[z->raw.xop.offset + 1] |= 0x20;
		break;
	case ZYDIS_INSTRUCTION_ENCODING_EVEX:
		p[z->raw.evex.offset + 1] |= 0x20;
		break;
	default:
		if (z->attributes & ZYDIS_ATTRIB_HAS_REX)
			p[z->raw.rex.offset] &= 0xfe;
	}
}

static unsigned int saved(unsigned int s)
{
	return UKP_PC_SAVED | s << UKP_PC_REG_SHIFT;
}

/* Room below the red zone and extra words, S pushed there and pointing to the operand. */
static void take_register(struct gen *g, unsigned int s, unsigned int extra)
{
	const unsigned int words = RED_ZONE + extra;
	int32_t disp;

	if (extra) {
		GEN(g, 0x48, 0x8d, 0xa4, 0x24);
		gen_put32(g, -8u * words);
	} else {
		GEN(g, 0x48, 0x8d, 0x64, 0x24, 0x80);
	}
	gen_mark(g, g->addr, words, UKP_PC_BEFORE);
	GEN(g, (uint8_t)(0x50 | s));
	gen_mark(g, g->addr, words + 1, UKP_PC_BEFORE | saved(s));
	memcpy(&disp, g->code + g->x.disp, 4);
	GEN(g, 0x48, (uint8_t)(0xb8 | s));
	gen_put64(g, g->next + (uint64_t)(int64_t)disp);
	gen_mark(g, g->addr, words + 1, UKP_PC_BEFORE | saved(s));
}

static void straight(struct gen *g, const ZydisDecodedInstruction *z, unsigned int s)
{
	unsigned int at;

	take_register(g, s, 0);
	at = g->n;
	gen_put(g, g->code, g->x.p.len);
	if (!g->why)
		patch_operand(g->buf + at, z, s);
	gen_mark(g, g->next, RED_ZONE + 1, UKP_PC_AFTER | saved(s));
	GEN(g, (uint8_t)(0x58 | s));
	if (g->exit == GEN_POST) { /* it makes the same room */
		gen_leave(g, RED_ZONE);
		return;
	}
	gen_mark(g, g->next, RED_ZONE, UKP_PC_AFTER);
	GEN(g, 0x48, 0x8d, 0xa4, 0x24);
	gen_put32(g, 8 * RED_ZONE);
	gen_leave(g, 0);
}

/* jmp and call */
static void branch(struct gen *g, unsigned int s, bool call)
{
	const unsigned int words = RED_ZONE + call + 1;

	take_register(g, s, call);
	if (g->x.p.seg)
		GEN(g, g->x.p.seg == 'f' ? 0x64 : 0x65);
	GEN(g, 0x48, 0x8b, (uint8_t)(s << 3 | s));
	gen_mark(g, g->addr, words, UKP_PC_BEFORE | saved(s));
	GEN(g, 0x48, 0x87, (uint8_t)(s << 3 | 4), 0x24);
	gen_mark(g, g->addr, words, UKP_PC_BEFORE);
	for (unsigned int half = 0; call && half < 2; half++) {
		GEN(g, 0xc7, 0x84, 0x24);
		gen_put32(g, 8 * (RED_ZONE + 1) + 4 * half);
		gen_put32(g, g->next >> 32 * half);
		gen_mark(g, g->addr, words, UKP_PC_BEFORE);
	}
	GEN(g, 0xc2, 8 * RED_ZONE, 0);
}

void gen_far(struct gen *g)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	const uint8_t flow = g->x.p.flow;
	ZydisDecodedInstruction z;
	ZydisDecoder d;
	uint32_t used;
	int s;

	if (!ZYAN_SUCCESS(ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d, g->code, g->x.p.len, &z, ops))) {
		g->why = PLAN_UNDECODABLE;
		return;
	}
	used = flow == PLAN_FLOW_NONE ? used_registers(&z, ops) : 0;
	s = used >> X86_RSP & 1 ? -1 : free_register(used);
	if (s < 0)
		g->why = PLAN_OUT_OF_REACH;
	else if (flow == PLAN_FLOW_NONE)
		straight(g, &z, (unsigned int)s);
	else
		branch(g, (unsigned int)s, flow == PLAN_FLOW_CALL_IND);
}
