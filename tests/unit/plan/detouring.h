/* SPDX-License-Identifier: MIT */
/*
 * A few instructions, once as they are and once under a jump to a detour, from
 * the same state.  Everything that the program could see must come out the
 * same; below the red zone nothing is its own.
 */
#ifndef TESTS_PLAN_DETOURING_H
#define TESTS_PLAN_DETOURING_H

#include "unit/plan/noise.h"

#define DETOURS SLOTS
#define ENGINE 0x1c00UL /* in the code arena */
#define FRAME 1024      /* bytes below the red zone that entry and engine may change */

struct sequence {
	uint8_t code[PLAN_WINDOW_LONG + 8];
	struct plan_window w;
	struct plan_insn insn[UKP_WINDOW_INSNS];
};

/*
 * An engine that counts at an address below 2 GiB and clobbers whatever the
 * form allows it: each saved register, the flags, memory below sp.
 */
static uint32_t *engine_count;

static inline int detouring_setup(void **state)
{
	trial_setup(state);
	engine_count = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	return engine_count == (void *)0x10000000 ? 0 : -1;
}

static inline void engine_write(uint64_t at, uint32_t saves)
{
	static const struct {
		uint32_t bit;
		uint8_t number;
	} regs[] = {
		{ PLAN_SAVE(cx), 1 },   { PLAN_SAVE(dx), 2 },   { PLAN_SAVE(bx), 3 },
		{ PLAN_SAVE(bp), 5 },   { PLAN_SAVE(si), 6 },   { PLAN_SAVE(di), 7 },
		{ PLAN_SAVE(r8), 8 },   { PLAN_SAVE(r9), 9 },   { PLAN_SAVE(r10), 10 },
		{ PLAN_SAVE(r11), 11 }, { PLAN_SAVE(r12), 12 }, { PLAN_SAVE(r13), 13 },
		{ PLAN_SAVE(r14), 14 }, { PLAN_SAVE(r15), 15 }, { PLAN_SAVE(ax), 0 },
	};
	/* push $-1; push $-1; pop; pop by lea; lock incl count; mov %rdi,-64(%rsp) */
	uint8_t code[256] = { 0x6a, 0xff, 0x6a, 0xff, 0x48, 0x8d, 0x64, 0x24, 0x10, 0xf0, 0xff,
		              0x04, 0x25, 0,    0,    0,    0,    0x48, 0x89, 0x7c, 0x24, 0xc0 };
	unsigned int n = 22;
	uint32_t count = (uint32_t)(uintptr_t)engine_count;

	memcpy(code + 13, &count, 4);
	for (size_t i = 0; i < sizeof(regs) / sizeof(regs[0]); i++) {
		uint64_t junk = rnd();

		if (!(saves & regs[i].bit))
			continue;
		code[n] = (uint8_t)(0x48 | regs[i].number >> 3);
		code[n + 1] = (uint8_t)(0xb8 | (regs[i].number & 7));
		memcpy(code + n + 2, &junk, 8);
		n += 10;
	}
	if (saves & PLAN_SAVE(ax)) { /* xor %eax,%eax, then other flags */
		code[n++] = 0x31;
		code[n++] = 0xc0;
	}
	code[n++] = 0xf9; /* stc; DF is clear when a C function returns */
	code[n++] = 0xc3;
	poke(at, code, n);
}

