/* SPDX-License-Identifier: MIT */
/*
 * What an argument's value is made of: +|-OFFS(...) around one base.  The
 * dereferences are peeled from the outside, then put out from the inside, so
 * depth costs no stack.  Columns inside are as the kernel counts them: the u of
 * +uOFFS and the sign of +-OFFS are not counted.
 */
#include "lang/private.h"

#include <stdlib.h>
#include <string.h>

#include "ukprobes/pt_regs.h"

#define FETCH_END 15 /* the kernel's index of END: no step may lie there */
#define DEREFS_MAX (LANG_ARG_EXPR_MAX / 4 + 1)

struct peel {
	unsigned int nr;
	struct level {
		int64_t offset;
		int column; /* of what is inside */
		int self;   /* of itself */
		bool user;
	} level[DEREFS_MAX];
	struct slice base;
	int column; /* of base */
	int index;  /* the kernel's index of base's last step */
};

static const struct {
	const char *name;
	size_t offset;
} regs[] = {
#define REG(r)                                  \
	{                                       \
#r, offsetof(struct pt_regs, r) \
	}
	REG(ax),  REG(bx),  REG(cx),  REG(dx), REG(si),  REG(di),    REG(bp),
	REG(sp),  REG(ip),  REG(r8),  REG(r9), REG(r10), REG(r11),   REG(r12),
	REG(r13), REG(r14), REG(r15), REG(cs), REG(ss),  REG(flags), REG(orig_ax),
#undef REG
};

static int find_reg(struct slice s)
{
	for (size_t i = 0; i < sizeof(regs) / sizeof(regs[0]); i++)
		if (slice_is(s, regs[i].name))
			return (int)regs[i].offset;
	return -1;
}

/* %xmmN and %stN; -1: neither. */
static int find_fpu(struct slice s)
{
	static const struct {
		const char *name;
		uint32_t first, nr;
	} files[] = { { "xmm", UKP_FPU_XMM0, 16 }, { "st", UKP_FPU_ST0, 8 } };
	uint64_t n;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct slice digits;

		if (!slice_starts(s, files[i].name))
			continue;
		digits = slice_from(s, strlen(files[i].name));
		/* One spelling each. */
		if ((digits.n == 1 || (digits.n == 2 && digits.p[0] == '1')) &&
		    !lang_number(digits, 10, &n) && n < files[i].nr)
			return (int)(files[i].first + n);
	}
	return -1;
}

/* One +|-[u]OFFS( from the outside; s becomes what is inside. */
static int peel_one(struct peel *p, struct slice *s, struct err *err)
{
	bool minus = s->p[0] == '-', user = s->n > 1 && s->p[1] == 'u';
	struct slice num = slice_from(*s, user ? 2 : 1);
	struct level *l = &p->level[p->nr];
	size_t open = slice_find(num, '('), close;
	int ret;

	l->self = p->column;
	l->user = user;
	if (open == num.n)
		return lang_fail(err, -EINVAL, LANG_DEREF_NEED_BRACE, p->column,
		                 "it is +OFFS(ARG)");
	ret = lang_signed(slice_head(num, open), 0, &l->offset);
	/* "-" and a signed number: one sign too many */
	if (!ret && minus && (num.p[0] < '0' || num.p[0] > '9'))
		ret = -EINVAL;
	if (ret)
		return lang_fail(err, ret, LANG_BAD_DEREF_OFFS, p->column, NULL);
	if (minus)
		l->offset = -l->offset;
	p->column += (int)open + 1 + (minus || num.p[0] != '-');
	l->column = p->column;
	*s = slice_from(num, open + 1);
	for (close = s->n; close && s->p[close - 1] != ')'; close--)
		;
	if (!close)
		return lang_fail(err, -EINVAL, LANG_DEREF_OPEN_BRACE, p->column + (int)s->n, NULL);
	/* The kernel drops it, and with it a type whose colon was forgotten. */
	if (close < s->n)
		return lang_fail(err, -EINVAL, LANG_BAD_FETCH_ARG, p->column + (int)close,
		                 "nothing follows the brace but :TYPE");
	s->n = close - 1;
	p->nr++;
	return 0;
}

