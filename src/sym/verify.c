/* SPDX-License-Identifier: MIT */
/*
 * Original bytes, and whether the target's text still is what its files say.
 *
 * The file's bytes are read, never those of memory that the target can write;
 * where neither a file nor our own vdso can vouch for a mapping, that is said
 * instead of a clean result.
 */
#include "sym/internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (UINT64_C(256) << 10)

int sym_original(struct sym_proc *p, uint64_t addr, void *buf, size_t len)
{
	uint8_t *to = buf;

	while (len) {
		const struct sym_map *m = sym_map_find(p, addr);
		uint64_t part;
		int r;

		if (!m || !m->module || !m->module->img || !m->module->img->trusted ||
		    (!m->inode && !m->module->vdso))
			return -ENOENT;
		part = m->end - addr < len ? m->end - addr : len;
		r = image_read(m->module->img, m->offset + (addr - m->start), to, part);
		if (r)
			return r;
		addr += part;
		to += part;
		len -= part;
	}
	return 0;
}

/* Where a relocation writes; link-time. */
struct patch {
	uint64_t addr;
	unsigned int len;
};

struct verify {
	struct sym_proc *p;
	sym_mem_fn mem;
	void *arg;
	void (*diff)(const struct sym_diff *d, void *arg2);
	void *arg2;
	struct err *err;
	uint8_t *file, *memory;
	struct sym_diff run;
	long total;
	/* text relocations of this module */
	const struct sym_module *module;
	struct patch *patch;
	size_t nr_patches;
};

