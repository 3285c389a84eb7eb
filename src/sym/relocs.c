/* SPDX-License-Identifier: MIT */
/*
 * Words that will hold addresses of code.
 *
 * What relocations write: DT_RELA, DT_JMPREL and the packed DT_RELR, and in a
 * file without PT_DYNAMIC the sections of its own IRELATIVE ones.  A module that
 * is linked to one place needs none for its own addresses: there each aligned
 * word that has the value of one counts.
 *
 * Left out are the compilers' lists of places where tracers may put their calls.
 */
#include "sym/facts_in.h"

#include <stdlib.h>
#include <string.h>

#include "base/pause.h"

#define WORD 8
#define CHUNK 4096

struct symbols {
	Elf64_Sym *sym;
	uint64_t nr;
};

struct rela {
	Elf64_Rela *r;
	uint64_t nr;
};

static void find_lists(struct facts *f)
{
	for (unsigned int i = 1; i < f->img->nr_sh && f->nr_nops < FACTS_NOPS; i++) {
		const Elf64_Shdr *sh = &f->img->sh[i];
		const char *name = image_section_name(f->img, sh);

		if ((sh->sh_flags & SHF_ALLOC) && (!strcmp(name, "__patchable_function_entries") ||
		                                   !strcmp(name, "__mcount_loc")))
			f->nops[f->nr_nops++] =
				(struct facts_range){ sh->sh_addr, sh->sh_addr + sh->sh_size };
	}
}

static bool in_lists(const struct facts *f, uint64_t place)
{
	for (unsigned int i = 0; i < f->nr_nops; i++)
		if (place >= f->nops[i].start && place < f->nops[i].end)
			return true;
	return false;
}

static int add(struct facts *f, uint64_t place, uint64_t target)
{
	pause_point();
	if (!facts_code(f, target) || in_lists(f, place))
		return 0;
	if (f->nr_relocs == FACTS_MAX)
		return -EFBIG;
	if (sym_grow(&f->reloc, &f->room_relocs, f->nr_relocs, sizeof(*f->reloc)))
		return -ENOMEM;
	f->reloc[f->nr_relocs++] = (struct sym_facts_reloc){ place, target };
	return 0;
}

static bool by_symbol(uint64_t type)
{
	return type == R_X86_64_64 || type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT;
}

/* Only as much of DT_SYMTAB, whose length nothing says, as is asked for. */
static int load_symbols(struct facts *f, const struct dynamic *d, const struct rela *t,
                        struct symbols *s)
{
	uint64_t off, avail, last = 0;

	s->nr = 0;
	s->sym = NULL;
	for (uint64_t i = 0; i < t->nr; i++)
		if (by_symbol(ELF64_R_TYPE(t->r[i].r_info)) && ELF64_R_SYM(t->r[i].r_info) > last)
			last = ELF64_R_SYM(t->r[i].r_info);
	if (!last || !image_offset(f->img, d->symtab, &off, &avail))
		return 0;
	s->nr = last + 1;
	if (s->nr > avail / sizeof(*s->sym))
		s->nr = avail / sizeof(*s->sym);
	s->sym = image_load(f->img, off, s->nr * sizeof(*s->sym));
	return s->sym ? 0 : -ENOMEM;
}

static int take_rela(struct facts *f, const struct rela *t, const struct symbols *s)
{
	int ret = 0;

	for (uint64_t i = 0; i < t->nr && !ret; i++) {
		const Elf64_Rela *r = &t->r[i];
		uint64_t type = ELF64_R_TYPE(r->r_info), n = ELF64_R_SYM(r->r_info);

		if (type == R_X86_64_RELATIVE || type == R_X86_64_IRELATIVE)
			ret = add(f, r->r_offset, (uint64_t)r->r_addend);
		else if (by_symbol(type) && n < s->nr && s->sym[n].st_shndx != SHN_UNDEF)
			ret = add(f, r->r_offset,
			          s->sym[n].st_value +
			                  (type == R_X86_64_64 ? (uint64_t)r->r_addend : 0));
	}
	return ret;
}

static int read_rela(struct facts *f, const struct dynamic *d, uint64_t addr, uint64_t size)
{
	uint64_t off, avail;
	struct symbols s;
	struct rela t;
	int r;

	if (!size || !image_offset(f->img, addr, &off, &avail))
		return 0;
	size = size < avail ? size : avail;
	r = facts_spend(f, size);
	if (r)
		return r;
	t.nr = size / sizeof(*t.r);
	t.r = image_load(f->img, off, size);
	r = t.r ? load_symbols(f, d, &t, &s) : -ENOMEM;
	if (!r)
		r = take_rela(f, &t, &s);
	if (t.r)
		free(s.sym);
	free(t.r);
	return r;
}

