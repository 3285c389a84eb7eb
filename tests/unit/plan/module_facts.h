/* SPDX-License-Identifier: MIT */
/* The planner's view of an ELF file that we trust: struct plan_module, filled in. */
#ifndef TESTS_PLAN_MODULE_FACTS_H
#define TESTS_PLAN_MODULE_FACTS_H

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plan/targets.h"
#include "unit/plan/eh_facts.h"

struct facts {
	uint8_t *file;
	size_t size;
	const Elf64_Ehdr *eh;
	const Elf64_Phdr *ph;
	const Elf64_Shdr *sh;
	const char *names;
	struct plan_code code[16];
	struct plan_bounds *func;
	struct plan_reloc *reloc;
	uint64_t *extra;
	struct eh_fde *fde;
	size_t nr_fdes, room_fdes, room_funcs, room_relocs, room_extra;
	struct plan_module m;
};

#define FACTS_PUSH(array, n, room, ...)                                                           \
	do {                                                                                      \
		if ((n) == (room))                                                                \
			(array) = realloc((array), sizeof(*(array)) *                             \
			                                   ((room) = (room) ? 2 * (room) : 256)); \
		(array)[(n)++] = (__VA_ARGS__);                                                   \
	} while (0)

static inline const uint8_t *facts_at(const struct facts *f, uint64_t vaddr, size_t *avail)
{
	for (unsigned int i = 0; i < f->eh->e_phnum; i++) {
		const Elf64_Phdr *ph = &f->ph[i];

		if (ph->p_type == PT_LOAD && vaddr - ph->p_vaddr < ph->p_filesz) {
			*avail = ph->p_filesz - (vaddr - ph->p_vaddr);
			return f->file + ph->p_offset + (vaddr - ph->p_vaddr);
		}
	}
	*avail = 0;
	return NULL;
}

static inline size_t facts_read(void *arg, uint64_t addr, void *buf, size_t len)
{
	size_t avail;
	const uint8_t *p = facts_at(arg, addr, &avail);

	if (len > avail)
		len = avail;
	if (len)
		memcpy(buf, p, len);
	return len;
}

static inline bool facts_is_code(const struct facts *f, uint64_t addr)
{
	for (size_t i = 0; i < f->m.nr_code; i++)
		if (addr - f->code[i].addr < f->code[i].size)
			return true;
	return false;
}

static inline const Elf64_Shdr *facts_section(const struct facts *f, const char *name)
{
	for (unsigned int i = 1; i < f->eh->e_shnum; i++)
		if (!strcmp(f->names + f->sh[i].sh_name, name))
			return &f->sh[i];
	return NULL;
}

static inline bool facts_in_plt(const struct facts *f, uint64_t addr)
{
	static const char *const names[] = { ".plt", ".plt.sec", ".plt.got", ".iplt" };

	for (int i = 0; i < 4; i++) {
		const Elf64_Shdr *sh = facts_section(f, names[i]);

		if (sh && addr - sh->sh_addr < sh->sh_size)
			return true;
	}
	return false;
}

static inline void facts_add_pad(uint64_t pad, void *arg)
{
	struct facts *f = arg;

	FACTS_PUSH(f->extra, f->m.nr_extra, f->room_extra, pad);
}

static inline void facts_add_fde(const struct eh_fde *e, void *arg)
{
	struct facts *f = arg;
	const uint8_t *lsda;
	size_t avail;

	if (e->cie.signal || e->end <= e->start || !facts_is_code(f, e->start) ||
	    facts_in_plt(f, e->start))
		return;
	FACTS_PUSH(f->fde, f->nr_fdes, f->room_fdes, *e);
	lsda = e->lsda ? facts_at(f, e->lsda, &avail) : NULL;
	if (lsda)
		eh_landing_pads(lsda, e->lsda, e->start, facts_add_pad, f);
}

