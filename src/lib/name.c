/* SPDX-License-Identifier: MIT */
/*
 * From what a caller names to an address, and which addresses are refused
 * whatever stands there: the section that runs on hits, what NOKPROBE_SYMBOL()
 * named, what libc does with all signals blocked.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/lib.h"
#include "patch/deny.h"

#define MAX_SAME 16

/* A static program has none. */
#pragma weak dlsym

#pragma GCC visibility push(hidden)
extern const char __start_ukp_hit_text[], __stop_ukp_hit_text[];
#pragma GCC visibility pop

static unsigned long *listed;
static size_t nr_listed, max_listed;

/* What the program itself would get by this name, if it is among several. */
static const struct sym_symbol *choose(const struct sym_symbol *s, size_t n, const char *name)
{
	uint64_t bound = dlsym ? (uint64_t)dlsym(RTLD_DEFAULT, name) : 0;
	size_t i;

	for (i = 0; i < n; i++)
		if (s[i].addr == bound)
			return &s[i];
	for (i = 0; i < n; i++)
		if (s[i].func && !s[i].old)
			return &s[i];
	return &s[0];
}

static int lookup(struct sym_proc *sym, const char *name, uint64_t *addr, struct err *err)
{
	const char *colon = strchr(name, ':');
	struct sym_module *m = NULL;
	struct sym_symbol s[MAX_SAME];
	const struct sym_symbol *best;
	char *module;
	size_t n;

	if (colon) {
		module = strndup(name, (size_t)(colon - name));
		m = module ? sym_module_find(sym, module) : NULL;
		free(module);
		if (!m)
			return err_set(err, -ENOENT, "no module of '%s' is mapped", name);
		name = colon + 1;
	}
	n = sym_lookup(sym, m, name, s, MAX_SAME);
	if (!n)
		return err_set(err, -ENOENT, "there is no symbol '%s'", name);
	best = choose(s, n < MAX_SAME ? n : MAX_SAME, name);
	*addr = best->addr;
	if (best->ifunc && dlsym && dlsym(RTLD_DEFAULT, name))
		*addr = (uint64_t)dlsym(RTLD_DEFAULT, name); /* what the resolver chose */
	return 0;
}

/* Whether addr is where a function begins, or behind its endbr64. */
static bool is_entry(struct sym_proc *sym, uint64_t addr, uint64_t start)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint8_t code[4];

	return addr == start || (addr == start + 4 && !sym_original(sym, start, code, 4) &&
	                         !memcmp(code, endbr64, 4));
}

int name_address(struct sym_proc *sym, kprobe_opcode_t *addr, const char *name,
                 unsigned long offset, uint64_t *ret, bool *entry, struct err *err)
{
	uint64_t at = (uint64_t)addr, off, start, end;
	struct sym_symbol s;
	bool signal;
	int r = name ? lookup(sym, name, &at, err) : 0;

	if (r)
		return r;
	at += offset;
	if (sym_resolve(sym, at, &s, &off))
		start = s.addr;
	else if (sym_bounds(sym, at, &start, &end, &signal))
		return err_set(err, -ENOENT, "%#lx is in no known function", at);
	*ret = at;
	*entry = is_entry(sym, at, start);
	return 0;
}

static bool is_listed(struct sym_proc *sym, uint64_t addr)
{
	struct sym_symbol s;
	uint64_t off;
	size_t i;

	if (!nr_listed || !sym_resolve(sym, addr, &s, &off))
		return false;
	for (i = 0; i < nr_listed; i++)
		if (listed[i] - s.addr < s.size)
			return true;
	return false;
}

void name_hit_range(uint64_t *start, uint64_t *end)
{
	*start = (uint64_t)__start_ukp_hit_text;
	*end = (uint64_t)__stop_ukp_hit_text;
}

bool name_denied_here(struct sym_proc *sym, uint64_t addr)
{
	return (addr >= (uint64_t)__start_ukp_hit_text && addr < (uint64_t)__stop_ukp_hit_text) ||
	       is_listed(sym, addr);
}

bool name_denied(struct sym_proc *sym, uint64_t addr)
{
	return name_denied_here(sym, addr) || deny_check(sym, addr, false);
}

int kprobe_add_ksym_blacklist(unsigned long entry)
{
	size_t max = max_listed ? max_listed * 2 : 16;
	unsigned long *more;
	int ret = lib_lock(false, lib_err());

	if (ret)
		return ret;
	if (nr_listed == max_listed) {
		more = realloc(listed, max * sizeof(*more));
		if (more) {
			listed = more;
			max_listed = max;
		}
	}
	if (nr_listed < max_listed)
		listed[nr_listed++] = entry;
	else
		ret = err_set(lib_err(), -ENOMEM, "out of memory");
	lib_unlock();
	return ret;
}

bool within_kprobe_blacklist(unsigned long addr)
{
	struct err *err = lib_err();
	struct sym_proc *sym;
	bool denied;

	if (lib_lock(false, err))
		return true;
	denied = own_sym(&sym, err) || name_denied(sym, addr);
	lib_unlock();
	return denied;
}
