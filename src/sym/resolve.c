/* SPDX-License-Identifier: MIT */
/* From names to addresses and back. */
#include "sym/internal.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Symbols that enclose one another are few; a file that claims more is lying. */
#define MAX_STEPS 1024

void symbol_fill(struct sym_module *m, const struct symbol *s, struct sym_symbol *out)
{
	*out = (struct sym_symbol){
		.module = m,
		.name = s->name,
		.addr = s->addr + m->bias,
		.size = s->size,
		.func = s->func,
		.ifunc = s->ifunc,
		.global = s->global,
		.old = s->old,
		.version = s->version ? s->version : "",
	};
}

struct hits {
	struct sym_symbol *hit;
	size_t nr, room;
};

static bool is_better(const struct sym_symbol *a, const struct sym_symbol *b)
{
	if (a->func != b->func)
		return a->func;
	if (a->global != b->global)
		return a->global;
	if (a->module->exe != b->module->exe)
		return a->module->exe;
	if (a->module == b->module && a->old != b->old)
		return b->old;
	return a->addr < b->addr;
}

static int best_first(const void *a, const void *b)
{
	return is_better(a, b) ? -1 : is_better(b, a);
}

static void lookup_in(struct sym_module *m, const char *name, size_t len, const char *version,
                      struct hits *h)
{
	const struct symtab *t = module_symbols(m);
	uint32_t hash = symtab_hash(name, len);
	uint32_t i = t->nr ? t->bucket[hash & (t->nr_buckets - 1)] : 0;

	for (; i; i = t->sym[i - 1].next) {
		const struct symbol *s = &t->sym[i - 1];

		if (s->hash != hash || strncmp(s->name, name, len) || s->name[len])
			continue;
		if (version && (!s->version || strcmp(s->version, version)))
			continue;
		/* The chain is in order of addresses: its versions follow each other. */
		if (h->nr && h->hit[h->nr - 1].module == m &&
		    h->hit[h->nr - 1].addr == s->addr + m->bias)
			continue;
		if (sym_grow(&h->hit, &h->room, h->nr, sizeof(*h->hit)))
			return;
		symbol_fill(m, s, &h->hit[h->nr++]);
	}
}

/*
 * Part of a file may be mapped once more elsewhere (V8 does so with its own
 * code): what of that copy isn't there can't be meant.
 */
bool symbol_is_there(struct sym_proc *p, const struct sym_symbol *s)
{
	const struct sym_map *m = sym_map_find(p, s->addr);

	return m && m->module == s->module && (m->x || !s->func);
}

static void drop_unmapped(struct sym_proc *p, struct hits *h)
{
	size_t i, kept = 0;

	for (i = 0; i < h->nr; i++)
		if (symbol_is_there(p, &h->hit[i]))
			h->hit[kept++] = h->hit[i];
	if (kept)
		h->nr = kept;
}

size_t sym_lookup(struct sym_proc *p, struct sym_module *module, const char *name,
                  struct sym_symbol *out, size_t max)
{
	const char *at = *name ? strchr(name + 1, '@') : NULL;
	size_t len = at ? (size_t)(at - name) : strlen(name), nr;
	const char *version = at ? at + (at[1] == '@' ? 2 : 1) : NULL;
	struct hits h = { NULL, 0, 0 };

	for (size_t i = 0; i < p->nr_live; i++)
		if (!module || p->modules[i] == module)
			lookup_in(p->modules[i], name, len, version, &h);
	if (h.nr > 1)
		drop_unmapped(p, &h);
	if (h.nr > 1)
		qsort(h.hit, h.nr, sizeof(*h.hit), best_first);
	for (size_t i = 0; i < h.nr && i < max; i++)
		out[i] = h.hit[i];
	nr = h.nr;
	free(h.hit);
	return nr;
}

