/* SPDX-License-Identifier: MIT */
/*
 * Finding in a process what a definition names.
 *
 * A name that means two functions is an error that says how to name each of
 * them.  One exception: the dynamic loader has its own malloc, calloc, memcpy,
 * ..., which serve it only until libc is there; its definition is left aside
 * when another module has a global one.
 */
#include "lang/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CANDIDATES 64
#define SHOWN 8

struct found {
	struct sym_symbol sym[CANDIDATES];
	size_t nr;
	size_t total; /* past CANDIDATES too */
};

static bool is_loader(const struct sym_module *m)
{
	const char *name = m ? sym_module_name(m) : "";

	return !strncmp(name, "ld-linux", 8) || !strncmp(name, "ld-musl", 7) ||
	       !strncmp(name, "ld-2.", 5);
}

static void drop_loader(struct found *f)
{
	bool other = false;
	size_t out = 0;

	for (size_t i = 0; i < f->nr; i++)
		other |= f->sym[i].global && !is_loader(f->sym[i].module);
	if (!other)
		return;
	for (size_t i = 0; i < f->nr; i++)
		if (!is_loader(f->sym[i].module))
			f->sym[out++] = f->sym[i];
	f->total -= f->nr - out;
	f->nr = out;
}

static void drop_data(struct found *f)
{
	size_t out = 0;

	for (size_t i = 0; i < f->nr; i++)
		if (f->sym[i].func)
			f->sym[out++] = f->sym[i];
	f->total -= f->nr - out;
	f->nr = out;
}

/* Versions of one (memcpy has two) are no choice for anybody, be the old one a function. */
static bool is_ifunc(const struct found *f)
{
	bool any = false;

	for (size_t i = 0; i < f->nr; i++) {
		any |= f->sym[i].ifunc;
		if (!f->sym[i].ifunc && !f->sym[i].old)
			return false;
	}
	return any;
}

static void look_up(struct found *f, struct sym_proc *proc, struct sym_module *m, const char *name)
{
	f->total = sym_lookup(proc, m, name, f->sym, CANDIDATES);
	f->nr = f->total < CANDIDATES ? f->total : CANDIDATES;
}

/* How this one and no other is named: MOD:SYM, or the place in its file. */
static void spell(const struct found *f, size_t i, struct sym_proc *proc, char *buf, size_t len)
{
	const struct sym_symbol *s = &f->sym[i];
	const struct sym_map *map = sym_map_find(proc, s->addr);
	const char *module = s->module ? sym_module_name(s->module) : "";
	size_t same = 0;

	for (size_t j = 0; j < f->nr; j++)
		same += f->sym[j].module == s->module;
	if (same == 1 && s->module)
		snprintf(buf, len, "%s:%s", module, s->name);
	else if (map && s->module)
		snprintf(buf, len, "%s:0x%" PRIx64, module, s->addr - map->start + map->offset);
	else
		snprintf(buf, len, "0x%" PRIx64, s->addr);
}

static int not_unique(const struct found *f, struct sym_proc *proc, const char *name, int column,
                      struct err *err)
{
	char list[ERR_TEXT], one[256];
	size_t used = 0, i;

	list[0] = '\0';
	for (i = 0; i < f->nr && i < SHOWN; i++) {
		spell(f, i, proc, one, sizeof(one));
		if (used + strlen(one) + 64 > sizeof(list) - 128)
			break;
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s (0x%" PRIx64 ")",
		                         i ? ", " : "", one, f->sym[i].addr);
	}
	if (i < f->total)
		snprintf(list + used, sizeof(list) - used, " and %zu more", f->total - i);
	return lang_fail(err, -EINVAL, LANG_NON_UNIQ_SYMBOL, column, "%s is %s", name, list);
}

void lang_near(struct sym_proc *proc, struct sym_module *m, const char *name, char *buf, size_t len)
{
	const char *near[3];
	size_t nr = sym_suggest(proc, m, name, near, 3);

	buf[0] = 0;
	if (nr > 3)
		nr = 3;
	for (size_t i = 0, used = 0; i < nr && used < len; i++)
		used += (size_t)snprintf(buf + used, len - used, "%s%s",
		                         !i            ? "; near it: "
		                         : i + 1 == nr ? " or "
		                                       : ", ",
		                         near[i]);
}