/* Is the instruction at home in the middle of a window, and does it leave sp usable? */
static inline bool fits(const struct trial *t, const struct plan_insn *insn, bool last,
                        bool *copied)
{
	if (insn->flow == PLAN_FLOW_LOOP || insn->flow == PLAN_FLOW_JCC ||
	    insn->flow == PLAN_FLOW_JMP || insn->flow == PLAN_FLOW_CALL)
		if (insn->target - t->addr + 64 < 128)
			return false;
	/* Another instruction's register may lead an operand by fs into our own thread. */
	if ((insn->is_syscall && !last) || t->z.mnemonic == ZYDIS_MNEMONIC_RDFSBASE || insn->seg)
		return false;
	if (t->z.attributes & (ZYDIS_ATTRIB_HAS_SEGMENT_FS | ZYDIS_ATTRIB_HAS_SEGMENT_GS))
		return false;
	/* They store where the last x87 instruction was: in its copy, that is. */
	if (t->z.mnemonic == ZYDIS_MNEMONIC_FNSAVE || t->z.mnemonic == ZYDIS_MNEMONIC_FNSTENV ||
	    t->z.mnemonic == ZYDIS_MNEMONIC_FXSAVE || t->z.mnemonic == ZYDIS_MNEMONIC_FXSAVE64)
		return false;
	for (int i = 0; i < t->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &t->ops[i];

		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER && trial_gpr(op->reg.value) == 4 &&
		    (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    op->visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN && !last)
			return false;
		/* What is below the red zone is read by no program. */
		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.disp.value < -100 &&
		    (*copied || trial_gpr(op->mem.base) == 4))
			return false;
		*copied |= (op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		            trial_gpr(op->reg.value) == 4) ||
		           (op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		            op->mem.type == ZYDIS_MEMOP_TYPE_AGEN);
	}
	if (last)
		return true;
	switch (t->z.mnemonic) {
	case ZYDIS_MNEMONIC_LEAVE:
	case ZYDIS_MNEMONIC_ENTER:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
		return false;
	default:
		break;
	}
	return insn->flow == PLAN_FLOW_NONE || insn->flow == PLAN_FLOW_JCC ||
	       insn->flow == PLAN_FLOW_LOOP;
}

/* What compilers write, more often than noise does. */
static inline void usual(uint8_t *code)
{
	static const uint8_t forms[][8] = {
		{ 0x55 },
		{ 0x41, 0x57 },
		{ 0x53 },
		{ 0x5b },
		{ 0x41, 0x5f },
		{ 0x48, 0x89, 0xe5 },
		{ 0x48, 0x89, 0xfb },
		{ 0x89, 0xd1 },
		{ 0x31, 0xc0 },
		{ 0x48, 0x85, 0xff },
		{ 0x85, 0xc0 },
		{ 0x74, 0x70 },
		{ 0x75, 0x90 },
		{ 0x0f, 0x8f, 0x00, 0x02, 0, 0 },
		{ 0xf3, 0x0f, 0x1e, 0xfa },
		{ 0x90 },
		{ 0x66, 0x90 },
		{ 0x0f, 0x1f, 0x00 },
		{ 0x48, 0x8b, 0x05, 0, 0, 0, 0 },
		{ 0x48, 0x8d, 0x3d, 0, 0, 0, 0 },
		{ 0x48, 0x89, 0x44, 0x24, 0xf8 },
		{ 0x48, 0x8b, 0x54, 0x24, 0xc0 },
		{ 0xe8, 0x00, 0x03, 0, 0 },
		{ 0xff, 0xd0 },
		{ 0xff, 0x10 },
		{ 0xc3 },
		{ 0xf3, 0xc3 },
		{ 0xc2, 0x10, 0x00 },
		{ 0xeb, 0x60 },
		{ 0xe3, 0x70 },
		{ 0xe2, 0x70 },
		{ 0x9f },
		{ 0x9c },
		{ 0xf9 },
		{ 0xfd },
		{ 0x98 },
		{ 0x48, 0x99 },
		{ 0xaa },
		{ 0x0f, 0x94, 0xc0 },
		{ 0x48, 0x0f, 0x44, 0xc1 },
		{ 0x0f, 0x11, 0x04, 0x24 },
		{ 0x66, 0x0f, 0xef, 0xc0 },
		{ 0x83, 0xc0, 0x01 },
		{ 0x48, 0x01, 0xd0 },
		{ 0x48, 0xff, 0xc3 },
		{ 0x48, 0x83, 0x3b, 0x00 },
	};

	memset(code, 0xcc, 15);
	memcpy(code, forms[below(sizeof(forms) / sizeof(forms[0]))], 8);
}

