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

#include "lib/labels.h"
#include "lib/lib.h"
#include "patch/deny.h"
#include "patch/place.h"

#define MAX_SAME 16

/* A static program has none. */
#pragma weak dlsym

#pragma GCC visibility push(hidden)
extern const char __start_ukp_hit_text[], __stop_ukp_hit_text[];
#pragma GCC visibility pop

/* end 0: up to where the function at start ends, to be found out when it is asked. */
struct denied_range {
	uint64_t start, end;
};

static struct denied_range *listed;
static size_t nr_listed, max_listed;

/* Of this thread's call; names are known by where they are. */
struct binding {
	const char *name;
	uint64_t addr;
};

static __thread struct binding *bindings;
static __thread size_t nr_bindings, max_bindings, last_binding;

static const char *behind_module(const char *name)
{
	const char *colon = strchr(name, ':');

	return colon ? colon + 1 : name;
}

int name_bind(const char *name, struct err *err)
{
	size_t max = max_bindings ? max_bindings * 2 : 4;
	struct binding *more;

	/* A handler's call is refused, and may be in the middle of one of its thread. */
	if (!name || !dlsym || lib_in_handler())
		return 0;
	if (nr_bindings == max_bindings) {
		more = realloc(bindings, max * sizeof(*more));
		if (!more) {
			name_unbind();
			return err_set(err, -ENOMEM, "out of memory");
		}
		bindings = more;
		max_bindings = max;
	}
	name = behind_module(name);
	bindings[nr_bindings++] = (struct binding){ name, (uint64_t)dlsym(RTLD_DEFAULT, name) };
	return 0;
}

void name_unbind(void)
{
	if (lib_in_handler())
		return;
	free(bindings);
	bindings = NULL;
	nr_bindings = max_bindings = last_binding = 0;
}

/* They are asked for in their order, some twice. */
static uint64_t bound_to(const char *name)
{
	size_t i, at;

	for (i = 0; i < nr_bindings; i++) {
		at = (last_binding + i) % nr_bindings;
		if (bindings[at].name == name) {
			last_binding = at;
			return bindings[at].addr;
		}
	}
	return 0;
}

/* What the program itself would get by its name, if it is among several. */
static const struct sym_symbol *choose(const struct sym_symbol *s, size_t n, uint64_t bound)
{
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
	uint64_t bound;
	char *module;
	size_t n;

	if (colon) {
		module = strndup(name, (size_t)(colon - name));
		m = module ? sym_module_find(sym, module) : NULL;
		free(module);
		if (!m)
			return err_set(err, -ENOENT, "no module of '%s' is mapped", name);
	}
	name = behind_module(name);
	n = sym_lookup(sym, m, name, s, MAX_SAME);
	if (!n)
		return err_set(err, -ENOENT, "there is no symbol '%s'", name);
	bound = bound_to(name);
	best = choose(s, n < MAX_SAME ? n : MAX_SAME, bound);
	/* An ifunc: what the resolver chose. */
	*addr = best->ifunc && bound ? bound : best->addr;
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

static bool in_list(uint64_t addr, const struct sym_symbol *s)
{
	size_t i;

	for (i = 0; i < nr_listed; i++) {
		const struct denied_range *r = &listed[i];

		if (r->end ? addr >= r->start && addr < r->end
		           : s->size && r->start - s->addr < s->size)
			return true;
	}
	return false;
}

/* What the compiler splits off a function has its name, a dot and more. */
static bool base_is_listed(struct sym_proc *sym, const struct sym_symbol *s)
{
	const char *dot = strchr(s->name, '.');
	struct sym_symbol base[MAX_SAME];
	bool found = false;
	size_t i, n;
	char *name;

	if (!dot || dot == s->name)
		return false;
	name = strndup(s->name, (size_t)(dot - s->name));
	n = name ? sym_lookup(sym, s->module, name, base, MAX_SAME) : 0;
	for (i = 0; i < n && i < MAX_SAME && !found; i++)
		found = in_list(base[i].addr, &base[i]);
	free(name);
	return found;
}

static bool is_listed(struct sym_proc *sym, uint64_t addr)
{
	struct sym_symbol s = { .size = 0 };
	uint64_t off;

	if (!nr_listed)
		return false;
	if (!sym_resolve(sym, addr, &s, &off))
		return in_list(addr, &s);
	return in_list(addr, &s) || base_is_listed(sym, &s);
}

/* Functions that were defined as __kprobes. */
static bool in_kprobes_text(struct sym_proc *sym, uint64_t addr)
{
	const struct sym_module *m = sym_module_of(sym, addr);
	uint64_t start, end;

	return m && sym_section(m, ".kprobes.text", &start, &end) && addr >= start && addr < end;
}

void name_hit_range(uint64_t *start, uint64_t *end)
{
	*start = (uint64_t)__start_ukp_hit_text;
	*end = (uint64_t)__stop_ukp_hit_text;
}

const char *name_denied_here(struct sym_proc *sym, uint64_t addr)
{
	if (addr >= (uint64_t)__start_ukp_hit_text && addr < (uint64_t)__stop_ukp_hit_text)
		return "it runs on every hit";
	if (is_listed(sym, addr))
		return "it is on the program's own blacklist, as by NOKPROBE_SYMBOL()";
	if (in_kprobes_text(sym, addr))
		return "it is defined as __kprobes, to be free of probes";
	return labels_reserved(addr, addr) ? place_label : NULL;
}

const char *name_denied(struct sym_proc *sym, uint64_t addr)
{
	const char *why = name_denied_here(sym, addr);

	return why ? why : deny_check(sym, addr, false, NULL);
}

static int list(uint64_t start, uint64_t end)
{
	size_t max = max_listed ? max_listed * 2 : 16;
	struct denied_range *more;

	if (nr_listed == max_listed) {
		more = realloc(listed, max * sizeof(*more));
		if (!more)
			return err_set(lib_err(), -ENOMEM, "out of memory");
		listed = more;
		max_listed = max;
	}
	listed[nr_listed++] = (struct denied_range){ start, end };
	return 0;
}

void ukp_nokprobe(unsigned long entry)
{
	if (lib_lock(false, lib_err()))
		return;
	list(entry, 0);
	lib_unlock();
}

int kprobe_add_ksym_blacklist(unsigned long entry)
{
	struct err *err = lib_err();
	struct sym_symbol s;
	struct sym_proc *sym;
	uint64_t off;
	int ret = lib_lock(false, err);

	if (ret)
		return ret;
	ret = own_sym(&sym, err);
	if (!ret && (!sym_resolve(sym, entry, &s, &off) || !s.func))
		ret = err_set(err, -EINVAL, "%#lx is in no known function", entry);
	if (!ret)
		ret = list(entry, s.addr + s.size);
	lib_unlock();
	return ret ? ret : (int)s.size;
}

int kprobe_add_area_blacklist(unsigned long start, unsigned long end)
{
	struct err *err = lib_err();
	struct sym_proc *sym;
	const struct sym_map *m;
	int ret = lib_lock(false, err);

	if (ret)
		return ret;
	ret = own_sym(&sym, err);
	m = ret ? NULL : sym_map_find(sym, start);
	if (!ret && (!m || !m->x || start >= end))
		ret = err_set(err, -EINVAL, "%#lx to %#lx is no code", start, end);
	if (!ret)
		ret = list(start, end);
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
