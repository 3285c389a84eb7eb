/* SPDX-License-Identifier: MIT */
/*
 * Where an indirect jump leads, as compilers write them.
 *
 *	gcc, clang, position-independent	cmp $n,%i; ja default
 *						lea table(%rip),%b
 *						movslq (%b,%i,4),%a; add %b,%a; jmp *%a
 *	fixed, or tables of addresses		jmp *table(,%i,8)
 *						jmp *(%b,%i,8)
 *						mov (%b,%i,8),%a; jmp *%a
 *	the same by gcc -O0			mov (%i,%b,1),%eax; cltq; add %b,%rax; ...
 *	PLT, lazy calls				jmp *slot(%rip)
 *	tail call by pointer			jmp *%a, jmp *8(%a), with an empty frame
 *
 * A table's length isn't trusted to the compare: it is read as long as its
 * entries lead into the function, which can only give too many targets.  The
 * compare must not ask for more than that: else the jump is unknown.
 */
#include "plan/x86/scan.h"

#include <string.h>

#define TABLE_MAX 65536
#define LOAD_WITHIN 16
#define COMPARE_WITHIN 24

struct table {
	uint64_t base; /* what a 32-bit entry counts from */
	uint64_t at;   /* the first entry */
	unsigned int size;
};

static bool is_reg_form(const struct brief *b)
{
	return b->has_modrm && b->modrm >= 0xc0;
}

static bool ends_block(const struct brief *b)
{
	return b->map == BRIEF_ONE && (b->op == 0xe9 || b->op == 0xeb || b->op == 0xc3 ||
	                               (b->op == 0xff && (b->modrm >> 3 & 6) == 4));
}

/* Into this function or a part of it that lies elsewhere. */
static bool leads_inside(const struct scan *s, uint64_t target)
{
	const struct plan_bounds *f;

	if (target >= s->r->start && target < s->r->end)
		return true;
	if (!targets_in_text(s->t, target))
		return false;
	/* A part's switch leads back into the function. */
	if (s->r->flags & PLAN_REGION_PART)
		return bounds_around(s->m, target);
	f = bounds_around(s->m, target);
	return f && f->part;
}

static bool relocated_word(const struct plan_module *m, uint64_t place, uint64_t *target)
{
	size_t low = 0, high = m->nr_relocs;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (m->reloc[mid].place < place)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == m->nr_relocs || m->reloc[low].place != place)
		return false;
	*target = m->reloc[low].target;
	return true;
}

static bool read_entry(const struct scan *s, const struct table *t, unsigned int i,
                       uint64_t *target)
{
	uint64_t at = t->at + (uint64_t)t->size * i;
	int32_t offset;

	if (t->size == 8)
		return relocated_word(s->m, at, target) ||
		       s->m->read(s->m->arg, at, target, 8) == 8;
	if (s->m->read(s->m->arg, at, &offset, 4) != 4)
		return false;
	*target = t->base + (uint64_t)(int64_t)offset;
	return true;
}

/* The jump leads there; a way to another part is an exit of this one. */
static void take_target(struct scan *s, uint64_t target)
{
	const struct brief *b = scan_back(s, 0);
	const struct plan_exit e = {
		.addr = b->addr,
		.target = target,
		.kind = PLAN_EXIT_PART,
		.len = b->len,
	};

	targets_add(s->t, target);
	if (target < s->r->start || target >= s->r->end)
		targets_add_exit(s->t, &e);
}

/* Adds a table's targets and says how many.  tail: it has functions instead. */
static unsigned int take_table(struct scan *s, const struct table *t, bool *tail)
{
	unsigned int n = 0, functions = 0;
	uint64_t target;

	while (n < TABLE_MAX && s->t->tables && read_entry(s, t, n, &target)) {
		const struct plan_bounds *f;

		s->t->tables--;
		if (leads_inside(s, target)) {
			take_target(s, target);
			n++;
			continue;
		}
		f = n ? NULL : bounds_at(s->m, target);
		functions += f && !f->part;
		break;
	}
	*tail = t->size == 8 && functions;
	return n;
}

