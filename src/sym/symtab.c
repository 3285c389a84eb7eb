/* SPDX-License-Identifier: MIT */
/*
 * A module's symbols, indexed by address and by name.  Loaded once, in time
 * n log n whatever the file says.
 */
#include "sym/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void symtab_free(struct symtab *t)
{
	for (unsigned int i = 0; i < t->nr_strtabs; i++)
		free(t->strtab[i]);
	free(t->sym);
	free(t->top);
	free(t->bucket);
	memset(t, 0, sizeof(*t));
}

/* The same symbol in .symtab and .dynsym: next to each other by this order, known versions last. */
static int by_hash(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	if (!x->version || !y->version)
		return !!x->version - !!y->version;
	return x->version == y->version ? 0 : strcmp(x->version, y->version);
}

bool symbol_is_alias(const struct symbol *a, const struct symbol *b)
{
	return a->addr == b->addr && a->hash == b->hash && a->len == b->len &&
	       (a->name == b->name || !strcmp(a->name, b->name));
}

static unsigned int underscores(const char *name)
{
	return (unsigned int)strspn(name, "_");
}

/* Which of several names of an address is the one to show? */
static int by_rank(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->func != y->func)
		return x->func ? -1 : 1;
	if (x->global != y->global)
		return x->global ? -1 : 1;
	if (underscores(x->name) != underscores(y->name))
		return underscores(x->name) < underscores(y->name) ? -1 : 1;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

/* glibc 2.34 has pthread_once@GLIBC_2.2.5 and pthread_once@@GLIBC_2.34 at one address: both stay.
 */
static bool same(const struct symbol *a, const struct symbol *b)
{
	return symbol_is_alias(a, b) &&
	       (!a->version || !b->version || !strcmp(a->version, b->version));
}

/* Of two entries with one name keep what either knows. */
static void merge(struct symbol *into, const struct symbol *from)
{
	into->func |= from->func;
	into->ifunc |= from->ifunc;
	into->global |= from->global;
	into->old |= from->old;
	if (from->size > into->size)
		into->size = from->size;
	if (!into->version)
		into->version = from->version;
}

struct key {
	uint64_t addr;
	size_t i;
};

/* One byte of the addresses: how many there are of each value, then each to its place. */
static void sort_byte(struct key *to, const struct key *from, size_t nr, unsigned int shift)
{
	size_t at[257] = { 0 };

	for (size_t i = 0; i < nr; i++)
		at[(from[i].addr >> shift & 255) + 1]++;
	for (unsigned int v = 0; v < 256; v++)
		at[v + 1] += at[v];
	for (size_t i = 0; i < nr; i++)
		to[at[from[i].addr >> shift & 255]++] = from[i];
}

/* By address, in linear time: half of a load went into comparing. */
static int sort_addresses(struct symtab *t)
{
	struct key *key = malloc(2 * t->nr * sizeof(*key)), *a = key, *b = key + t->nr, *swap;
	struct symbol *sorted = malloc(t->nr * sizeof(*sorted));
	uint64_t differ = 0;

	for (size_t i = 0; key && i < t->nr; i++) {
		a[i] = (struct key){ t->sym[i].addr, i };
		differ |= t->sym[i].addr ^ t->sym[0].addr;
	}
	for (unsigned int shift = 0; key && shift < 64; shift += 8) {
		if (!(differ >> shift & 255))
			continue;
		sort_byte(b, a, t->nr, shift);
		swap = a;
		a = b;
		b = swap;
	}
	for (size_t i = 0; key && sorted && i < t->nr; i++)
		sorted[i] = t->sym[a[i].i];
	free(key);
	if (!key || !sorted) {
		free(sorted);
		return -ENOMEM;
	}
	free(t->sym);
	t->sym = sorted;
	t->room = t->nr;
	return 0;
}

/* The symbols of each address, which stand together. */
static void sort_names(struct symtab *t, int (*by)(const void *, const void *))
{
	for (size_t i = 0, end; i < t->nr; i = end) {
		for (end = i + 1; end < t->nr && t->sym[end].addr == t->sym[i].addr; end++)
			;
		if (end - i > 1)
			qsort(&t->sym[i], end - i, sizeof(*t->sym), by);
	}
}

