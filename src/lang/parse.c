/* SPDX-License-Identifier: MIT */
/*
 * A definition line.  The order of the checks is the kernel's, for the first
 * error is the one that is reported: maxactive, place, names, arguments from
 * the left.  What needs the target comes later, in lang_resolve().
 */
#include "lang/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The kernel logs nothing here; a user gets a sentence all the same. */
static int parse_letter(struct lang_def *def, const struct lang_words *w, struct err *err)
{
	struct slice s;
	char next;

	if (!w->nr)
		return lang_fail(err, -EINVAL, LANG_SYNTAX, 0, "it is empty");
	s = w->word[0].s;
	next = s.n > 1 ? s.p[1] : ':';
	if (s.p[0] == '-' && s.n > 2 && s.p[1] == ':')
		return lang_fail(err, -EOPNOTSUPP, LANG_UNSUPPORTED, 0, "deletion by definition");
	if (strchr("tes", s.p[0]) && (next == ':' || is_digit(next)))
		return lang_fail(err, -EOPNOTSUPP, LANG_UNSUPPORTED, 0,
		                 "'%c' probes; p, r and f are there", s.p[0]);
	if (!strchr("prf", s.p[0]) || (s.p[0] == 'f' && next != ':' && !is_digit(next)))
		return lang_fail(err, -EINVAL, LANG_SYNTAX, 0,
		                 "it begins with p (at an address), r (when a function returns) or "
		                 "f (functions)");
	if (w->nr < 2)
		return lang_fail(err, -EINVAL, LANG_SYNTAX, 0,
		                 "the place is missing: %c[:[GRP/]EVENT] %s [ARGS]", s.p[0],
		                 s.p[0] == 'f' ? "[MOD:]GLOB" : "PLACE");
	def->ret = s.p[0] == 'r';
	def->many = s.p[0] == 'f' ? LANG_FUNCS : LANG_ONE;
	return 0;
}

static int parse_maxactive(struct lang_def *def, struct slice head, struct err *err)
{
	uint64_t value;

	if (head.n < 2 || !is_digit(head.p[1]))
		return 0;
	if (!def->ret && def->many != LANG_FUNCS)
		return lang_fail(err, -EINVAL, LANG_BAD_MAXACT_TYPE, 1, NULL);
	if (lang_number(slice_from(head, 1), 0, &value) || !value || value > UINT32_MAX)
		return lang_fail(err, -EINVAL, LANG_BAD_MAXACT, 1, NULL);
	if (value > LANG_MAXACTIVE)
		return lang_fail(err, -EINVAL, LANG_MAXACT_TOO_BIG, 1, "at most %d",
		                 LANG_MAXACTIVE);
	def->maxactive = (uint32_t)value;
	return 0;
}

static void store_name(char *to, struct slice s)
{
	memcpy(to, s.p, s.n);
	to[s.n] = '\0';
}

/* Cuts GRP/ or GRP. off s. */
static int parse_group(struct lang_def *def, struct slice *s, int *column, struct err *err)
{
	size_t sep = slice_find(*s, '/');

	if (sep == s->n)
		sep = slice_find(*s, '.');
	if (sep == s->n)
		return 0;
	if (!sep)
		return lang_fail(err, -EINVAL, LANG_NO_GROUP_NAME, *column, NULL);
	if (sep >= LANG_NAME_MAX)
		return lang_fail(err, -EINVAL, LANG_GROUP_TOO_LONG, *column, "at most %d bytes",
		                 LANG_NAME_MAX - 1);
	if (!lang_good_group(slice_head(*s, sep)))
		return lang_fail(err, -EINVAL, LANG_BAD_GROUP_NAME, *column, NULL);
	store_name(def->group, slice_head(*s, sep));
	*s = slice_from(*s, sep + 1);
	*column += (int)sep + 1;
	return 0;
}

/* s is what follows the colon. */
static int parse_event(struct lang_def *def, struct slice s, int column, struct err *err)
{
	struct slice whole = s;
	int ret = parse_group(def, &s, &column, err);

	if (ret)
		return ret;
	if (!s.n && s.p != whole.p)
		return 0; /* GRP/ alone: the event is named by its place */
	if (!s.n)
		return lang_fail(err, -EINVAL, LANG_NO_EVENT_NAME, column, NULL);
	if (s.n >= LANG_NAME_MAX)
		return lang_fail(err, -EINVAL, LANG_EVENT_TOO_LONG, column, "at most %d bytes",
		                 LANG_NAME_MAX - 1);
	if (!lang_good_name(s))
		return lang_fail(err, -EINVAL, LANG_BAD_EVENT_NAME, column, NULL);
	store_name(def->event, s);
	return 0;
}

static int parse_args(struct lang_def *def, const struct lang_words *w, struct err *err)
{
	size_t nr = w->nr - 2;
	int ret;

	/* No name of C's, and so nobody's argument: what other tools filter with. */
	for (size_t i = 2; i < w->nr; i++)
		if (slice_is(w->word[i].s, "if"))
			return lang_fail(err, -EOPNOTSUPP, LANG_UNSUPPORTED, w->word[i].column,
			                 "filters; every hit is recorded");
	if (nr > UKP_EVENT_ARGS)
		return lang_fail(err, -E2BIG, LANG_TOO_MANY_ARGS, w->word[2].column, "at most %d",
		                 UKP_EVENT_ARGS);
	ret = lang_check_meta(def, w, err);
	if (ret || !nr)
		return ret;
	def->args = calloc(nr, sizeof(*def->args));
	if (!def->args)
		return err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < nr; i++) {
		ret = lang_parse_arg(def, (unsigned int)i, &w->word[i + 2], err);
		if (ret)
			return ret;
		def->nr_args++;
	}
	return lang_check_symbols(def, err);
}

static int parse_words(struct lang_def *def, const struct lang_words *w, void *arg, struct err *err)
{
	struct slice first;
	size_t colon;
	int ret;

	ret = parse_letter(def, w, err);
	if (ret)
		return ret;
	first = w->word[0].s;
	colon = slice_find(first, ':');
	ret = parse_maxactive(def, slice_head(first, colon), err);
	if (!ret && def->many == LANG_FUNCS)
		ret = lang_parse_glob(def, w, err);
	else if (!ret)
		ret = lang_parse_place(def, w->word[1].s, w->word[1].column, err);
	if (!ret && colon < first.n)
		ret = parse_event(def, slice_from(first, colon + 1), (int)colon + 1, err);
	if (ret)
		return ret;
	if (!def->event[0])
		lang_auto_event(def);
	return parse_args(def, w, err);
}

/* The way of both kinds of text: words, then a def that owns their text. */
int lang_parse_with(struct lang_def **ret, const char *text, lang_words_fn fn, void *arg,
                    struct err *err)
{
	struct lang_def *def = calloc(1, sizeof(*def));
	struct lang_words w;
	int code;

	*ret = NULL;
	if (!def)
		return err_set(err, -ENOMEM, "out of memory");
	strcpy(def->group, "ukprobes");
	code = lang_split(&w, text, err);
	if (!code)
		code = fn(def, &w, arg, err);
	if (code) {
		lang_free(def);
	} else {
		def->text = w.text;
		w.text = NULL;
		*ret = def;
	}
	lang_words_free(&w);
	return code;
}

int lang_parse(struct lang_def **ret, const char *text, struct err *err)
{
	return lang_parse_with(ret, text, parse_words, NULL, err);
}

void lang_free(struct lang_def *def)
{
	if (!def)
		return;
	free(def->text);
	free(def->place.module);
	free(def->place.sym);
	free(def->args);
	free(def);
}
