/* SPDX-License-Identifier: MIT */
/*
 * PLACE: [MOD:]SYM[+OFFS], 0xADDR, PATH:0xOFFSET, each with %return, GLOB+*, and
 * GLOB where functions return; GLOB of f; and the event name that is made of it.  MOD may be a path
 * with colons in it, so the last colon separates.
 */
#include "lang/private.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *dup(struct slice s)
{
	return strndup(s.p, s.n);
}

/* The kernel takes the first '%'; so a path with one in it can't be probed by name. */
static int cut_suffix(struct lang_def *def, struct slice *s, int column, struct err *err)
{
	size_t at = slice_find(*s, '%');

	if (at == s->n)
		return 0;
	if (!slice_is(slice_from(*s, at), "%return"))
		return lang_fail(err, -EINVAL, LANG_BAD_ADDR_SUFFIX, column + (int)at,
		                 "only %%return may follow a symbol");
	s->n = at;
	def->ret = true;
	return 0;
}

static size_t last_colon(struct slice s)
{
	const char *hit = s.n ? memrchr(s.p, ':', s.n) : NULL;

	return hit ? (size_t)(hit - s.p) : s.n;
}

static int parse_file(struct lang_def *def, struct slice s, size_t colon, int column,
                      struct err *err)
{
	struct slice num = slice_from(s, colon + 1);
	size_t brace = slice_find(num, '(');
	uint64_t offset;

	column += (int)colon + 1;
	if (brace < num.n)
		return lang_fail(err, -EOPNOTSUPP, LANG_UNSUPPORTED, column + (int)brace,
		                 "reference counters");
	if (lang_number(num, 0, &offset) || offset > INT64_MAX)
		return lang_fail(err, -EINVAL, LANG_BAD_UPROBE_OFFS, column,
		                 "it is a number of bytes in the file, as in PATH:0x1234");
	def->place.kind = LANG_FILE;
	def->place.offset = (int64_t)offset;
	def->place.module = dup(slice_head(s, colon));
	return def->place.module ? 0 : err_set(err, -ENOMEM, "out of memory");
}

static bool is_glob(struct slice s)
{
	return slice_find(s, '*') < s.n || slice_find(s, '?') < s.n || slice_find(s, '[') < s.n;
}

static int parse_symbol(struct lang_def *def, struct slice s, int column, struct err *err)
{
	size_t colon = last_colon(s), sign;
	struct slice sym = colon < s.n ? slice_from(s, colon + 1) : s;
	int64_t offset = 0;

	for (sign = 0; sign < sym.n && sym.p[sign] != '+' && sym.p[sign] != '-'; sign++)
		;
	if (slice_is(slice_from(sym, sign), "+*"))
		def->many = LANG_INSNS;
	else if (sign < sym.n && lang_signed(slice_from(sym, sign), 0, &offset))
		return lang_fail(err, -EINVAL, LANG_BAD_PROBE_ADDR, column,
		                 "'%.*s' is not an offset", (int)(sym.n - sign), sym.p + sign);
	sym.n = sign;
	if (offset < 0 || offset > UINT32_MAX)
		return lang_fail(err, -EINVAL, LANG_BAD_PROBE_ADDR, column,
		                 "the offset must lie inside the function");
	/* Nothing beside a colon: the kernel takes it for a module to come; resolving fails. */
	if ((!sym.n && colon == s.n) || (sym.n && sym.p[0] >= '0' && sym.p[0] <= '9'))
		return lang_fail(err, -EINVAL, LANG_BAD_PROBE_ADDR, column,
		                 "it is [MOD:]SYM[+OFFS], 0xADDR or PATH:0xOFFSET");
	/* Only a landing pad can be in front of an entry: resolving will look. */
	if (def->ret && ((offset && offset != LANG_ENDBR_LEN) || def->many == LANG_INSNS))
		return lang_fail(err, -EINVAL, LANG_BAD_RETPROBE, column, NULL);
	/* Returns of all that match, as f has it. */
	if (def->ret && !offset && is_glob(sym))
		def->many = LANG_FUNCS;
	def->place.kind = LANG_SYM;
	def->place.offset = offset;
	def->place.sym = dup(sym);
	def->place.module = colon < s.n ? dup(slice_head(s, colon)) : NULL;
	if (!def->place.sym || (colon < s.n && !def->place.module))
		return err_set(err, -ENOMEM, "out of memory");
	return 0;
}

