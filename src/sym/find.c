/* SPDX-License-Identifier: MIT */
/*
 * Opening a process and finding mappings and modules in it.
 *
 * A module's name, best rule first: its path; the path of a link to it; its
 * base name; for the executable also argv[0]'s base name and the command name
 * (redis-server is a link to redis-check-rdb); its base name without version
 * ("libc" or "libc.so" for libc.so.6 and libc-2.31.so).  If the last rule fits
 * several different files, none is taken.
 */
#include "sym/internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int sym_open(struct sym_proc **ret, pid_t pid, struct err *err)
{
	struct sym_proc *p = calloc(1, sizeof(*p));
	int r;

	*ret = NULL;
	if (!p)
		return err_set(err, -ENOMEM, "out of memory");
	p->pid = pid;
	r = sym_refresh(p, err);
	if (r)
		sym_close(p);
	else
		*ret = p;
	return r;
}

int sym_refresh(struct sym_proc *p, struct err *err)
{
	int r = maps_read(p, err);

	if (!r)
		r = modules_update(p);
	if (r == -ENOMEM)
		err_set(err, r, "out of memory");
	return r;
}

void sym_close(struct sym_proc *p)
{
	if (!p)
		return;
	modules_free(p);
	for (size_t i = 0; i < p->room_strings; i++)
		free(p->strings[i]);
	free(p->strings);
	free(p->maps);
	free(p->raw);
	free(p);
}

size_t sym_nr_maps(const struct sym_proc *p)
{
	return p->nr_maps;
}

const struct sym_map *sym_map_at(const struct sym_proc *p, size_t i)
{
	return i < p->nr_maps ? &p->maps[i] : NULL;
}

const struct sym_map *sym_map_find(const struct sym_proc *p, uint64_t addr)
{
	size_t low = 0, high = p->nr_maps;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (p->maps[mid].end <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low < p->nr_maps && p->maps[low].start <= addr ? &p->maps[low] : NULL;
}

size_t sym_nr_modules(const struct sym_proc *p)
{
	return p->nr_live;
}

struct sym_module *sym_module_at(const struct sym_proc *p, size_t i)
{
	return i < p->nr_live ? p->modules[i] : NULL;
}

struct sym_module *sym_module_of(struct sym_proc *p, uint64_t addr)
{
	const struct sym_map *m = sym_map_find(p, addr);

	return m ? m->module : NULL;
}

/* A link to the file, as the target would follow it. */
static struct sym_module *by_link(struct sym_proc *p, const char *path)
{
	struct sym_module *found = NULL;
	int fd = file_open_path(p->pid, path);
	struct stat want, st;

	if (fd < 0)
		return NULL;
	for (size_t i = 0; i < p->nr_live && !found && !fstat(fd, &want); i++) {
		struct sym_module *m = p->modules[i];

		if (m->img && m->img->fd >= 0 && !fstat(m->img->fd, &st) &&
		    st.st_dev == want.st_dev && st.st_ino == want.st_ino)
			found = m;
	}
	close(fd);
	return found;
}

static bool is_path(const struct sym_proc *p, const struct sym_module *m, const char *name)
{
	return !strcmp(m->path, name);
}

static bool is_base(const struct sym_proc *p, const struct sym_module *m, const char *name)
{
	return !strcmp(m->name, name) || (m->vdso && !strcmp(name, "vdso"));
}

static bool is_exe_name(const struct sym_proc *p, const struct sym_module *m, const char *name)
{
	const char *slash = strrchr(p->argv0, '/');

	return m->exe && (!strcmp(slash ? slash + 1 : p->argv0, name) || !strcmp(p->comm, name));
}

static bool is_versionless(const struct sym_proc *p, const struct sym_module *m, const char *name)
{
	size_t len = strlen(name);
	const char *rest = m->name + len;

	if (!len || strncmp(m->name, name, len))
		return false;
	if (!strncmp(rest, ".so", 3) && (!rest[3] || rest[3] == '.'))
		return true;
	/* libx.so; a soname as libx.so.6 of a file libx.so.6.0.1 */
	if (*rest == '.' && strstr(name, ".so"))
		return true;
	return *rest == '-' && rest[1] >= '0' && rest[1] <= '9' && strstr(rest, ".so");
}

struct sym_module *sym_module_find(struct sym_proc *p, const char *name)
{
	static bool (*const rules[])(const struct sym_proc *, const struct sym_module *,
	                             const char *) = { is_path, is_base, is_exe_name,
		                                       is_versionless };
	struct sym_module *found = NULL, *m;

	for (size_t rule = 0; rule < sizeof(rules) / sizeof(*rules); rule++) {
		for (size_t i = 0; i < p->nr_live; i++) {
			m = p->modules[i];
			if (!rules[rule](p, m, name))
				continue;
			if (rules[rule] != is_versionless)
				return m;
			if (found && strcmp(found->path, m->path))
				return NULL;
			found = found ? found : m;
		}
		if (!rule && strchr(name, '/'))
			return by_link(p, name);
	}
	return found;
}

const char *sym_module_name(const struct sym_module *m)
{
	return m->name;
}

const char *sym_module_path(const struct sym_module *m)
{
	return m->path;
}

uint64_t sym_module_bias(const struct sym_module *m)
{
	return m->bias;
}

bool sym_section(const struct sym_module *m, const char *name, uint64_t *start, uint64_t *end)
{
	const Elf64_Shdr *sh = m->img ? image_section(m->img, name) : NULL;

	if (!sh || !sh->sh_addr)
		return false;
	*start = sh->sh_addr + m->bias;
	*end = *start + sh->sh_size;
	return true;
}

bool sym_module_is_exe(const struct sym_module *m)
{
	return m->exe;
}

const char *sym_module_build_id(const struct sym_module *m)
{
	return m->img ? m->img->build_id : "";
}

uint64_t sym_module_start(const struct sym_module *m)
{
	return m->img && m->img->eh.e_entry ? m->img->eh.e_entry + m->bias : 0;
}

bool sym_module_is_go(const struct sym_module *m)
{
	return m->img && m->img->go;
}

bool sym_module_has_timers(struct sym_module *m)
{
	return module_symbols(m)->timers;
}

bool sym_module_has_aio(struct sym_module *m)
{
	return module_symbols(m)->aio;
}
