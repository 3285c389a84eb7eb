/* SPDX-License-Identifier: MIT */
/*
 * What is where in a process: its mappings, the files behind them, their
 * symbols, function bounds and original bytes.  Files are foreign and may be
 * hostile: everything read from them is checked.
 *
 * A struct sym_proc belongs to one thread.  Strings and modules that it hands
 * out live until sym_close(); modules survive sym_refresh() while mapped.
 */
#ifndef UKP_SYM_SYM_H
#define UKP_SYM_SYM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct sym_proc;
struct sym_module;

struct sym_map {
	uint64_t start, end, offset;
	uint64_t inode;
	uint32_t major, minor;
	bool r, w, x, shared;
	const char *path; /* "" when anonymous; as /proc/PID/maps has it, escapes undone,
	                     " (deleted)" cut off */
	bool deleted;
	struct sym_module *module; /* file-backed ELF with an executable mapping, or NULL */
};

/* Reads /proc/PID/maps; any live thread's tid serves where the leader is gone. */
int sym_open(struct sym_proc **ret, pid_t pid, struct err *err);
int sym_refresh(struct sym_proc *p, struct err *err);
void sym_close(struct sym_proc *p);

size_t sym_nr_maps(const struct sym_proc *p);
const struct sym_map *sym_map_at(const struct sym_proc *p, size_t i);
const struct sym_map *sym_map_find(const struct sym_proc *p, uint64_t addr);

size_t sym_nr_modules(const struct sym_proc *p);
struct sym_module *sym_module_at(const struct sym_proc *p, size_t i);
/*
 * By path (links to it too), else base name, else, for the executable, its
 * argv[0] or command name, else base name without version: "libc" and "libc.so"
 * match libc.so.6, unless several different files match so: then NULL.
 */
struct sym_module *sym_module_find(struct sym_proc *p, const char *name);
struct sym_module *sym_module_of(struct sym_proc *p, uint64_t addr);
const char *sym_module_name(const struct sym_module *m); /* base name */
const char *sym_module_path(const struct sym_module *m);
uint64_t sym_module_bias(const struct sym_module *m); /* runtime - link-time address */
bool sym_module_is_exe(const struct sym_module *m);
/* Where the kernel starts it, a program or the dynamic linker; 0: nowhere. */
uint64_t sym_module_start(const struct sym_module *m);
/* Is there code of Go's own compiler in it, stripped or not? */
bool sym_module_is_go(const struct sym_module *m);
/* Does it call libc's timer_create?  Unknown (false) of a static program. */
bool sym_module_has_timers(struct sym_module *m);
/* The same of aio_read, lio_listio, getaddrinfo_a and their like. */
bool sym_module_has_aio(struct sym_module *m);
/* Where a section of that name lies in memory; false: it has none. */
bool sym_section(const struct sym_module *m, const char *name, uint64_t *start, uint64_t *end);
/* Is addr inside a static branch (<ukprobes/jump_label.h>), which its program rewrites? */
bool sym_label(struct sym_module *m, uint64_t addr);
/* Hex, or "" without one. */
const char *sym_module_build_id(const struct sym_module *m);

struct sym_symbol {
	struct sym_module *module;
	const char *name;
	uint64_t addr; /* runtime */
	uint64_t size; /* of the function by its symbol, else by its FDE, else up to
	                  the next symbol; never 0 for a function */
	bool func;     /* or an object */
	bool ifunc;    /* addr is the resolver */
	bool global;
	bool old;            /* name@VER, kept for old programs; not name@@VER, the default */
	const char *version; /* "" when none is known */
};

/*
 * All definitions of name in module (NULL: everywhere), at most max, best
 * first: .symtab, .dynsym, .gnu_debugdata if there.  Aliases at one address count once,
 * versions (name@VER) match by name, defaults before old ones; "name@VER" as
 * name asks for one version.  Returns how many there are.
 */