int lang_parse_place(struct lang_def *def, struct slice s, int column, struct err *err)
{
	size_t colon;
	int ret;

	def->place.column = column;
	if (!lang_number(s, 0, &def->place.addr)) {
		def->place.kind = LANG_ADDR;
		return 0;
	}
	def->place.addr = 0;
	ret = cut_suffix(def, &s, column, err);
	if (ret)
		return ret;
	colon = last_colon(s);
	if (colon && colon + 1 < s.n && s.p[colon + 1] >= '0' && s.p[colon + 1] <= '9')
		return parse_file(def, s, colon, column, err);
	return parse_symbol(def, s, column, err);
}

/* As the kernel finds it: an argument that is, or begins with, the return value. */
static bool wants_retval(const struct lang_words *w)
{
	for (size_t i = 2; i < w->nr; i++) {
		const char *at = memmem(w->word[i].s.p, w->word[i].s.n, "$retval", 7);
		struct slice rest;

		if (!at)
			continue;
		rest = slice_from(w->word[i].s, (size_t)(at + 7 - w->word[i].s.p));
		if (!rest.n || (*rest.p != '_' && !isalnum((unsigned char)*rest.p)))
			return true;
	}
	return false;
}

int lang_parse_glob(struct lang_def *def, const struct lang_words *w, struct err *err)
{
	struct slice s = w->word[1].s;
	int column = w->word[1].column, ret;
	size_t colon;

	def->place.column = column;
	ret = cut_suffix(def, &s, column, err);
	if (ret)
		return ret;
	if (!def->ret)
		def->ret = wants_retval(w);
	if (def->maxactive && !def->ret)
		return lang_fail(err, -EINVAL, LANG_BAD_MAXACT_TYPE, 1, NULL);
	colon = last_colon(s);
	def->place.kind = LANG_SYM;
	def->place.sym = dup(colon < s.n ? slice_from(s, colon + 1) : s);
	def->place.module = colon < s.n ? dup(slice_head(s, colon)) : NULL;
	if (!def->place.sym || (colon < s.n && !def->place.module))
		return err_set(err, -ENOMEM, "out of memory");
	if (!*def->place.sym)
		return lang_fail(err, -EINVAL, LANG_FAIL_REG_PROBE, column,
		                 "the name is missing: [MOD:]GLOB, * for all functions");
	return 0;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* SYM__entry as the kernel has it; a glob without a letter is named by its module. */
static void name_funcs(struct lang_def *def)
{
	const char *sym = def->place.sym, *end = def->ret ? "exit" : "entry";
	const char *base = def->place.module ? base_name(def->place.module) : "all";

	if (sym[strspn(sym, "*?[]")])
		snprintf(def->event, sizeof(def->event), "%s%.*s__%s",
		         *sym >= '0' && *sym <= '9' ? "_" : "", LANG_NAME_MAX - 9, sym, end);
	else
		snprintf(def->event, sizeof(def->event), "%.*s__%s",
		         (int)strnlen(base, strcspn(base, ".-_")), base, end);
}

/* As the kernel names them, cut to what a name may be long. */
void lang_auto_event(struct lang_def *def)
{
	const struct lang_place *pl = &def->place;
	char c = def->ret ? 'r' : 'p';
	const char *base = pl->module ? base_name(pl->module) : "";

	switch (pl->kind) {
	case LANG_SYM:
		if (def->many == LANG_FUNCS)
			name_funcs(def);
		else if (def->many == LANG_INSNS)
			snprintf(def->event, sizeof(def->event), "p_%s%s%s_all", base,
			         pl->module ? "_" : "", pl->sym);
		else
			snprintf(def->event, sizeof(def->event), "%c_%s%s%s_%" PRId64, c, base,
			         pl->module ? "_" : "", pl->sym, pl->offset);
		break;
	case LANG_ADDR:
		snprintf(def->event, sizeof(def->event), "%c_0x%" PRIx64, c, pl->addr);
		break;
	case LANG_FILE:
		snprintf(def->event, sizeof(def->event), "%c_%.*s_0x%" PRIx64, c,
		         (int)strcspn(base, ".-_"), base, (uint64_t)pl->offset);
		break;
	}
	for (char *p = def->event; *p; p++)
		if (!lang_good_name((struct slice){ p, 1 }) && !(*p >= '0' && *p <= '9'))
			*p = '_';
}
