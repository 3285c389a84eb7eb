/* SPDX-License-Identifier: MIT */
/*
 * A jump-form window and its detour, as the planner describes them and as
 * whoever translates a pc reads them.
 *
 *	text	e9 .. .. .. ..		the window: its first instructions
 *	detour	[entry] copy0 [entry] copy1 ... jmp back; tail; call; constants
 *
 * The jump takes five bytes; a window may be longer, and what lies behind them
 * keeps its bytes in the text.
 *
 * An entry stands before the copy of each covered instruction that has a
 * probe.  It makes room below the red zone, pushes the words of struct pt_regs
 * that the form asks for, calls the engine (or counts) and undoes all of it.  Entries of
 * one form are the same but for constants, so their map is a shape that all
 * detours of the form share; a detour's own map has the rest: copies, the way
 * back and the tail.
 *
 * How a frame is described, at each generated instruction boundary:
 *
 * - original sp = sp + 8 * words.  The CFA follows from it and the original
 *   pc, as it would in the original code.
 * - word i of struct pt_regs (0 is r15, 20 is ss) lies, while it is pushed, at
 *   original sp - 296 + 8 * i.  A register whose bit is in saves and whose word
 *   is at or above sp has its original value there and may hold anything; each
 *   other register has its original value.  A word below sp counts for nothing.
 * - UKP_PC_MOVED: the engine changed the flow.  pc and sp are words 16 and 19
 *   of the frame at original sp - 296, and flags and registers are there too
 *   while at or above sp.
 * - UKP_PC_CALLS: the engine wants the function called in place.  As before the
 *   first instruction, but for the instance that waits for its return: a thread
 *   has to go on from here.
 * - UKP_PC_CALLED, with it: the word at the original sp holds the address of the
 *   copy.  The return address is in the instance whose stub's way in is word 20 of
 *   the frame.  The same holds at the way in.
 *
 * Read only after they are published; nothing in here changes.
 */
#ifndef UKP_WIRE_DETOUR_H
#define UKP_WIRE_DETOUR_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/site.h"

#define UKP_WINDOW_INSNS 8  /* a jump covers at most five, and takes some more along */
#define UKP_DETOUR_PCS 144  /* a detour's own boundaries, at most */
#define UKP_SHAPE_PCS 72    /* an entry's */
#define UKP_DETOUR_WORDS 21 /* of struct pt_regs */
#define UKP_DETOUR_FRAME (128 + 8 * UKP_DETOUR_WORDS)

/* With neither of UKP_PC_BEFORE and _AFTER: */
#define UKP_PC_MOVED 4
#define UKP_PC_CALLS 8
#define UKP_PC_CALLED 16

struct ukp_detour_pc {
	uint16_t off;
	uint8_t flags; /* UKP_PC_* */
	uint8_t words; /* original sp - sp, in words */
	int32_t delta; /* original pc - the window's addr, in a shape - the instruction's */
};

/* The map of an entry; one for each form that is in use. */
struct ukp_detour_shape {
	uint32_t saves; /* bit i: word i of struct pt_regs */
	uint16_t len;
	uint8_t npc;
	uint8_t flags; /* UKP_DETOUR_* of the form */
	struct ukp_detour_pc pc[UKP_SHAPE_PCS];
};

enum {
	UKP_DETOUR_FLOW = 1, /* a nonzero answer of the engine is honoured */
	UKP_DETOUR_NEAR = 2, /* the engine is called by rel32 */
	/*
	 * Entries count by themselves.  In them flags are of no account: they
	 * are in ax meanwhile, and nothing else is done with them.
	 */
	UKP_DETOUR_COUNT = 4,
	UKP_DETOUR_CALL = 8, /* an answer below zero calls in place */
};

struct ukp_detour_insn {
	uint8_t off; /* from the window's start */
	uint8_t len;
	uint16_t entry; /* of its probe, in the detour; 0xffff: it has none */
	uint16_t copy;
};

#define UKP_DETOUR_NO_ENTRY 0xffff

