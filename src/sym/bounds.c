/* SPDX-License-Identifier: MIT */
/* Function bounds from .eh_frame: each FDE's [start, end), sorted. */
#include "sym/eh.h"

#include <stdlib.h>
#include <string.h>

static void read_frames(struct fdes *f, const struct image *img, const struct eh_frames *frames)
{
	struct eh_walk w = EH_WALK_INIT(frames);
	struct eh_fde fde;

	while (eh_next(&w, &fde)) {
		if (!eh_in_text(img, &fde))
			continue;
		if (sym_grow(&f->fde, &f->room, f->nr, sizeof(*f->fde)))
			return;
		f->fde[f->nr++] = (struct fde){ fde.start, fde.start + fde.len, fde.cie.signal };
	}
}

static int by_start(const void *a, const void *b)
{
	const struct fde *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

bool section_is_plt(const struct image *img, const Elf64_Shdr *sh)
{
	const char *name = image_section_name(img, sh);

	return !strncmp(name, ".plt", 4) || !strcmp(name, ".iplt");
}

/* The linker describes the whole PLT by one or two FDEs: no functions. */
static void drop_plt(struct fdes *f, const struct image *img)
{
	const Elf64_Shdr *plt[8];
	unsigned int nr = 0, k;
	size_t out = 0;

	for (unsigned int i = 1; i < img->nr_sh && nr < 8; i++)
		if ((img->sh[i].sh_flags & SHF_ALLOC) && section_is_plt(img, &img->sh[i]))
			plt[nr++] = &img->sh[i];
	for (size_t i = 0; i < f->nr; i++) {
		for (k = 0; k < nr; k++)
			if (f->fde[i].start - plt[k]->sh_addr < plt[k]->sh_size)
				break;
		if (k == nr)
			f->fde[out++] = f->fde[i];
	}
	f->nr = out;
}

void fdes_load(struct fdes *f, const struct image *img)
{
	struct eh_frames frames;

	eh_load(&frames, img);
	if (!frames.buf)
		return;
	read_frames(f, img, &frames);
	free(frames.buf);
	if (f->nr)
		qsort(f->fde, f->nr, sizeof(*f->fde), by_start);
	drop_plt(f, img);
}

/* A signal frame's FDE starts a byte early, so it may begin inside the one before. */
const struct fde *fdes_find(const struct fdes *f, uint64_t addr)
{
	size_t low = 0, high = f->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (f->fde[mid].start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	for (unsigned int back = 0; low-- && back < 8; back++)
		if (addr < f->fde[low].end)
			return &f->fde[low];
	return NULL;
}

const struct fdes *module_fdes(struct sym_module *m)
{
	if (!m->loaded_fdes && m->img)
		fdes_load(&m->fdes, m->img);
	m->loaded_fdes = true;
	return &m->fdes;
}