struct listed {
	char *text;
	size_t len, used, nr;
};

static int list_one(const struct sym_symbol *s, void *arg)
{
	struct listed *l = arg;
	int n;

	if (s->ifunc || strstr(s->name, "_chk_") || strstr(s->name, "_ifunc"))
		return 0;
	if (l->nr++ >= SHOWN)
		return 1;
	n = snprintf(l->text + l->used, l->len - l->used, "%s%.64s", l->used ? ", " : "", s->name);
	l->used += (size_t)n < l->len - l->used ? (size_t)n : 0;
	return 0;
}

/* What it chooses from is named after it by habit (__memcpy_avx_unaligned), if at all. */
static int indirect(const struct found *f, struct sym_proc *proc, const struct lang_place *pl,
                    struct err *err)
{
	char names[ERR_TEXT / 2] = "", glob[256];
	struct listed l = { .text = names, .len = sizeof(names) };

	snprintf(glob, sizeof(glob), "__%.*s_*", (int)(strcspn(pl->sym, "@") % 200), pl->sym);
	sym_for_each_func(proc, f->sym[0].module, glob, list_one, &l);
	return lang_fail(err, -EOPNOTSUPP, LANG_IFUNC, pl->column,
	                 "%.128s only chooses an implementation when it is bound; %s%s%s%s",
	                 pl->sym,
	                 l.nr ? "those are " : "those have no names here: probe its callers", names,
	                 l.nr > SHOWN ? ", ..." : "",
	                 l.nr ? "; 'ukprobe funcs' lists those that can be probed" : "");
}

/* code differs by the kernel's habit: a place is -EINVAL, data -ENOENT. */
static int unknown(struct sym_proc *proc, struct sym_module *m, const char *name, int code,
                   int column, struct err *err)
{
	char list[512] = "; only f, and p with +*, take patterns";

	if (!strpbrk(name, "*?["))
		lang_near(proc, m, name, list, sizeof(list));
	return lang_fail(err, code, LANG_BAD_PROBE_ADDR, column, "no symbol %s%.128s%s%.128s%s",
	                 code == -ENOENT ? "@" : "", name, m ? " in " : "",
	                 m ? sym_module_name(m) : "", list);
}

/* A path may be written through a link, as ldd prints it. */
static struct sym_module *find_module(struct sym_proc *proc, const char *name)
{
	struct sym_module *m = sym_module_find(proc, name);
	char *real;

	if (m || !strchr(name, '/'))
		return m;
	real = realpath(name, NULL);
	m = real ? sym_module_find(proc, real) : NULL;
	free(real);
	return m;
}

/* NAMESPACE::NAME has been split at its last colon. */
static const char *cxx_hint(const char *module)
{
	size_t n = strlen(module);

	return n && module[n - 1] == ':'
	               ? "; a function of C++ goes by its mangled name, which 'ukprobe funcs' lists"
	               : "";
}

int lang_find_module(const struct lang_place *pl, struct sym_proc *proc, struct sym_module **m,
                     struct err *err)
{
	*m = pl->module ? find_module(proc, pl->module) : NULL;
	if (pl->module && !*m)
		return lang_fail(err, -ENOENT, LANG_BAD_PROBE_ADDR, pl->column,
		                 "no module '%s' is mapped%s", pl->module, cxx_hint(pl->module));
	return 0;
}

/* Code that the program has made, and told perf of. */
static bool is_made(struct sym_proc *proc, const char *name, struct sym_symbol *s)
{
	*s = (struct sym_symbol){ .name = name, .func = true, .version = "" };
	return sym_perfmap(proc, name, &s->addr, &s->size);
}

static int resolve_symbol(const struct lang_place *pl, struct sym_proc *proc, uint64_t *addr,
                          struct sym_symbol *func, struct err *err)
{
	struct sym_module *m;
	struct found f;
	int ret = lang_find_module(pl, proc, &m, err);

