/* SPDX-License-Identifier: MIT */
/*
 * Which mappings make up which module.
 *
 * A module is known by its file and its bias, so the same file at two places
 * (dlmopen) is two modules, and a module that was unmapped and mapped again at
 * the same place is the same one again.
 */
#include "sym/internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define NR_FAILED 8

/* Executable mappings of files that aren't ELF (caches of compilers) come by the thousand. */
struct failed {
	uint64_t inode[NR_FAILED];
	uint32_t major[NR_FAILED], minor[NR_FAILED];
	unsigned int next;
};

static uint64_t module_low(const struct sym_module *m)
{
	return m->bias + (m->img ? m->img->low : 0);
}

static uint64_t module_high(const struct sym_module *m)
{
	return m->bias + (m->img ? m->img->high : 0);
}

/*
 * The path may change while a file is mapped (renamed, deleted by an upgrade).
 * Its inode can't be given to another file as long as we hold it open.
 */
static bool is_of_file(const struct sym_proc *p, size_t map, const struct sym_module *m)
{
	const struct sym_map *s = &p->maps[map];

	return m->inode == s->inode && m->major == s->major && m->minor == s->minor &&
	       ((m->img && m->img->fd >= 0) || m->raw == p->raw[map]);
}

static bool map_bias(const struct sym_module *m, const struct sym_map *s, uint64_t *bias)
{
	if (m->img)
		return image_bias(m->img, s->start, s->offset, s->x, bias);
	*bias = s->start - s->offset;
	return true;
}

static struct sym_module *known_module(struct sym_proc *p, size_t map)
{
	for (size_t i = 0; i < p->nr_modules; i++) {
		struct sym_module *m = p->modules[i];
		uint64_t bias;

		if (is_of_file(p, map, m) && map_bias(m, &p->maps[map], &bias) && bias == m->bias)
			return m;
	}
	return NULL;
}

static bool has_failed(struct failed *f, const struct sym_map *s)
{
	for (unsigned int i = 0; i < NR_FAILED; i++)
		if (f->inode[i] == s->inode && f->major[i] == s->major && f->minor[i] == s->minor)
			return s->inode;
	return false;
}

static void set_failed(struct failed *f, const struct sym_map *s)
{
	f->inode[f->next] = s->inode;
	f->major[f->next] = s->major;
	f->minor[f->next] = s->minor;
	f->next = (f->next + 1) % NR_FAILED;
}

/* The file, else the memory; NULL: certainly no ELF file, or nothing can be read. */
static struct image *open_image(struct sym_proc *p, size_t map, bool *elf)
{
	struct image *img = NULL;
	int fd = file_is_vdso(&p->maps[map]) ? -1 : file_open(p, map);

	*elf = true;
	if (fd < 0)
		return file_from_memory(p, map);
	*elf = !image_from_fd(&img, fd);
	return img;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static int new_module(struct sym_proc *p, size_t map, struct failed *failed)
{
	const struct sym_map *s = &p->maps[map];
	struct sym_module *m;
	bool elf;

	if (has_failed(failed, s))
		return 0;
	m = calloc(1, sizeof(*m));
	if (!m || sym_grow(&p->modules, &p->room_modules, p->nr_modules, sizeof(m))) {
		free(m);
		return -ENOMEM;
	}
	m->img = open_image(p, map, &elf);
	if (!elf || !map_bias(m, s, &m->bias) || (!m->img && s->path[0] != '/')) {
		set_failed(failed, s);
		image_free(m->img);
		free(m);
		return 0;
	}
	m->proc = p;
	m->path = s->path;
	m->name = base_name(s->path);
	m->raw = p->raw[map];
	m->major = s->major;
	m->minor = s->minor;
	m->inode = s->inode;
	m->vdso = file_is_vdso(s);
	m->live = true;
	p->maps[map].module = m;
	p->modules[p->nr_modules++] = m;
	return 0;
}

static int find_executable_maps(struct sym_proc *p)
{
	struct failed failed = { { 0 }, { 0 }, { 0 }, 0 };
	int r = 0;

	for (size_t i = 0; i < p->nr_maps && !r; i++) {
		struct sym_map *s = &p->maps[i];

		if (!s->x || (!s->inode && !file_is_vdso(s)))
			continue;
		s->module = known_module(p, i);
		if (s->module) {
			s->module->live = true;
			s->module->raw = p->raw[i];
		} else {
			r = new_module(p, i, &failed);
		}
	}
	return r;
}

/* Data of the same file inside the module's range, and the .bss behind it. */
static void find_data_maps(struct sym_proc *p)
{
	for (size_t i = 0; i < p->nr_maps; i++) {
		struct sym_map *s = &p->maps[i], *before = i ? s - 1 : NULL;

		for (size_t k = 0; k < p->nr_live && !s->module; k++) {
			struct sym_module *m = p->modules[k];

			if (s->start >= module_low(m) && s->start < module_high(m) &&
			    (is_of_file(p, i, m) ||
			     (!s->inode && !*s->path && before && before->module == m &&
			      before->end == s->start)))
				s->module = m;
		}
	}
}

static int by_address(const void *a, const void *b)
{
	const struct sym_module *x = *(struct sym_module *const *)a;
	const struct sym_module *y = *(struct sym_module *const *)b;

	if (x->live != y->live)
		return x->live ? -1 : 1;
	return module_low(x) < module_low(y) ? -1 : module_low(x) > module_low(y);
}

static void find_exe(struct sym_proc *p)
{
	char path[64], target[4096];
	struct stat st;
	ssize_t n;
	bool have_stat;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)p->pid);
	n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = 0;
	have_stat = !stat(path, &st);
	for (size_t i = 0; i < p->nr_live; i++)
		p->modules[i]->exe = false;
	for (int by_name = 1; by_name >= 0; by_name--) {
		for (size_t i = 0; i < p->nr_live; i++) {
			struct sym_module *m = p->modules[i];

			m->exe = by_name ? !strcmp(m->raw, target) && *target
			                 : have_stat && st.st_ino == m->inode &&
			                           st.st_dev == makedev(m->major, m->minor);
			if (m->exe)
				return;
		}
	}
}

static void read_line(pid_t pid, const char *file, char *buf, size_t len)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, buf, len - 1) : 0;
	buf[n > 0 ? n : 0] = 0;
	buf[strcspn(buf, "\n")] = 0;
	if (fd >= 0)
		close(fd);
}

int modules_update(struct sym_proc *p)
{
	int r;

	for (size_t i = 0; i < p->nr_modules; i++)
		p->modules[i]->live = false;
	r = find_executable_maps(p);
	if (r)
		return r;
	if (p->nr_modules)
		qsort(p->modules, p->nr_modules, sizeof(*p->modules), by_address);
	p->nr_live = 0;
	while (p->nr_live < p->nr_modules && p->modules[p->nr_live]->live)
		p->nr_live++;
	find_data_maps(p);
	find_exe(p);
	/* "redis-server 127.0.0.1:6379": servers write their state behind their name. */
	read_line(p->pid, "comm", p->comm, sizeof(p->comm));
	read_line(p->pid, "cmdline", p->argv0, sizeof(p->argv0));
	p->argv0[strcspn(p->argv0, " :")] = 0;
	return 0;
}

void modules_free(struct sym_proc *p)
{
	for (size_t i = 0; i < p->nr_modules; i++) {
		image_free(p->modules[i]->img);
		symtab_free(&p->modules[i]->symtab);
		free(p->modules[i]->fdes.fde);
		free(p->modules[i]->rseq);
		labels_free(&p->modules[i]->labels);
		free(p->modules[i]);
	}
	free(p->modules);
}
