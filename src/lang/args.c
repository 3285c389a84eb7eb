/* SPDX-License-Identifier: MIT */
/*
 * An argument: [NAME=]FETCH[:TYPE].  The value is made by fetch.c; here are the
 * name, the agreement of value and type, and how it is stored.
 */
#include "lang/private.h"

#include <stdio.h>
#include <string.h>

/*
 * The kernel replaces $arg* and plain $argN by names before it looks at the
 * arguments one by one, so errors in these come before all others.
 */
int lang_check_meta(const struct lang_def *def, const struct lang_words *w, struct err *err)
{
	bool inside = def->place.kind == LANG_SYM && !def->ret &&
	              (def->many == LANG_INSNS ||
	               (def->place.offset && def->place.offset != LANG_ENDBR_LEN));
	int all = -1;

	for (size_t i = 2; i < w->nr; i++) {
		struct slice s = w->word[i].s;
		int column = w->word[i].column;
		uint64_t n;
		size_t end;

		if (slice_starts(s, "$arg*")) {
			if (inside)
				return lang_fail(err, -EINVAL, LANG_NOFENTRY_ARGS, column, NULL);
			if (all >= 0)
				return lang_fail(err, -EINVAL, LANG_DOUBLE_ARGS, column, NULL);
			all = column;
		} else if (slice_starts(s, "$arg") && s.n > 4 && s.p[4] >= '0' && s.p[4] <= '9') {
			end = 4 + lang_digits(slice_from(s, 4), 10, &n);
			if (end < s.n && s.p[end] != ':')
				return lang_fail(err, -ENOENT, LANG_BAD_VAR, column, NULL);
		}
	}
	if (all >= 0)
		return lang_fail(err, -EOPNOTSUPP, LANG_NOSUP_BTFARG, all,
		                 "write $arg1 $arg2 ... instead of $arg*");
	return 0;
}

static bool name_taken(const struct lang_def *def, unsigned int i, const char *name)
{
	static const char *const reserved[] = {
		"common_type", "common_flags", "common_preempt_count", "common_pid",
		"common_tgid", "__probe_ip",   "__probe_ret_ip",       "__probe_func",
	};

	for (size_t j = 0; j < sizeof(reserved) / sizeof(reserved[0]); j++)
		if (!strcmp(name, reserved[j]))
			return true;
	for (unsigned int j = 0; j < i; j++)
		if (!strcmp(name, def->args[j].name))
			return true;
	return false;
}

/* Names the argument and leaves what follows the '=' in body. */
static int parse_name(struct lang_def *def, unsigned int i, const struct lang_word *word,
                      struct slice *body, struct err *err)
{
	struct lang_arg *arg = &def->args[i];
	size_t eq = slice_find(word->s, '=');
	struct slice name = slice_head(word->s, eq);

	*body = word->s;
	if (eq < word->s.n) {
		if (eq > LANG_ARG_NAME_MAX)
			return lang_fail(err, -EINVAL, LANG_ARG_NAME_TOO_LONG, word->column,
			                 "at most %d bytes", LANG_ARG_NAME_MAX);
		if (!eq)
			return lang_fail(err, -EINVAL, LANG_NO_ARG_NAME, word->column, NULL);
		if (!lang_good_name(name))
			return lang_fail(err, -EINVAL, LANG_BAD_ARG_NAME, word->column, NULL);
		*body = slice_from(word->s, eq + 1);
	} else {
		name.n = slice_find(word->s, ':');
		if (!lang_good_name(name) || name.n > LANG_ARG_NAME_MAX)
			name.n = 0;
	}
	if (name.n)
		snprintf(arg->name, sizeof(arg->name), "%.*s", (int)name.n, name.p);
	else
		snprintf(arg->name, sizeof(arg->name), "arg%u", i + 1);
	if (name_taken(def, i, arg->name))
		return lang_fail(err, -EINVAL, LANG_USED_ARG_NAME, word->column, NULL);
	return 0;
}

static int check_string(const struct lang_spec *spec, const struct lang_value *val, int column,
                        struct err *err)
{
	if (!spec->is_string)
		return 0;
	if (spec->is_symstr) {
		if (val->kind == LANG_VAL_UMEM || val->kind == LANG_VAL_COMM ||
		    val->kind == LANG_VAL_DATA)
			return lang_fail(err, -EINVAL, LANG_BAD_SYMSTRING, column, NULL);
		return 0;
	}
	if (val->kind == LANG_VAL_PLAIN || val->kind == LANG_VAL_ARG || val->kind == LANG_VAL_XMM ||
	    val->kind == LANG_VAL_ST)
		return lang_fail(err, -EINVAL, LANG_BAD_STRING, column,
		                 "a string in memory is +0(...)");
	return 0;
}

/* Why no value of this kind can have this type, or NULL; what lies in memory has any. */
static const char *bad_width(const struct lang_spec *spec, const struct lang_value *val)
{
	bool f80 = spec->kind == LANG_F && spec->size == 10;

	switch (val->kind) {
	case LANG_VAL_MEM:
	case LANG_VAL_UMEM:
	case LANG_VAL_RETVAL:
		return NULL;
	case LANG_VAL_ST:
		return f80 ? NULL : "x87 registers have the type f80 alone";
	case LANG_VAL_XMM:
		return f80 ? "vector registers hold f32 and f64; f80 is for %stN" : NULL;
	case LANG_VAL_ARG:
		if (spec->kind == LANG_F)
			return "$argN are integers and pointers; at entries %xmm0 to %xmm7 hold "
			       "the others";
		break;
	case LANG_VAL_IMM:
		if (spec->kind == LANG_F)
			return "constants are integers";
		break;
	default:
		break;
	}
	if (f80)
		return "f80 is for $retval, %stN and memory";
	return spec->size > 8 && spec->kind <= LANG_F ? "it is for $retval, %xmmN and memory"
	                                              : NULL;
}

