/* SPDX-License-Identifier: MIT */
/*
 * A process that exists only here, behind the calls of sym/sym.h that the
 * language makes.  Included by one test each: the linker then takes these
 * instead of the archive's.  Its functions are those of the recorded kernel
 * answers, so that their lines serve as they are.
 */
#ifndef TESTS_FAKE_SYM_H
#define TESTS_FAKE_SYM_H

#include <fnmatch.h>
#include <string.h>

#include "sym/sym.h"

struct sym_module {
	const char *name, *path;
	bool exe;
};

enum { EXE, LIBC, LOADER, LIBFOO, BUSYBOX, NR_MODULES };

static struct sym_module fake_modules[NR_MODULES] = {
	[EXE] = { "prog", "/usr/bin/prog", true },
	[LIBC] = { "libc.so.6", "/usr/lib/libc.so.6", false },
	[LOADER] = { "ld-linux-x86-64.so.2", "/usr/lib/ld-linux-x86-64.so.2", false },
	[LIBFOO] = { "libfoo.so", "/opt/a:b/libfoo.so", false },
	[BUSYBOX] = { "busybox", "/bin/busybox", false },
};

/* clang-format off */
static struct sym_map fake_maps[] = {
	{ .start = 0x400000, .end = 0x410000, .offset = 0x1000, .r = true, .x = true,
	  .path = "/usr/bin/prog", .module = &fake_modules[EXE] },
	{ .start = 0x410000, .end = 0x420000, .offset = 0x11000, .r = true, .w = true,
	  .path = "/usr/bin/prog", .module = &fake_modules[EXE] },
	{ .start = 0x7f0000000000, .end = 0x7f0000010000, .offset = 0x2000, .r = true, .x = true,
	  .path = "/usr/lib/libc.so.6", .module = &fake_modules[LIBC] },
	{ .start = 0x7f1000000000, .end = 0x7f1000010000, .offset = 0x1000, .r = true, .x = true,
	  .path = "/usr/lib/ld-linux-x86-64.so.2", .module = &fake_modules[LOADER] },
	{ .start = 0x7f2000000000, .end = 0x7f2000010000, .offset = 0, .r = true, .x = true,
	  .path = "/opt/a:b/libfoo.so", .module = &fake_modules[LIBFOO] },
	{ .start = 0x7f3000000000, .end = 0x7f3000010000, .offset = 0x1000, .r = true, .x = true,
	  .path = "/bin/busybox", .module = &fake_modules[BUSYBOX] },
	{ .start = 0x7f4000000000, .end = 0x7f4000001000, .offset = 0x40000, .r = true, .x = true,
	  .path = "/opt/a:b/libfoo.so", .module = &fake_modules[LIBFOO] },
	{ .start = 0x7f5000000000, .end = 0x7f5000001000, .offset = 0x40000, .r = true, .x = true,
	  .path = "/opt/a:b/libfoo.so", .module = &fake_modules[LIBFOO] },
};
/* clang-format on */

#define NR(a) (sizeof(a) / sizeof((a)[0]))
#define F(m, n, a, s, glob)                                                                \
	{                                                                                  \
		.module = &fake_modules[m], .name = n, .addr = a, .size = s, .func = true, \
		.global = glob                                                             \
	}
#define D(m, n, a, s)                                                                       \
	{                                                                                   \
		.module = &fake_modules[m], .name = n, .addr = a, .size = s, .global = true \
	}
static const struct sym_symbol fake_symbols[] = {
	F(EXE, "vfs_read", 0x401000, 0x370, true), /* begins with endbr64 */
	F(EXE, "vfs_write", 0x402000, 0x400, true),
	F(EXE, "kernel_clone", 0x403000, 0x400, true),
	F(EXE, "kfree", 0x403400, 0x100, true),
	F(EXE, "schedule", 0x403500, 0x100, true),
	F(EXE, "do_sys_open", 0x403600, 0x100, true),
	F(EXE, "do_sys_openat2", 0x403700, 0x100, true),
	F(EXE, "dget_parent", 0x403800, 0x100, true),
	F(EXE, "name_show", 0x404000, 0x40, false),
	F(EXE, "name_show", 0x404100, 0x40, false),
	F(EXE, "work.cold", 0x404200, 0x40, false),
	F(EXE, "twice", 0x404300, 0x40, true),
	F(LIBFOO, "twice", 0x7f2000000300, 0x40, true),
	F(LIBC, "malloc", 0x7f0000001000, 0x100, true),
	F(LOADER, "malloc", 0x7f1000001000, 0x100, false),
	F(LOADER, "_dl_start", 0x7f1000002000, 0x100, false),
	{ .module = &fake_modules[LIBC],
	  .name = "memcpy",
	  .addr = 0x7f0000002000,
	  .size = 0x50,
	  .func = true,
	  .ifunc = true,
	  .global = true },
	{ .module = &fake_modules[LIBC],
	  .name = "memcpy",
	  .addr = 0x7f0000002100,
	  .size = 0x50,
	  .func = true,
	  .old = true,
	  .version = "GLIBC_2.2.5",
	  .global = true },
	F(LIBC, "__memcpy_avx_unaligned", 0x7f0000002200, 0x50, false),
	F(LIBC, "__memcpy_sse2_unaligned", 0x7f0000002300, 0x50, false),
	{ .module = &fake_modules[LIBC],
	  .name = "strlen",
	  .addr = 0x7f0000002400,
	  .size = 0x50,
	  .func = true,
	  .ifunc = true,
	  .global = true },
	F(LIBC, "restore", 0x7f0000003000, 0x10, false),
	D(EXE, "jiffies", 0x410000, 8),
	D(EXE, "linux_banner", 0x410100, 64),
	D(EXE, "linux_proc_banner", 0x410200, 64),
	D(EXE, "init_task", 0x410300, 4096),
	D(EXE, "environ", 0x412000, 8),
	D(LIBC, "environ", 0x7f0000008000, 8),
	D(LIBC, "table", 0x7f0000008100, 8),
	D(LIBFOO, "table", 0x7f2000008100, 8),
};
#undef F
#undef D

