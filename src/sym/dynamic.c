/* SPDX-License-Identifier: MIT */
/*
 * PT_DYNAMIC: what is left of a file without section headers or of a module of
 * which only the memory can be read; and whether text is relocated.
 */
#include "sym/internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DYNAMIC 4096

/* In memory ld.so has relocated most pointers already. */
static uint64_t unrelocated(const struct image *img, uint64_t bias, uint64_t addr)
{
	if (!image_segment(img, addr) && image_segment(img, addr - bias))
		return addr - bias;
	return addr;
}

static void take(struct dynamic *d, const Elf64_Dyn *e)
{
	switch (e->d_tag) {
	case DT_SYMTAB:
		d->symtab = e->d_un.d_ptr;
		break;
	case DT_STRTAB:
		d->strtab = e->d_un.d_ptr;
		break;
	case DT_STRSZ:
		d->strsz = e->d_un.d_val;
		break;
	case DT_HASH:
		d->hash = e->d_un.d_ptr;
		break;
	case DT_GNU_HASH:
		d->gnu_hash = e->d_un.d_ptr;
		break;
	case DT_RELA:
		d->rela = e->d_un.d_ptr;
		break;
	case DT_RELASZ:
		d->relasz = e->d_un.d_val;
		break;
	case DT_JMPREL:
		d->jmprel = e->d_un.d_ptr;
		break;
	case DT_PLTRELSZ:
		d->pltrelsz = e->d_un.d_val;
		break;
	case DT_RELR:
		d->relr = e->d_un.d_ptr;
		break;
	case DT_RELRSZ:
		d->relrsz = e->d_un.d_val;
		break;
	case DT_INIT:
		d->init = e->d_un.d_ptr;
		break;
	case DT_FINI:
		d->fini = e->d_un.d_ptr;
		break;
	case DT_TEXTREL:
		d->textrel = true;
		break;
	case DT_FLAGS:
		d->textrel |= !!(e->d_un.d_val & DF_TEXTREL);
		break;
	default:
		break;
	}
}

bool image_dynamic(const struct image *img, uint64_t bias, struct dynamic *d)
{
	const Elf64_Phdr *ph = NULL;
	uint64_t off, avail, nr;
	Elf64_Dyn *dyn;

	memset(d, 0, sizeof(*d));
	for (unsigned int i = 0; i < img->nr_ph && !ph; i++)
		if (img->ph[i].p_type == PT_DYNAMIC)
			ph = &img->ph[i];
	if (!ph || !image_offset(img, ph->p_vaddr, &off, &avail))
		return false;
	nr = (avail < ph->p_memsz ? avail : ph->p_memsz) / sizeof(*dyn);
	dyn = image_load(img, off, (nr < MAX_DYNAMIC ? nr : MAX_DYNAMIC) * sizeof(*dyn));
	if (!dyn)
		return false;
	for (uint64_t i = 0; i < nr && i < MAX_DYNAMIC && dyn[i].d_tag != DT_NULL; i++)
		take(d, &dyn[i]);
	free(dyn);
	d->symtab = unrelocated(img, bias, d->symtab);
	d->strtab = unrelocated(img, bias, d->strtab);
	d->hash = unrelocated(img, bias, d->hash);
	d->gnu_hash = unrelocated(img, bias, d->gnu_hash);
	d->rela = unrelocated(img, bias, d->rela);
	d->jmprel = unrelocated(img, bias, d->jmprel);
	d->relr = unrelocated(img, bias, d->relr);
	return true;
}
