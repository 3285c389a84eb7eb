/* SPDX-License-Identifier: MIT */
/*
 * Two open-addressing tables: ours of pointers, which nobody else sees, and
 * the engine's of offsets in the control area.  A table that has become too
 * small is replaced by one twice as large, or as large as what was asked for;
 * the engine reads the old one or the new one, and both know all sites.  Old
 * ones of the engine's stay in the area, all together no larger than the last.
 */
#include "session/sites.h"

#include <errno.h>
#include <stdlib.h>

#include "patch/area.h"

struct site *sites_find(const struct target *t, uint64_t addr)
{
	size_t i;

	if (!t->nr_sites)
		return NULL;
	for (i = ukp_site_hash(addr); t->by_addr[i & t->by_mask]; i++)
		if (t->by_addr[i & t->by_mask]->addr == addr)
			return t->by_addr[i & t->by_mask];
	return NULL;
}

static void put(struct site **table, size_t mask, struct site *s)
{
	size_t i = ukp_site_hash(s->addr);

	while (table[i & mask])
		i++;
	table[i & mask] = s;
}

/* A power of two, at most half full with n in it. */
static size_t room_for(size_t n)
{
	size_t room = 64;

	while (room < 2 * n)
		room *= 2;
	return room;
}

static int grow_ours(struct target *t, size_t n)
{
	size_t room = room_for(n), i;
	struct site **more, **table;

	if (t->max_sites < n) {
		more = realloc(t->sites, room / 2 * sizeof(*more));
		if (!more)
			return -ENOMEM;
		t->sites = more;
		t->max_sites = room / 2;
	}
	if (t->by_addr && t->by_mask + 1 >= room)
		return 0;
	table = calloc(room, sizeof(*table));
	if (!table)
		return -ENOMEM;
	for (i = 0; i < t->nr_sites; i++)
		put(table, room - 1, t->sites[i]);
	free(t->by_addr);
	t->by_addr = table;
	t->by_mask = room - 1;
	return 0;
}

static int grow_engine(struct target *t, size_t n)
{
	size_t entries = room_for(n), i;
	struct ukp_site_table *tab;
	uint32_t off;

	if (t->own.sites && t->table_mask + 1 >= entries)
		return 0;
	if (entries > UKP_CTL_SIZE / sizeof(uint32_t))
		return -ENOSPC;
	off = target_alloc(t, sizeof(*tab) + entries * sizeof(uint32_t));
	if (!off)
		return -ENOSPC;
	tab = target_at(t, off);
	tab->mask = entries - 1;
	/* Where it is looked for, also if it is gone: a forked child may have its text. */
	for (i = 0; i < t->nr_sites; i++)
		area_table_put(tab, entries - 1, t->sites[i]->plan.addr, t->sites[i]->off);
	t->own.sites = off;
	t->table_mask = entries - 1;
	__atomic_store_n(&t->ctl->sites, off, __ATOMIC_RELEASE);
	return 0;
}

int sites_reserve(struct target *t, size_t n)
{
	int ret = grow_ours(t, t->nr_sites + n);

	return ret ? ret : grow_engine(t, t->nr_sites + n);
}

void sites_add(struct target *t, struct site *s)
{
	area_table_put(target_at(t, t->own.sites), t->table_mask, s->addr, s->off);
	put(t->by_addr, t->by_mask, s);
	t->sites[t->nr_sites++] = s;
}

void sites_free(struct target *t)
{
	size_t i;

	for (i = 0; i < t->nr_sites; i++)
		free(t->sites[i]);
	free(t->sites);
	free(t->by_addr);
}