static int drop_doubles(struct symtab *t)
{
	size_t out = 0;

	if (sort_addresses(t))
		return -ENOMEM;
	sort_names(t, by_hash);
	for (size_t i = 0; i < t->nr; i++) {
		if (out && same(&t->sym[out - 1], &t->sym[i]))
			merge(&t->sym[out - 1], &t->sym[i]);
		else
			t->sym[out++] = t->sym[i];
	}
	t->nr = out;
	return 0;
}

static uint64_t section_end(const struct image *img, const struct symbol *s)
{
	const Elf64_Phdr *ph = image_segment(img, s->addr);
	const Elf64_Shdr *sh = s->section < img->nr_sh ? &img->sh[s->section] : NULL;
	uint64_t end = ph->p_vaddr + ph->p_memsz, left;

	if (!s->section || !sh || s->addr - sh->sh_addr >= sh->sh_size)
		return end;
	left = sh->sh_size - (s->addr - sh->sh_addr);
	return left < end - s->addr ? s->addr + left : end;
}

/* A function that says nothing of its size: up to its FDE's end, the next symbol, its section's. */
static void give_sizes(struct symtab *t, const struct image *img, const struct fdes *fdes)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = t->nr; i--;) {
		struct symbol *s = &t->sym[i];
		const struct fde *fde;
		uint64_t end;

		if (i + 1 < t->nr && t->sym[i + 1].addr != s->addr)
			next = t->sym[i + 1].addr;
		if (!s->func || s->size)
			continue;
		fde = fdes_find(fdes, s->addr);
		end = fde ? fde->end : section_end(img, s);
		if (!fde && next < end)
			end = next;
		s->size = end - s->addr;
	}
}

static int make_index(struct symtab *t)
{
	uint64_t top = 0;

	t->nr_buckets = 64;
	while (t->nr_buckets < t->nr)
		t->nr_buckets *= 2;
	t->bucket = calloc(t->nr_buckets, sizeof(*t->bucket));
	t->top = malloc(t->nr * sizeof(*t->top));
	if (!t->bucket || !t->top)
		return -ENOMEM;
	for (size_t i = 0; i < t->nr; i++) {
		uint64_t end = t->sym[i].addr + t->sym[i].size;

		top = end > top ? end : top;
		t->top[i] = top;
	}
	for (size_t i = t->nr; i--;) {
		uint32_t *bucket = &t->bucket[t->sym[i].hash & (t->nr_buckets - 1)];

		t->sym[i].next = *bucket;
		*bucket = (uint32_t)i + 1;
	}
	return 0;
}

void symtab_load(struct symtab *t, const struct image *img, const struct image *debug,
                 uint64_t bias, const struct fdes *fdes)
{
	symtab_read(t, img, img, bias, fdes);
	if (debug)
		symtab_read(t, img, debug, bias, fdes);
	if (!t->nr)
		return;
	if (drop_doubles(t)) {
		symtab_free(t);
		return;
	}
	sort_names(t, by_rank);
	give_sizes(t, img, fdes);
	if (make_index(t))
		symtab_free(t);
}

static bool has_symtab(const struct image *img)
{
	for (unsigned int i = 1; i < img->nr_sh; i++)
		if (img->sh[i].sh_type == SHT_SYMTAB)
			return true;
	return false;
}

/* What the package with the debug symbols put into the target's root. */
static struct image *open_debug(const struct sym_module *m)
{
	const char *id = m->img->build_id;
	struct image *debug;
	char path[256];
	int fd;

	if (strlen(id) < 8 || has_symtab(m->img))
		return NULL;
	snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", id, id + 2);
	fd = file_open_path(m->proc->pid, path);
	if (fd < 0 || image_from_fd(&debug, fd))
		return NULL;
	if (!strcmp(debug->build_id, id))
		return debug;
	image_free(debug);
	return NULL;
}

const struct symtab *module_symbols(struct sym_module *m)
{
	struct image *debug;

	if (!m->loaded_symbols && m->img) {
		debug = open_debug(m);
		symtab_load(&m->symtab, m->img, debug, m->bias, module_fdes(m));
		image_free(debug);
	}
	m->loaded_symbols = true;
	return &m->symtab;
}
