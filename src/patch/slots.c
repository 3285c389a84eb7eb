/* SPDX-License-Identifier: MIT */
/* Slot arenas: one or more a module, filled from the start. */
#include "patch/slots.h"

#include <stdlib.h>
#include <string.h>

#include "patch/near.h"
#include "wire/site.h"

#define ARENA_SIZE (64u << 10)
#define ARENA_MAX (32u << 20)
#define HEAD UKP_SLOT_SIZE /* for whoever maps it to know it again */

struct arena {
	struct arena *next;
	uint64_t addr;
	uint64_t lo, hi;     /* what it reaches for sure */
	uint32_t size, used; /* bytes */
};

struct slots {
	struct sym_proc *sym;
	slots_map_fn map;
	void *arg;
	struct arena *arenas;
};

int slots_open(struct slots **ret, struct sym_proc *sym, slots_map_fn map, void *arg)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->sym = sym;
	(*ret)->map = map;
	(*ret)->arg = arg;
	return 0;
}

void slots_close(struct slots *s)
{
	while (s && s->arenas) {
		struct arena *next = s->arenas->next;

		free(s->arenas);
		s->arenas = next;
	}
	free(s);
}

/* All mappings of the file that addr belongs to: code reaches its data, too. */
static void module_range(struct sym_proc *sym, const struct sym_map *at, uint64_t *lo, uint64_t *hi)
{
	size_t i;

	*lo = at->start;
	*hi = at->end;
	for (i = 0; at->inode && i < sym_nr_maps(sym); i++) {
		const struct sym_map *m = sym_map_at(sym, i);

		if (m->inode != at->inode || m->major != at->major || m->minor != at->minor)
			continue;
		if (m->end + (1u << 30) < at->start || m->start > at->end + (1u << 30))
			continue;
		*lo = m->start < *lo ? m->start : *lo;
		*hi = m->end > *hi ? m->end : *hi;
	}
	/* .bss lies behind, anonymous. */
	*hi += 1u << 20;
}

static uint64_t find_gap(struct sym_proc *sym, uint64_t lo, uint64_t hi, uint64_t len)
{
	size_t i, n = sym_nr_maps(sym), used = 0;
	struct near_range *r = calloc(n + 1, sizeof(*r));
	uint64_t keep = 0, gap;

	if (!r)
		return 0;
	for (i = 0; i < n; i++) {
		const struct sym_map *m = sym_map_at(sym, i);

		r[used++] = (struct near_range){ m->start, m->end };
		if (!strcmp(m->path, "[heap]"))
			keep = m->end;
	}
	gap = near_gap(r, used, lo, hi, len, keep);
	free(r);
	return gap;
}

static struct arena *new_arena(struct slots *s, uint64_t addr, uint32_t size, struct err *err)
{
	const struct sym_map *m;
	struct arena *a;
	uint64_t gap;

	/* What we mapped ourselves since the last look takes room, too. */
	if (sym_refresh(s->sym, err))
		return NULL;
	m = sym_map_find(s->sym, addr);
	a = calloc(1, sizeof(*a));
	if (!m || !a) {
		free(a);
		err_set(err, m ? -ENOMEM : -ENOENT, "nothing is mapped at %#lx", addr);
		return NULL;
	}
	module_range(s->sym, m, &a->lo, &a->hi);
	gap = find_gap(s->sym, a->lo, a->hi, size);
	if (gap)
		a->addr = s->map(s->arg, gap, size, err);
	else
		err_set(err, -ENOSPC, "no free address space within 2 GiB of %#lx", addr);
	if (!a->addr) {
		free(a);
		return NULL;
	}
	a->size = size;
	a->used = HEAD;
	a->next = s->arenas;
	s->arenas = a;
	return a;
}

/* As much as is asked for, or the half of it, and so on, where gaps are small. */
static struct arena *make_room(struct slots *s, uint64_t addr, uint64_t size, struct err *err)
{
	struct arena *a;

	size = (size + ARENA_SIZE - 1) & ~(uint64_t)(ARENA_SIZE - 1);
	size = size < ARENA_MAX ? size : ARENA_MAX;
	while (!(a = new_arena(s, addr, (uint32_t)size, err)) && err->code == -ENOSPC &&
	       size > ARENA_SIZE)
		size = (size / 2 + ARENA_SIZE - 1) & ~(uint64_t)(ARENA_SIZE - 1);
	return a;
}

int slots_reserve(struct slots *s, uint64_t addr, size_t n, struct err *err)
{
	uint64_t want = (uint64_t)n * UKP_SLOT_SIZE, have = 0;
	struct arena *a;

	for (a = s->arenas; a; a = a->next)
		if (addr >= a->lo && addr < a->hi)
			have += a->size - a->used;
	while (have < want) {
		a = make_room(s, addr, want - have + HEAD, err);
		if (!a)
			return err->code;
		have += a->size - a->used;
	}
	return 0;
}

/* Mappings are few: each is as large as all before it. */
uint64_t slots_get_bytes(struct slots *s, uint64_t addr, uint32_t bytes, struct err *err)
{
	struct arena *a;
	uint64_t all = 0;

	bytes = (bytes + UKP_SLOT_SIZE - 1) & ~(uint32_t)(UKP_SLOT_SIZE - 1);
	for (a = s->arenas; a; a = a->next) {
		if (addr < a->lo || addr >= a->hi)
			continue;
		if (a->used + bytes <= a->size)
			break;
		all += a->size;
	}
	if (!a)
		a = make_room(s, addr, all ? all : ARENA_SIZE, err);
	if (!a)
		return 0;
	a->used += bytes;
	return a->addr + a->used - bytes;
}

uint64_t slots_get(struct slots *s, uint64_t addr, struct err *err)
{
	return slots_get_bytes(s, addr, UKP_SLOT_SIZE, err);
}

void slots_put(struct slots *s, uint64_t slot)
{
	struct arena *a;

	for (a = s->arenas; a; a = a->next)
		if (a->used >= UKP_SLOT_SIZE && slot == a->addr + a->used - UKP_SLOT_SIZE)
			a->used -= UKP_SLOT_SIZE;
}
