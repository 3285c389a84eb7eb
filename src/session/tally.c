/* SPDX-License-Identifier: MIT */
/* How many places were refused, by reason. */
#include <stdio.h>
#include <stdlib.h>
#include <stdlib.h>
#include <string.h>

#include "session/target.h"

void tally_add(struct tally *t, const char *why, size_t n)
{
	unsigned int i;

	t->total += n;
	for (i = 0; i < t->nr && t->row[i].why != why && strcmp(t->row[i].why, why); i++)
		;
	if (i == TALLY_ROWS) {
		i--;
		t->row[i].why = "other reasons";
	} else if (i == t->nr) {
		t->nr++;
		t->row[i].why = why;
	}
	t->row[i].n += n;
}

void tally_merge(struct tally *to, const struct tally *from)
{
	unsigned int i;

	for (i = 0; i < from->nr; i++)
		tally_add(to, from->row[i].why, from->row[i].n);
}

static int most_first(const void *a, const void *b)
{
	const struct tally_row *x = a, *y = b;

	return x->n < y->n ? 1 : x->n > y->n ? -1 : 0;
}

int tally_print(const struct tally *t, char *buf, size_t len)
{
	struct tally sorted = *t;
	unsigned int i;
	size_t used = 0;

	buf[0] = 0;
	qsort(sorted.row, sorted.nr, sizeof(*sorted.row), most_first);
	for (i = 0; i < sorted.nr && used < len; i++)
		used += (size_t)snprintf(buf + used, len - used, "%zu: %s\n", sorted.row[i].n,
		                         sorted.row[i].why);
	return (int)used;
}

const char *tally_both(const char *jump_only, const char *why)
{
	static struct both {
		struct both *next;
		char text[];
	} * all;
	static const char format[] = "%s; and no jump can stand there: %s";
	size_t len = strlen(jump_only) + strlen(why) + sizeof(format);
	struct both *b = malloc(sizeof(*b) + len), *old;

	if (!b)
		return jump_only;
	snprintf(b->text, len, format, jump_only, why);
	for (old = all; old && strcmp(old->text, b->text); old = old->next)
		;
	if (old) {
		free(b);
		return old->text;
	}
	b->next = all;
	all = b;
	return b->text;
}

const char *tally_most(const struct tally *t)
{
	unsigned int i, best = 0;

	for (i = 1; i < t->nr; i++)
		if (t->row[i].n > t->row[best].n)
			best = i;
	return t->nr ? t->row[best].why : "";
}
