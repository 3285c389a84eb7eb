/* SPDX-License-Identifier: MIT */
/* The recorded lines, mutated: always the same ones, so a failure repeats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <libgen.h>

#include "unit/lang/fake_sym.h"
#include "unit/lang/check_line.h"

#define CASES 200000
#define LINES_MAX 1024
#define LEN_MAX 256 /* the long recorded lines would take all the time */

static char *lines[LINES_MAX];
static size_t nr_lines;
static uint64_t seed = 0x9e3779b97f4a7c15;

static size_t pick(size_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % n;
}

static int load(void **state)
{
	char dir[] = __FILE__, path[4096], *line = NULL;
	size_t size = 0;
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/oracle.tsv", dirname(dir));
	f = fopen(path, "r");
	while (f && nr_lines < LINES_MAX && getline(&line, &size, f) > 0) {
		char *rest = line;
		char *text = strsep(&rest, "\t") ? strsep(&rest, "\t") : NULL;

		if (text && strlen(text) < LEN_MAX)
			lines[nr_lines++] = strdup(text);
	}
	free(line);
	if (f)
		fclose(f);
	return nr_lines < 100;
}

static int unload(void **state)
{
	(void)state;
	while (nr_lines)
		free(lines[--nr_lines]);
	return 0;
}

/* Changes, drops, doubles, or takes from another line; text has room for twice its length. */
static void mutate(char *text)
{
	static const char special[] = "%$@\\+-(){}[]:;=,./#\"' \t\n0123456789abcxu_";
	static const char *const words[] = {
		"$arg1",       "$retval",   "+0(",      ":string", "$stack",
		"0x7fffffff",  "$duration", "@jiffies", "%return", "18446744073709551616",
		"$retval:f80", ":f64",      ":x128",    "%xmm1",   "%st0"
	};
	size_t len = strlen(text), at = pick(len + 1), n;
	const char *from;

	switch (pick(5)) {
	case 0:
		if (at < len)
			text[at] = special[pick(sizeof(special) - 1)];
		return;
	case 1:
		if (at < len)
			memmove(text + at, text + at + 1, len - at);
		return;
	case 2:
		if (at < len)
			text[at] = (char)(1 + pick(255));
		return;
	case 3:
		from = words[pick(NR(words))];
		n = strlen(from);
		break;
	default:
		from = lines[pick(nr_lines)];
		from += pick(strlen(from) + 1);
		n = pick(strlen(from) + 1);
		break;
	}
	if (len + n >= 2 * LEN_MAX)
		return;
	memmove(text + at + n, text + at, len - at + 1);
	memcpy(text + at, from, n);
}

static void mutated_definitions_are_refused_in_words_or_mean_what_they_show(void **state)
{
	char text[2 * LEN_MAX + 1];
	unsigned int accepted = 0;

	(void)state;
	for (int i = 0; i < CASES; i++) {
		const char *bad;
		struct lang_def *def;

		strcpy(text, lines[pick(nr_lines)]);
		for (size_t n = pick(4); n; n--)
			mutate(text);
		bad = check_line(text);
		if (bad)
			fail_msg("case %d: %s: '%s'", i, bad, text);
		if (!lang_parse(&def, text, NULL)) {
			accepted++;
			lang_free(def);
		}
	}
	print_message("%d cases, %u accepted\n", CASES, accepted);
	assert_true(accepted > CASES / 100); /* else it looks at refusals only */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			mutated_definitions_are_refused_in_words_or_mean_what_they_show, load,
			unload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
