/* SPDX-License-Identifier: MIT */
/*
 * Function bounds from .eh_frame: each FDE's [start, end), sorted.
 *
 * Read straight through, not by .eh_frame_hdr's table (which may be missing or
 * lie); all that is needed of a CIE is its pointer encoding and whether it is a
 * signal frame's.  An FDE that doesn't make sense is left out; entries whose
 * length doesn't end the reading.
 */
#include "sym/internal.h"

#include <stdlib.h>
#include <string.h>

enum {
	PE_ABSPTR = 0x00,
	PE_ULEB = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SLEB = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_PCREL = 0x10,
	PE_FORM = 0x0f,
	PE_BASE = 0xf0,
};

struct cursor {
	const uint8_t *buf;
	uint64_t at, end; /* of the entry */
	uint64_t vaddr;   /* of buf[0] */
	bool bad;
};

struct cie {
	uint64_t at; /* UINT64_MAX: none yet */
	uint8_t encoding;
	bool signal, ok;
};

static uint64_t get(struct cursor *c, unsigned int size)
{
	uint64_t v = 0;

	if (c->bad || c->end - c->at < size) {
		c->bad = true;
		return 0;
	}
	memcpy(&v, c->buf + c->at, size);
	c->at += size;
	return v;
}

static uint64_t get_leb(struct cursor *c, bool is_signed)
{
	uint64_t v = 0, byte;
	unsigned int shift = 0;

	do {
		byte = get(c, 1);
		if (c->bad || shift > 63) {
			c->bad = true;
			return 0;
		}
		v |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && shift < 64 && (byte & 0x40))
		v |= ~UINT64_C(0) << shift;
	return v;
}

static uint64_t get_form(struct cursor *c, uint8_t encoding)
{
	switch (encoding & PE_FORM) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		return get(c, 8);
	case PE_ULEB:
		return get_leb(c, false);
	case PE_SLEB:
		return get_leb(c, true);
	case PE_UDATA2:
		return get(c, 2);
	case PE_SDATA2:
		return (uint64_t)(int16_t)get(c, 2);
	case PE_UDATA4:
		return get(c, 4);
	case PE_SDATA4:
		return (uint64_t)(int32_t)get(c, 4);
	default:
		c->bad = true;
		return 0;
	}
}

static uint64_t get_pointer(struct cursor *c, uint8_t encoding)
{
	uint64_t here = c->vaddr + c->at, v = get_form(c, encoding);

	if ((encoding & PE_BASE) == PE_PCREL)
		return v + here;
	if (encoding & PE_BASE)
		c->bad = true;
	return v;
}

static void read_augmentation(struct cursor *c, const char *aug, struct cie *cie)
{
	for (; *aug; aug++) {
		uint8_t encoding;

		switch (*aug) {
		case 'R':
			cie->encoding = (uint8_t)get(c, 1);
			break;
		case 'P':
			encoding = (uint8_t)get(c, 1);
			get_form(c, encoding);
			break;
		case 'L':
			get(c, 1);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B':
			break;
		default:
			c->bad = true; /* what follows can't be told apart */
			return;
		}
	}
}

/* c is past the CIE's id. */
static void read_cie(struct cursor *c, struct cie *cie)
{
	char aug[8];
	unsigned int n = 0;
	uint64_t version = get(c, 1);

	cie->encoding = PE_ABSPTR;
	cie->signal = false;
	do
		aug[n] = (char)get(c, 1);
	while (!c->bad && aug[n] && ++n < sizeof(aug));
	if (c->bad || n == sizeof(aug) || (version != 1 && version != 3))
		goto bad;
	get_leb(c, false);
	get_leb(c, true);
	if (version == 1)
		get(c, 1);
	else
		get_leb(c, false);
	if (aug[0] == 'z') {
		get_leb(c, false);
		read_augmentation(c, aug + 1, cie);
	} else if (aug[0]) {
		goto bad;
	}
	cie->ok = !c->bad;
	return;
bad:
	cie->ok = false;
}

/* One entry's extent, from its length field on; false at the end of the table. */
static bool next_entry(struct cursor *c, uint64_t size, bool *wide)
{
	uint64_t len;

	c->end = size;
	c->bad = false;
	len = get(c, 4);
	*wide = len == 0xffffffff;
	if (*wide)
		len = get(c, 8);
	if (c->bad || !len || len > size - c->at)
		return false;
	c->end = c->at + len;
	return true;
}

/* The CIE at an offset; FDEs of one CIE follow each other, so the last one is kept. */
static bool find_cie(const struct cursor *c, uint64_t at, uint64_t size, struct cie *cie)
{
	struct cursor k = { c->buf, at, size, c->vaddr, false };
	bool wide;

	if (cie->at == at)
		return cie->ok;
	cie->at = at;
	cie->ok = false;
	if (at < size && next_entry(&k, size, &wide) && !get(&k, 4) && !k.bad)
		read_cie(&k, cie);
	return cie->ok;
}

static void add_fde(struct fdes *f, const struct image *img, uint64_t start, uint64_t len,
                    bool signal)
{
	const Elf64_Phdr *ph = image_segment(img, start);

	if (!len || !ph || !(ph->p_flags & PF_X) || len > ph->p_memsz - (start - ph->p_vaddr) ||
	    sym_grow(&f->fde, &f->room, f->nr, sizeof(*f->fde)))
		return;
	f->fde[f->nr++] = (struct fde){ start, start + len, signal };
}

static void read_frames(struct fdes *f, const struct image *img, const uint8_t *buf, uint64_t size,
                        uint64_t vaddr)
{
	struct cursor c = { buf, 0, size, vaddr, false };
	struct cie cie = { UINT64_MAX, 0, false, false };
	bool wide;

	for (; next_entry(&c, size, &wide); c.at = c.end) {
		uint64_t id_at = c.at, id = get(&c, 4), start, len;

		/* In .eh_frame the id has four bytes in the wide form too. */
		if (c.bad || !id || id > id_at || !find_cie(&c, id_at - id, size, &cie))
			continue;
		start = get_pointer(&c, cie.encoding);
		len = get_form(&c, cie.encoding);
		if (!c.bad)
			add_fde(f, img, start, len, cie.signal);
	}
}

/* Where .eh_frame is, of a file without sections, says its header's pointer. */
static bool frames_by_segment(const struct image *img, uint64_t *vaddr, uint64_t *off,
                              uint64_t *size)
{
	for (unsigned int i = 0; i < img->nr_ph; i++) {
		uint8_t head[12];
		struct cursor c = { head, 4, sizeof(head), img->ph[i].p_vaddr, false };
		uint64_t at, avail;

		if (img->ph[i].p_type != PT_GNU_EH_FRAME ||
		    !image_offset(img, img->ph[i].p_vaddr, &at, &avail) || avail < sizeof(head) ||
		    image_read(img, at, head, sizeof(head)) || head[0] != 1)
			continue;
		*vaddr = get_pointer(&c, head[1]);
		return !c.bad && image_offset(img, *vaddr, off, size);
	}
	return false;
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
	const Elf64_Shdr *sh = image_section(img, ".eh_frame");
	uint64_t vaddr, off, size;
	uint8_t *buf;

	if (sh && sh->sh_type != SHT_NOBITS) {
		vaddr = sh->sh_addr;
		off = sh->sh_offset;
		size = sh->sh_size;
	} else if (!frames_by_segment(img, &vaddr, &off, &size)) {
		return;
	}
	buf = image_load(img, off, size);
	if (!buf)
		return;
	read_frames(f, img, buf, size, vaddr);
	free(buf);
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