/* A pointer to the text, by which a later instruction would read the jump. */
static inline bool points_at_code(const struct trial *t)
{
	for (int i = 0; i < t->z.operand_count; i++)
		if (t->ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    t->ops[i].mem.type == ZYDIS_MEMOP_TYPE_AGEN &&
		    t->ops[i].mem.base == ZYDIS_REGISTER_RIP)
			return true;
	return false;
}

/*
 * Instructions up to five bytes, or some more that the jump takes along; t keeps
 * the registers that they are to run with.
 */
static inline bool sequence_make(struct sequence *s, struct trial *t, uint64_t fsbase)
{
	const unsigned int want = PLAN_JUMP_SIZE + (below(3) ? 0 : below(20));
	const uint64_t addr = t->addr;
	bool ok = true, copied = false, last;

	memset(&s->w, 0, sizeof(s->w));
	for (int i = 0; i < 16; i++)
		t->cpu.gpr[i] = below(4) ? trial_pointer() : below(2) ? below(64) : rnd();
	t->cpu.gpr[4] = STACK + DATA_SIZE / 2 + 512 + 8 * below(32) + (below(8) ? 0 : below(8));
	t->cpu.flags = trial_flags();
	while (ok && s->w.len < want && s->w.nr < UKP_WINDOW_INSNS) {
		struct plan_insn *insn = &s->insn[s->w.nr];
		uint8_t code[15];

		if (below(2))
			usual(code);
		else
			noise(code);
		t->addr = addr + s->w.len;
		ok = trial_decode(t, code, sizeof(code)) && !fickle(&t->z);
		for (int i = 0; ok && i < t->z.operand_count; i++)
			if (t->ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
			    t->ops[i].mem.type != ZYDIS_MEMOP_TYPE_AGEN)
				ok = trial_pin(t, &t->ops[i].mem, fsbase);
		memcpy(code, t->code, t->n);
		last = s->w.len + t->n >= want || s->w.nr == UKP_WINDOW_INSNS - 1;
		ok = ok && trial_decode(t, code, t->n) &&
		     !plan_decode(t->code, t->n, t->addr, insn) && fits(t, insn, last, &copied) &&
		     (want == PLAN_JUMP_SIZE || !points_at_code(t));
		if (!ok)
			break;
		if (t->z.meta.category == ZYDIS_CATEGORY_STRINGOP)
			t->cpu.gpr[1] = below(40);
		trial_aim(t, insn, fsbase);
		memcpy(s->code + s->w.len, t->code, t->n);
		s->w.insn[s->w.nr].off = s->w.len;
		s->w.insn[s->w.nr++].len = (uint8_t)t->n;
		s->w.len = (uint8_t)(s->w.len + t->n);
	}
	t->addr = addr;
	s->w.covered = s->w.len;
	return ok && s->w.len >= PLAN_JUMP_SIZE;
}

static inline void sequence_print(const struct sequence *s)
{
	for (unsigned int i = 0; i < s->w.nr; i++) {
		printf(" ");
		for (unsigned int k = 0; k < s->w.insn[i].len; k++)
			printf(" %02x", s->code[s->w.insn[i].off + k]);
	}
	printf("\n");
}

/* How many of the probes a run met that ended at pc; -1: it can't be told. */
static inline int sequence_met(const struct sequence *s, const struct trial *t, unsigned int probes,
                               const struct outcome *o)
{
	uint64_t off = o->cpu.pc - (o->signo == SIGTRAP) - t->addr;
	int last = -1;

	for (int i = 0; i < s->w.nr; i++) {
		const struct plan_insn *insn = &s->insn[i];
		bool from_here;

		if (o->signo != SIGTRAP)
			from_here = off == s->w.insn[i].off;
		else if (off == s->w.len)
			from_here = i == s->w.nr - 1;
		else
			from_here = insn->flow != PLAN_FLOW_NONE &&
			            (insn->flow > PLAN_FLOW_CALL || insn->target - t->addr == off);
		if (from_here && last >= 0)
			return -1;
		if (from_here)
			last = i;
	}
	return last < 0 ? -1 : __builtin_popcount(probes & ((2U << last) - 1));
}

#endif