static int emit(struct lang_arg *arg, uint8_t op, uint64_t imm)
{
	arg->steps[arg->nr_steps].op = op;
	arg->steps[arg->nr_steps++].imm = imm;
	return 0;
}

static bool is_entry_place(const struct lang_def *def)
{
	return def->place.kind == LANG_SYM && def->place.sym[0] && def->many != LANG_INSNS &&
	       (!def->place.offset || def->place.offset == LANG_ENDBR_LEN);
}

/* $retval with something behind it: a field of what it points to. */
static int parse_retval(struct peel *p, struct lang_arg *arg, struct lang_value *val,
                        struct err *err)
{
	struct slice tail = slice_from(p->base, strlen("$retval"));

	if (!tail.n) {
		val->kind = LANG_VAL_RETVAL;
		return emit(arg, UKP_FETCH_RETVAL, 0);
	}
	if (tail.p[0] == '-' && (tail.n < 2 || tail.p[1] != '>'))
		return lang_fail(err, -EINVAL, LANG_BAD_HYPHEN, p->column + (int)strlen("$retval"),
		                 NULL);
	if (tail.p[0] == '-' || tail.p[0] == '.')
		return lang_fail(err, -EOPNOTSUPP, LANG_NOSUP_BTFARG, p->column,
		                 "fields by name; +OFFS($retval) reads one");
	return lang_fail(err, -ENOENT, LANG_NO_BTFARG, p->column, NULL);
}

static int parse_argn(const struct lang_def *def, struct peel *p, struct lang_arg *arg,
                      struct lang_value *val, struct err *err)
{
	uint64_t n;
	int ret = lang_number(slice_from(p->base, strlen("$arg")), 10, &n);

	if (ret)
		return lang_fail(err, ret, LANG_BAD_VAR, p->column, NULL);
	if (!n || n > LANG_PARAM_MAX)
		return lang_fail(err, -EINVAL, LANG_BAD_ARG_NUM, p->column,
		                 "they count from 1 to %d", LANG_PARAM_MAX);
	/* At an address only the target can tell. */
	if (!def->ret && def->place.kind == LANG_SYM && !is_entry_place(def))
		return lang_fail(err, -EINVAL, LANG_NOFENTRY_ARGS, p->column,
		                 "inside a function use the registers");
	arg->nth = (uint32_t)n;
	val->kind = LANG_VAL_ARG;
	return emit(arg, UKP_FETCH_EDATA, n);
}

static int parse_stack(struct peel *p, struct lang_arg *arg, struct err *err)
{
	struct slice num = slice_from(p->base, strlen("$stack"));
	uint64_t n;
	int ret;

	if (!num.n)
		return emit(arg, UKP_FETCH_STACKP, 0);
	if (num.p[0] < '0' || num.p[0] > '9')
		return lang_fail(err, -EINVAL, LANG_BAD_VAR, p->column, NULL);
	ret = lang_number(num, 10, &n);
	if (ret)
		return lang_fail(err, ret, LANG_BAD_VAR, p->column, NULL);
	if (n > LANG_PARAM_MAX)
		return lang_fail(err, -EINVAL, LANG_BAD_STACK_NUM, p->column, "at most %d",
		                 LANG_PARAM_MAX);
	return emit(arg, UKP_FETCH_STACK, n);
}

