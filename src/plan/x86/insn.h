/* SPDX-License-Identifier: MIT */
/*
 * A decoded x86-64 instruction as the copier needs it: what plan_decode() tells,
 * and where in the bytes the parts lie that a copy changes.
 */
#ifndef UKP_PLAN_X86_INSN_H
#define UKP_PLAN_X86_INSN_H

#include "plan/plan.h"

/* Register numbers as the hardware encodes them. */
enum {
	X86_RCX = 1,
	X86_RSP = 4,
	X86_RIP = 16,
};

struct x86_insn {
	struct plan_insn p;
	uint8_t opcode;
	uint8_t modrm;     /* offset; 0: none */
	uint8_t disp;      /* offset; 0: none */
	uint8_t disp_size; /* bytes */
	bool rip;          /* the displacement is relative to the next instruction */
	bool addr32;       /* prefix 67 */
	bool nop;          /* nop, of any length */
	bool traps;        /* ud2, hlt: never goes on */
};

/*
 * On a refusal x->p.len is set nonetheless, so that one can go on behind the
 * instruction, or 0 where its length is unknown or depends on the CPU's maker.
 */
enum plan_refusal x86_decode(const uint8_t *code, size_t avail, uint64_t addr, struct x86_insn *x);

#endif
