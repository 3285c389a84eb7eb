/* SPDX-License-Identifier: MIT */
/*
 * Stubs that lie elsewhere than in the frames they were put into: coroutines whose
 * stacks are copied away (greenlet) take them along, and bring them back when our
 * code is gone.  So before that, wherever one lies in the target's memory its
 * return address is put in its place.
 *
 * That is looked for only where an instance shows that it may be so, for memory is
 * large and the threads stand still meanwhile: what is resident and may be written,
 * up to a limit, without one in programs that are known to copy stacks.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/rethook.h"
#include "session/leave.h"
#include "wire/instance.h"

#define LIMIT (256ull << 20)
#define PAGE 4096ull
#define PAGES 256 /* at a time */
#define RESIDENT (3ull << 62)

struct copies {
	struct leave *l;
	uint64_t instances; /* where they lie */
	uint32_t nr;
	int pagemap;
	uint64_t left; /* bytes that may still be looked at */
	uint64_t word[PAGES * PAGE / 8];
};

static uint32_t index_of(const struct ukp_ctl *c, uint64_t addr)
{
	uint32_t i;

	/* The area may say anything. */
	if (!c->stub_chunk || !c->stubs_per_chunk)
		return UINT32_MAX;
	i = ukp_rethook_index(c, addr);
	return i != UINT32_MAX && addr == ukp_ctl_stub(c, i) ? i : UINT32_MAX;
}

static void look_at(struct copies *c, uint64_t addr, size_t words)
{
	const struct leave *l = c->l;
	uint64_t ret_addr;
	uint32_t index;
	size_t i;

	if (inject_read(l->inject, addr, c->word, words * 8))
		return;
	for (i = 0; i < words; i++) {
		if (c->word[i] - l->stubs_start >= l->stubs_end - l->stubs_start)
			continue;
		index = index_of(l->ctl, c->word[i]);
		if (index < c->nr &&
		    !inject_read(l->inject,
		                 c->instances + (uint64_t)index * sizeof(struct ukp_instance) +
		                         offsetof(struct ukp_instance, ret_addr),
		                 &ret_addr, 8) &&
		    ret_addr)
			inject_write(l->inject, addr + i * 8, &ret_addr, 8);
	}
}

/* Of some pages, those that are there. */
static void look_at_pages(struct copies *c, uint64_t addr, size_t n)
{
	uint64_t entry[PAGES];
	size_t i, from;

	if (pread(c->pagemap, entry, n * 8, (off_t)(addr / PAGE * 8)) != (ssize_t)(n * 8))
		memset(entry, 0xff, sizeof(entry));
	for (i = 0; i < n; i++) {
		for (from = i; i < n && entry[i] & RESIDENT; i++)
			;
		if (i == from || c->left < (i - from) * PAGE)
			continue;
		c->left -= (i - from) * PAGE;
		look_at(c, addr + from * PAGE, (i - from) * PAGE / 8);
	}
}

static bool is_ours(const struct leave *l, uint64_t addr)
{
	uint32_t i;

	for (i = 0; i < l->ctl->nr_mappings && i < UKP_NR_MAPPINGS; i++)
		if (l->ctl->mapping[i].kind != UKP_MAP_FREE &&
		    addr - l->ctl->mapping[i].addr < l->ctl->mapping[i].len)
			return true;
	return false;
}

static bool copies_stacks(struct sym_proc *sym)
{
	size_t i;

	for (i = 0; i < sym_nr_maps(sym); i++)
		if (strstr(sym_map_at(sym, i)->path, "greenlet"))
			return true;
	return false;
}

static void look_everywhere(struct copies *c)
{
	struct sym_proc *sym = c->l->sym;
	size_t i;

	c->left = copies_stacks(sym) ? UINT64_MAX : LIMIT;
	for (i = 0; i < sym_nr_maps(sym); i++) {
		const struct sym_map *m = sym_map_at(sym, i);
		uint64_t at, n;

		if (!m->r || !m->w || is_ours(c->l, m->start) || !strncmp(m->path, "/dev/", 5))
			continue;
		for (at = m->start; at < m->end; at += n * PAGE) {
			n = (m->end - at) / PAGE < PAGES ? (m->end - at) / PAGE : PAGES;
			look_at_pages(c, at, n);
		}
	}
}

/* Those whose stub was in its frame have their return address back by now. */
static bool is_elsewhere(struct inject *t, const struct ukp_instance *inst)
{
	uint64_t word;

	return inst->bound || (inst->state == UKP_INST_LIVE &&
	                       !inject_read(t, inst->frame, &word, 8) && word != inst->ret_addr);
}

/* Is there a call whose frame doesn't hold its stub, or was one taken for such? */
static bool may_be_copies(struct copies *c)
{
	const struct ukp_instance *inst = (const struct ukp_instance *)c->word;
	const uint32_t most = sizeof(c->word) / (sizeof(*inst));
	uint32_t i, k, part;

	for (i = 0; i < c->nr; i += part) {
		part = c->nr - i < most ? c->nr - i : most;
		if (inject_read(c->l->inject, c->instances + (uint64_t)i * sizeof(*inst), c->word,
		                part * sizeof(*inst)))
			return false;
		for (k = 0; k < part; k++)
			if (is_elsewhere(c->l->inject, &inst[k]))
				return true;
	}
	return false;
}

void leave_copies(struct leave *l)
{
	struct copies *c = malloc(sizeof(*c));
	char path[64];

	if (!c)
		return;
	c->l = l;
	c->nr = leave_instances(l->inject, l->ctl, &c->instances);
	snprintf(path, sizeof(path), "/proc/%d/pagemap", inject_pid(l->inject));
	if (may_be_copies(c) && !sym_refresh(l->sym, NULL)) {
		c->pagemap = open(path, O_RDONLY | O_CLOEXEC);
		look_everywhere(c);
		if (c->pagemap >= 0)
			close(c->pagemap);
	}
	free(c);
}
