/* SPDX-License-Identifier: MIT */
/*
 * Generating code: bytes, a map of their boundaries, and relocated
 * instructions.
 *
 * A generator never writes past its buffer or its map: what doesn't fit sets
 * why, and so does what can't be reached.  Look at why once, at the end.
 */
#ifndef UKP_PLAN_X86_GEN_H
#define UKP_PLAN_X86_GEN_H

#include "plan/x86/insn.h"

struct gen_pc {
	uint16_t off;
	uint8_t flags;
	uint8_t words; /* sp is so many words lower than the original */
	int32_t delta;
};

/* Where an instruction goes on that has run straight through. */
enum gen_exit {
	GEN_BACK, /* to the original code behind it */
	GEN_POST, /* to the post handler's stub */
	GEN_FALL, /* to what is generated next */
};

struct gen {
	uint8_t *buf;
	unsigned int n, size;
	uint64_t at;   /* address of buf, when it runs */
	uint64_t base; /* what the map counts from */
	struct gen_pc *pc;
	unsigned int npc, room;
	enum plan_refusal why;
	/* The instruction that is relocated. */
	const uint8_t *code;
	struct x86_insn x;
	uint64_t addr, next;
	enum gen_exit exit;
	uint64_t post;
	bool scratch; /* the map can say that a register is in memory: far operands can be had */
};

void gen_put(struct gen *g, const void *bytes, unsigned int n);
#define GEN(g, ...) \
	gen_put(g, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))
void gen_put32(struct gen *g, uint64_t v);
void gen_put64(struct gen *g, uint64_t v);

/* From here on a thread stands at original pc orig, its sp being words lower than there. */
void gen_mark(struct gen *g, uint64_t orig, unsigned int words, unsigned int flags);
/* Displacement to an address from the end of n more bytes. */
bool gen_reaches(const struct gen *g, uint64_t to, unsigned int n, int32_t *rel);
/* Make the rel8 that ends at from lead here. */
void gen_short(struct gen *g, unsigned int from);
/* The same of a rel32. */
void gen_near(struct gen *g, unsigned int from);
void gen_jump(struct gen *g, uint64_t to);
/* The way on from g->next, sp being words lower than the original. */
void gen_leave(struct gen *g, unsigned int words);
/* Is the rip operand of the copy out of reach?  gen_far() generates all of it then (far.c). */
bool gen_is_far(const struct gen *g);
void gen_far(struct gen *g);
/* Code that does what g->x at g->addr would do there, marks included. */
void gen_insn(struct gen *g);

#endif
