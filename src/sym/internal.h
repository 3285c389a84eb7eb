/* SPDX-License-Identifier: MIT */
/*
 * What the files of this zone share.
 *
 * An image is one ELF file as bytes (a descriptor or a buffer) with its checked
 * headers.  Files are read by pread, never mapped: whoever may write a file
 * may truncate it, and that must be an error here and no SIGBUS.  Nothing that
 * a file says about itself allocates more than the file is long, nor more than
 * IMAGE_LOAD_MAX.
 *
 * A module is one image at one place of one process.  Addresses in its tables
 * are link-time ones; runtime = link + bias.  Symbols and FDEs are loaded at
 * first use and stay.
 */
#ifndef UKP_SYM_INTERNAL_H
#define UKP_SYM_INTERNAL_H

#include <elf.h>

#include "sym/sym.h"

#define PAGE UINT64_C(4096)
#define PAGE_DOWN(x) ((x) & ~(PAGE - 1))
#define IMAGE_LOAD_MAX (UINT64_C(512) << 20)
#define IMAGE_MAX_SECTIONS 65536
#define IMAGE_MAX_SEGMENTS 128

struct image {
	int fd;             /* -1: mem */
	const uint8_t *mem; /* owned if own_mem */
	bool own_mem;
	bool trusted; /* the target can't have written it */
	uint64_t size;
	Elf64_Ehdr eh;
	Elf64_Phdr *ph; /* PT_LOADs that make no sense are PT_NULL here */
	unsigned int nr_ph;
	Elf64_Shdr *sh; /* nr_sh 0: none, or not to be believed */
	unsigned int nr_sh;
	char *shstr;
	uint64_t shstr_size;
	uint64_t low, high; /* of all PT_LOADs, whole pages, link time */
	char build_id[2 * 64 + 1];
	bool go; /* made by Go's own compiler, which leaves marks that stripping doesn't take */
};

/* Both take over what they get, on failure too. -ENOEXEC: no ELF64 x86-64 program or library. */
int image_from_fd(struct image **ret, int fd);
int image_from_buffer(struct image **ret, const void *buf, size_t len, bool own);
void image_free(struct image *img);
/* Exactly len bytes or -EIO. */
int image_read(const struct image *img, uint64_t off, void *buf, uint64_t len);
/* A NUL-terminated copy, to be freed; NULL if out of the file, too big or no memory. */
void *image_load(const struct image *img, uint64_t off, uint64_t len);
/* Load a section's bytes; NULL for NOBITS too. */
void *image_load_section(const struct image *img, const Elf64_Shdr *sh);
const Elf64_Shdr *image_section(const struct image *img, const char *name);
const char *image_section_name(const struct image *img, const Elf64_Shdr *sh);
/* The PT_LOAD around a link-time address (in memory, file or not), or NULL. */
const Elf64_Phdr *image_segment(const struct image *img, uint64_t vaddr);
/* File offset of a link-time address and how many bytes the segment has from there. */
bool image_offset(const struct image *img, uint64_t vaddr, uint64_t *off, uint64_t *avail);
/* Which bias does a mapping of offset at start mean? */
bool image_bias(const struct image *img, uint64_t start, uint64_t offset, bool x, uint64_t *bias);

/* The few entries of PT_DYNAMIC that matter; link-time addresses, 0: absent. */
struct dynamic {
	uint64_t symtab, strtab, strsz, hash, gnu_hash, rela, relasz;
	uint64_t jmprel, pltrelsz, relr, relrsz, init, fini;
	bool textrel;
};
bool image_dynamic(const struct image *img, uint64_t bias, struct dynamic *d);

struct symbol {
	uint64_t addr, size;
	const char *name;    /* bare; in one of the module's string tables */
	const char *version; /* NULL: none known */
	uint32_t hash;
	uint32_t next; /* in the chain of its name's bucket; index + 1 */
	uint16_t section;
	uint16_t len; /* of the name */
	bool func, ifunc, global, old;
};

struct fde {
	uint64_t start, end;
	bool signal;
};