/* Number of symbols at or below a link-time address. */
static size_t upper(const struct symtab *t, uint64_t addr)
{
	size_t low = 0, high = t->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t->sym[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * The innermost function around addr, else object; else, where symbols are
 * shorter than the code that their FDE describes, the last one of that FDE.
 */
static const struct symbol *covering(const struct symtab *t, const struct fdes *fdes, uint64_t addr)
{
	const struct symbol *func = NULL, *object = NULL, *near = NULL;
	const struct fde *fde = fdes_find(fdes, addr);
	size_t i = upper(t, addr);

	for (unsigned int step = 0; i-- && step < MAX_STEPS; step++) {
		const struct symbol *s = &t->sym[i];

		/* Several at one address lie best first: the last one seen is the best. */
		if (func && func->addr != s->addr)
			break;
		if (addr - s->addr < s->size) {
			if (s->func)
				func = s;
			else if (!object || object->addr == s->addr)
				object = s;
		} else if (s->func && fde && s->addr >= fde->start &&
		           (!near || near->addr == s->addr)) {
			near = s;
		}
		if (t->top[i] <= addr && !(fde && s->addr >= fde->start))
			break;
	}
	return func ? func : object ? object : near;
}

bool sym_resolve(struct sym_proc *p, uint64_t addr, struct sym_symbol *out, uint64_t *off)
{
	struct sym_module *m = sym_module_of(p, addr);
	const struct symbol *s;

	if (!m)
		return false;
	s = covering(module_symbols(m), module_fdes(m), addr - m->bias);
	if (!s)
		return false;
	symbol_fill(m, s, out);
	if (off)
		*off = addr - out->addr;
	return true;
}

int sym_bounds(struct sym_proc *p, uint64_t addr, uint64_t *start, uint64_t *end, bool *signal)
{
	struct sym_module *m = sym_module_of(p, addr);
	const struct fde *fde = m ? fdes_find(module_fdes(m), addr - m->bias) : NULL;
	struct sym_symbol s;

	if (fde) {
		*start = fde->start + m->bias;
		*end = fde->end + m->bias;
		*signal = fde->signal;
		return 0;
	}
	if (!m || !sym_resolve(p, addr, &s, NULL) || !s.func)
		return -ENOENT;
	*start = s.addr;
	*end = s.addr + s.size;
	*signal = false;
	return 0;
}

/* As a definition may say it, which is true of the next process, too. */
static int format_nameless(struct sym_proc *p, uint64_t addr, char *buf, size_t len)
{
	const struct sym_map *map = sym_map_find(p, addr);

	if (!map || !map->module || map->module->vdso)
		return snprintf(buf, len, "0x%lx", (unsigned long)addr);
	return snprintf(buf, len, "%s:0x%lx", map->module->name,
	                (unsigned long)(addr - map->start + map->offset));
}

int sym_format(struct sym_proc *p, uint64_t addr, char *buf, size_t len)
{
	const char *module;
	struct sym_symbol s;
	uint64_t off;
	bool bare;

	if (!sym_resolve(p, addr, &s, &off))
		return format_nameless(p, addr, buf, len);
	module = s.module->exe ? "" : s.module->name;
	bare = s.module->exe || s.module->vdso; /* whose name has brackets */
	return snprintf(buf, len, "%s+0x%lx/0x%lx%s%s%s%s", s.name, (unsigned long)off,
	                (unsigned long)s.size, *module ? " " : "", bare ? "" : "[", module,
	                bare ? "" : "]");
}

int sym_for_each_func(struct sym_proc *p, struct sym_module *module, const char *glob,
                      int (*fn)(const struct sym_symbol *sym, void *arg), void *arg)
{
	for (size_t i = 0; i < p->nr_live; i++) {
		struct sym_module *m = p->modules[i];
		const struct symtab *t = module && m != module ? NULL : module_symbols(m);

		for (size_t k = 0; t && k < t->nr; k++) {
			struct sym_symbol s;
			int r;

			if (!t->sym[k].func || (glob && fnmatch(glob, t->sym[k].name, 0)) ||
			    (k && symbol_is_alias(&t->sym[k - 1], &t->sym[k])))
				continue;
			symbol_fill(m, &t->sym[k], &s);
			if (!symbol_is_there(p, &s))
				continue;
			r = fn(&s, arg);
			if (r)
				return r;
		}
	}
	return 0;
}

/* Symbols and FDEs merged: the next of both that begins first. */
static bool next_range(const struct symtab *t, const struct fdes *f, size_t *k, size_t *i,
                       uint64_t *start, uint64_t *end)
{
	while (*k < t->nr && !t->sym[*k].func)
		++*k;
	if (*k == t->nr && *i == f->nr)
		return false;
	if (*i == f->nr || (*k < t->nr && t->sym[*k].addr < f->fde[*i].start)) {
		*start = t->sym[*k].addr;
		*end = *start + t->sym[*k].size;
		++*k;
	} else {
		*start = f->fde[*i].start;
		*end = f->fde[*i].end;
		++*i;
	}
	return true;
}

int sym_for_each_range(struct sym_proc *p, struct sym_module *module,
                       int (*fn)(uint64_t start, uint64_t end, void *arg), void *arg)
{
	uint64_t start, end;
	int r = 0;

	for (size_t n = 0; n < p->nr_live && !r; n++) {
		struct sym_module *m = p->modules[n];
		size_t k = 0, i = 0;
		uint64_t upto = 0;

		if (module && m != module)
			continue;
		while (!r && next_range(module_symbols(m), module_fdes(m), &k, &i, &start, &end)) {
			if (start < upto)
				start = upto;
			if (start >= end)
				continue;
			upto = end;
			r = fn(start + m->bias, end + m->bias, arg);
		}
	}
	return r;
}