static int parse_var(const struct lang_def *def, struct peel *p, struct lang_arg *arg,
                     struct lang_value *val, struct err *err)
{
	if (slice_starts(p->base, "$retval")) {
		if (!def->ret)
			return lang_fail(err, -EINVAL, LANG_RETVAL_ON_PROBE, p->column, NULL);
		return parse_retval(p, arg, val, err);
	}
	if (slice_is(p->base, "$duration")) {
		if (!def->ret)
			return lang_fail(err, -EINVAL, LANG_DURATION_ON_PROBE, p->column, NULL);
		val->kind = LANG_VAL_DURATION;
		return emit(arg, UKP_FETCH_DURATION, 0);
	}
	if (slice_starts(p->base, "$stack"))
		return parse_stack(p, arg, err);
	if (slice_is(p->base, "$comm") || slice_is(p->base, "$COMM")) {
		val->kind = LANG_VAL_COMM;
		return emit(arg, UKP_FETCH_COMM, 0);
	}
	if (slice_starts(p->base, "$arg"))
		return parse_argn(def, p, arg, val, err);
	return lang_fail(err, -EINVAL, LANG_BAD_VAR, p->column,
	                 "it is one of $argN $stack $stackN $retval $duration $comm");
}

/* @ADDR and @SYM[+-OFF]: a number and one read through it. */
static int parse_memory(struct peel *p, struct lang_arg *arg, struct lang_value *val,
                        struct err *err)
{
	struct slice s = slice_from(p->base, 1);
	uint64_t addr = 0;
	int ret;

	if (s.n && s.p[0] == '+')
		return lang_fail(err, -EINVAL, LANG_FILE_ON_KPROBE, p->column, NULL);
	if (s.n && s.p[0] >= '0' && s.p[0] <= '9') {
		ret = lang_number(s, 0, &addr);
		if (ret)
			return lang_fail(err, ret, LANG_BAD_MEM_ADDR, p->column, NULL);
		p->index = 1;
	} else {
		memcpy(arg->sym, s.p, s.n);
		arg->sym_offset = INT64_MIN; /* lang_check_symbols() splits it */
		p->index = 2;
	}
	val->kind = LANG_VAL_MEM;
	emit(arg, UKP_FETCH_IMM, addr);
	return emit(arg, UKP_FETCH_DEREF, 0);
}

static int parse_imm(struct peel *p, struct lang_arg *arg, struct lang_value *val, struct err *err)
{
	struct slice s = slice_from(p->base, 1);
	uint64_t value = 0;
	int ret = -EINVAL;

	if (s.n && s.p[0] == '"') {
		if (s.n < 2 || s.p[s.n - 1] != '"')
			return lang_fail(err, -EINVAL, LANG_IMMSTR_NO_CLOSE,
			                 p->column + 1 + (int)s.n, NULL);
		val->kind = LANG_VAL_DATA;
		return emit(arg, UKP_FETCH_IMM, 0);
	}
	if (s.n && s.p[0] >= '0' && s.p[0] <= '9')
		ret = lang_number(s, 0, &value);
	else if (s.n && (s.p[0] == '-' || s.p[0] == '+'))
		ret = lang_signed(s.p[0] == '+' ? slice_from(s, 1) : s, 0, (int64_t *)&value);
	if (ret)
		return lang_fail(err, ret, LANG_BAD_IMM, p->column + 1, NULL);
	val->kind = LANG_VAL_IMM;
	return emit(arg, UKP_FETCH_IMM, value);
}

/* A bare name is a variable of the function's, which needs debug information. */
static int parse_name(const struct lang_def *def, struct peel *p, struct err *err)
{
	struct slice s = p->base;
	size_t at = 0;

	if (!lang_good_name(slice_head(s, 1)))
		return lang_fail(err, -EINVAL, LANG_BAD_FETCH_ARG, p->column, NULL);
	if (!is_entry_place(def))
		return lang_fail(err, -EINVAL, LANG_NOSUP_BTFARG, p->column, NULL);
	while (at < s.n && s.p[at] != '-' && s.p[at] != '.')
		at++;
	if (at < s.n && s.p[at] == '-' && (at + 1 == s.n || s.p[at + 1] != '>'))
		return lang_fail(err, -EINVAL, LANG_BAD_HYPHEN, p->column + (int)at, NULL);
	if (find_reg(s) >= 0)
		return lang_fail(err, -EOPNOTSUPP, LANG_NOSUP_BTFARG, p->column,
		                 "the register is %%%.*s", (int)s.n, s.p);
	return lang_fail(err, -EOPNOTSUPP, LANG_NOSUP_BTFARG, p->column,
	                 "arguments by name; use $argN or a register");
}