size_t sym_lookup(struct sym_proc *p, struct sym_module *module, const char *name,
                  struct sym_symbol *out, size_t max);

/*
 * Code that the process has made, by the name that it has told perf; the last one of
 * that name.  Nothing says that there is code.
 */
bool sym_perfmap(struct sym_proc *p, const char *name, uint64_t *addr, uint64_t *size);
/* Is that a line of such a file, about name? */
bool sym_perfmap_line(const char *line, const char *name, uint64_t *addr, uint64_t *size);

/* The symbol that covers addr (functions preferred); false if none. off = addr - symbol. */
bool sym_resolve(struct sym_proc *p, uint64_t addr, struct sym_symbol *out, uint64_t *off);

/*
 * The function around addr, with or without a name: its FDE, else its symbol.
 * -ENOENT: no bounds known.  FDEs with augmentation S (signal frames) set
 * signal and are not to be probed.
 */
int sym_bounds(struct sym_proc *p, uint64_t addr, uint64_t *start, uint64_t *end, bool *signal);

/*
 * The restartable sequences of a module, by its section __rseq_cs: a thread
 * that is interrupted in [start, end) goes on at abort, which has a signature in
 * the four bytes before it.  Returns how many there are; runtime addresses.
 */
struct sym_rseq {
	uint64_t start, end, abort;
};
size_t sym_rseqs(struct sym_module *m, const struct sym_rseq **ret);

/*
 * The bytes that the file has for [addr, addr + len): the reference for
 * planning and for restoring.  The vdso's are our own vdso's, if it is the same.
 * -ENOENT: no file behind (or gone and not to be reopened); -EIO: short.
 */
int sym_original(struct sym_proc *p, uint64_t addr, void *buf, size_t len);

/* Calls fn for each function whose name matches glob (NULL: all), by address; stops on nonzero. */
int sym_for_each_func(struct sym_proc *p, struct sym_module *module, const char *glob,
                      int (*fn)(const struct sym_symbol *sym, void *arg), void *arg);

/*
 * The same of all, and those that only .eh_frame knows among them, with the name
 * "": where such a range begins there is nothing but a return address on the
 * stack.  Where there is more it is a part of a function that is jumped to.
 */
int sym_for_each_entry(struct sym_proc *p, struct sym_module *module,
                       int (*fn)(const struct sym_symbol *sym, void *arg), void *arg);

/*
 * Calls fn for the ranges that are functions, by symbols or by .eh_frame: of each
 * module by address and without overlaps; stops on nonzero.
 */
int sym_for_each_range(struct sym_proc *p, struct sym_module *module,
                       int (*fn)(uint64_t start, uint64_t end, void *arg), void *arg);

/* Up to max names near a misspelt one, best first; returns how many. */
size_t sym_suggest(struct sym_proc *p, struct sym_module *module, const char *name,
                   const char **out, size_t max);

/*
 * "sym+0x12/0x80", with " [module]" unless it is the executable; "module:0x..." with the
 * place in its file where no symbol is known, and "0x..." elsewhere.  Returns what
 * snprintf does.
 */
int sym_format(struct sym_proc *p, uint64_t addr, char *buf, size_t len);

/*
 * Compare all executable file mappings with their files.  mem reads the target
 * (returns bytes read or -errno).  Bytes that relocations may change, and
 * static branches, are left aside.  Calls diff for each run of differing bytes.  Returns the number
 * of differing bytes, or -errno; -ENOENT: nothing differs, but for some mapping there was no file
 * to compare with (err names it).
 */
typedef ssize_t (*sym_mem_fn)(void *arg, uint64_t addr, void *buf, size_t len);
struct sym_diff {
	uint64_t addr;
	size_t len; /* of the run, at most 16 bytes are shown */
	uint8_t file[16], memory[16];
	const struct sym_map *map;
};
long sym_verify(struct sym_proc *p, sym_mem_fn mem, void *arg,
                void (*diff)(const struct sym_diff *d, void *arg2), void *arg2, struct err *err);

#endif
