/* SPDX-License-Identifier: MIT */
/* The list of target sets: see sets.h. */
#include "lib/sets.h"

#include <stdlib.h>
#include <string.h>

#include "lib/lib.h"
#include "patch/target_set.h"

struct sets_work {
	struct sets_work *next;
	uint64_t bias;
	char *path;
	char build_id[128];
	struct sym_facts *facts; /* until it has been made */
	struct plan_targets *targets;
	struct plan_exits *exits;
	bool asked; /* for its exits */
};

static struct sets_work *sets;

/* Modules are known by what they are: a view of them may be gone with the next refresh. */
static bool is_of(const struct sets_work *w, const struct sym_module *m)
{
	return w->bias == sym_module_bias(m) && !strcmp(w->path, sym_module_path(m)) &&
	       !strncmp(w->build_id, sym_module_build_id(m), sizeof(w->build_id) - 1);
}

static bool is_same(const struct sets_work *a, const struct sets_work *b)
{
	return a->bias == b->bias && !strcmp(a->path, b->path) && !strcmp(a->build_id, b->build_id);
}

static struct sets_work *find(uint64_t addr)
{
	const struct sym_module *m = sym_module_of(own_sym_last(), addr);
	struct sets_work *w;

	for (w = m ? sets : NULL; w && !is_of(w, m); w = w->next)
		;
	return w;
}

const struct plan_targets *sets_find(uint64_t addr, uint64_t *bias)
{
	const struct sets_work *w = find(addr);

	*bias = w ? w->bias : 0;
	return w ? w->targets : NULL;
}

struct sets_work *sets_begin(uint64_t addr)
{
	struct sym_module *m = sym_module_of(own_sym_last(), addr);
	struct sets_work *w;

	if (!m || find(addr))
		return NULL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->path = strdup(sym_module_path(m));
	if (!w->path) {
		free(w);
		return NULL;
	}
	w->bias = sym_module_bias(m);
	strncpy(w->build_id, sym_module_build_id(m), sizeof(w->build_id) - 1);
	if (sym_facts_open(m, &w->facts, NULL))
		w->facts = NULL;
	return w;
}

const struct plan_targets *sets_targets(uint64_t addr, uint64_t *bias)
{
	struct sets_work *w = find(addr);

	if (!w) {
		w = sets_begin(addr);
		if (!w)
			return NULL;
		sets_work(w);
		sets_end(w);
	}
	*bias = w->bias;
	return w->targets;
}

const struct plan_exits *sets_exits(uint64_t addr, uint64_t *bias)
{
	struct sets_work *w;

	if (!sets_targets(addr, bias))
		return NULL;
	w = find(addr);
	if (!w->asked && !sym_facts_open(sym_module_of(own_sym_last(), addr), &w->facts, NULL))
		w->exits = target_set_exits(w->facts, &w->targets);
	w->facts = NULL;
	w->asked = true;
	return w->exits;
}

void sets_work(struct sets_work *w)
{
	if (w->facts)
		w->targets = target_set_make(w->facts);
	w->facts = NULL;
}

void sets_end(struct sets_work *w)
{
	const struct sets_work *other = sets;

	while (other && !is_same(other, w))
		other = other->next;
	/* Somebody wanted the exits of the module meanwhile. */
	if (other) {
		plan_targets_free(w->targets);
		free(w->path);
		free(w);
		return;
	}
	w->next = sets;
	sets = w;
}
