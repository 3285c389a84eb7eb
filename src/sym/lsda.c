/* SPDX-License-Identifier: MIT */
/*
 * Landing pads: where the unwinder enters a function that calls another one.
 *
 * Tables of call sites in the format of GCC's personalities, which the other
 * compilers' ones have as well.  One that isn't understood throughout is an
 * error: a landing pad that isn't known would let a jump be written over it.
 */
#include "sym/facts_in.h"

#include <stdlib.h>

#define HEAD 64

static bool form_is_relative(uint8_t encoding)
{
	return !(encoding & PE_BASE);
}

/* The bytes of the call-site table, behind its head; *c is made to go over them. */
static int load_sites(struct facts *f, uint64_t addr, uint64_t len, struct eh_cursor *c)
{
	uint64_t off, avail;
	int r;

	if (!image_offset(f->img, addr, &off, &avail) || len > avail)
		return -EINVAL;
	r = facts_spend(f, len);
	if (r)
		return r;
	if (len > f->room_sites) {
		uint8_t *grown = realloc(f->sites, len);

		if (!grown)
			return -ENOMEM;
		f->sites = grown;
		f->room_sites = len;
	}
	*c = (struct eh_cursor){ f->sites, 0, len, addr, false };
	return facts_fetch(f, addr, f->sites, len) == len ? 0 : -EINVAL;
}

static int add_pad(struct facts *f, uint64_t func, uint64_t addr)
{
	int r = facts_add_extra(f, addr);

	if (r)
		return r;
	if (sym_grow(&f->pad, &f->room_pads, f->nr_pads, sizeof(*f->pad)))
		return -ENOMEM;
	f->pad[f->nr_pads++] = (struct sym_facts_pad){ func, addr };
	return 0;
}

static int read_sites(struct facts *f, struct eh_cursor *c, uint8_t encoding, uint64_t base,
                      uint64_t func)
{
	while (c->at < c->end) {
		uint64_t pad;
		int r;

		eh_form(c, encoding); /* where the calls begin, and how many bytes of them */
		eh_form(c, encoding);
		pad = eh_form(c, encoding);
		eh_uleb(c);
		if (c->bad || (pad && !facts_code(f, base + pad)))
			return -EINVAL;
		r = pad ? add_pad(f, func, base + pad) : 0;
		if (r)
			return r;
	}
	return 0;
}

int facts_lsda(struct facts *f, uint64_t lsda, uint64_t start)
{
	struct eh_cursor c = { .vaddr = lsda };
	uint64_t base = start, len;
	uint8_t head[HEAD], encoding;
	int r;

	c.buf = head;
	c.end = facts_fetch(f, lsda, head, sizeof(head));
	r = facts_spend(f, HEAD / 4);
	if (r)
		return r;
	encoding = (uint8_t)eh_get(&c, 1);
	if (encoding != PE_OMIT)
		base = eh_pointer(&c, encoding);
	encoding = (uint8_t)eh_get(&c, 1); /* of types */
	if (encoding != PE_OMIT)
		eh_uleb(&c);
	encoding = (uint8_t)eh_get(&c, 1);
	len = eh_uleb(&c);
	if (c.bad || !form_is_relative(encoding))
		return -EINVAL;
	r = load_sites(f, lsda + c.at, len, &c);
	return r ? r : read_sites(f, &c, encoding, base, start);
}
