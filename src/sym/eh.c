/* SPDX-License-Identifier: MIT */
/* Entries of .eh_frame; what is in them is told by CIEs, each parsed as its FDEs come. */
#include "sym/eh.h"

#include <stdlib.h>
#include <string.h>

#include "base/pause.h"

uint64_t eh_get(struct eh_cursor *c, unsigned int size)
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

void eh_skip(struct eh_cursor *c, uint64_t n)
{
	if (c->bad || n > c->end - c->at)
		c->bad = true;
	else
		c->at += n;
}

static uint64_t get_leb(struct eh_cursor *c, bool is_signed)
{
	uint64_t v = 0, byte;
	unsigned int shift = 0;

	do {
		byte = eh_get(c, 1);
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

uint64_t eh_uleb(struct eh_cursor *c)
{
	return get_leb(c, false);
}

int64_t eh_sleb(struct eh_cursor *c)
{
	return (int64_t)get_leb(c, true);
}

uint64_t eh_form(struct eh_cursor *c, uint8_t encoding)
{
	switch (encoding & PE_FORM) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		return eh_get(c, 8);
	case PE_ULEB:
		return get_leb(c, false);
	case PE_SLEB:
		return get_leb(c, true);
	case PE_UDATA2:
		return eh_get(c, 2);
	case PE_SDATA2:
		return (uint64_t)(int16_t)eh_get(c, 2);
	case PE_UDATA4:
		return eh_get(c, 4);
	case PE_SDATA4:
		return (uint64_t)(int32_t)eh_get(c, 4);
	default:
		c->bad = true;
		return 0;
	}
}

uint64_t eh_pointer(struct eh_cursor *c, uint8_t encoding)
{
	uint64_t here = c->vaddr + c->at, v = eh_form(c, encoding);

	if ((encoding & PE_BASE) == PE_PCREL)
		return v + here;
	if (encoding & PE_BASE)
		c->bad = true;
	return v;
}

static void read_augmentation(struct eh_cursor *c, const char *aug, struct eh_cie *cie)
{
	for (; *aug; aug++) {
		switch (*aug) {
		case 'R':
			cie->encoding = (uint8_t)eh_get(c, 1);
			break;
		case 'P':
			eh_form(c, (uint8_t)eh_get(c, 1));
			break;
		case 'L':
			cie->lsda = (uint8_t)eh_get(c, 1);
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
static void read_cie(struct eh_cursor *c, struct eh_cie *cie)
{
	char aug[8];
	unsigned int n = 0;
	uint64_t version = eh_get(c, 1), len, from;

	do
		aug[n] = (char)eh_get(c, 1);
	while (!c->bad && aug[n] && ++n < sizeof(aug));
	if (c->bad || n == sizeof(aug) || (version != 1 && version != 3))
		return;
	cie->code_align = eh_uleb(c);
	cie->data_align = eh_sleb(c);
	if (version == 1)
		eh_get(c, 1);
	else
		eh_uleb(c);
	cie->augmented = aug[0] == 'z';
	if (cie->augmented) {
		len = eh_uleb(c);
		from = c->at;
		read_augmentation(c, aug + 1, cie);
		if (c->bad || c->at - from > len)
			return;
		eh_skip(c, len - (c->at - from));
	} else if (aug[0]) {
		return;
	}
	cie->program = c->at;
	cie->end = c->end;
	cie->ok = !c->bad;
}

/* One entry's extent, from its length field on; false at the end of the table. */
static bool next_entry(struct eh_cursor *c, uint64_t size)
{
	uint64_t len;

	c->end = size;
	c->bad = false;
	len = eh_get(c, 4);
	if (len == 0xffffffff)
		len = eh_get(c, 8);
	if (c->bad || !len || len > size - c->at)
		return false;
	c->end = c->at + len;
	return true;
}

/* The CIE at an offset; the last one is kept. */
static bool find_cie(const struct eh_cursor *c, uint64_t at, uint64_t size, struct eh_cie *cie)
{
	struct eh_cursor k = { c->buf, at, size, c->vaddr, false };

	if (cie->at == at)
		return cie->ok;
	*cie = (struct eh_cie){ .at = at, .encoding = PE_ABSPTR, .lsda = PE_OMIT };
	if (at < size && next_entry(&k, size) && !eh_get(&k, 4) && !k.bad)
		read_cie(&k, cie);
	return cie->ok;
}

bool eh_next(struct eh_walk *w, struct eh_fde *fde)
{
	const struct eh_frames *f = w->frames;
	struct eh_cursor c = { f->buf, w->at, f->size, f->vaddr, false };

	pause_point();
	while (f->buf && c.at < f->size && next_entry(&c, f->size)) {
		/* In .eh_frame the id has four bytes in the wide form too. */
		uint64_t at = w->at, id_at = c.at, id = eh_get(&c, 4);

		w->at = c.end;
		if (!c.bad && id && id <= id_at && find_cie(&c, id_at - id, f->size, &w->cie)) {
			fde->at = at;
			fde->start = eh_pointer(&c, w->cie.encoding);
			fde->len = eh_form(&c, w->cie.encoding);
			fde->data = c.at;
			fde->end = c.end;
			fde->cie = w->cie;
			if (!c.bad)
				return true;
		}
		c.at = w->at;
	}
	return false;
}

bool eh_augmentation(const struct eh_frames *f, const struct eh_fde *fde, uint64_t *lsda,
                     uint64_t *program)
{
	struct eh_cursor c = { f->buf, fde->data, fde->end, f->vaddr, false };
	uint64_t len;

	*lsda = 0;
	*program = c.at;
	if (!fde->cie.augmented)
		return true;
	len = eh_uleb(&c);
	if (c.bad || len > c.end - c.at)
		return false;
	*program = c.at + len;
	if (fde->cie.lsda == PE_OMIT || !len)
		return true;
	c.end = *program;
	/* 0 is none, whatever it is relative to. */
	if (eh_form(&(struct eh_cursor){ c.buf, c.at, c.end, 0, false }, fde->cie.lsda))
		*lsda = eh_pointer(&c, fde->cie.lsda);
	return !c.bad;
}

bool eh_in_text(const struct image *img, const struct eh_fde *fde)
{
	const Elf64_Phdr *ph = image_segment(img, fde->start);

	return fde->len && ph && (ph->p_flags & PF_X) &&
	       fde->len <= ph->p_memsz - (fde->start - ph->p_vaddr);
}

/* Where .eh_frame is, of a file without sections, says its header's pointer. */
static bool frames_by_segment(const struct image *img, uint64_t *vaddr, uint64_t *off,
                              uint64_t *size)
{
	for (unsigned int i = 0; i < img->nr_ph; i++) {
		uint8_t head[12];
		struct eh_cursor c = { head, 4, sizeof(head), img->ph[i].p_vaddr, false };
		uint64_t at, avail;

		if (img->ph[i].p_type != PT_GNU_EH_FRAME ||
		    !image_offset(img, img->ph[i].p_vaddr, &at, &avail) || avail < sizeof(head) ||
		    image_read(img, at, head, sizeof(head)) || head[0] != 1)
			continue;
		*vaddr = eh_pointer(&c, head[1]);
		return !c.bad && image_offset(img, *vaddr, off, size);
	}
	return false;
}

void eh_load(struct eh_frames *f, const struct image *img)
{
	const Elf64_Shdr *sh = image_section(img, ".eh_frame");
	uint64_t off;

	f->buf = NULL;
	if (sh && sh->sh_type != SHT_NOBITS) {
		f->vaddr = sh->sh_addr;
		off = sh->sh_offset;
		f->size = sh->sh_size;
	} else if (!frames_by_segment(img, &f->vaddr, &off, &f->size)) {
		return;
	}
	f->buf = image_load(img, off, f->size);
}
