/* SPDX-License-Identifier: MIT */
/*
 * Decoding for whole modules: an instruction's length and the few fields that
 * a search for branch targets reads, several times as fast as x86_decode().
 *
 * What compilers emit most is decoded by tables here, the rest by Zydis; a test
 * holds the two against each other.
 */
#ifndef UKP_PLAN_X86_BRIEF_H
#define UKP_PLAN_X86_BRIEF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum brief_map {
	BRIEF_ONE,   /* one-byte opcodes */
	BRIEF_0F,    /* two-byte opcodes */
	BRIEF_OTHER, /* none that matters for control flow */
};

struct brief {
	uint64_t addr;
	int64_t imm;  /* sign-extended */
	int32_t disp; /* of the memory operand */
	uint8_t len;
	uint8_t map;
	uint8_t op;
	uint8_t rex;
	uint8_t modrm;
	uint8_t sib; /* where modrm has one */
	uint8_t imm_size;
	bool has_modrm;
	bool relative; /* imm counts from the next instruction */
	bool odd;      /* has other prefixes than REX, 66, F2, F3 */
};

/* False: undecodable, or its length depends on the CPU's maker. */
bool brief_decode(const uint8_t *code, size_t avail, uint64_t addr, struct brief *b);
/* The same by Zydis alone. */
bool brief_decode_slow(const uint8_t *code, size_t avail, uint64_t addr, struct brief *b);

static inline uint64_t brief_next(const struct brief *b)
{
	return b->addr + b->len;
}

static inline uint64_t brief_target(const struct brief *b)
{
	return b->addr + b->len + (uint64_t)b->imm;
}

static inline bool brief_is_memory(const struct brief *b)
{
	return b->has_modrm && b->modrm < 0xc0;
}

static inline bool brief_is_rip(const struct brief *b)
{
	return b->has_modrm && (b->modrm & 0xc7) == 5;
}

static inline unsigned int brief_reg(const struct brief *b)
{
	return (b->modrm >> 3 & 7) | (b->rex & 4) << 1;
}

/* Of a register operand. */
static inline unsigned int brief_rm(const struct brief *b)
{
	return (b->modrm & 7) | (b->rex & 1) << 3;
}

static inline bool brief_has_sib(const struct brief *b)
{
	return brief_is_memory(b) && (b->modrm & 7) == 4;
}

/* -1: none */
static inline int brief_base(const struct brief *b)
{
	if (brief_has_sib(b))
		return (b->sib & 7) == 5 && b->modrm < 0x40 ? -1 : (b->sib & 7) | (b->rex & 1) << 3;
	return brief_is_rip(b) ? -1 : (int)brief_rm(b);
}

static inline int brief_index(const struct brief *b)
{
	unsigned int i = (b->sib >> 3 & 7) | (b->rex & 2) << 2;

	return brief_has_sib(b) && i != 4 ? (int)i : -1;
}

static inline unsigned int brief_scale(const struct brief *b)
{
	return 1U << (b->sib >> 6);
}

#endif
