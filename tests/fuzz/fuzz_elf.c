/* SPDX-License-Identifier: MIT */
/*
 * An ELF file of any content: headers, symbols, frames, dynamic section, and
 * the questions that are asked about them.
 *
 *	clang -g -O1 -D_GNU_SOURCE -Isrc -fsanitize=fuzzer,address,undefined \
 *		tests/fuzz/fuzz_elf.c src/sym/[a-z]*.c src/base/err.c -o build/fuzz_elf
 *
 * Seeds: small shared objects, with and without sections.
 */
#include "sym/internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count(const struct sym_symbol *s, void *arg)
{
	if (!s->size || !*s->name)
		abort();
	++*(size_t *)arg;
	return 0;
}

static void ask(struct sym_proc *p, struct sym_module *m)
{
	struct sym_symbol s, found[4];
	const struct sym_rseq *rseq;
	const char *near[4];
	uint64_t off, start, end;
	size_t nr = 0;
	bool signal;
	char buf[128];

	for (size_t i = 0, n = sym_rseqs(m, &rseq); i < n; i++)
		if (rseq[i].start == rseq[i].end)
			abort();
	sym_for_each_func(p, NULL, NULL, count, &nr);
	sym_suggest(p, NULL, "fuctoin", near, 4);
	for (size_t i = 0; i < m->symtab.nr && i < 64; i++) {
		uint64_t addr = m->symtab.sym[i].addr + m->bias;

		if (!sym_lookup(p, m, m->symtab.sym[i].name, found, 4))
			abort();
		if (sym_resolve(p, addr, &s, &off) && s.addr + off != addr)
			abort();
		if (!sym_bounds(p, addr, &start, &end, &signal) && (addr < start || addr >= end))
			abort();
		sym_format(p, addr, buf, sizeof(buf));
		if (sym_label(m, addr) && !m->labels.nr)
			abort();
		sym_original(p, addr, buf, 16);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sym_proc p = { 0 };
	struct sym_module m = { .proc = &p, .path = "/f", .name = "f", .raw = "/f", .live = true };
	struct sym_module *modules[] = { &m };
	struct sym_map map = { .inode = 1, .r = true, .x = true, .path = "/f", .module = &m };
	struct dynamic d;

	if (image_from_buffer(&m.img, data, size, false))
		return 0;
	m.bias = 0x10000;
	m.img->trusted = true;
	m.img->build_id[0] = 0; /* no looking for debug files */
	map.start = m.bias + (m.img->low == UINT64_MAX ? 0 : m.img->low);
	map.end = m.bias + (m.img->high ? m.img->high : PAGE);
	p.maps = &map;
	p.nr_maps = 1;
	p.modules = modules;
	p.nr_modules = p.nr_live = 1;
	image_dynamic(m.img, m.bias, &d);
	module_symbols(&m);
	ask(&p, &m);
	symtab_free(&m.symtab);
	free(m.fdes.fde);
	free(m.rseq);
	labels_free(&m.labels);
	image_free(m.img);
	return 0;
}
