/* SPDX-License-Identifier: MIT */
/* What an instruction means for the search of exits. */
#include "plan/exits_in.h"
#include "plan/x86/brief.h"

#define RSP 4

static const int8_t dwarf[16] = { -1, -1, -1, -1, 7, 6, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 };

static unsigned int group(const struct brief *b)
{
	return b->modrm >> 3 & 7;
}

static enum step_kind kind_one(const struct brief *b)
{
	switch (b->op) {
	case 0xe8:
		return STEP_CALL;
	case 0xe9:
	case 0xeb:
		return STEP_JUMP;
	case 0x70 ... 0x7f:
	case 0xe0 ... 0xe3:
		return STEP_BRANCH;
	case 0xc2:
	case 0xc3:
		return STEP_RET;
	case 0xca:
	case 0xcb:
	case 0xcf:
		return STEP_FAR;
	case 0xf4:
		return STEP_STOP;
	case 0xff:
		if (group(b) == 3 || group(b) == 5)
			return STEP_FAR;
		return group(b) == 2 ? STEP_CALL_AWAY : group(b) == 4 ? STEP_JUMP_AWAY : STEP_ON;
	default:
		return b->relative ? STEP_BRANCH : STEP_ON; /* xbegin: to where it aborts */
	}
}

static enum step_kind kind_of(const struct brief *b)
{
	if (b->map == BRIEF_ONE)
		return kind_one(b);
	if (b->map != BRIEF_0F)
		return b->relative ? STEP_BRANCH : STEP_ON;
	switch (b->op) {
	case 0x80 ... 0x8f:
		return STEP_BRANCH;
	case 0x0b:
		return STEP_STOP;
	case 0x07: /* sysret, sysexit */
	case 0x35:
		return STEP_FAR;
	default:
		return STEP_ON;
	}
}

static bool is_lea(const struct brief *b)
{
	return b->map == BRIEF_ONE && b->op == 0x8d;
}

/* 0: none */
static uint64_t made_address(const struct brief *b, bool fixed)
{
	if (is_lea(b) && brief_is_rip(b))
		return brief_next(b) + (uint64_t)(int64_t)b->disp;
	if (!fixed)
		return 0;
	if (is_lea(b) && brief_is_memory(b))
		return (uint64_t)(int64_t)b->disp;
	return !b->relative && b->imm_size >= 4 ? (uint64_t)b->imm : 0;
}

static void operand(const struct brief *b, struct step *s)
{
	s->base = -1;
	/* nop has none; lea to rsp moves the stack. */
	if (!brief_is_memory(b) || brief_index(b) >= 0 || brief_base(b) < 0 ||
	    (b->map == BRIEF_0F && b->op == 0x1f) || (is_lea(b) && brief_reg(b) == RSP))
		return;
	s->base = dwarf[brief_base(b)];
	s->disp = b->disp;
}

/* The register that an instruction writes, -1: none of those looked at; *arithmetic: how. */
static int written(const struct brief *b, bool *arithmetic)
{
	const bool is_reg = b->has_modrm && b->modrm >= 0xc0;

	*arithmetic = false;
	if (b->map == BRIEF_0F)
		return (b->op & 0xf6) == 0xb6 ? (int)brief_reg(b) : -1; /* movzx, movsx */
	if (b->map != BRIEF_ONE)
		return -1;
	if (b->op >= 0x58 && b->op <= 0x5f) /* pop */
		return (b->op & 7) | (b->rex & 1) << 3;
	if (b->op >= 0xb8 && b->op <= 0xbf)
		return (b->op & 7) | (b->rex & 1) << 3;
	if (b->op == 0x8b || b->op == 0x63)
		return (int)brief_reg(b);
	if (b->op == 0x89)
		return is_reg ? (int)brief_rm(b) : -1;
	*arithmetic = true;
	if (is_lea(b)) {
		*arithmetic = !brief_is_rip(b);
		return (int)brief_reg(b);
	}
	if (b->op < 0x38 && (b->op & 6) < 4) /* add to xor */
		return b->op & 2 ? (int)brief_reg(b) : is_reg ? (int)brief_rm(b) : -1;
	if (b->op == 0x69 || b->op == 0x6b)
		return (int)brief_reg(b);
	if ((b->op == 0x81 || b->op == 0x83) && group(b) == 7)
		return -1;
	if (b->op == 0x81 || b->op == 0x83 || (b->op & 0xfe) == 0xc0 || (b->op & 0xfc) == 0xd0)
		return is_reg ? (int)brief_rm(b) : -1;
	return -1;
}

static void remember(const struct brief *b, struct step_memory *mem)
{
	bool arithmetic, copied = b->map == BRIEF_ONE && (b->op == 0x89 || b->op == 0x8b) &&
	                          b->has_modrm && b->modrm >= 0xc0;
	const int reg = written(b, &arithmetic);

	if (reg < 0)
		return;
	if (copied)
		arithmetic = mem->computed >> (b->op == 0x89 ? brief_reg(b) : brief_rm(b)) & 1;
	mem->computed &= (uint16_t) ~(1U << reg);
	mem->computed |= (uint16_t)((unsigned int)arithmetic << reg);
}

bool exits_step(const uint8_t *code, size_t avail, uint64_t addr, bool fixed,
                struct step_memory *mem, struct step *s)
{
	struct brief b;

	if (!brief_decode(code, avail, addr, &b))
		return false;
	*s = (struct step){
		.addr = addr,
		.len = b.len,
		.kind = (uint8_t)kind_of(&b),
		.target = b.relative ? brief_target(&b) : 0,
		.made = made_address(&b, fixed),
	};
	operand(&b, s);
	exits_step_stack(&b, code, s);
	if (s->kind == STEP_RET && b.op == 0xc2)
		s->pops = (uint16_t)b.imm;
	if (s->kind == STEP_JUMP_AWAY)
		s->computed = b.odd || (!brief_is_memory(&b) && mem->computed >> brief_rm(&b) & 1);
	remember(&b, mem);
	return true;
}
