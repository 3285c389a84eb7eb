/* SPDX-License-Identifier: MIT */
/*
 * The functions of a file: what .eh_frame and symbols say together, and what
 * must not be one.
 */
#include "sym/facts_in.h"

#include <stdlib.h>
#include <string.h>

#include "base/pause.h"

static int by_range(const void *a, const void *b)
{
	const struct facts_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int by_start(const void *a, const void *b)
{
	const struct facts_fde *x = a, *y = b;

	pause_point();
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static int by_bounds(const void *a, const void *b)
{
	const struct sym_facts_func *x = a, *y = b;

	pause_point();
	return x->start < y->start ? -1 : x->start > y->start;
}

static int set_unfit(struct facts *f, uint64_t start, uint64_t end)
{
	if (sym_grow(&f->unfit, &f->room_unfit, f->nr_unfit, sizeof(*f->unfit)))
		return -ENOMEM;
	f->unfit[f->nr_unfit++] = (struct facts_range){ start, end };
	return 0;
}

static int take_fde(struct facts *f, const struct eh_fde *fde)
{
	const uint64_t end = fde->start + fde->len;
	uint64_t lsda, program;
	int r = -EINVAL;

	/* It begins a byte early, in what is before it. */
	if (fde->cie.signal)
		return set_unfit(f, fde->start + 1, end);
	if (eh_augmentation(&f->frames, fde, &lsda, &program))
		r = lsda ? facts_lsda(f, lsda, fde->start) : 0;
	if (r == -EINVAL)
		r = set_unfit(f, fde->start, end);
	if (r || sym_grow(&f->fde, &f->room_fdes, f->nr_fdes, sizeof(*f->fde)))
		return r ? r : -ENOMEM;
	f->fde[f->nr_fdes++] = (struct facts_fde){ fde->start, end, fde->at };
	return 0;
}

/* Disjoint and by start afterwards. */
static void merge_unfit(struct facts *f)
{
	size_t out = 0;

	if (f->nr_unfit)
		qsort(f->unfit, f->nr_unfit, sizeof(*f->unfit), by_range);
	for (size_t i = 0; i < f->nr_unfit; i++) {
		if (out && f->unfit[i].start <= f->unfit[out - 1].end) {
			if (f->unfit[i].end > f->unfit[out - 1].end)
				f->unfit[out - 1].end = f->unfit[i].end;
		} else {
			f->unfit[out++] = f->unfit[i];
		}
	}
	f->nr_unfit = out;
}

static bool is_unfit(const struct facts *f, uint64_t start, uint64_t end)
{
	size_t low = 0, high = f->nr_unfit;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (f->unfit[mid].end <= start)
			low = mid + 1;
		else
			high = mid;
	}
	return low < f->nr_unfit && f->unfit[low].start < end;
}

static int load_frames(struct facts *f)
{
	struct eh_walk w = EH_WALK_INIT(&f->frames);
	struct eh_fde fde;

	eh_load(&f->frames, f->img);
	while (eh_next(&w, &fde)) {
		int r;

		if (!facts_code(f, fde.start) || !eh_in_text(f->img, &fde))
			continue;
		r = take_fde(f, &fde);
		if (r)
			return r;
	}
	if (f->nr_fdes)
		qsort(f->fde, f->nr_fdes, sizeof(*f->fde), by_start);
	merge_unfit(f);
	return 0;
}

/* The linker describes a whole PLT by one or two FDEs: no functions. */
static void find_plts(struct facts *f)
{
	for (unsigned int i = 1; i < f->img->nr_sh && f->nr_plts < FACTS_PLTS; i++) {
		const Elf64_Shdr *sh = &f->img->sh[i];

		if ((sh->sh_flags & SHF_ALLOC) && section_is_plt(f->img, sh))
			f->plt[f->nr_plts++] =
				(struct facts_range){ sh->sh_addr, sh->sh_addr + sh->sh_size };
	}
}

static bool in_plt(const struct facts *f, uint64_t addr)
{
	for (unsigned int i = 0; i < f->nr_plts; i++)
		if (addr >= f->plt[i].start && addr < f->plt[i].end)
			return true;
	return false;
}

static int add(struct facts *f, struct sym_facts_func func)
{
	const struct sym_facts_code *c = facts_code(f, func.start);

	pause_point();
	if (!c || is_unfit(f, func.start, func.end))
		return 0;
	if (func.end - c->addr > c->size)
		func.end = c->addr + c->size;
	if (sym_grow(&f->func, &f->room_funcs, f->nr_funcs, sizeof(*f->func)))
		return -ENOMEM;
	f->func[f->nr_funcs++] = func;
	return 0;
}

/*
 * "foo.cold", "foo.cold.7", and clang's "foo.__part.1"; but "foo.part.0" is what
 * gcc calls a function that it has split off to be called.
 */
static bool is_cold_name(const char *name)
{
	const char *at = strstr(name, ".cold");

	return (at && (!at[5] || at[5] == '.')) || strstr(name, ".__part.");
}

/* One for each start, the longest. */
static void merge_funcs(struct facts *f)
{
	size_t out = 0;

	if (f->nr_funcs)
		qsort(f->func, f->nr_funcs, sizeof(*f->func), by_bounds);
	for (size_t i = 0; i < f->nr_funcs; i++) {
		struct sym_facts_func *last = out ? &f->func[out - 1] : NULL;

		if (last && last->start == f->func[i].start) {
			if (f->func[i].end > last->end)
				last->end = f->func[i].end;
			last->part |= f->func[i].part;
			last->named |= f->func[i].named;
		} else {
			f->func[out++] = f->func[i];
		}
	}
	f->nr_funcs = out;
}

int facts_symbols(struct facts *f, const struct symtab *symbols)
{
	f->symbol = calloc(symbols->nr + 1, sizeof(*f->symbol));
	if (!f->symbol)
		return -ENOMEM;
	for (size_t i = 0; i < symbols->nr; i++) {
		const struct symbol *s = &symbols->sym[i];

		if (s->func)
			f->symbol[f->nr_symbols++] =
				(struct sym_facts_func){ s->addr, s->addr + s->size,
				                         is_cold_name(s->name), true };
	}
	return 0;
}

int facts_funcs(struct facts *f)
{
	int r = load_frames(f);

	find_plts(f);
	for (size_t i = 0; i < f->nr_fdes && !r; i++)
		if (!in_plt(f, f->fde[i].start))
			r = add(f, (struct sym_facts_func){
					   .start = f->fde[i].start,
					   .end = f->fde[i].end,
					   .part = !facts_bare_stack(f, f->fde[i].start) });
	for (size_t i = 0; i < f->nr_symbols && !r; i++)
		r = add(f, f->symbol[i]);
	if (!r)
		merge_funcs(f);
	return r;
}
