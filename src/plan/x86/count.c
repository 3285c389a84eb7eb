/* SPDX-License-Identifier: MIT */
/*
 * Counting entries.
 *
 * Flags are kept by lahf and seto, a sixth of what pushfq and popfq take; DF is
 * not touched.  The registers lie where struct pt_regs has them, so that the map
 * reads as that of other entries.  The add is locked: between finding out the
 * CPU and adding, the thread may have moved, and then another may add there too.
 */
#include "plan/x86/count.h"

enum { WORDS = 24 }; /* red zone, and struct pt_regs down to dx */

struct entry {
	struct gen *g;
	uint64_t orig;
	unsigned int words;
};

#define PUT(e, ...)                                                     \
	do {                                                            \
		GEN((e)->g, __VA_ARGS__);                               \
		gen_mark((e)->g, (e)->orig, (e)->words, UKP_PC_BEFORE); \
	} while (0)

static void load(struct entry *e, uint8_t reg, uint64_t imm)
{
	GEN(e->g, 0x48, (uint8_t)(0xb8 | reg));
	gen_put64(e->g, imm);
	gen_mark(e->g, e->orig, e->words, UKP_PC_BEFORE);
}

/* The largest power of two that is no more than n, as its exponent. */
static unsigned int bits_of(uint32_t n)
{
	unsigned int bits = 0;

	while (n > 1) {
		n /= 2;
		bits++;
	}
	return bits;
}

/*
 * rcx = the offset of a counter.  Stacks of threads are at least 128 KiB apart;
 * which shard one gets is a hash, for they may all be 8 MiB apart, too.
 */
static void shard(struct entry *e, const struct plan_count *c)
{
	const unsigned int bits = bits_of(c->shards);

	if (c->rdpid) {
		PUT(e, 0xf3, 0x0f, 0xc7, 0xf9); /* rdpid %rcx */
	} else {
		PUT(e, 0x48, 0x89, 0xe1);                   /* mov %rsp,%rcx */
		PUT(e, 0x48, 0xc1, 0xe9, 17);               /* shr */
		PUT(e, 0x69, 0xc9, 0xb1, 0x79, 0x37, 0x9e); /* imul, golden ratio */
		PUT(e, 0xc1, 0xe9, 26);                     /* shr */
	}
	PUT(e, 0x83, 0xe1, (uint8_t)((1u << (bits < 6 ? bits : 6)) - 1)); /* and */
	GEN(e->g, 0x48, 0x69, 0xc9);                                      /* imul $stride */
	gen_put32(e->g, (uint32_t)c->stride);
	gen_mark(e->g, e->orig, e->words, UKP_PC_BEFORE);
}

void count_entry(struct gen *g, const struct plan_count *c, uint64_t cell, uint64_t orig)
{
	struct entry e = { g, orig, 0 };
	unsigned int dead, none;

	gen_mark(g, orig, 0, UKP_PC_BEFORE);
	e.words = WORDS;
	GEN(g, 0x48, 0x8d, 0xa4, 0x24);
	gen_put32(g, (uint32_t) - (8 * WORDS));
	gen_mark(g, orig, e.words, UKP_PC_BEFORE);
	e.words++;
	PUT(&e, 0x52);
	e.words++;
	PUT(&e, 0x51);
	e.words++;
	PUT(&e, 0x50);
	PUT(&e, 0x9f);             /* lahf */
	PUT(&e, 0x0f, 0x90, 0xc0); /* seto %al */
	load(&e, 2, cell);
	PUT(&e, 0x48, 0x8b, 0x12); /* mov (%rdx),%rdx */
	load(&e, 1, c->alive);
	PUT(&e, 0x48, 0x83, 0x39, 0); /* cmpq $0,(%rcx) */
	PUT(&e, 0x74, 0);
	dead = g->n;
	PUT(&e, 0x48, 0x85, 0xd2); /* test %rdx,%rdx */
	PUT(&e, 0x74, 0);
	none = g->n;
	shard(&e, c);
	PUT(&e, 0xf0, 0x48, 0xff, 0x04, 0x0a); /* lock incq (%rdx,%rcx) */
	gen_short(g, dead);
	gen_short(g, none);
	PUT(&e, 0x04, 0x7f); /* add $127,%al: OF as seto found it */
	PUT(&e, 0x9e);       /* sahf */
	e.words--;
	PUT(&e, 0x58);
	e.words--;
	PUT(&e, 0x59);
	e.words--;
	PUT(&e, 0x5a);
	GEN(g, 0x48, 0x8d, 0xa4, 0x24);
	gen_put32(g, 8 * WORDS);
}
