/* SPDX-License-Identifier: MIT */
/*
 * Decoding one instruction: its parts by Zydis, what it does to control flow
 * and whether it can be probed by ourselves, from the opcode.
 *
 * Zydis is asked for no operands: all that matters here is in the encoding,
 * and it is three times as fast.
 */
#include "plan/x86/insn.h"

#include <string.h>

#include <Zydis/Zydis.h>

static uint8_t has_prefix(const ZydisDecodedInstruction *z, uint8_t byte)
{
	for (unsigned int i = 0; i < z->raw.prefix_count; i++)
		if (z->raw.prefixes[i].value == byte)
			return 1;
	return 0;
}

/* In 64-bit mode the last of fs and gs counts; the others do nothing. */
static uint8_t segment(const ZydisDecodedInstruction *z)
{
	uint8_t seg = 0;

	for (unsigned int i = 0; i < z->raw.prefix_count; i++) {
		if (z->raw.prefixes[i].value == 0x64)
			seg = 'f';
		if (z->raw.prefixes[i].value == 0x65)
			seg = 'g';
	}
	return seg;
}

static void memory_operand(const ZydisDecodedInstruction *z, uint64_t addr, struct x86_insn *x)
{
	struct plan_insn *p = &x->p;
	unsigned int b = z->raw.rex.B << 3, i = z->raw.rex.X << 3;

	p->mem = true;
	p->seg = segment(z);
	p->addr32 = x->addr32;
	p->disp = z->raw.disp.value;
	p->scale = 1;
	if (x->rip) {
		p->base = X86_RIP;
		p->disp = (int64_t)(addr + z->length + (uint64_t)p->disp);
		return;
	}
	if (z->raw.modrm.rm != 4) {
		p->base = (int8_t)(z->raw.modrm.rm | b);
		return;
	}
	if (z->raw.sib.base != 5 || z->raw.modrm.mod != 0)
		p->base = (int8_t)(z->raw.sib.base | b);
	if ((z->raw.sib.index | i) != X86_RSP) {
		p->index = (int8_t)(z->raw.sib.index | i);
		p->scale = (uint8_t)(1U << z->raw.sib.scale);
	}
}

/*
 * A call whose push could change what it reads.  Below rsp only the red zone
 * can be meant, so an index that may lead anywhere in it refuses too.
 */
static bool call_reads_its_push(const struct plan_insn *p)
{
	if (!p->mem)
		return p->reg == X86_RSP;
	if (p->base != X86_RSP || p->seg)
		return false;
	return p->index < 0 ? p->disp > -16 && p->disp < 0 : p->disp < 0;
}

/* ff /2../5 */
static enum plan_refusal indirect(const ZydisDecodedInstruction *z, uint64_t addr,
                                  struct x86_insn *x)
{
	if (z->raw.modrm.reg == 3 || z->raw.modrm.reg == 5)
		return PLAN_FAR;
	x->p.flow = z->raw.modrm.reg == 2 ? PLAN_FLOW_CALL_IND : PLAN_FLOW_JMP_IND;
	if (z->raw.modrm.mod == 3)
		x->p.reg = (int8_t)(z->raw.modrm.rm | z->raw.rex.B << 3);
	else
		memory_operand(z, addr, x);
	if (x->p.flow == PLAN_FLOW_CALL_IND && call_reads_its_push(&x->p))
		return PLAN_STACK_CALL;
	return PLAN_OK;
}

static enum plan_refusal one_byte(const ZydisDecodedInstruction *z, uint64_t addr,
                                  struct x86_insn *x)
{
	struct plan_insn *p = &x->p;

	switch (z->opcode) {
	case 0x70 ... 0x7f:
		p->flow = PLAN_FLOW_JCC;
		p->cond = z->opcode & 15;
		break;
	case 0xe0 ... 0xe3:
		p->flow = PLAN_FLOW_LOOP;
		p->cond = z->opcode & 3;
		p->ecx = x->addr32;
		/* Zen takes the condition of loopne and loope from a rep prefix, if there. */
		if (z->opcode < 0xe2 && (has_prefix(z, 0xf2) || has_prefix(z, 0xf3)))
			return PLAN_BRANCH_PREFIX;
		break;
	case 0xe8:
		p->flow = PLAN_FLOW_CALL;
		break;
	case 0xe9:
	case 0xeb:
		p->flow = PLAN_FLOW_JMP;
		break;
	case 0xc2:
		p->imm = (uint16_t)z->raw.imm[0].value.u;
		/* fallthrough */
	case 0xc3:
		p->flow = PLAN_FLOW_RET;
		break;
	case 0xff:
		if (z->raw.modrm.reg >= 2 && z->raw.modrm.reg <= 5)
			return indirect(z, addr, x);
		break;
	case 0xcc ... 0xce:
	case 0xf1:
		return PLAN_BREAKPOINT;
	case 0x8e:
		return (z->raw.modrm.reg & 7) == 2 ? PLAN_STACK_SEGMENT : PLAN_OK;
	case 0xca:
	case 0xcb:
	case 0xcf:
		return PLAN_FAR;
	case 0xc7:
		return z->raw.modrm.mod == 3 && z->raw.modrm.reg == 7 ? PLAN_XBEGIN : PLAN_OK;
	}
	return PLAN_OK;
}