	if (ret)
		return ret;
	look_up(&f, proc, m, pl->sym);
	if (!f.nr && !m && is_made(proc, pl->sym, &f.sym[0]))
		f.nr = f.total = 1;
	if (!f.nr)
		return unknown(proc, m, pl->sym, -EINVAL, pl->column, err);
	drop_data(&f);
	if (!f.nr)
		return lang_fail(err, -EINVAL, LANG_FAIL_REG_PROBE, pl->column,
		                 "%s is data, not a function", pl->sym);
	if (!m)
		drop_loader(&f);
	if (is_ifunc(&f))
		return indirect(&f, proc, pl, err);
	if (f.total > 1)
		return not_unique(&f, proc, pl->sym, pl->column, err);
	*func = f.sym[0];
	if (func->size && (uint64_t)pl->offset >= func->size)
		return lang_fail(err, -EINVAL, LANG_BAD_PROBE_ADDR, pl->column,
		                 "%s is %" PRIu64 " bytes long", pl->sym, func->size);
	*addr = func->addr + (uint64_t)pl->offset;
	return 0;
}

static bool same_file(const struct sym_map *map, struct sym_module *m, const char *name)
{
	const char *slash = strrchr(map->path, '/');

	if (m)
		return map->module == m;
	return !strcmp(map->path, name) || (slash && !strcmp(slash + 1, name));
}

static int resolve_file(const struct lang_place *pl, struct sym_proc *proc, uint64_t *addr,
                        struct err *err)
{
	struct sym_module *m = find_module(proc, pl->module);
	uint64_t off = (uint64_t)pl->offset;
	size_t mapped = 0, hits = 0;

	for (size_t i = 0; i < sym_nr_maps(proc); i++) {
		const struct sym_map *map = sym_map_at(proc, i);

		if (!same_file(map, m, pl->module))
			continue;
		mapped++;
		if (!map->x || off < map->offset || off - map->offset >= map->end - map->start)
			continue;
		*addr = map->start + (off - map->offset);
		hits++;
	}
	if (!mapped)
		return lang_fail(
			err, -ENOENT, LANG_BAD_PROBE_ADDR, pl->column,
			"'%s' is not mapped; behind the colon is an offset in a file, no line",
			pl->module);
	if (!hits)
		return lang_fail(err, -EINVAL, LANG_FAIL_REG_PROBE, pl->column,
		                 "no code of %s is mapped from there", pl->module);
	if (hits > 1)
		return lang_fail(err, -EINVAL, LANG_NON_UNIQ_SYMBOL, pl->column,
		                 "%s is mapped %zu times; give an address", pl->module, hits);
	return 0;
}

/* The function around an address, named or not. */
static void around(struct sym_proc *proc, uint64_t addr, struct sym_symbol *func)
{
	uint64_t off, start, end;
	bool signal = false;

	if (sym_resolve(proc, addr, func, &off) && func->func)
		return;
	memset(func, 0, sizeof(*func));
	func->name = "";
	func->addr = addr;
	func->module = sym_module_of(proc, addr);
	if (!sym_bounds(proc, addr, &start, &end, &signal)) {
		func->addr = start;
		func->size = end - start;
		func->func = true;
	}
}

bool lang_is_cold(const char *name)
{
	const char *cold = strstr(name, ".cold");

	return cold && (!cold[5] || cold[5] == '.');
}

bool lang_is_entry(struct sym_proc *proc, const struct sym_symbol *func, uint64_t addr)
{
	static const unsigned char endbr64[LANG_ENDBR_LEN] = { 0xf3, 0x0f, 0x1e, 0xfa };
	unsigned char bytes[LANG_ENDBR_LEN];

	if (!func->func || lang_is_cold(func->name))
		return false;
	if (addr == func->addr)
		return true;
	return addr == func->addr + LANG_ENDBR_LEN &&
	       !sym_original(proc, func->addr, bytes, sizeof(bytes)) &&
	       !memcmp(bytes, endbr64, sizeof(bytes));
}

