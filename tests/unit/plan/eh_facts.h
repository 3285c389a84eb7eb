/* SPDX-License-Identifier: MIT */
/*
 * What .eh_frame says for the target set, for tests on files that we trust:
 * bounds, signal frames, landing pads, and whether a frame is empty at a pc.
 */
#ifndef TESTS_PLAN_EH_FACTS_H
#define TESTS_PLAN_EH_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct eh_cie {
	const uint8_t *insns, *end;
	uint64_t code_align;
	uint8_t fde_encoding, lsda_encoding;
	bool augmented, signal;
};

struct eh_fde {
	uint64_t start, end, lsda;
	struct eh_cie cie;
	const uint8_t *insns, *insns_end;
};

static inline uint64_t eh_uleb(const uint8_t **p)
{
	uint64_t v = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = *(*p)++;
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return v;
}

/* vaddr: of **p.  Indirect pointers stay pointers to pointers: they lead to no code here. */
static inline uint64_t eh_pointer(const uint8_t **p, uint8_t encoding, uint64_t vaddr)
{
	static const uint8_t sizes[16] = { 8, 0, 2, 4, 8, 0, 0, 0, 0, 0, 2, 4, 8, 0, 0, 0 };
	unsigned int size = sizes[encoding & 15];
	uint64_t v = 0;

	if (encoding == 0xff)
		return 0;
	if (!size)
		return eh_uleb(p);
	memcpy(&v, *p, size);
	if ((encoding & 15) == 0x0b)
		v = (uint64_t)(int64_t)(int32_t)v;
	*p += size;
	if (v && (encoding & 0x70) == 0x10)
		v += vaddr;
	return v;
}

static inline void eh_read_cie(const uint8_t *cie, struct eh_cie *c)
{
	const uint8_t *p = cie + 9;
	const char *aug = (const char *)p;
	uint32_t len;

	memcpy(&len, cie, 4);
	memset(c, 0, sizeof(*c));
	c->lsda_encoding = 0xff;
	c->end = cie + 4 + len;
	p += strlen(aug) + 1;
	c->code_align = eh_uleb(&p);
	eh_uleb(&p);
	eh_uleb(&p);
	c->insns = p;
	if (*aug != 'z')
		return;
	c->augmented = true;
	len = (uint32_t)eh_uleb(&p);
	c->insns = p + len;
	while (*++aug)
		switch (*aug) {
		case 'R':
			c->fde_encoding = *p++;
			break;
		case 'L':
			c->lsda_encoding = *p++;
			break;
		case 'P': {
			uint8_t encoding = *p++;

			eh_pointer(&p, encoding, 0);
			break;
		}
		case 'S':
			c->signal = true;
			break;
		}
}

/* Calls fn for each FDE of a section. */
static inline void eh_for_each(const uint8_t *sec, size_t size, uint64_t vaddr,
                               void (*fn)(const struct eh_fde *f, void *arg), void *arg)
{
	const uint8_t *p = sec;

	while (p + 4 <= sec + size) {
		const uint8_t *entry = p, *q = p + 8;
		struct eh_fde f = { 0 };
		uint32_t len, id;

		memcpy(&len, p, 4);
		if (!len || len == 0xffffffff)
			return;
		memcpy(&id, p + 4, 4);
		p += 4 + len;
		if (!id)
			continue;
		eh_read_cie(entry + 4 - id, &f.cie);
		f.start = eh_pointer(&q, f.cie.fde_encoding, vaddr + (uint64_t)(q - sec));
		f.end = f.start + eh_pointer(&q, f.cie.fde_encoding & 15, 0);
		if (f.cie.augmented) {
			const uint8_t *data = q;
			uint64_t n = eh_uleb(&data);

			q = data + n;
			f.lsda = eh_pointer(&data, f.cie.lsda_encoding,
			                    vaddr + (uint64_t)(data - sec));
		}
		f.insns = q;
		f.insns_end = p;
		fn(&f, arg);
	}
}

/* Calls fn for each landing pad of an LSDA at p (vaddr there). */
static inline void eh_landing_pads(const uint8_t *p, uint64_t vaddr, uint64_t func,
                                   void (*fn)(uint64_t pad, void *arg), void *arg)
{
	const uint8_t *begin = p, *end;
	uint64_t base = func, len;
	uint8_t encoding = *p++;

	if (encoding != 0xff)
		base = eh_pointer(&p, encoding, vaddr + (uint64_t)(p - begin));
	if (*p++ != 0xff)
		eh_uleb(&p);
	encoding = *p++;
	len = eh_uleb(&p);
	end = p + len;
	while (p < end) {
		uint64_t pad;

		eh_pointer(&p, encoding & 15, 0);
		eh_pointer(&p, encoding & 15, 0);
		pad = eh_pointer(&p, encoding & 15, 0);
		eh_uleb(&p);
		if (pad)
			fn(base + pad, arg);
	}
}

struct eh_cfa {
	uint64_t loc, pc, offset;
	unsigned int reg, depth;
	struct {
		uint64_t offset;
		unsigned int reg;
	} saved[8];
};

/* Runs CFI up to pc; false where pc has been passed. */
static inline bool eh_run(struct eh_cfa *c, const uint8_t *p, const uint8_t *end, uint64_t align)
{
	while (p < end) {
		uint8_t op = *p++;
		uint64_t advance = 0;
		uint32_t wide = 0;

		if (op >> 6 == 1)
			advance = (op & 63) * align;
		else if (op >> 6 == 2)
			eh_uleb(&p);
		else if (op >> 6 == 0)
			switch (op) {
			case 0x02 ... 0x04: /* advance_loc */
				memcpy(&wide, p, 1U << (op - 2));
				p += 1U << (op - 2);
				advance = wide * align;
				break;
			case 0x05: /* offset_extended, register, val_offset, ... */
			case 0x09:
			case 0x11:
			case 0x14:
			case 0x15:
			case 0x2f:
				eh_uleb(&p);
				/* fallthrough */
			case 0x06:
			case 0x07:
			case 0x08:
			case 0x2e:
				eh_uleb(&p);
				break;
			case 0x0a:
				if (c->depth < 8) {
					c->saved[c->depth].offset = c->offset;
					c->saved[c->depth++].reg = c->reg;
				}
				break;
			case 0x0b:
				if (c->depth) {
					c->offset = c->saved[--c->depth].offset;
					c->reg = c->saved[c->depth].reg;
				}
				break;
			case 0x0c:
				c->reg = (unsigned int)eh_uleb(&p);
				c->offset = eh_uleb(&p);
				break;
			case 0x0d:
				c->reg = (unsigned int)eh_uleb(&p);
				break;
			case 0x0e:
				c->offset = eh_uleb(&p);
				break;
			case 0x0f:
				advance = eh_uleb(&p);
				p += advance;
				advance = 0;
				c->reg = 99;
				break;
			case 0x10:
			case 0x16:
				eh_uleb(&p);
				advance = eh_uleb(&p);
				p += advance;
				advance = 0;
				break;
			}
		c->loc += advance;
		if (c->loc > c->pc)
			return false;
	}
	return true;
}

/* Is CFA = rsp + 8 at pc? */
static inline bool eh_bare(const struct eh_fde *f, uint64_t pc)
{
	struct eh_cfa c = { .loc = f->start, .pc = pc };

	if (eh_run(&c, f->cie.insns, f->cie.end, f->cie.code_align))
		eh_run(&c, f->insns, f->insns_end, f->cie.code_align);
	return c.reg == 7 && c.offset == 8;
}

#endif
