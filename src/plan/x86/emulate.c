/* SPDX-License-Identifier: MIT */
/*
 * What a control-flow instruction does, done to saved registers.
 *
 * Runs on a hit: no libc, no state, no table that needs a relocation.  Memory
 * is read and written through plain pointers, in the order of the hardware
 * (operand before push), so a fault leaves regs as they were.
 */
#include "plan/plan.h"

enum { CF = 1, PF = 4, ZF = 0x40, SF = 0x80, OF = 0x800 };

static const uint8_t reg_offset[16] = {
	offsetof(struct pt_regs, ax),  offsetof(struct pt_regs, cx),  offsetof(struct pt_regs, dx),
	offsetof(struct pt_regs, bx),  offsetof(struct pt_regs, sp),  offsetof(struct pt_regs, bp),
	offsetof(struct pt_regs, si),  offsetof(struct pt_regs, di),  offsetof(struct pt_regs, r8),
	offsetof(struct pt_regs, r9),  offsetof(struct pt_regs, r10), offsetof(struct pt_regs, r11),
	offsetof(struct pt_regs, r12), offsetof(struct pt_regs, r13), offsetof(struct pt_regs, r14),
	offsetof(struct pt_regs, r15),
};

static uint64_t reg_read(const struct pt_regs *regs, int reg)
{
	return *(const unsigned long *)((const char *)regs + reg_offset[reg & 15]);
}

/* Unaligned and of any type for the program whose memory it is. */
typedef uint64_t __attribute__((may_alias, aligned(1))) word;

static uint64_t mem_read(uint64_t addr)
{
	return *(const volatile word *)addr;
}

static void mem_write(uint64_t addr, uint64_t value)
{
	*(volatile word *)addr = value;
}

/* The condition that the low nibble of jcc, setcc and cmovcc names. */
static bool condition(unsigned int cond, uint64_t flags)
{
	const bool less = !(flags & SF) != !(flags & OF);
	bool yes = false;

	switch (cond >> 1 & 7) {
	case 0:
		yes = flags & OF;
		break;
	case 1:
		yes = flags & CF;
		break;
	case 2:
		yes = flags & ZF;
		break;
	case 3:
		yes = flags & (CF | ZF);
		break;
	case 4:
		yes = flags & SF;
		break;
	case 5:
		yes = flags & PF;
		break;
	case 6:
		yes = less;
		break;
	case 7:
		yes = less || (flags & ZF);
		break;
	}
	return yes != (cond & 1);
}

/* Counts down, except for j(e/r)cxz, and says whether the branch is taken. */
static bool loop_taken(const struct plan_insn *insn, struct pt_regs *regs)
{
	uint64_t count = regs->cx;

	if (insn->cond != 3)
		count--;
	if (insn->ecx)
		count = (uint32_t)count;
	if (insn->cond == 3)
		return count == 0;
	regs->cx = count;
	if (insn->cond == 2)
		return count != 0;
	return count != 0 && !(regs->flags & ZF) == !insn->cond;
}

static uint64_t address(const struct plan_insn *insn, const struct pt_regs *regs, uint64_t fsbase,
                        uint64_t gsbase)
{
	uint64_t ea = (uint64_t)insn->disp;

	if (insn->base >= 0 && insn->base < 16)
		ea += reg_read(regs, insn->base);
	if (insn->index >= 0)
		ea += reg_read(regs, insn->index) * insn->scale;
	if (insn->addr32)
		ea = (uint32_t)ea;
	if (insn->seg == 'f')
		ea += fsbase;
	if (insn->seg == 'g')
		ea += gsbase;
	return ea;
}

static uint64_t operand(const struct plan_insn *insn, const struct pt_regs *regs, uint64_t fsbase,
                        uint64_t gsbase)
{
	if (!insn->mem)
		return reg_read(regs, insn->reg);
	return mem_read(address(insn, regs, fsbase, gsbase));
}

unsigned int plan_touches(const struct plan_insn *insn, const struct pt_regs *regs, uint64_t fsbase,
                          uint64_t gsbase, uint64_t addr[2])
{
	unsigned int n = 0;

	if (insn->mem)
		addr[n++] = address(insn, regs, fsbase, gsbase);
	if (insn->flow == PLAN_FLOW_RET)
		addr[n++] = regs->sp;
	if (insn->flow == PLAN_FLOW_CALL || insn->flow == PLAN_FLOW_CALL_IND)
		addr[n++] = regs->sp - 8;
	return n;
}

static void call(uint64_t ret, uint64_t target, struct pt_regs *regs)
{
	mem_write(regs->sp - 8, ret);
	regs->sp -= 8;
	regs->ip = target;
}

void plan_emulate(const struct plan_insn *insn, uint64_t addr, struct pt_regs *regs,
                  uint64_t fsbase, uint64_t gsbase)
{
	const uint64_t next = addr + insn->len;

	switch (insn->flow) {
	case PLAN_FLOW_JMP:
		regs->ip = insn->target;
		break;
	case PLAN_FLOW_JCC:
		regs->ip = condition(insn->cond, regs->flags) ? insn->target : next;
		break;
	case PLAN_FLOW_LOOP:
		regs->ip = loop_taken(insn, regs) ? insn->target : next;
		break;
	case PLAN_FLOW_CALL:
		call(next, insn->target, regs);
		break;
	case PLAN_FLOW_JMP_IND:
		regs->ip = operand(insn, regs, fsbase, gsbase);
		break;
	case PLAN_FLOW_CALL_IND:
		call(next, operand(insn, regs, fsbase, gsbase), regs);
		break;
	case PLAN_FLOW_RET:
		regs->ip = mem_read(regs->sp);
		regs->sp += 8 + insn->imm;
		break;
	default:
		/* Not control flow: the caller's slot runs it. */
		regs->ip = next;
		break;
	}
}
