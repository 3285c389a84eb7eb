/* SPDX-License-Identifier: MIT */
/*
 * The planner: bytes and addresses in, a plan out.  Pure: no I/O, no process,
 * no state; any thread may call it.  Bytes may be foreign and hostile.
 */
#ifndef UKP_PLAN_PLAN_H
#define UKP_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/site.h"
#include "ukprobes/pt_regs.h"

/* Why an instruction can't be probed; plan_reason() has the words. */
enum plan_refusal {
	PLAN_OK,
	PLAN_UNDECODABLE,   /* -EILSEQ */
	PLAN_NOT_BOUNDARY,  /* -EILSEQ: inside an instruction */
	PLAN_BREAKPOINT,    /* -EILSEQ: int3, int1 or int n is there already */
	PLAN_STACK_SEGMENT, /* -EINVAL: mov ss / pop ss */
	PLAN_OUT_OF_REACH,  /* -ENOSPC: a rip operand can't be had from where the copy is */
	PLAN_STACK_CALL,    /* -EOPNOTSUPP: call through memory that its own push overwrites,
	                       or call *%rsp */
	PLAN_BRANCH_PREFIX, /* -EOPNOTSUPP: 16-bit branch, rep loope or loopne */
	PLAN_FAR,           /* -EOPNOTSUPP: far call, jmp or ret, iret, sysret, ... */
	PLAN_XBEGIN,        /* -EOPNOTSUPP: transactions abort in the copy */
	PLAN_TOO_LONG,      /* -ENOSPC: generated code does not fit its slot */
	PLAN_REFUSALS,
};

int plan_errno(enum plan_refusal why);
const char *plan_reason(enum plan_refusal why);

/*
 * Control flow as data, for a caller that must know where a control-flow
 * instruction goes (post handlers run after it).
 */
enum plan_flow {
	PLAN_FLOW_NONE,
	PLAN_FLOW_JMP,      /* to target */
	PLAN_FLOW_JCC,      /* cond: low nibble of the opcode */
	PLAN_FLOW_LOOP,     /* cond: 0 loopne, 1 loope, 2 loop, 3 j(e/r)cxz */
	PLAN_FLOW_CALL,     /* to target */
	PLAN_FLOW_JMP_IND,  /* to the operand */
	PLAN_FLOW_CALL_IND, /* to the operand */
	PLAN_FLOW_RET,      /* imm: bytes popped after the address */
};

struct plan_insn {
	uint8_t len;
	uint8_t flow; /* enum plan_flow */
	uint8_t cond;
	uint8_t ecx; /* LOOP: counts in ecx, not rcx */
	uint16_t imm;
	bool mem;    /* *_IND: the operand is in memory */
	int8_t reg;  /* *_IND: register number 0..15 when !mem */
	int8_t base; /* memory operand: register numbers, -1 none, 16 rip */
	int8_t index;
	uint8_t scale;
	uint8_t seg;     /* 0, or 'f', 'g' */
	bool addr32;     /* effective address is truncated to 32 bits */
	int64_t disp;    /* for rip: the absolute address */
	uint64_t target; /* JMP, JCC, LOOP, CALL */
	bool is_syscall;
};

/*
 * Decode one instruction.  avail may be less than 15.  On a refusal insn->len
 * is the length all the same, or 0 where it is unknown or depends on the CPU's
 * maker (16-bit branches).
 */
enum plan_refusal plan_decode(const uint8_t *code, size_t avail, uint64_t addr,
                              struct plan_insn *insn);

/*
 * Is addr an instruction boundary of the code that starts at func?  code holds
 * size bytes from func on.  Linear decode, the kernel's way: what can't be
 * probed is passed over, what can't be decoded is the refusal.  Whether the
 * instruction at addr itself can be probed is for plan_copy() to say.
 */
enum plan_refusal plan_boundary(const uint8_t *code, size_t size, uint64_t func, uint64_t addr);

/*
 * Does code begin with what signal handlers return through: mov $15,%rax (or
 * %eax); syscall?  Unwinders know it by these bytes.  Returns where its system
 * call is, 0: it does not.
 */
unsigned int plan_sigreturn(const uint8_t *code, size_t avail);
#define PLAN_SIGRETURN_MAX 9 /* bytes of it */

struct plan_request {
	const uint8_t *code; /* the original bytes at addr */
	size_t avail;        /* how many of them may be read */
	uint64_t addr;
	uint64_t slot; /* address where the copy will run */
	/*
	 * post: fall-through exits go to this address instead of back; there
	 * the return address pushed below the red zone is inside the slot,
	 * see plan_copy().  0: straight back.
	 */
	uint64_t post;
};

/*
 * Generate the out-of-line copy of one instruction.
 *
 * Fills out (UKP_SLOT_SIZE bytes, the unused rest int3) and site (addr, slot,
 * len, slot_len, orig, pc map, UKP_SITE_CONTROL/POST); the other fields of site
 * are left alone.  Nothing is written on refusal.
 *
 * With post, an instruction without control flow is followed by
 *	lea -128(%rsp),%rsp ; call post
 * and post returns by itself to addr + len (it finds the site by the pushed
 * return address, which is below slot + slot_len and in the PC map, and undoes
 * the 136 bytes).  It needs a stack: behind an instruction that gives rsp
 * another meaning the call faults, at addr + len by the map.  Control flow ignores post: its caller
 *emulates with plan_emulate().
 *
 * No copy changes a flag, or a register that it doesn't restore.  A call through
 * memory pushes before it reads: operands that count from rsp and would be
 * overwritten are refused, others that point below rsp can't be seen here.
 *
 * A rip operand that is more than 2 GiB away from the slot is reached through a
 * register that the instruction doesn't use, kept below the red zone meanwhile
 * (UKP_PC_SAVED).  That needs a stack; an instruction that reads or writes rsp
 * itself is refused there.
 */
enum plan_refusal plan_copy(const struct plan_request *req, uint8_t out[UKP_SLOT_SIZE],
                            struct ukp_site *site);

/*
 * Do what a control-flow instruction does, on regs: changes ip, sp, cx.  Reads
 * and writes memory through plain pointers of this process.  fs and gs bases
 * are needed for operands with those segments.  Freestanding.  The memory is
 * accessed before regs change: a fault in here leaves them as they were.
 */
void plan_emulate(const struct plan_insn *insn, uint64_t addr, struct pt_regs *regs,
                  uint64_t fsbase, uint64_t gsbase);

/*
 * The addresses of the words that plan_emulate() will read or write, so that a
 * caller can try them first.  Freestanding.
 */
unsigned int plan_touches(const struct plan_insn *insn, const struct pt_regs *regs, uint64_t fsbase,
                          uint64_t gsbase, uint64_t addr[2]);

#endif
