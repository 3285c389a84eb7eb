/* SPDX-License-Identifier: MIT */
/*
 * Where the caller's frame begins, and whether there is nothing but the return
 * address on the stack.  CFA programs are run for the rule of the CFA alone.
 *
 * The run of the last question is kept, so that questions in ascending order
 * cost one pass over each program.  A program that doesn't make sense leaves an
 * unknown CFA behind, which is never bare.
 */
#include "sym/facts_in.h"

#include <string.h>

#define REG_RSP 7

enum {
	CFA_ADVANCE = 0x40, /* high two bits */
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE1 = 0x02,
	CFA_ADVANCE2 = 0x03,
	CFA_ADVANCE4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF = 0x0c,
	CFA_DEF_REGISTER = 0x0d,
	CFA_DEF_OFFSET = 0x0e,
	CFA_DEF_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_SF = 0x12,
	CFA_DEF_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET = 0x2f,
};

static int64_t factored(const struct cfa_run *r, int64_t v)
{
	return (int64_t)((uint64_t)v * (uint64_t)r->cie.data_align);
}

/* Rules of other registers: over their operands.  False: no such instruction. */
static bool pass_over(struct eh_cursor *c, uint8_t op)
{
	switch (op) {
	case CFA_NOP:
		return true;
	case CFA_OFFSET_EXTENDED:
	case CFA_REGISTER:
	case CFA_VAL_OFFSET:
	case CFA_GNU_NEGATIVE_OFFSET:
	case CFA_OFFSET_EXTENDED_SF:
	case CFA_VAL_OFFSET_SF:
		eh_uleb(c);
		eh_uleb(c);
		return true;
	case CFA_RESTORE_EXTENDED:
	case CFA_UNDEFINED:
	case CFA_SAME_VALUE:
	case CFA_GNU_ARGS_SIZE:
		eh_uleb(c);
		return true;
	case CFA_EXPRESSION:
	case CFA_VAL_EXPRESSION:
		eh_uleb(c);
		eh_skip(c, eh_uleb(c));
		return true;
	default:
		return false;
	}
}

static void define(struct cfa_run *r, uint8_t op)
{
	struct eh_cursor *c = &r->c;

	switch (op) {
	case CFA_DEF:
		r->rule = (struct cfa_rule){ eh_uleb(c), 0, true };
		r->rule.off = (int64_t)eh_uleb(c);
		break;
	case CFA_DEF_SF:
		r->rule = (struct cfa_rule){ eh_uleb(c), 0, true };
		r->rule.off = factored(r, eh_sleb(c));
		break;
	case CFA_DEF_REGISTER:
		r->rule.reg = eh_uleb(c);
		break;
	case CFA_DEF_OFFSET:
		r->rule.off = (int64_t)eh_uleb(c);
		break;
	case CFA_DEF_OFFSET_SF:
		r->rule.off = factored(r, eh_sleb(c));
		break;
	case CFA_DEF_EXPRESSION:
		eh_skip(c, eh_uleb(c));
		r->rule.known = false;
		break;
	case CFA_REMEMBER:
		if (r->depth == CFA_DEPTH)
			c->bad = true;
		else
			r->stack[r->depth++] = r->rule;
		break;
	case CFA_RESTORE_STATE:
		if (!r->depth)
			c->bad = true;
		else
			r->rule = r->stack[--r->depth];
		break;
	default:
		c->bad |= !pass_over(c, op);
	}
}

/* Where an instruction moves the location to; false: it doesn't. */
static bool moves(struct cfa_run *r, uint8_t op, uint64_t *to)
{
	uint64_t by;

	if ((op & 0xc0) == CFA_ADVANCE)
		by = op & 0x3f;
	else if (op == CFA_ADVANCE1)
		by = eh_get(&r->c, 1);
	else if (op == CFA_ADVANCE2)
		by = eh_get(&r->c, 2);
	else if (op == CFA_ADVANCE4)
		by = eh_get(&r->c, 4);
	else if (op == CFA_SET_LOC)
		by = eh_pointer(&r->c, r->cie.encoding) - r->loc;
	else
		return false;
	if (op != CFA_SET_LOC && __builtin_mul_overflow(by, r->cie.code_align, &by))
		r->c.bad = true;
	if (__builtin_add_overflow(r->loc, by, to))
		r->c.bad = true;
	return true;
}

/* Up to the last instruction that holds at pc. */
static void run(uint64_t *budget, struct cfa_run *r, uint64_t pc)
{
	while (!r->c.bad && r->c.at < r->c.end) {
		uint64_t before = r->c.at, to;
		uint8_t op = (uint8_t)eh_get(&r->c, 1);

		if (!*budget) {
			r->c.bad = true;
			return;
		}
		--*budget;
		if (moves(r, op, &to)) {
			if (!r->c.bad && to > pc) {
				r->c.at = before;
				return;
			}
			r->loc = to;
		} else if ((op & 0xc0) == CFA_OFFSET) {
			eh_uleb(&r->c);
		} else if ((op & 0xc0) != CFA_RESTORE) {
			define(r, op);
		}
	}
}

/* To the beginning of the FDE's own program. */
static void begin(uint64_t *budget, struct cfa_run *r, const struct eh_frames *frames,
                  const struct eh_fde *fde)
{
	uint64_t lsda, program;

	memset(r, 0, sizeof(*r));
	r->c.bad = true;
	if (!eh_augmentation(frames, fde, &lsda, &program))
		return;
	r->cie = fde->cie;
	r->loc = fde->start;
	r->c = (struct eh_cursor){ frames->buf, fde->cie.program, fde->cie.end, frames->vaddr,
		                   false };
	run(budget, r, UINT64_MAX);
	if (r->loc != fde->start)
		r->c.bad = true;
	r->c.at = program;
	r->c.end = fde->end;
}

static void start_run(struct facts *f, size_t i)
{
	struct eh_walk w = EH_WALK_INIT(&f->frames);
	struct cfa_run *r = &f->cfa;
	struct eh_fde fde;

	w.at = f->fde[i].at;
	if (eh_next(&w, &fde) && fde.at == f->fde[i].at)
		begin(&f->cfa_budget, r, &f->frames, &fde);
	else
		*r = (struct cfa_run){ .c.bad = true };
	r->fde = i;
}

/* Several may overlap: the one that begins last. */
static size_t find(const struct facts *f, uint64_t pc)
{
	size_t low = 0, high = f->nr_fdes;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (f->fde[mid].start <= pc)
			low = mid + 1;
		else
			high = mid;
	}
	for (unsigned int back = 0; low-- && back < 8; back++)
		if (pc < f->fde[low].end)
			return low;
	return SIZE_MAX;
}

const struct cfa_rule *facts_cfa(struct facts *f, uint64_t pc)
{
	struct cfa_run *r = &f->cfa;
	size_t i = find(f, pc);

	if (i == SIZE_MAX)
		return NULL;
	if (i != r->fde || pc < r->loc)
		start_run(f, i);
	run(&f->cfa_budget, r, pc);
	return !r->c.bad && r->rule.known ? &r->rule : NULL;
}

static bool is_bare(const struct cfa_rule *rule)
{
	return rule && rule->reg == REG_RSP && rule->off == 8;
}

bool facts_bare_stack(struct facts *f, uint64_t pc)
{
	return is_bare(facts_cfa(f, pc));
}

bool eh_bare_start(const struct eh_frames *frames, const struct eh_fde *fde, uint64_t *budget)
{
	struct cfa_run r;

	begin(budget, &r, frames, fde);
	run(budget, &r, fde->start);
	return !r.c.bad && r.rule.known && is_bare(&r.rule);
}
