/* SPDX-License-Identifier: MIT */
/*
 * The code of a file: by its sections, if they tell the same as its segments.
 *
 * Sections are the better answer, as in old layouts the executable segment has
 * read-only data too.  But the loader never looks at them: they count only if
 * each one lies where a segment says and the entry point is in one of them.
 */
#include "sym/facts_in.h"

#include <stdlib.h>

#define CODE_MAX IMAGE_LOAD_MAX

const struct sym_facts_code *facts_code(const struct facts *f, uint64_t addr)
{
	size_t low = 0, high = f->nr_code;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (addr - f->code[mid].addr < f->code[mid].size)
			return &f->code[mid];
		if (addr < f->code[mid].addr)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

static int add(struct facts *f, uint64_t addr, uint64_t size)
{
	if (sym_grow(&f->code, &f->room_code, f->nr_code, sizeof(*f->code)))
		return -ENOMEM;
	f->code[f->nr_code++] = (struct sym_facts_code){ addr, NULL, size };
	return 0;
}

static int by_addr(const void *a, const void *b)
{
	const struct sym_facts_code *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* By address; false if two overlap. */
static bool in_order(struct facts *f)
{
	if (f->nr_code)
		qsort(f->code, f->nr_code, sizeof(*f->code), by_addr);
	for (size_t i = 1; i < f->nr_code; i++)
		if (f->code[i].addr < f->code[i - 1].addr + f->code[i - 1].size)
			return false;
	return f->nr_code;
}

static bool section_agrees(const struct facts *f, const Elf64_Shdr *sh)
{
	const Elf64_Phdr *ph = image_segment(f->img, sh->sh_addr);
	uint64_t off, avail;

	return sh->sh_type == SHT_PROGBITS && ph && (ph->p_flags & PF_X) &&
	       image_offset(f->img, sh->sh_addr, &off, &avail) && off == sh->sh_offset &&
	       sh->sh_size <= avail;
}

static int by_sections(struct facts *f, bool *sane)
{
	const Elf64_Addr entry = f->img->eh.e_entry;
	int r = 0;

	*sane = true;
	for (unsigned int i = 1; i < f->img->nr_sh && *sane && !r; i++) {
		const Elf64_Shdr *sh = &f->img->sh[i];

		if (!(sh->sh_flags & SHF_EXECINSTR) || !(sh->sh_flags & SHF_ALLOC) || !sh->sh_size)
			continue;
		*sane = section_agrees(f, sh);
		if (*sane)
			r = add(f, sh->sh_addr, sh->sh_size);
	}
	*sane = *sane && in_order(f) && (!entry || facts_code(f, entry));
	return r;
}

static int by_segments(struct facts *f)
{
	f->nr_code = 0;
	for (unsigned int i = 0; i < f->img->nr_ph; i++) {
		const Elf64_Phdr *ph = &f->img->ph[i];

		if (ph->p_type == PT_LOAD && (ph->p_flags & PF_X) && ph->p_filesz &&
		    add(f, ph->p_vaddr, ph->p_filesz))
			return -ENOMEM;
	}
	return in_order(f) ? 0 : -ENOEXEC;
}

static int load(struct facts *f)
{
	uint64_t total = 0;

	for (size_t i = 0; i < f->nr_code; i++)
		total += f->code[i].size;
	if (total > CODE_MAX)
		return -EFBIG;
	for (size_t i = 0; i < f->nr_code; i++) {
		struct sym_facts_code *c = &f->code[i];
		uint64_t off, avail;

		if (!image_offset(f->img, c->addr, &off, &avail))
			return -ENOEXEC;
		c->bytes = image_load(f->img, off, c->size);
		if (!c->bytes)
			return -ENOMEM;
		f->pub.bytes += c->size;
	}
	return 0;
}

int facts_text(struct facts *f)
{
	bool sane;
	int r = by_sections(f, &sane);

	if (!r && !sane)
		r = by_segments(f);
	f->by_sections = sane;
	return r ? r : load(f);
}