static int parse_reg(struct peel *p, struct lang_arg *arg, struct lang_value *val, struct err *err)
{
	struct slice name = slice_from(p->base, 1);
	int reg = find_reg(name), fpu = reg < 0 ? find_fpu(name) : -1;

	if (reg >= 0)
		return emit(arg, UKP_FETCH_REG, (uint64_t)reg);
	if (fpu < 0)
		return lang_fail(err, -EINVAL, LANG_BAD_REG_NAME, p->column,
		                 "it is one of ax bx cx dx si di bp sp ip flags r8-r15 cs ss "
		                 "orig_ax xmm0-xmm15 st0-st7");
	val->kind = fpu >= UKP_FPU_ST0 ? LANG_VAL_ST : LANG_VAL_XMM;
	return emit(arg, UKP_FETCH_FPU, (uint64_t)fpu);
}

static int parse_base(const struct lang_def *def, struct peel *p, struct lang_arg *arg,
                      struct lang_value *val, struct err *err)
{
	val->kind = LANG_VAL_PLAIN;
	arg->value_column = p->column;
	switch (p->base.n ? p->base.p[0] : '\0') {
	case '$':
		return parse_var(def, p, arg, val, err);
	case '%':
		return parse_reg(p, arg, val, err);
	case '@':
		return parse_memory(p, arg, val, err);
	case '\\':
		return parse_imm(p, arg, val, err);
	case '\0':
		return lang_fail(err, -EINVAL, LANG_BAD_FETCH_ARG, p->column, NULL);
	default:
		return parse_name(def, p, err);
	}
}

static int put_derefs(struct peel *p, struct lang_arg *arg, struct lang_value *val, struct err *err)
{
	for (unsigned int i = p->nr; i--;) {
		const struct level *l = &p->level[i];

		if (val->kind == LANG_VAL_COMM || val->kind == LANG_VAL_DATA)
			return lang_fail(err, -EINVAL, LANG_COMM_CANT_DEREF, l->column, NULL);
		if (val->kind == LANG_VAL_DURATION)
			return lang_fail(err, -EINVAL, LANG_DURATION_DEREF, l->column, NULL);
		if (val->kind == LANG_VAL_XMM || val->kind == LANG_VAL_ST)
			return lang_fail(err, -EINVAL, LANG_FPU_DEREF, l->column, NULL);
		if (++p->index == FETCH_END)
			return lang_fail(err, -EINVAL, LANG_TOO_MANY_OPS, l->column, NULL);
		if (l->offset != (int32_t)l->offset)
			return lang_fail(err, -EOPNOTSUPP, LANG_UNSUPPORTED, l->self,
			                 "offsets of 2 GiB and more");
		emit(arg, UKP_FETCH_DEREF, 0);
		arg->steps[arg->nr_steps - 1].off = (int32_t)l->offset;
		val->kind = l->user ? LANG_VAL_UMEM : LANG_VAL_MEM;
		val->column = l->column;
	}
	return 0;
}

int lang_parse_fetch(const struct lang_def *def, struct lang_arg *arg, struct slice body,
                     int column, struct lang_value *val, struct err *err)
{
	struct peel p = { .column = column };
	int ret;

	while (body.n && (body.p[0] == '+' || body.p[0] == '-')) {
		ret = peel_one(&p, &body, err);
		if (ret)
			return ret;
	}
	p.base = body;
	val->column = column;
	ret = parse_base(def, &p, arg, val, err);
	return ret ? ret : put_derefs(&p, arg, val, err);
}