static int by_patch(const void *a, const void *b)
{
	const struct patch *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void load_patches(struct verify *v, const struct sym_module *m)
{
	uint64_t off, avail, nr;
	Elf64_Rela *rela;
	struct dynamic d;

	if (v->module == m)
		return;
	free(v->patch);
	v->patch = NULL;
	v->nr_patches = 0;
	v->module = m;
	if (!m || !image_dynamic(m->img, m->bias, &d) || !d.textrel ||
	    !image_offset(m->img, d.rela, &off, &avail))
		return;
	nr = (avail < d.relasz ? avail : d.relasz) / sizeof(*rela);
	rela = image_load(m->img, off, nr * sizeof(*rela));
	v->patch = rela ? calloc(nr + 1, sizeof(*v->patch)) : NULL;
	for (uint64_t i = 0; v->patch && i < nr; i++) {
		uint64_t type = ELF64_R_TYPE(rela[i].r_info);
		bool narrow = type == R_X86_64_PC32 || type == R_X86_64_32 || type == R_X86_64_32S;

		v->patch[v->nr_patches++] = (struct patch){ rela[i].r_offset, narrow ? 4 : 8 };
	}
	free(rela);
	if (v->nr_patches)
		qsort(v->patch, v->nr_patches, sizeof(*v->patch), by_patch);
}

static bool is_patched(const struct verify *v, uint64_t addr)
{
	size_t low = 0, high = v->nr_patches;

	if (!high)
		return false;
	addr -= v->module->bias;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (v->patch[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	/* Two may overlap, of different width. */
	for (unsigned int back = 0; low-- && back < 8; back++)
		if (addr - v->patch[low].addr < v->patch[low].len)
			return true;
	return false;
}

static void end_run(struct verify *v)
{
	if (v->run.len && v->diff)
		v->diff(&v->run, v->arg2);
	v->run.len = 0;
}

static void differs(struct verify *v, const struct sym_map *m, uint64_t addr, uint8_t file,
                    uint8_t memory)
{
	struct sym_diff *run = &v->run;

	if (is_patched(v, addr) || (m->module && sym_label(m->module, addr)))
		return;
	if (!run->len || run->map != m || run->addr + run->len != addr) {
		end_run(v);
		memset(run, 0, sizeof(*run));
		run->addr = addr;
		run->map = m;
	}
	if (run->len < sizeof(run->file)) {
		run->file[run->len] = file;
		run->memory[run->len] = memory;
	}
	run->len++;
	v->total++;
}

static int read_memory(struct verify *v, uint64_t addr, uint8_t *buf, uint64_t len)
{
	while (len) {
		ssize_t n = v->mem(v->arg, addr, buf, len);

		if (n <= 0)
			return err_set(v->err, n ? (int)n : -EIO,
			               "cannot read the target's memory at 0x%lx: %s",
			               (unsigned long)addr, strerror(n ? (int)-n : EIO));
		addr += (uint64_t)n;
		buf += n;
		len -= (uint64_t)n;
	}
	return 0;
}

/* Pages wholly behind the end of the file can't be read by anyone: left out. */
static int compare(struct verify *v, const struct sym_map *m, const struct image *img)
{
	uint64_t size = (img->size + PAGE - 1) & ~(PAGE - 1), len, part, have;
	int r;

	for (uint64_t at = 0; at < m->end - m->start; at += len) {
		uint64_t off = m->offset + at, addr = m->start + at;

		if (off >= size)
			break;
		len = m->end - addr < CHUNK ? m->end - addr : CHUNK;
		len = size - off < len ? size - off : len;
		have = off < img->size ? img->size - off : 0;
		have = have < len ? have : len;
		/* Behind the file's end its last page is zero. */
		memset(v->file + have, 0, len - have);
		r = image_read(img, off, v->file, have);
		if (r)
			return err_set(v->err, r, "cannot read %s", m->path);
		r = read_memory(v, addr, v->memory, len);
		if (r)
			return r;
		for (uint64_t page = 0; page < len; page += PAGE) {
			part = len - page < PAGE ? len - page : PAGE;
			if (!memcmp(v->file + page, v->memory + page, part))
				continue;
			for (uint64_t i = page; i < page + part; i++)
				if (v->file[i] != v->memory[i])
					differs(v, m, addr + i, v->file[i], v->memory[i]);
		}
	}
	end_run(v);
	return 0;
}

/* Files that exist in memory only and are their owner's to write: nothing to compare with. */
static bool has_no_original(const struct sym_map *m)
{
	return !strncmp(m->path, "/memfd:", 7) || !strncmp(m->path, "/SYSV", 5) ||
	       !strncmp(m->path, "/dev/", 5) || m->path[0] != '/';
}

/* 1: compared or nothing to compare; 0: no file to compare with. */
static int verify_map(struct verify *v, size_t i)
{
	const struct sym_map *m = &v->p->maps[i];
	struct image raw = { .fd = -1 };
	struct stat st;
	int r;

	if (!m->x || (!m->inode && !file_is_vdso(m)))
		return 1;
	if (m->module && m->module->img && m->module->img->trusted) {
		load_patches(v, m->module);
		r = compare(v, m, m->module->img);
		return r ? r : 1;
	}
	if (has_no_original(m) && !file_is_vdso(m))
		return 1;
	raw.fd = file_is_vdso(m) ? -1 : file_open(v->p, i);
	if (raw.fd < 0)
		return 0;
	load_patches(v, NULL);
	r = fstat(raw.fd, &st) ? -errno : 0;
	raw.size = r ? 0 : (uint64_t)st.st_size;
	if (!r)
		r = compare(v, m, &raw);
	close(raw.fd);
	return r ? r : 1;
}

long sym_verify(struct sym_proc *p, sym_mem_fn mem, void *arg,
                void (*diff)(const struct sym_diff *d, void *arg2), void *arg2, struct err *err)
{
	struct verify v = { .p = p, .mem = mem, .arg = arg, .diff = diff, .arg2 = arg2 };
	const struct sym_map *unknown = NULL;
	int r = 1;

	v.err = err;
	v.file = malloc(CHUNK);
	v.memory = malloc(CHUNK);
	if (!v.file || !v.memory)
		r = err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < p->nr_maps && r >= 0; i++) {
		r = verify_map(&v, i);
		if (!r && !unknown)
			unknown = &p->maps[i];
	}
	free(v.file);
	free(v.memory);
	free(v.patch);
	if (r < 0)
		return r;
	/* What does differ is more than what can't be known; both were told to diff's owner. */
	if (unknown && !v.total)
		return err_set(err, -ENOENT,
		               "cannot compare %s at 0x%lx: its file is gone or unreadable",
		               unknown->path, (unsigned long)unknown->start);
	return v.total;
}
