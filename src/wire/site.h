/* SPDX-License-Identifier: MIT */
/*
 * A probed instruction and the code generated for it, as the planner describes
 * them and as the engine reads them on a hit.
 *
 *   text   ... cc yy zz ...            slot   xx yy zz   e9 .. .. .. ..
 *              ^ addr, len 3                  ^ slot     ^ back to addr + len
 *
 * The PC map says, for each instruction boundary inside the generated code,
 * which original PC it stands for and what to add to sp to have the original
 * sp there.  Fault translation, parking and unwinding read nothing else.
 *
 * Who writes: the planner's caller (broker or library), before the site is
 * published.  Who reads: the engine on a hit, at any time.  Nothing changes
 * afterwards but action (published with release), LEFT and the two counters.
 */
#ifndef UKP_WIRE_SITE_H
#define UKP_WIRE_SITE_H

#include <stdbool.h>
#include <stdint.h>

#define UKP_INSN_MAX 15
#define UKP_SLOT_SIZE 64 /* bytes of generated code a site, at most */
#define UKP_SITE_PCS 8

/*
 * One boundary: at slot + off the original thread would have pc = addr +
 * delta and sp = sp + sp_adj, its registers as they are but for one, perhaps.
 */
struct ukp_pc {
	uint8_t off;
	uint8_t flags; /* UKP_PC_* */
	int16_t sp_adj;
	int32_t delta;
};

#define UKP_PC_BEFORE 1 /* the original instruction has not run yet */
#define UKP_PC_AFTER 2  /* it has */
#define UKP_PC_SAVED 8  /* the word at sp is what register number flags >> 4 would have */
#define UKP_PC_REG_SHIFT 4

enum {
	UKP_SITE_CONTROL = 1,    /* changes control flow: no fall-through exit */
	UKP_SITE_POST = 2,       /* the slot ends in the post-handler stub */
	UKP_SITE_GONE = 4,       /* its text was unmapped */
	UKP_SITE_INTERNAL = 8,   /* planted for ourselves, listed by nobody */
	UKP_SITE_JUMP_ONLY = 16, /* never a breakpoint: one there is not ours */
	UKP_SITE_LIVE = 32,      /* its text is its program's to rewrite, see live.h */
	UKP_SITE_LEFT = 64, /* LIVE: it is over, but a breakpoint stands there that may be ours */
};

struct ukp_site {
	uint64_t addr;   /* of the probed instruction */
	uint64_t slot;   /* of its out-of-line copy */
	uint32_t action; /* first action, offset in the control area; 0: none */
	uint8_t len;     /* of the original instruction */
	uint8_t slot_len;
	uint8_t npc;
	uint8_t flags;                  /* UKP_SITE_* */
	uint8_t orig[UKP_INSN_MAX + 1]; /* LIVE: with what follows it, else zeros */
	uint64_t nmissed;               /* hits that ran no action */
	/*
	 * The jump form.  resume: where a trap goes on instead of the slot, once
	 * the detour is there: its copy leads beyond all that the jump covers.
	 */
	uint64_t resume;
	/* A detour that is not in struct ukp_ctl's list: offsets of it and its shape; 0: none. */
	uint32_t detour;
	uint32_t shape;
	/*
	 * For entries that count by themselves: the address of shard 0 of the
	 * counter of the one probe there is; 0: don't.
	 */
	uint64_t counter;
	struct ukp_pc pc[UKP_SITE_PCS];
};

struct ukp_site_frame {
	uint64_t pc, sp; /* the original ones */
	uint32_t flags;  /* UKP_PC_* */
	uint32_t reg;    /* SAVED: the register that is in memory, as the hardware numbers it */
};

/*
 * What a thread at pc in a slot, with sp, would be in the original code.
 * False: no boundary.  Calls nothing and touches only its arguments: it is used
 * in signal handlers and on sites that lie in memory shared with a target.
 */
static inline bool ukp_site_frame(const struct ukp_site *site, uint64_t pc, uint64_t sp,
                                  struct ukp_site_frame *frame)
{
	unsigned int npc = site->npc < UKP_SITE_PCS ? site->npc : UKP_SITE_PCS;

	if (pc - site->slot >= UKP_SLOT_SIZE)
		return false;
	for (unsigned int i = 0; i < npc; i++) {
		const struct ukp_pc *p = &site->pc[i];

		if (pc - site->slot != p->off)
			continue;
		frame->pc = site->addr + (uint64_t)(int64_t)p->delta;
		frame->sp = sp + (uint64_t)(int64_t)p->sp_adj;
		frame->flags = p->flags & ((1u << UKP_PC_REG_SHIFT) - 1);
		frame->reg = p->flags >> UKP_PC_REG_SHIFT;
		return true;
	}
	return false;
}

#endif
