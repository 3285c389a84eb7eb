/* SPDX-License-Identifier: MIT */
/*
 * What many places at once have in common: they are checked in ascending order
 * by one survey (patch/survey.h), before anything is planted.
 */
#include <stdlib.h>

#include "lib/lib.h"
#include "patch/survey.h"

/* Fewer are looked at one by one: what a survey knows of a module takes longer to find out. */
#define FEW 8

struct place {
	uint64_t addr;
	size_t index;
};

static int by_addr(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static size_t places_of(struct sym_proc *sym, struct kprobe *const *kps, size_t n, struct place *v)
{
	struct err ignored = ERR_INIT;
	size_t i, nr = 0;
	bool entry;

	for (i = 0; i < n; i++)
		if (!kps[i]->addr != !kps[i]->symbol_name &&
		    !name_address(sym, kps[i]->addr, kps[i]->symbol_name, kps[i]->offset,
		                  &v[nr].addr, &entry, &ignored))
			v[nr++].index = i;
	qsort(v, nr, sizeof(*v), by_addr);
	return nr;
}

bool *bulk_check(struct sym_proc *sym, struct kprobe *const *kps, size_t n, bool ret_probe)
{
	bool *fine = n > FEW ? calloc(n, sizeof(*fine)) : NULL;
	struct place *v = fine ? calloc(n, sizeof(*v)) : NULL;
	struct survey *s;
	size_t i, nr;

	if (!v || survey_open(&s, sym, ret_probe)) {
		free(v);
		return fine;
	}
	nr = places_of(sym, kps, n, v);
	for (i = 0; i < nr; i++)
		fine[v[i].index] =
			!name_denied_here(sym, v[i].addr) && !survey_check(s, v[i].addr, NULL);
	survey_close(s);
	free(v);
	return fine;
}