/* What the kernel checks once it has the value; columns are as it counts them. */
static int check_type(const struct lang_spec *spec, const struct lang_value *val, int body_column,
                      struct err *err)
{
	int column = val->column + spec->column - body_column;
	int ret = check_string(spec, val, column, err);

	if (ret)
		return ret;
	if (!lang_good_bitfield(spec))
		return lang_fail(err, -EINVAL, LANG_BAD_BITFIELD, column, NULL);
	if (spec->count && val->kind != LANG_VAL_MEM && val->kind != LANG_VAL_UMEM)
		return lang_fail(err, -EINVAL, LANG_BAD_STRING, column,
		                 "an array lies in memory, as +0(...) does, and arrays are not "
		                 "supported yet");
	if (spec->count)
		return lang_fail(err, -EOPNOTSUPP, LANG_UNSUPPORTED, spec->array_column, "arrays");
	if (spec->unsupported)
		return lang_fail(err, -EOPNOTSUPP, LANG_UNSUPPORTED, spec->column, "%s",
		                 spec->unsupported);
	if (bad_width(spec, val) && val->kind != LANG_VAL_DURATION)
		return lang_fail(err, -EINVAL, LANG_BAD_TYPE, spec->column, "%s",
		                 bad_width(spec, val));
	if (val->kind == LANG_VAL_DATA)
		return lang_fail(err, -EOPNOTSUPP, LANG_UNSUPPORTED, val->column,
		                 "immediate strings");
	if (val->kind == LANG_VAL_DURATION && spec->type.p && !slice_is(spec->type, "u64") &&
	    !slice_is(spec->type, "s64"))
		return lang_fail(err, -EINVAL, LANG_DURATION_TYPE, spec->column, NULL);
	return 0;
}

/* The last step: a DEREF becomes the read of the right size. */
static void store(struct lang_arg *arg, const struct lang_spec *spec, const struct lang_value *val)
{
	struct ukp_fetch *last = &arg->steps[arg->nr_steps - 1];
	bool mem = val->kind == LANG_VAL_MEM || val->kind == LANG_VAL_UMEM;

	arg->type = spec->kind;
	arg->size = spec->size;
	if (!mem)
		last = &arg->steps[arg->nr_steps++];
	if (val->kind == LANG_VAL_RETVAL && spec->kind == LANG_F) {
		arg->steps[0].op = UKP_FETCH_FPU;
		arg->steps[0].imm = spec->size > 8 ? UKP_FPU_ST0 : UKP_FPU_XMM0;
	}
	if (val->kind == LANG_VAL_COMM) {
		arg->type = LANG_COMM;
		arg->size = 0;
		last->op = UKP_FETCH_ST_NONE;
	} else if (spec->is_string) {
		last->op = UKP_FETCH_ST_STRING;
	} else {
		last->op = mem ? UKP_FETCH_ST_MEM : UKP_FETCH_ST_RAW;
	}
	if (val->kind == LANG_VAL_DURATION)
		arg->type = LANG_NS;
	last->size = arg->size;
}

int lang_parse_arg(struct lang_def *def, unsigned int i, const struct lang_word *word,
                   struct err *err)
{
	struct lang_arg *arg = &def->args[i];
	struct lang_spec spec = { 0 };
	struct lang_value val;
	struct slice body;
	int ret;

	ret = parse_name(def, i, word, &body, err);
	if (ret)
		return ret;
	arg->column = word->column + (int)(body.p - word->s.p);
	if (body.n > LANG_ARG_EXPR_MAX)
		return lang_fail(err, -E2BIG, LANG_ARG_TOO_LONG, arg->column, "at most %d bytes",
		                 LANG_ARG_EXPR_MAX);
	if (!body.n)
		return lang_fail(err, -EINVAL, LANG_NO_ARG_BODY, arg->column, NULL);
	memcpy(arg->expr, body.p, body.n);
	ret = lang_cut_type(&body, arg->column, &spec, err);
	if (!ret)
		ret = lang_find_type(body, &spec, err);
	if (!ret)
		ret = lang_parse_fetch(def, arg, body, arg->column, &val, err);
	if (!ret)
		ret = check_type(&spec, &val, arg->column, err);
	if (!ret)
		store(arg, &spec, &val);
	return ret;
}

/* The kernel splits @SYM+OFFS when it registers the event, and places errors there. */
int lang_check_symbols(struct lang_def *def, struct err *err)
{
	int column = def->place.column;

	for (unsigned int i = 0; i < def->nr_args; i++) {
		struct lang_arg *arg = &def->args[i];
		struct slice s = { arg->sym, strlen(arg->sym) };
		size_t sign = strcspn(arg->sym, "+-");

		if (arg->steps[0].op != UKP_FETCH_IMM || arg->sym_offset != INT64_MIN)
			continue;
		arg->sym_offset = 0;
		if (sign < s.n && lang_signed(slice_from(s, sign), 0, &arg->sym_offset))
			return lang_fail(err, -EINVAL, LANG_FAIL_REG_PROBE, column,
			                 "'%s' in %s is not an offset", arg->sym + sign, arg->name);
		if (!sign)
			return lang_fail(err, -ENOENT, LANG_BAD_PROBE_ADDR, column,
			                 "no symbol behind the @ in %s", arg->name);
		arg->sym[sign] = '\0';
	}
	return 0;
}