static inline int facts_by_start(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static inline const struct eh_fde *facts_fde(const struct facts *f, uint64_t addr)
{
	size_t low = 0, high = f->nr_fdes;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (f->fde[mid].start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low && addr < f->fde[low - 1].end ? &f->fde[low - 1] : NULL;
}

static inline bool facts_bare(void *arg, uint64_t pc)
{
	const struct eh_fde *e = facts_fde(arg, pc);

	return e && eh_bare(e, pc);
}

static inline void facts_symbols(struct facts *f, const Elf64_Shdr *sh)
{
	const Elf64_Sym *sym = (const void *)(f->file + sh->sh_offset);
	const char *str = (const char *)f->file + f->sh[sh->sh_link].sh_offset;

	for (size_t i = 0; i < sh->sh_size / sizeof(*sym); i++) {
		const Elf64_Sym *s = &sym[i];
		uint64_t end = s->st_value + s->st_size;
		unsigned int type = ELF64_ST_TYPE(s->st_info);
		const struct eh_fde *e;

		if (!s->st_shndx || s->st_shndx >= SHN_LORESERVE || type > STT_FUNC ||
		    type == STT_OBJECT || !facts_is_code(f, s->st_value))
			continue;
		FACTS_PUSH(f->extra, f->m.nr_extra, f->room_extra, s->st_value);
		e = facts_fde(f, s->st_value);
		if (type != STT_FUNC || !s->st_size || facts_in_plt(f, s->st_value) ||
		    (e && e->start == s->st_value))
			continue;
		if (e && end > e->end)
			end = e->end;
		FACTS_PUSH(f->func, f->m.nr_funcs, f->room_funcs,
		           (struct plan_bounds){ s->st_value, end,
		                                 strstr(str + s->st_name, ".cold"), true });
	}
}

static inline void facts_relocs(struct facts *f, const Elf64_Shdr *sh)
{
	const Elf64_Rela *r = (const void *)(f->file + sh->sh_offset);

	const Elf64_Sym *sym = (const void *)(f->file + f->sh[sh->sh_link].sh_offset);

	for (size_t i = 0; i < sh->sh_size / sizeof(*r); i++) {
		const unsigned int type = ELF64_R_TYPE(r[i].r_info);
		const uint64_t s = ELF64_R_SYM(r[i].r_info);

		if (type == R_X86_64_64 && sym[s].st_shndx)
			FACTS_PUSH(
				f->reloc, f->m.nr_relocs, f->room_relocs,
				(struct plan_reloc){ r[i].r_offset,
			                             sym[s].st_value + (uint64_t)r[i].r_addend });
		if (type == R_X86_64_RELATIVE || type == R_X86_64_IRELATIVE)
			FACTS_PUSH(f->reloc, f->m.nr_relocs, f->room_relocs,
			           (struct plan_reloc){ r[i].r_offset, (uint64_t)r[i].r_addend });
	}
}

static inline bool facts_load(struct facts *f, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const Elf64_Shdr *eh;
	struct stat st;

	memset(f, 0, sizeof(*f));
	if (fd < 0 || fstat(fd, &st))
		return false;
	f->size = (size_t)st.st_size;
	f->file = mmap(NULL, f->size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	close(fd);
	if (f->file == MAP_FAILED)
		return false;
	f->eh = (const void *)f->file;
	f->ph = (const void *)(f->file + f->eh->e_phoff);
	f->sh = (const void *)(f->file + f->eh->e_shoff);
	f->names = (const char *)f->file + f->sh[f->eh->e_shstrndx].sh_offset;
	for (unsigned int i = 0; i < f->eh->e_phnum; i++)
		if (f->ph[i].p_type == PT_LOAD && (f->ph[i].p_flags & PF_X) && f->m.nr_code < 8)
			f->code[f->m.nr_code++] =
				(struct plan_code){ f->ph[i].p_vaddr, f->file + f->ph[i].p_offset,
				                    f->ph[i].p_filesz };
	eh = facts_section(f, ".eh_frame");
	if (eh)
		eh_for_each(f->file + eh->sh_offset, eh->sh_size, eh->sh_addr, facts_add_fde, f);
	if (f->nr_fdes)
		qsort(f->fde, f->nr_fdes, sizeof(*f->fde), facts_by_start);
	for (size_t i = 0; i < f->nr_fdes; i++)
		FACTS_PUSH(f->func, f->m.nr_funcs, f->room_funcs,
		           (struct plan_bounds){ f->fde[i].start, f->fde[i].end,
		                                 !eh_bare(&f->fde[i], f->fde[i].start), false });
	for (unsigned int i = 1; i < f->eh->e_shnum; i++) {
		if (f->sh[i].sh_type == SHT_DYNSYM || f->sh[i].sh_type == SHT_SYMTAB)
			facts_symbols(f, &f->sh[i]);
		if (f->sh[i].sh_type == SHT_RELA)
			facts_relocs(f, &f->sh[i]);
	}
	FACTS_PUSH(f->extra, f->m.nr_extra, f->room_extra, f->eh->e_entry);
	if (f->m.nr_funcs)
		qsort(f->func, f->m.nr_funcs, sizeof(*f->func), facts_by_start);
	if (f->m.nr_relocs)
		qsort(f->reloc, f->m.nr_relocs, sizeof(*f->reloc), facts_by_start);
	f->m.code = f->code;
	f->m.func = f->func;
	f->m.reloc = f->reloc;
	f->m.extra = f->extra;
	f->m.fixed = f->eh->e_type == ET_EXEC;
	f->m.read = facts_read;
	f->m.bare_stack = facts_bare;
	f->m.arg = f;
	return true;
}

static inline void facts_free(struct facts *f)
{
	munmap(f->file, f->size);
	free(f->func);
	free(f->reloc);
	free(f->extra);
	free(f->fde);
}

#endif
