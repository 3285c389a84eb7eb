/* SPDX-License-Identifier: MIT */
/*
 * Words and numbers.  A line is cut at white space, as the kernel does it, and
 * what follows a '#' is a comment.  Numbers are read by the kernel's rules:
 * 0x and 0 prefixes, the whole text or nothing, overflow is -ERANGE.
 */
#include "lang/private.h"

#include <stdlib.h>
#include <string.h>

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t count_words(const char *text, size_t len)
{
	size_t nr = 0;

	for (size_t i = 0; i < len; i++)
		if (!is_space(text[i]) && (!i || is_space(text[i - 1])))
			nr++;
	return nr;
}

/* A second line would silently become arguments of the first. */
static bool second_line(const char *text)
{
	const char *nl = strchr(text, '\n');

	return nl && nl[strspn(nl, " \t\n\v\f\r")];
}

int lang_split(struct lang_words *w, const char *text, struct err *err)
{
	size_t len, out = 0;

	memset(w, 0, sizeof(*w));
	if (second_line(text))
		return lang_fail(err, -EINVAL, LANG_SYNTAX, 0, "more than one line");
	len = strcspn(text, "#");
	if (strlen(text) > LANG_LINE_MAX)
		return lang_fail(err, -EINVAL, LANG_SYNTAX, 0, "the line is longer than %d bytes",
		                 LANG_LINE_MAX);
	w->text = calloc(1, len + 1);
	w->word = calloc(count_words(text, len) + 1, sizeof(*w->word));
	if (!w->text || !w->word) {
		lang_words_free(w);
		return err_set(err, -ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < len;) {
		size_t start;

		if (is_space(text[i])) {
			i++;
			continue;
		}
		if (out)
			w->text[out++] = ' ';
		start = out;
		while (i < len && !is_space(text[i]))
			w->text[out++] = text[i++];
		w->word[w->nr].s = (struct slice){ w->text + start, out - start };
		w->word[w->nr++].column = (int)start;
	}
	return 0;
}

void lang_words_free(struct lang_words *w)
{
	free(w->text);
	free(w->word);
	w->text = NULL;
	w->word = NULL;
}

struct slice slice_from(struct slice s, size_t from)
{
	return (struct slice){ s.p + from, s.n - from };
}

struct slice slice_head(struct slice s, size_t n)
{
	return (struct slice){ s.p, n };
}

size_t slice_find(struct slice s, char c)
{
	const char *hit = s.n ? memchr(s.p, c, s.n) : NULL;

	return hit ? (size_t)(hit - s.p) : s.n;
}

bool slice_is(struct slice s, const char *text)
{
	return s.n == strlen(text) && !memcmp(s.p, text, s.n);
}

bool slice_starts(struct slice s, const char *text)
{
	return s.n >= strlen(text) && !memcmp(s.p, text, strlen(text));
}

static unsigned int digit_of(char c)
{
	if (is_digit(c))
		return (unsigned int)(c - '0');
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? (unsigned int)(c - 'a') + 10 : 99;
}

/* Resolves base 0 by the prefix and steps over "0x". */
static size_t fix_base(struct slice s, unsigned int *base)
{
	bool hex = s.n > 2 && s.p[0] == '0' && (s.p[1] | 0x20) == 'x' && digit_of(s.p[2]) < 16;

	if (!*base)
		*base = hex ? 16 : s.n && s.p[0] == '0' ? 8 : 10;
	return *base == 16 && hex ? 2 : 0;
}

/* Returns the digits taken; *over: the value does not fit. */
static size_t digits(struct slice s, unsigned int base, uint64_t *value, bool *over)
{
	size_t i;

	*value = 0;
	*over = false;
	for (i = 0; i < s.n && digit_of(s.p[i]) < base; i++)
		if (__builtin_mul_overflow(*value, (uint64_t)base, value) ||
		    __builtin_add_overflow(*value, (uint64_t)digit_of(s.p[i]), value))
			*over = true;
	return i;
}

static int number(struct slice s, unsigned int base, uint64_t *value)
{
	size_t n;
	bool over;

	s = slice_from(s, fix_base(s, &base));
	n = digits(s, base, value, &over);
	if (over)
		return -ERANGE;
	return n && n == s.n ? 0 : -EINVAL;
}

int lang_number(struct slice s, unsigned int base, uint64_t *value)
{
	if (s.n && s.p[0] == '+')
		s = slice_from(s, 1);
	return number(s, base, value);
}

int lang_signed(struct slice s, unsigned int base, int64_t *value)
{
	bool minus = s.n && s.p[0] == '-';
	uint64_t abs;
	int ret;

	ret = minus ? number(slice_from(s, 1), base, &abs) : lang_number(s, base, &abs);
	if (ret)
		return ret;
	if (abs > (uint64_t)INT64_MAX + minus)
		return -ERANGE;
	*value = (int64_t)(minus ? -abs : abs);
	return 0;
}

size_t lang_digits(struct slice s, unsigned int base, uint64_t *value)
{
	size_t skip = fix_base(s, &base);
	bool over;

	return skip + digits(slice_from(s, skip), base, value, &over);
}

static bool good(struct slice s, bool hyphen)
{
	if (!s.n || (!is_alpha(s.p[0]) && s.p[0] != '_'))
		return false;
	for (size_t i = 1; i < s.n; i++)
		if (!is_alpha(s.p[i]) && !is_digit(s.p[i]) && s.p[i] != '_' &&
		    !(hyphen && s.p[i] == '-'))
			return false;
	return true;
}

bool lang_good_name(struct slice s)
{
	return good(s, false);
}

bool lang_good_group(struct slice s)
{
	return good(s, true);
}