/* The loads that compilers use; which register the table's address is in, -1: none. */
static bool is_table_load(const struct brief *b, unsigned int want, struct table *t, int *base)
{
	const bool wide = b->rex & 8;

	if (b->map != BRIEF_ONE || !brief_is_memory(b) || b->odd || brief_index(b) < 0 ||
	    !(want >> brief_reg(b) & 1))
		return false;
	t->at = (uint64_t)(int64_t)b->disp;
	*base = brief_base(b);
	t->size = b->op == 0x8b && wide ? 8 : 4;
	if (b->op == 0x63 && wide)
		return brief_scale(b) == 4;
	if (b->op == 0x8b && wide)
		return brief_scale(b) == 8;
	/* gcc -O0: the index was multiplied before, the table's address is the second part. */
	if (b->op != 0x8b || brief_scale(b) != 1 || *base < 0)
		return false;
	*base = brief_index(b);
	return true;
}

/* Before an instruction, which registers have what is wanted after it. */
static unsigned int sources(const struct brief *b, unsigned int want)
{
	const unsigned int reg = 1U << brief_reg(b), rm = 1U << brief_rm(b);

	if (b->map != BRIEF_ONE)
		return want;
	if (is_reg_form(b)) {
		if (b->op == 0x01 && want & rm)
			return want | reg;
		if (b->op == 0x03 && want & reg)
			return want | rm;
		if (b->op == 0x89 && want & rm)
			return (want & ~rm) | reg;
		if (b->op == 0x8b && want & reg)
			return (want & ~reg) | rm;
	} else if (b->op == 0x8d && want & reg) {
		want &= ~reg;
		if (brief_index(b) >= 0 && brief_base(b) >= 0)
			want |= 1U << brief_base(b) | 1U << brief_index(b);
	} else if (b->op == 0x8b && want & reg) {
		want &= ~reg; /* loaded from elsewhere */
	}
	return want;
}

/* How far back the load of the table's entry is; 0: there is none. */
static size_t find_load(const struct scan *s, unsigned int reg, struct table *t, int *base)
{
	unsigned int want = 1U << reg;

	for (size_t back = 1; back <= LOAD_WITHIN; back++) {
		const struct brief *b = scan_back(s, back);

		if (!b || ends_block(b))
			return 0;
		if (is_table_load(b, want, t, base))
			return back;
		want = sources(b, want);
	}
	return 0;
}

enum use {
	USE_NONE,
	USE_COMPARE, /* with an immediate */
	USE_CHANGE,
};

static enum use used_by(const struct brief *b, unsigned int regs)
{
	if (b->map != BRIEF_ONE)
		return USE_NONE;
	if (b->op < 0x40 && (b->op & 0x06) == 0x04) /* op $imm,%al or %eax */
		return !(regs & 1) ? USE_NONE : b->op >= 0x3c ? USE_COMPARE : USE_CHANGE;
	if (!is_reg_form(b) || !(regs >> brief_rm(b) & 1))
		return USE_NONE;
	if (b->op == 0x80 || b->op == 0x81 || b->op == 0x83)
		return (b->modrm >> 3 & 7) == 7 ? USE_COMPARE : USE_CHANGE;
	return b->op >= 0xfe || (b->op & 0xfe) == 0xc0 ? USE_CHANGE : USE_NONE;
}

/* mov, movzx and movslq between registers */
static unsigned int copied_from(const struct brief *b, unsigned int regs)
{
	bool widens = (b->map == BRIEF_ONE && (b->op == 0x8b || b->op == 0x63)) ||
	              (b->map == BRIEF_0F && (b->op == 0xb6 || b->op == 0xb7));

	if (!is_reg_form(b))
		return 0;
	if (widens && regs >> brief_reg(b) & 1)
		return 1U << brief_rm(b);
	if (b->map == BRIEF_ONE && b->op == 0x89 && regs >> brief_rm(b) & 1)
		return 1U << brief_reg(b);
	return 0;
}