static int add_relative(struct facts *f, uint64_t place)
{
	uint64_t target;

	return facts_fetch(f, place, &target, WORD) == WORD ? add(f, place, target) : 0;
}

/*
 * Packed: an even word is a place, an odd one a map of which of the 63 words
 * behind the last place are meant.  The addends are in the places.
 */
static int take_relr(struct facts *f, const uint64_t *w, uint64_t nr)
{
	uint64_t at = 0;
	int r = 0;

	for (uint64_t i = 0; i < nr && !r; i++) {
		if (!(w[i] & 1)) {
			r = facts_spend(f, WORD);
			r = r ? r : add_relative(f, w[i]);
			at = w[i] + WORD;
			continue;
		}
		for (uint64_t map = w[i] >> 1, k = 0; map && !r; map >>= 1, k++) {
			if (!(map & 1))
				continue;
			r = facts_spend(f, WORD);
			r = r ? r : add_relative(f, at + k * WORD);
		}
		at += 63 * WORD;
	}
	return r;
}

static int read_relr(struct facts *f, const struct dynamic *d)
{
	uint64_t off, avail, size = d->relrsz, *w;
	int r;

	if (!size || !image_offset(f->img, d->relr, &off, &avail))
		return 0;
	size = size < avail ? size : avail;
	w = image_load(f->img, off, size);
	r = w ? take_relr(f, w, size / WORD) : -ENOMEM;
	free(w);
	return r;
}

static int read_dynamic(struct facts *f)
{
	struct dynamic d;
	int r;

	if (!image_dynamic(f->img, 0, &d))
		return -ENOENT;
	f->textrel = d.textrel;
	r = facts_add_extra(f, d.init);
	if (!r)
		r = facts_add_extra(f, d.fini);
	if (!r)
		r = read_rela(f, &d, d.rela, d.relasz);
	if (!r)
		r = read_rela(f, &d, d.jmprel, d.pltrelsz);
	return r ? r : read_relr(f, &d);
}

static int read_sections(struct facts *f)
{
	const struct dynamic none = { 0 };
	int r = 0;

	for (unsigned int i = 1; i < f->img->nr_sh && !r; i++) {
		const Elf64_Shdr *sh = &f->img->sh[i];

		if (sh->sh_type == SHT_RELA && (sh->sh_flags & SHF_ALLOC))
			r = read_rela(f, &none, sh->sh_addr, sh->sh_size);
	}
	return r;
}

static int scan_words(struct facts *f, uint64_t from, uint64_t to)
{
	uint64_t word[CHUNK / WORD];
	int r = facts_spend(f, to - from);

	while (from < to && !r) {
		size_t want = to - from < CHUNK ? (size_t)(to - from) : CHUNK;
		size_t n = facts_fetch(f, from, word, want) / WORD;

		if (!n)
			return 0;
		for (size_t i = 0; i < n && !r; i++)
			/* Instructions are no data, unless the two can't be told apart. */
			if (!f->by_sections || !facts_code(f, from + i * WORD))
				r = add(f, from + i * WORD, word[i]);
		from += n * WORD;
	}
	return r;
}

static int read_words(struct facts *f)
{
	int r = 0;

	for (unsigned int i = 0; i < f->img->nr_ph && !r; i++) {
		const Elf64_Phdr *ph = &f->img->ph[i];
		uint64_t from = (ph->p_vaddr + WORD - 1) & ~(uint64_t)(WORD - 1);
		uint64_t to = ph->p_vaddr + ph->p_filesz;

		if (ph->p_type == PT_LOAD && from < to)
			r = scan_words(f, from, to);
	}
	return r;
}

static int by_place(const void *a, const void *b)
{
	const struct sym_facts_reloc *x = a, *y = b;

	pause_point();
	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	return x->target < y->target ? -1 : x->target > y->target;
}

/* Linkers sort them by kind, then place: mostly nothing is to be done. */
static void sort(struct facts *f)
{
	size_t i;

	for (i = 1; i < f->nr_relocs; i++)
		if (f->reloc[i].place < f->reloc[i - 1].place)
			break;
	if (i < f->nr_relocs)
		qsort(f->reloc, f->nr_relocs, sizeof(*f->reloc), by_place);
}

int facts_relocs(struct facts *f)
{
	int r;

	find_lists(f);
	r = read_dynamic(f);
	if (r == -ENOENT)
		r = read_sections(f);
	if (!r && f->pub.fixed)
		r = read_words(f);
	sort(f);
	return r;
}