size_t sym_lookup(struct sym_proc *p, struct sym_module *module, const char *name,
                  struct sym_symbol *out, size_t max)
{
	size_t nr = 0;

	(void)p;
	for (size_t i = 0; i < NR(fake_symbols); i++) {
		const struct sym_symbol *s = &fake_symbols[i];

		if (strcmp(s->name, name) || (module && s->module != module))
			continue;
		if (nr < max)
			out[nr] = *s;
		nr++;
	}
	return nr;
}

bool sym_resolve(struct sym_proc *p, uint64_t addr, struct sym_symbol *out, uint64_t *off)
{
	(void)p;
	for (size_t i = 0; i < NR(fake_symbols); i++)
		if (addr - fake_symbols[i].addr < fake_symbols[i].size) {
			*out = fake_symbols[i];
			*off = addr - out->addr;
			return true;
		}
	return false;
}

/* 0x405000 up to 0x405100: a function without a name. */
int sym_bounds(struct sym_proc *p, uint64_t addr, uint64_t *start, uint64_t *end, bool *signal)
{
	struct sym_symbol s;
	uint64_t off;

	*signal = false;
	if (addr >= 0x405000 && addr < 0x405100) {
		*start = 0x405000;
		*end = 0x405100;
		return 0;
	}
	if (!sym_resolve(p, addr, &s, &off))
		return -ENOENT;
	*start = s.addr;
	*end = s.addr + s.size;
	*signal = !strcmp(s.name, "restore");
	return 0;
}

int sym_original(struct sym_proc *p, uint64_t addr, void *buf, size_t len)
{
	static const unsigned char endbr64[4] = { 0xf3, 0x0f, 0x1e, 0xfa };

	(void)p;
	memset(buf, 0x90, len);
	if (addr == 0x401000 && len >= 4)
		memcpy(buf, endbr64, 4);
	return 0;
}

int sym_for_each_func(struct sym_proc *p, struct sym_module *module, const char *glob,
                      int (*fn)(const struct sym_symbol *sym, void *arg), void *arg)
{
	int ret = 0;

	(void)p;
	for (size_t i = 0; i < NR(fake_symbols) && !ret; i++) {
		const struct sym_symbol *s = &fake_symbols[i];

		if (s->func && (!module || s->module == module) &&
		    (!glob || !fnmatch(glob, s->name, 0)))
			ret = fn(s, arg);
	}
	return ret;
}

int sym_for_each_entry(struct sym_proc *p, struct sym_module *module,
                       int (*fn)(const struct sym_symbol *sym, void *arg), void *arg)
{
	return sym_for_each_func(p, module, NULL, fn, arg);
}

int sym_for_each_range(struct sym_proc *p, struct sym_module *module,
                       int (*fn)(uint64_t start, uint64_t end, void *arg), void *arg)
{
	uint64_t upto = 0;
	int ret = 0;

	(void)p;
	for (size_t i = 0; i < NR(fake_symbols) && !ret; i++) {
		const struct sym_symbol *s = &fake_symbols[i];

		if (!s->func || (module && s->module != module) || s->addr < upto)
			continue;
		upto = s->addr + s->size;
		ret = fn(s->addr, upto, arg);
	}
	return ret;
}

struct sym_module *sym_module_find(struct sym_proc *p, const char *name)
{
	(void)p;
	for (size_t i = 0; i < NR_MODULES; i++)
		if (!strcmp(fake_modules[i].name, name) || !strcmp(fake_modules[i].path, name))
			return &fake_modules[i];
	return NULL;
}

const char *sym_module_name(const struct sym_module *m)
{
	return m->name;
}

bool sym_module_is_exe(const struct sym_module *m)
{
	return m->exe;
}

size_t sym_nr_maps(const struct sym_proc *p)
{
	(void)p;
	return NR(fake_maps);
}

const struct sym_map *sym_map_at(const struct sym_proc *p, size_t i)
{
	(void)p;
	return &fake_maps[i];
}

const struct sym_map *sym_map_find(const struct sym_proc *p, uint64_t addr)
{
	(void)p;
	for (size_t i = 0; i < NR(fake_maps); i++)
		if (addr >= fake_maps[i].start && addr < fake_maps[i].end)
			return &fake_maps[i];
	return NULL;
}

struct sym_module *sym_module_of(struct sym_proc *p, uint64_t addr)
{
	const struct sym_map *map = sym_map_find(p, addr);

	return map ? map->module : NULL;
}

/* A process that makes no code. */
bool sym_perfmap(struct sym_proc *p, const char *name, uint64_t *addr, uint64_t *size)
{
	(void)p;
	(void)name;
	*addr = *size = 0;
	return false;
}

size_t sym_suggest(struct sym_proc *p, struct sym_module *module, const char *name,
                   const char **out, size_t max)
{
	(void)p;
	(void)module;
	if (strncmp(name, "vfs_", 4) || max < 2)
		return 0;
	out[0] = "vfs_read";
	out[1] = "vfs_write";
	return 2;
}

#endif
