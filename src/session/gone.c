/* SPDX-License-Identifier: MIT */
/*
 * What was planted in libraries that have been unloaded since.  Their addresses
 * may be others' by now: nothing is written there any more, and who plants there
 * again does so from the new file.  One that came back to the same place is met
 * by its sites as they were, without breakpoints.
 */
#include <string.h>

#include "session/live.h"
#include "session/windows.h"

/* Of all executable mappings; another number: something has come or gone. */
static uint64_t sum_maps(struct target *t)
{
	uint64_t sum = 0xcbf29ce484222325;
	size_t i, k;

	for (i = 0; i < sym_nr_maps(t->sym); i++) {
		const struct sym_map *m = sym_map_at(t->sym, i);
		const uint64_t v[] = { m->start, m->end, m->offset, m->inode, m->minor };

		for (k = 0; m->x && k < sizeof(v) / sizeof(*v); k++)
			sum = (sum ^ v[k]) * 0x100000001b3;
	}
	return sum;
}

/* Where the file can't be read any more, the mapping at least is still one of code. */
static bool is_there(struct target *t, const struct site *s)
{
	const struct sym_map *m = sym_map_find(t->sym, s->addr);
	uint8_t code[UKP_INSN_MAX + 1];

	if (!m || !m->x)
		return false;
	return sym_original(t->sym, s->addr, code, s->plan.len) ||
	       !memcmp(code, s->plan.orig, s->plan.len);
}

void site_forget(struct target *t, struct site *s)
{
	struct ukp_site *shared = target_at(t, s->off);

	s->armed = false;
	s->gone = true;
	/* No address that somebody could ask for. */
	s->addr = 0;
	/* The engine tells by the text, and a forked child may have the old one still. */
	if (s->live)
		return;
	__atomic_store_n(&shared->addr, 0, __ATOMIC_RELEASE);
}

/* Something of ours is not where it was written: the library came again, without it. */
static bool is_fresh(struct target *t, const struct site *s)
{
	uint64_t at = s->jumped ? s->window->d.addr : s->addr;
	uint8_t now, is = s->jumped ? s->window->d.jump[0] : 0xcc;

	/* Armed without a byte changed, until its jump comes. */
	if (s->jump_only && !s->jumped)
		return false;
	return (s->armed || s->jumped) && !inject_read(t->inject, at, &now, 1) && now != is;
}

static void check(struct target *t, struct site *s)
{
	uint8_t now;

	/* A jump that could not be taken back is found by its window. */
	if (s->gone || s->jumped || s->live)
		return;
	if (!is_there(t, s))
		site_forget(t, s);
	else if (s->armed && !s->jump_only && !inject_read(t->inject, s->addr, &now, 1) &&
	         now == s->first)
		s->armed = false;
}

bool target_lost(struct target *t)
{
	uint64_t sum = sum_maps(t);
	size_t i;

	if (sum == t->maps_sum)
		return false;
	for (i = 0; i < t->nr_sites; i++)
		if (!t->sites[i]->gone && !t->sites[i]->live &&
		    (!is_there(t, t->sites[i]) || is_fresh(t, t->sites[i])))
			return true;
	t->maps_sum = sum;
	return false;
}

int target_refresh(struct target *t, struct err *err)
{
	int ret = sym_refresh(t->sym, err);
	uint64_t sum;
	size_t i;

	if (ret)
		return ret;
	live_look(t);
	sum = sum_maps(t);
	if (sum == t->maps_sum)
		return 0;
	t->maps_sum = sum;
	for (i = 0; i < t->nr_sites; i++)
		check(t, t->sites[i]);
	return 0;
}
