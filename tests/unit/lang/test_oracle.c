/* SPDX-License-Identifier: MIT */
/*
 * The answers of a real kernel, line by line: errno, column, text, and what is
 * shown.  A row with a note is one that we answer otherwise on purpose; the
 * note says why and which errno we give.  Two differences hold for every row:
 * the default group, and that maxactive is shown only when it was given.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <libgen.h>

#include "unit/lang/fake_sym.h"
#include "unit/lang/run_line.h"

enum { ID, TEXT, RESULT, SHOWN, ERROR, CARET, NOTE, OURS, NR_COLS };

static const struct {
	const char *name;
	int code;
} codes[] = {
	{ "ok", 0 },           { "EINVAL", -EINVAL },
	{ "ENOENT", -ENOENT }, { "ERANGE", -ERANGE },
	{ "E2BIG", -E2BIG },   { "EILSEQ", -EILSEQ },
	{ "ENODEV", -ENODEV }, { "EEXIST", -EEXIST },
	{ "EBUSY", -EBUSY },   { "EOPNOTSUPP", -EOPNOTSUPP },
};

static int code_of(const char *name)
{
	for (size_t i = 0; i < NR(codes); i++)
		if (!strcmp(codes[i].name, name))
			return codes[i].code;
	fail_msg("no such result: %s", name);
	return 0;
}

static void unescape(char *s)
{
	char *out = s;

	for (; *s; s++) {
		if (*s == '\\' && s[1]) {
			s++;
			*out++ = *s == 'n' ? '\n' : *s == 't' ? '\t' : *s == 'r' ? '\r' : *s;
		} else {
			*out++ = *s;
		}
	}
	*out = '\0';
}

static void split(char *line, char *col[NR_COLS])
{
	static char none[] = "";

	line[strcspn(line, "\n")] = '\0';
	for (int i = 0; i < NR_COLS; i++) {
		col[i] = line ? strsep(&line, "\t") : none;
		unescape(col[i]);
	}
}

/* r10:kprobes/x becomes r:ukprobes/x: a default maxactive isn't shown. */
static void our_shown(char *out, size_t len, const char *text, const char *shown)
{
	bool given = strchr("rf", text[strspn(text, " \t")]) && strspn(text + 1, "0123456789");
	const char *colon = strchr(shown, ':');
	const char *group = "", *rest;

	if (!colon) {
		snprintf(out, len, "%s", shown);
		return;
	}
	rest = colon + 1;
	if (!strncmp(rest, "kprobes/", 8) || !strncmp(rest, "uprobes/", 8) ||
	    !strncmp(rest, "fprobes/", 8)) {
		group = "ukprobes/";
		rest += 8;
	}
	snprintf(out, len, "%.*s:%s%s", given ? (int)(colon - shown) : 1, shown, group, rest);
}

static bool same(char *col[NR_COLS], const struct line_result *r)
{
	char shown[8192];

	if (r->code != code_of(col[RESULT]))
		return false;
	if (!r->code) {
		our_shown(shown, sizeof(shown), col[TEXT], col[SHOWN]);
		return !strcmp(shown, r->shown);
	}
	if (!col[ERROR][0])
		return r->err.column == 0 && r->err.text[0];
	return !strncmp(r->err.text, col[ERROR], strlen(col[ERROR])) &&
	       r->err.column == atoi(col[CARET]);
}

static void report(char *col[NR_COLS], const struct line_result *r)
{
	print_error("%s '%s'\n  kernel %s %s %s '%s'\n  we     %d %d '%s' %s\n", col[ID], col[TEXT],
	            col[RESULT], col[CARET], col[SHOWN], col[ERROR], r->code, r->err.column,
	            r->err.text, r->shown ? r->shown : "");
}

struct tally {
	char reason[64];
	unsigned int nr;
};

static void count(struct tally *t, size_t max, const char *reason)
{
	size_t i;

	for (i = 0; i < max && t[i].nr && strcmp(t[i].reason, reason); i++)
		;
	assert_true(i < max);
	snprintf(t[i].reason, sizeof(t[i].reason), "%s", reason);
	t[i].nr++;
}

static void each_line_is_answered_as_the_kernel_answers_it(void **state)
{
	static struct tally tally[32];
	unsigned int rows = 0, agree = 0, wrong = 0;
	char dir[] = __FILE__, path[4096], *line = NULL, *col[NR_COLS];
	size_t size = 0;
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/oracle.tsv", dirname(dir));
	f = fopen(path, "r");
	assert_non_null(f);
	while (getline(&line, &size, f) > 0) {
		struct line_result r;
		bool good;

		if (line[0] == '#' && line[1] == ' ')
			continue;
		split(line, col);
		run_line(&r, col[TEXT]);
		good = same(col, &r);
		rows++;
		if (col[NOTE][0]) {
			count(tally, NR(tally), col[NOTE]);
			good = !good && r.code == code_of(col[OURS]);
		} else {
			agree += good;
		}
		if (!good) {
			report(col, &r);
			wrong++;
		}
		line_free(&r);
	}
	free(line);
	fclose(f);
	print_message("%u rows: %u as the kernel, by intention otherwise:\n", rows, agree);
	for (size_t i = 0; i < NR(tally) && tally[i].nr; i++)
		print_message("  %4u %s\n", tally[i].nr, tally[i].reason);
	assert_true(rows > 400);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_line_is_answered_as_the_kernel_answers_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