#define MAX_STRTABS 4

struct symtab {
	struct symbol *sym; /* by address, best first where several share one */
	uint64_t *top;      /* [i]: greatest end of sym[0..i] */
	size_t nr, room;
	uint32_t *bucket; /* index + 1 */
	size_t nr_buckets;
	char *strtab[MAX_STRTABS];
	unsigned int nr_strtabs;
	uint64_t name_bytes; /* looked at so far: the bound of the work on names */
	bool timers;         /* imports timer_create */
	bool aio;            /* imports aio_read or the like */
};

struct fdes {
	struct fde *fde; /* by start */
	size_t nr, room;
};

/* Static branches, link-time and ascending. */
struct labels {
	bool loaded;
	uint64_t *code;
	size_t nr, room;
};

struct sym_module {
	struct sym_proc *proc;
	const char *path, *name; /* interned */
	const char *raw;         /* as maps has it; with inode and bias the identity */
	uint32_t major, minor;
	uint64_t inode;
	struct image *img; /* NULL: neither file nor memory can be read */
	uint64_t bias;
	bool exe, vdso, live;
	bool loaded_symbols, loaded_fdes, loaded_rseqs;
	struct symtab symtab;
	struct fdes fdes;
	struct sym_rseq *rseq;
	size_t nr_rseqs;
	struct labels labels;
};

struct sym_proc {
	pid_t pid;
	struct sym_map *maps;
	const char **raw; /* [i]: path of maps[i] as the kernel wrote it */
	size_t nr_maps, room_maps;
	struct sym_module **modules; /* the live ones by address first, then the dead */
	size_t nr_modules, nr_live, room_modules;
	char **strings; /* interned: a hash table */
	size_t nr_strings, room_strings;
	char comm[64], argv0[256]; /* other names of the executable */
};

/* maps.c */
int maps_parse(struct sym_proc *p, const char *text, size_t len);
const char *sym_intern(struct sym_proc *p, const char *s, size_t len);
int maps_read(struct sym_proc *p, struct err *err);
/* *array has room for nr + 1 elements afterwards. */
int sym_grow(void *array, size_t *room, size_t nr, size_t size);

/* file.c: the file behind a mapping, as a regular file that was checked to be it */
int file_open(struct sym_proc *p, size_t map);
/* An unchecked one under the target's root. */
int file_open_path(pid_t pid, const char *path);
/* The target's memory as an untrusted image; the vdso as our own if they are the same. */
struct image *file_from_memory(struct sym_proc *p, size_t map);
bool file_is_vdso(const struct sym_map *m);

/* module.c */
int modules_update(struct sym_proc *p);
void modules_free(struct sym_proc *p);

/* labels.c */
bool module_label(struct sym_module *m, uint64_t addr); /* link-time */
void labels_free(struct labels *l);

/* symtab.c, bounds.c: load at first use; a module without any has empty tables */
const struct symtab *module_symbols(struct sym_module *m);
const struct fdes *module_fdes(struct sym_module *m);
void symtab_free(struct symtab *t);
/* From an image alone, as the fuzzer calls it. */
void symtab_load(struct symtab *t, const struct image *img, const struct image *debug,
                 uint64_t bias, const struct fdes *fdes);
void fdes_load(struct fdes *f, const struct image *img);
const struct fde *fdes_find(const struct fdes *f, uint64_t addr);
bool section_is_plt(const struct image *img, const Elf64_Shdr *sh);
uint32_t symtab_hash(const char *name, size_t len);
/* One name at one address, whatever its versions. */
bool symbol_is_alias(const struct symbol *a, const struct symbol *b);
/* symread.c: append the raw symbols of an image */
void symtab_read(struct symtab *t, const struct image *main, const struct image *img, uint64_t bias,
                 const struct fdes *fdes);

/* resolve.c */
/* Its place is mapped from its file: a debug file may know more. */
bool symbol_is_there(struct sym_proc *p, const struct sym_symbol *s);
void symbol_fill(struct sym_module *m, const struct symbol *s, struct sym_symbol *out);

#endif