/* How many values a compare and the branch behind it let through; 0: not known. */
static uint64_t allowed(const struct brief *cmp, const struct brief *branch)
{
	if (cmp->imm < 0 || cmp->imm >= TABLE_MAX ||
	    !((branch->map == BRIEF_ONE && (branch->op & 0xf0) == 0x70) ||
	      (branch->map == BRIEF_0F && (branch->op & 0xf0) == 0x80)))
		return 0;
	switch (branch->op & 15) {
	case 2: /* jb, jae */
	case 3:
		return (uint64_t)cmp->imm;
	case 6: /* jbe, ja */
	case 7:
		return (uint64_t)cmp->imm + 1;
	}
	return 0;
}

/* How many entries the compare before a table's use allows; 0: not known. */
static uint64_t find_bound(const struct scan *s, size_t load)
{
	const struct brief *b = scan_back(s, load), *next = NULL;
	unsigned int regs = 1U << brief_index(b);

	for (size_t back = load + 1; back <= load + COMPARE_WITHIN; back++) {
		enum use use;

		next = b;
		b = scan_back(s, back);
		if (!b || ends_block(b))
			return 0;
		use = used_by(b, regs);
		if (use == USE_CHANGE)
			return 0;
		if (use == USE_COMPARE)
			return allowed(b, next);
		regs |= copied_from(b, regs);
	}
	return 0;
}

/*
 * All tables whose address was put into reg so far; the last one must be a good
 * one.  Each is read once, unless another form of jump uses the same register.
 */
static unsigned int take_tables(struct scan *s, const struct table *form, unsigned int reg,
                                bool *tail)
{
	struct scan_taken *k = &s->taken[reg];
	bool nearest = true;

	if (k->size != form->size || k->at != form->at)
		*k = (struct scan_taken){ .size = form->size, .at = form->at };
	for (size_t i = s->nr_leas; i-- > k->leas && s->t->tables;) {
		const struct scan_lea *lea = &s->lea[i];
		struct table t = { lea->addr, lea->addr + form->at, form->size };
		unsigned int n;
		bool functions;

		s->t->tables--;
		if (lea->reg != reg)
			continue;
		n = take_table(s, &t, &functions);
		if (nearest) {
			k->nearest = n;
			k->tail = functions;
			nearest = false;
		}
	}
	k->leas = s->nr_leas;
	*tail = k->tail;
	return k->nearest;
}

/* load: how far back an instruction has the table as its operand */
static enum jump_kind by_table(struct scan *s, struct table *t, int base, size_t load)
{
	uint64_t bound = find_bound(s, load);
	bool tail = false;
	unsigned int n;

	if (base >= 0)
		n = take_tables(s, t, (unsigned int)base, &tail);
	else if (t->size == 8)
		n = take_table(s, t, &tail);
	else
		return JUMP_UNKNOWN;
	if (n && n >= bound)
		return JUMP_SWITCH;
	return tail ? JUMP_TAIL : JUMP_UNKNOWN;
}

/* A pointer of unknown origin: a tail call has an empty frame. */
static enum jump_kind by_frame(const struct scan *s, const struct brief *b)
{
	const struct plan_module *m = s->m;

	return m->bare_stack && m->bare_stack(m->arg, b->addr) ? JUMP_TAIL : JUMP_UNKNOWN;
}

enum jump_kind scan_indirect(struct scan *s)
{
	const struct brief *b = scan_back(s, 0);
	struct table t = { 0, 0, 8 };
	int base = -1;
	size_t load;

	if ((b->modrm >> 3 & 7) == 5 || b->odd)
		return JUMP_UNKNOWN;
	if (brief_is_rip(b))
		return JUMP_TAIL;
	if (!brief_is_memory(b)) {
		load = find_load(s, brief_rm(b), &t, &base);
		return load ? by_table(s, &t, base, load) : by_frame(s, b);
	}
	if (brief_index(b) < 0)
		return brief_base(b) < 0 ? JUMP_TAIL : by_frame(s, b);
	if (brief_scale(b) != 8)
		return JUMP_UNKNOWN;
	t.at = (uint64_t)(int64_t)b->disp;
	return by_table(s, &t, brief_base(b), 0);
}
