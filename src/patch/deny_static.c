/* SPDX-License-Identifier: MIT */
/*
 * libc in a static program.  A module of its own has public names, and what has none may
 * run with all signals blocked.  Here all lie side by side, and what libc keeps to itself
 * is as local as the program's own static functions.  The linker takes objects in the
 * order in which they are named, the program's before libraries and libc after these, so
 * libc's begin where the first of its names is; but for cold parts, which are put before.
 *
 * There, what is global to libc's own parts alone is so to all: names that begin with __.
 */
#include "patch/deny.h"

#include <string.h>

struct names {
	uint64_t first; /* of libc's */
	bool any;
};

static bool is_libcs(const char *name)
{
	static const char *const begin[] = { "__libc_", "_IO_", "_dl_", "_nl_", "__pthread_" };
	size_t i;

	for (i = 0; i < sizeof(begin) / sizeof(*begin); i++)
		if (!strncmp(name, begin[i], strlen(begin[i])))
			return true;
	return false;
}

static bool is_cold(const char *name)
{
	const size_t n = strlen(name);

	return n > 5 && !strcmp(name + n - 5, ".cold");
}

static int look(const struct sym_symbol *s, void *arg)
{
	struct names *n = arg;

	n->any = true;
	if (is_libcs(s->name) && !is_cold(s->name) && (!n->first || s->addr < n->first))
		n->first = s->addr;
	return 0;
}

static bool has_libc(struct sym_proc *p)
{
	size_t i;

	for (i = 0; i < sym_nr_maps(p); i++) {
		struct sym_module *m = sym_map_at(p, i)->module;

		if (m && deny_is_libc(p, m))
			return true;
	}
	return false;
}

uint64_t deny_static(struct sym_proc *p, struct sym_module *m)
{
	struct names n = { 0 };

	if (!sym_module_is_exe(m) || sym_module_is_go(m))
		return 0;
	if (deny_is_libc(p, m)) {
		if (deny_is_musl(p, m))
			return 0;
		sym_for_each_func(p, m, NULL, look, &n);
		return n.first;
	}
	if (has_libc(p))
		return 0;
	sym_for_each_func(p, m, NULL, look, &n);
	return !n.any;
}

bool deny_is_nameless(struct sym_proc *p, struct sym_module *m, uint64_t from, uint64_t addr)
{
	struct sym_symbol s;
	uint64_t off;

	if (!sym_resolve(p, addr, &s, &off))
		return addr >= from;
	if (!sym_module_is_exe(m))
		return !s.global;
	return (addr >= from || is_cold(s.name)) &&
	       (!s.global || !strncmp(s.name, "__", 2) || is_libcs(s.name));
}
