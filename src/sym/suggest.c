/* SPDX-License-Identifier: MIT */
/*
 * "Did you mean …?": the functions whose names are nearest to a misspelt one.
 *
 * In order: the same but for case; the same but for leading underscores; names
 * that begin with it; then by edit distance (swapped neighbours count one), at
 * most a third of the name's length.
 */
#include "sym/internal.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define LEN_MAX 64
#define MAX_DISTANCE 4
#define MAX_SUGGESTIONS 16

enum {
	SCORE_CASE = 0,
	SCORE_UNDERSCORE = 1,
	SCORE_DISTANCE = 2,
	SCORE_PREFIX = 5,
	SCORE_NONE = 99
};

static unsigned int min3(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int m = a < b ? a : b;

	return m < c ? m : c;
}

/* Edit distance, or limit + 1 as soon as it is certain to be more. */
static unsigned int distance(const char *a, size_t la, const char *b, size_t lb, unsigned int limit)
{
	unsigned char rows[3][LEN_MAX + 1];
	unsigned char *two = rows[0], *one = rows[1], *row = rows[2];

	for (size_t j = 0; j <= lb; j++)
		one[j] = (unsigned char)j;
	for (size_t i = 1; i <= la; i++) {
		unsigned int least = row[0] = (unsigned char)i;
		unsigned char *spare = two;

		for (size_t j = 1; j <= lb; j++) {
			unsigned int cost = a[i - 1] != b[j - 1];
			unsigned int d = min3(row[j - 1] + 1u, one[j] + 1u, one[j - 1] + cost);

			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    two[j - 2] + 1u < d)
				d = two[j - 2] + 1u;
			row[j] = (unsigned char)d;
			least = d < least ? d : least;
		}
		if (least > limit)
			return limit + 1;
		two = one;
		one = row;
		row = spare;
	}
	return one[lb];
}

static unsigned int score(const char *want, size_t len, const char *name)
{
	size_t n = strnlen(name, LEN_MAX + 1), skip;
	unsigned int limit = len < 3                  ? 0
	                     : len / 3 > MAX_DISTANCE ? MAX_DISTANCE
	                                              : (unsigned)len / 3;
	unsigned int d;

	if (n > LEN_MAX)
		return SCORE_NONE;
	if (n == len && !strcasecmp(want, name))
		return SCORE_CASE;
	skip = strspn(name, "_");
	if ((skip || *want == '_') && !strcasecmp(want + strspn(want, "_"), name + skip))
		return SCORE_UNDERSCORE;
	if (len >= 3 && n > len && !strncasecmp(want, name, len))
		return SCORE_PREFIX;
	if (n + limit < len || n > len + limit)
		return SCORE_NONE;
	d = distance(want, len, name, n, limit);
	return d > limit ? (unsigned int)SCORE_NONE : SCORE_DISTANCE + d;
}

struct best {
	const char *name[MAX_SUGGESTIONS];
	unsigned int score[MAX_SUGGESTIONS];
	size_t nr, max;
};

static bool before(unsigned int score, const char *name, unsigned int score2, const char *name2)
{
	size_t a, b;

	if (score != score2)
		return score < score2;
	a = strlen(name);
	b = strlen(name2);
	return a != b ? a < b : strcmp(name, name2) < 0;
}

static void offer(struct best *b, const char *name, unsigned int score)
{
	size_t at = b->nr;

	for (size_t i = 0; i < b->nr; i++)
		if (!strcmp(b->name[i], name))
			return;
	while (at && before(score, name, b->score[at - 1], b->name[at - 1]))
		at--;
	if (at >= b->max)
		return;
	if (b->nr < b->max)
		b->nr++;
	for (size_t i = b->nr - 1; i > at; i--) {
		b->name[i] = b->name[i - 1];
		b->score[i] = b->score[i - 1];
	}
	b->name[at] = name;
	b->score[at] = score;
}

size_t sym_suggest(struct sym_proc *p, struct sym_module *module, const char *name,
                   const char **out, size_t max)
{
	struct best b = { .nr = 0, .max = max < MAX_SUGGESTIONS ? max : MAX_SUGGESTIONS };
	size_t len = strlen(name);

	if (!len || len > LEN_MAX)
		return 0;
	for (size_t i = 0; i < p->nr_live; i++) {
		const struct symtab *t;

		if (module && p->modules[i] != module)
			continue;
		t = module_symbols(p->modules[i]);
		for (size_t k = 0; k < t->nr; k++) {
			unsigned int s =
				t->sym[k].func ? score(name, len, t->sym[k].name) : SCORE_NONE;

			if (s != SCORE_NONE)
				offer(&b, t->sym[k].name, s);
		}
	}
	for (size_t i = 0; i < b.nr; i++)
		out[i] = b.name[i];
	return b.nr;
}