/* Why no return probe can be here. */
static int not_entry(const struct sym_symbol *func, int column, struct err *err)
{
	if (!func->func)
		return lang_fail(err, -EINVAL, LANG_BAD_RETPROBE, column,
		                 "no function is known at this address");
	if (lang_is_cold(func->name))
		return lang_fail(err, -EINVAL, LANG_BAD_RETPROBE, column,
		                 "%s is a part of a function that is jumped to", func->name);
	return lang_fail(err, -EINVAL, LANG_BAD_RETPROBE, column,
	                 "the function %s%sbegins at 0x%" PRIx64, func->name,
	                 func->name[0] ? " " : "", func->addr);
}

static int take_first(const struct sym_symbol *func, void *arg)
{
	*(struct sym_symbol *)arg = *func;
	return 1;
}

static int resolve_first(const struct lang_def *def, struct sym_proc *proc, uint64_t *addr,
                         struct sym_symbol *func, struct err *err)
{
	int ret = lang_resolve_all(def, proc, take_first, func, err);

	if (ret < 0)
		return ret;
	*addr = func->addr;
	return 0;
}

int lang_resolve(const struct lang_def *def, struct sym_proc *proc, uint64_t *addr,
                 struct sym_symbol *func, struct err *err)
{
	const struct lang_place *pl = &def->place;
	const struct sym_map *map;
	uint64_t start, end;
	bool signal = false;
	int ret = 0;

	if (lang_is_glob(def))
		return resolve_first(def, proc, addr, func, err);
	*addr = pl->addr;
	if (pl->kind == LANG_SYM)
		ret = resolve_symbol(pl, proc, addr, func, err);
	else if (pl->kind == LANG_FILE)
		ret = resolve_file(pl, proc, addr, err);
	if (ret)
		return ret;
	map = sym_map_find(proc, *addr);
	if (!map || !map->x)
		return lang_fail(err, -EINVAL, LANG_FAIL_REG_PROBE, pl->column,
		                 "0x%" PRIx64 " is %s", *addr,
		                 map ? "in a mapping that is not executable" : "not mapped");
	if (pl->kind != LANG_SYM)
		around(proc, *addr, func);
	if (!sym_bounds(proc, *addr, &start, &end, &signal) && signal)
		return lang_fail(err, -EINVAL, LANG_FAIL_REG_PROBE, pl->column,
		                 "it returns from signal handlers, by its very address");
	if (def->ret && !lang_is_entry(proc, func, *addr))
		return not_entry(func, pl->column, err);
	return 0;
}

/*
 * Of several @SYM the program sees one: a global of the executable (copied
 * there by the linker), else that of the probed module.
 */
static void prefer(struct found *f, const struct sym_module *place)
{
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < f->nr; i++) {
			const struct sym_symbol *s = &f->sym[i];
			bool exe = s->global && s->module && sym_module_is_exe(s->module);

			if (pass ? s->module == place : exe) {
				size_t same = 0;

				for (size_t j = 0; j < f->nr; j++)
					same += f->sym[j].module == s->module;
				if (same > 1)
					return;
				f->sym[0] = *s;
				f->nr = f->total = 1;
				return;
			}
		}
}

int lang_resolve_data(const struct lang_def *def, const struct lang_arg *arg, struct sym_proc *proc,
                      uint64_t *addr, struct err *err)
{
	struct sym_symbol func;
	struct found f;
	uint64_t place;
	int ret;

	look_up(&f, proc, NULL, arg->sym);
	if (!f.nr)
		return unknown(proc, NULL, arg->sym, -ENOENT, def->place.column, err);
	if (f.total > 1)
		drop_loader(&f);
	if (f.total > 1 && f.total == f.nr) {
		ret = lang_resolve(def, proc, &place, &func, err);
		if (ret)
			return ret;
		prefer(&f, func.module);
	}
	if (f.total > 1)
		return not_unique(&f, proc, arg->sym, arg->value_column, err);
	*addr = f.sym[0].addr + (uint64_t)arg->sym_offset;
	return 0;
}