/* Followed by its map: npc times struct ukp_detour_pc, ascending. */
struct ukp_detour {
	uint64_t addr;         /* of the window */
	uint64_t buf;          /* of the detour */
	uint32_t shape;        /* for whoever stores both: where the shape is */
	uint16_t size;         /* of the detour */
	uint8_t len;           /* of the covered instructions */
	uint8_t nr;            /* of covered instructions */
	uint8_t npc;           /* of the map */
	uint8_t after_syscall; /* length of a syscall that is the last of them, or 0 */
	uint8_t jump[5];       /* what is written to addr */
	uint8_t orig[5];       /* what was there */
	struct ukp_detour_insn insn[UKP_WINDOW_INSNS];
	uint32_t next; /* for whoever stores it: the next one of struct ukp_ctl's list */
};

static inline const struct ukp_detour_pc *ukp_detour_map(const struct ukp_detour *d)
{
	return (const struct ukp_detour_pc *)(d + 1);
}

struct ukp_detour_frame {
	uint64_t pc, sp; /* the original ones; MOVED: sp is that of the window */
	uint32_t saved;  /* words that have the original value of their register */
	uint32_t flags;  /* UKP_PC_* */
	uint64_t regs;   /* address of the frame's struct pt_regs, for the words in saved */
};

static inline const struct ukp_detour_pc *ukp_detour_search(const struct ukp_detour_pc *pc,
                                                            unsigned int n, uint64_t off)
{
	unsigned int low = 0;

	while (low < n) {
		unsigned int mid = low + (n - low) / 2;

		if (pc[mid].off == off)
			return &pc[mid];
		if (pc[mid].off < off)
			low = mid + 1;
		else
			n = mid;
	}
	return 0;
}

/* What a thread at pc in a detour, with sp, would be in the original code.  False: no boundary. */
static inline bool ukp_detour_frame(const struct ukp_detour *d,
                                    const struct ukp_detour_shape *shape, uint64_t pc, uint64_t sp,
                                    struct ukp_detour_frame *frame)
{
	uint64_t off = pc - d->buf, base = 0, deepest = UKP_DETOUR_FRAME / 8;
	const struct ukp_detour_pc *p = 0;

	if (off >= d->size)
		return false;
	for (unsigned int i = 0; i < d->nr && i < UKP_WINDOW_INSNS; i++) {
		if (off - d->insn[i].entry >= shape->len)
			continue;
		p = ukp_detour_search(shape->pc, shape->npc, off - d->insn[i].entry);
		base = d->insn[i].off;
		break;
	}
	if (!p)
		p = ukp_detour_search(ukp_detour_map(d), d->npc, off);
	if (!p)
		return false;
	frame->pc = d->addr + base + (uint64_t)(int64_t)p->delta;
	frame->sp = sp + 8ull * p->words;
	frame->flags = p->flags;
	frame->regs = frame->sp - UKP_DETOUR_FRAME;
	frame->saved = 0;
	for (uint64_t w = 16; w < p->words && w < deepest; w++)
		frame->saved |= shape->saves & 1u << (deepest - 1 - w);
	return true;
}

/*
 * A thread that stands in the window, at pc, when the jump is written there:
 * where it goes on.  0: nowhere, it stands inside an instruction.  pc itself
 * is returned where it can stay.
 *
 * A thread in a system call stands behind it; to restart the call, the kernel
 * goes back two bytes.  So it is moved also from the end of the window, to a
 * place in the copy that has the instruction before it.
 */
static inline uint64_t ukp_detour_park(const struct ukp_detour *d, uint64_t pc)
{
	uint64_t off = pc - d->addr;

	if (!off || off > d->len)
		return pc;
	if (off == d->len)
		return d->after_syscall ? d->buf + d->insn[d->nr - 1].copy + d->after_syscall : pc;
	for (unsigned int i = 0; i < d->nr && i < UKP_WINDOW_INSNS; i++)
		if (d->insn[i].off == off)
			return d->buf + (d->insn[i].entry != UKP_DETOUR_NO_ENTRY ? d->insn[i].entry
			                                                         : d->insn[i].copy);
	return 0;
}

#endif
