/* SPDX-License-Identifier: MIT */
/*
 * Functions with a name and without.  What .eh_frame has a range for is a function
 * or a part of one that the compiler has moved away (cold code).  Parts are jumped
 * to, mostly when registers have been pushed: the rule of the CFA at the beginning
 * tells.  One that looks like a function can be probed like one.
 */
#include "sym/eh.h"
#include "sym/internal.h"

#include <stdlib.h>

#define STEPS_PER_BYTE 4 /* of CFA programs: a CIE's is run for each of its FDEs */

struct nameless {
	struct fde *v; /* link-time, by start */
	size_t nr, room;
};

static int by_start(const void *a, const void *b)
{
	const struct fde *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* What module_fdes() has left out is no function. */
static bool is_kept(const struct fdes *fdes, const struct eh_fde *fde)
{
	const struct fde *f = fdes_find(fdes, fde->start);

	return f && f->start == fde->start;
}

static int collect(struct sym_module *m, struct nameless *n)
{
	const struct fdes *fdes = module_fdes(m);
	struct eh_frames frames = { 0 };
	struct eh_walk w = EH_WALK_INIT(&frames);
	struct eh_fde fde;
	uint64_t budget;

	if (!m->img)
		return 0;
	eh_load(&frames, m->img);
	budget = frames.size * STEPS_PER_BYTE;
	while (frames.buf && eh_next(&w, &fde)) {
		if (fde.cie.signal || !eh_in_text(m->img, &fde) || !is_kept(fdes, &fde) ||
		    !eh_bare_start(&frames, &fde, &budget))
			continue;
		if (sym_grow(&n->v, &n->room, n->nr, sizeof(*n->v))) {
			free(frames.buf);
			return -ENOMEM;
		}
		n->v[n->nr++] = (struct fde){ fde.start, fde.start + fde.len, false };
	}
	free(frames.buf);
	if (n->nr)
		qsort(n->v, n->nr, sizeof(*n->v), by_start);
	return 0;
}

struct merge {
	struct sym_proc *p;
	struct sym_module *m;
	int (*fn)(const struct sym_symbol *sym, void *arg);
	void *arg;
	struct nameless nameless;
	size_t i;
	uint64_t upto; /* the end of the functions that have a name */
};

static int hand_on(struct merge *g, const struct sym_symbol *s)
{
	return symbol_is_there(g->p, s) ? g->fn(s, g->arg) : 0;
}

/* Those that begin before addr, link-time, and are in none that has a name. */
static int nameless_before(struct merge *g, uint64_t addr)
{
	int r = 0;

	for (; !r && g->i < g->nameless.nr && g->nameless.v[g->i].start < addr; g->i++) {
		const struct fde *f = &g->nameless.v[g->i];
		struct sym_symbol s = { .module = g->m,
			                .name = "",
			                .addr = f->start + g->m->bias,
			                .size = f->end - f->start,
			                .func = true,
			                .version = "" };

		/* Two ranges with one beginning are one function. */
		if (f->start >= g->upto && (!g->i || f[-1].start != f->start))
			r = hand_on(g, &s);
	}
	return r;
}

static int merge(struct merge *g)
{
	const struct symtab *t = module_symbols(g->m);
	int r = collect(g->m, &g->nameless);

	for (size_t k = 0; !r && k < t->nr; k++) {
		const struct symbol *s = &t->sym[k];
		struct sym_symbol named;

		if (!s->func || (k && symbol_is_alias(s - 1, s)))
			continue;
		r = nameless_before(g, s->addr);
		if (s->addr + s->size > g->upto)
			g->upto = s->addr + (s->size ? s->size : 1);
		symbol_fill(g->m, s, &named);
		if (!r)
			r = hand_on(g, &named);
	}
	return r ? r : nameless_before(g, UINT64_MAX);
}

int sym_for_each_entry(struct sym_proc *p, struct sym_module *module,
                       int (*fn)(const struct sym_symbol *sym, void *arg), void *arg)
{
	int r = 0;

	for (size_t i = 0; i < p->nr_live && !r; i++) {
		struct merge g = { .p = p, .m = p->modules[i], .fn = fn, .arg = arg };

		if (module && g.m != module)
			continue;
		r = merge(&g);
		free(g.nameless.v);
	}
	return r;
}
