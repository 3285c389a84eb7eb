/* SPDX-License-Identifier: MIT */
/*
 * What an instruction does to the stack pointer, for code that no CFI describes.
 *
 * Whatever writes rsp or rbp in a way that isn't understood loses it; where it
 * can't be told from the few fields of struct brief what is written, all that
 * might be is taken for written.
 */
#include "plan/exits_in.h"
#include "plan/x86/brief.h"

#define RSP 4
#define RBP 5

static unsigned int group(const struct brief *b)
{
	return b->modrm >> 3 & 7;
}

static bool is_reg_form(const struct brief *b)
{
	return b->has_modrm && b->modrm >= 0xc0;
}

/* The register that the opcode's low bits name. */
static unsigned int low(const struct brief *b)
{
	return (b->op & 7) | (b->rex & 1) << 3;
}

/* Of one-byte opcodes: those that write their r/m operand, or the register of modrm. */
static bool writes_rm(const struct brief *b)
{
	switch (b->op) {
	case 0x00 ... 0x37:
		return (b->op & 7) < 2;
	case 0x80 ... 0x83:
		return group(b) != 7;
	case 0x86 ... 0x89:
	case 0x8c:
	case 0x8f:
	case 0xc0 ... 0xc1:
	case 0xc6 ... 0xc7:
	case 0xd0 ... 0xd3:
		return true;
	case 0xf6 ... 0xf7:
		return group(b) == 2 || group(b) == 3;
	case 0xfe ... 0xff:
		return group(b) < 2;
	default:
		return false;
	}
}

static bool writes_reg(const struct brief *b)
{
	switch (b->op) {
	case 0x00 ... 0x37:
		return (b->op & 7) == 2 || (b->op & 7) == 3;
	case 0x63:
	case 0x69:
	case 0x6b:
	case 0x86 ... 0x87:
	case 0x8a ... 0x8b:
	case 0x8d:
		return true;
	default:
		return false;
	}
}

/* May it write a general register? */
static bool writes(const struct brief *b, unsigned int reg)
{
	if (b->map != BRIEF_ONE) {
		if (b->map == BRIEF_0F && (b->op & 0xf8) == 0xc8) /* bswap */
			return low(b) == reg;
		/* Vector registers have the same numbers: no matter. */
		return b->map == BRIEF_0F && (b->op & 0xf0) == 0x80
		               ? false
		               : b->has_modrm && (brief_reg(b) == reg ||
		                                  (is_reg_form(b) && brief_rm(b) == reg));
	}
	if ((b->op >= 0x90 && b->op <= 0x97) || (b->op >= 0xb0 && b->op <= 0xbf))
		return low(b) == reg;
	return (is_reg_form(b) && writes_rm(b) && brief_rm(b) == reg) ||
	       (b->has_modrm && writes_reg(b) && brief_reg(b) == reg);
}

static void moves(struct step *s, uint8_t kind, int64_t by)
{
	s->sp = kind;
	s->sp_by = (int32_t)by;
}

/* push, pop and their kin; false: none of them. */
static bool by_words(const struct brief *b, struct step *s)
{
	if ((b->op >= 0x50 && b->op <= 0x57) || b->op == 0x68 || b->op == 0x6a || b->op == 0x9c ||
	    (b->op == 0xff && group(b) == 6)) {
		moves(s, STACK_BY_SP, -8);
	} else if ((b->op >= 0x58 && b->op <= 0x5f) || b->op == 0x8f || b->op == 0x9d) {
		const bool mod = b->op == 0x8f;
		const int reg = mod             ? (is_reg_form(b) ? (int)brief_rm(b) : -1)
		                : b->op == 0x9d ? -1
		                                : (int)low(b);

		moves(s, reg == RSP ? STACK_LOST : STACK_BY_SP, 8);
		s->fp = reg == RBP ? STACK_LOST : STACK_KEPT;
	} else if (b->op == 0xc9) { /* leave */
		moves(s, STACK_BY_FP, 8);
		s->fp = STACK_LOST;
	} else if (b->op == 0xc8) { /* enter */
		moves(s, STACK_LOST, 0);
		s->fp = STACK_LOST;
	} else {
		return false;
	}
	return true;
}

/* Moves and sums of 64 bits between the two; false: none of them. */
static bool by_sums(const struct brief *b, struct step *s)
{
	const bool is_reg = is_reg_form(b), sum = b->op == 0x81 || b->op == 0x83;
	unsigned int to, from;

	if (!(b->rex & 8))
		return false;
	if (sum && is_reg && brief_rm(b) == RSP && (group(b) == 0 || group(b) == 5)) {
		moves(s, STACK_BY_SP, group(b) ? -b->imm : b->imm);
		return true;
	}
	if (b->op == 0x8d && brief_is_memory(b) && brief_index(b) < 0) {
		to = brief_reg(b);
		from = brief_base(b) < 0 ? 16 : (unsigned int)brief_base(b);
	} else if (is_reg && (b->op == 0x89 || b->op == 0x8b)) {
		to = b->op == 0x89 ? brief_rm(b) : brief_reg(b);
		from = b->op == 0x89 ? brief_reg(b) : brief_rm(b);
	} else {
		return false;
	}
	if ((to != RSP && to != RBP) || (from != RSP && from != RBP))
		return false;
	if (to == RSP) {
		moves(s, from == RSP ? STACK_BY_SP : STACK_BY_FP, b->op == 0x8d ? b->disp : 0);
	} else {
		s->fp = from == RSP ? STACK_BY_SP : STACK_BY_FP;
		s->fp_by = b->op == 0x8d ? b->disp : 0;
	}
	return true;
}

void exits_step_stack(const struct brief *b, const uint8_t *code, struct step *s)
{
	const bool known = b->map == BRIEF_ONE && !b->odd && (by_words(b, s) || by_sums(b, s));

	/* With the prefix 66 it is words of two bytes, or half of the register. */
	if (known && code[0] != 0x66)
		return;
	if (known || writes(b, RSP))
		s->sp = STACK_LOST;
	if (known || writes(b, RBP))
		s->fp = STACK_LOST;
}