static enum plan_refusal two_byte(const ZydisDecodedInstruction *z, struct x86_insn *x)
{
	switch (z->opcode) {
	case 0x80 ... 0x8f:
		x->p.flow = PLAN_FLOW_JCC;
		x->p.cond = z->opcode & 15;
		break;
	case 0x05:
		x->p.is_syscall = true;
		break;
	case 0x07: /* sysret */
	case 0x34: /* sysenter */
	case 0x35: /* sysexit */
		return PLAN_FAR;
	case 0x01:
		/* They hand out or take a pc as no other instruction does. */
		if (z->mnemonic == ZYDIS_MNEMONIC_UIRET || z->mnemonic == ZYDIS_MNEMONIC_ENCLU)
			return PLAN_FAR;
		break;
	}
	return PLAN_OK;
}

static enum plan_refusal classify(const ZydisDecodedInstruction *z, uint64_t addr,
                                  struct x86_insn *x)
{
	const bool relative = z->raw.imm[0].is_relative;
	enum plan_refusal why = PLAN_OK;

	if (z->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return PLAN_OK;
	if (z->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT)
		why = one_byte(z, addr, x);
	else if (z->opcode_map == ZYDIS_OPCODE_MAP_0F)
		why = two_byte(z, x);
	if (why == PLAN_XBEGIN || why == PLAN_FAR)
		return why;
	if (x->p.flow != PLAN_FLOW_NONE && has_prefix(z, 0x66) && !z->raw.rex.W) {
		/* Intel ignores the prefix, AMD has a 16-bit displacement. */
		if (relative && z->raw.imm[0].size > 8)
			x->p.len = 0;
		return PLAN_BRANCH_PREFIX;
	}
	if (relative)
		x->p.target = addr + z->length + (uint64_t)z->raw.imm[0].value.s;
	/* A relative operand of something that isn't known here, as jmpe has. */
	if (relative && x->p.flow == PLAN_FLOW_NONE)
		return PLAN_FAR;
	return why;
}

/* 90 and 0F 1F: other hints that a decoder calls so may fault on some CPU. */
static bool is_nop(const ZydisDecodedInstruction *z)
{
	return z->mnemonic == ZYDIS_MNEMONIC_NOP &&
	       z->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
	       (z->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT ? z->opcode == 0x90 : z->opcode == 0x1f);
}

enum plan_refusal x86_decode(const uint8_t *code, size_t avail, uint64_t addr, struct x86_insn *x)
{
	ZydisDecodedInstruction z;
	ZydisDecoder decoder;

	memset(x, 0, sizeof(*x));
	x->p.base = x->p.index = x->p.reg = -1;
	if (avail > UKP_INSN_MAX)
		avail = UKP_INSN_MAX;
	if (!avail ||
	    !ZYAN_SUCCESS(
		    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, code, avail, &z)))
		return PLAN_UNDECODABLE;
	x->p.len = z.length;
	x->opcode = z.opcode;
	x->addr32 = z.address_width == 32;
	if (z.attributes & ZYDIS_ATTRIB_HAS_MODRM)
		x->modrm = z.raw.modrm.offset;
	if (z.raw.disp.size) {
		x->disp = z.raw.disp.offset;
		x->disp_size = z.raw.disp.size / 8;
	}
	x->nop = is_nop(&z);
	x->traps = z.mnemonic == ZYDIS_MNEMONIC_UD2 || z.mnemonic == ZYDIS_MNEMONIC_HLT;
	x->rip = x->modrm && x->disp_size == 4 && z.raw.modrm.mod == 0 && z.raw.modrm.rm == 5;
	return classify(&z, addr, x);
}

enum plan_refusal plan_decode(const uint8_t *code, size_t avail, uint64_t addr,
                              struct plan_insn *insn)
{
	struct x86_insn x;
	enum plan_refusal why = x86_decode(code, avail, addr, &x);

	*insn = x.p;
	return why;
}

unsigned int plan_sigreturn(const uint8_t *code, size_t avail)
{
	static const uint8_t rax[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t eax[] = { 0xb8, 15, 0, 0, 0, 0x0f, 0x05 };

	if (avail >= sizeof(rax) && !memcmp(code, rax, sizeof(rax)))
		return sizeof(rax) - 2;
	if (avail >= sizeof(eax) && !memcmp(code, eax, sizeof(eax)))
		return sizeof(eax) - 2;
	return 0;
}
