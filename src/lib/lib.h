/* SPDX-License-Identifier: MIT */
/*
 * The engine in one's own process.
 *
 *	own.c	     memory, text and signals of this process
 *	site.c	     sites and slots, the one byte
 *	name.c	     from names to places; the blacklist
 *	kprobe.c     register, unregister, enable
 *	kretprobe.c  the same at returns
 *	fprobe.c     many functions at once
 *	objpool.c, rethook.c  what their headers declare
 *	calls.c	     memory of calls that are followed
 *	vec.c	     what the CPU has of vector state
 *	hit/, x86/   what runs on a hit
 *
 * All but the last two run under lib_lock(), hosted, and may sleep.
 */
#ifndef UKP_LIB_LIB_H
#define UKP_LIB_LIB_H

#include "base/err.h"
#include "engine/hit.h"
#include "lib/hit/hit.h"
#include "patch/poke.h"
#include "patch/slots.h"
#include "sym/sym.h"

/* Why this thread's last call failed. */
struct err *lib_err(void);

/*
 * The lock of all lists.  -EOPNOTSUPP in a forked child; -EBUSY from a probe
 * handler, unless handlers may, and where this thread holds it already.
 */
int lib_lock(bool handlers_may, struct err *err);
void lib_unlock(void);
bool lib_in_handler(void);
/* Wait for handlers that run now; without the lock; not from a handler. */
void lib_wait(void);

/* Symbols and mappings of this process, fresh. */
int own_sym(struct sym_proc **ret, struct err *err);
struct sym_proc *own_sym_last(void);
/* The engine's memory and signals; done already: 0. */
int own_init(struct err *err);
int own_read(uint64_t addr, void *buf, size_t len);
/* Text too; afterwards every core has seen it. */
int own_write(uint64_t addr, const void *buf, size_t len);
/* Several bytes of code that runs meanwhile: see patch/poke.h.  Under the lock, after own_init().
 */
int own_poke(struct poke *v, size_t n);
/*
 * Around many writes of single bytes, or of code that nobody runs yet: faster,
 * and seen by every core at the end.  Under the lock.
 */
void own_batch_begin(void);
void own_batch_end(void);
uint32_t own_alloc(size_t size); /* in the control area; 0: full */
struct slots *own_slots(void);
void vec_init(void);

/* For calls with len bytes of data each, at most maxactive (<= 0: any number) at a time. */
int calls_init(struct ukp_calls *c, size_t len, int maxactive);
void calls_free(struct ukp_calls *c);

/* Lock-free. */
struct lib_site *site_find(uint64_t addr);
/* The site of addr, made if need be, whose slot serves post handlers if post. */
int site_get(uint64_t addr, bool post, struct lib_site **ret, struct err *err);
int site_link(struct lib_site *s, struct kprobe *p, struct err *err);
void site_unlink(struct lib_site *s, struct kprobe *p);
bool site_has(const struct lib_site *s, const struct kprobe *p);
/* Text as the enabled probes want it. */
int site_update(struct lib_site *s, struct err *err);
/* Whoever traps at addr, where no probe may be, goes on at to. */
int site_divert(uint64_t addr, uint64_t to);
/* Probes that the engine needs for itself. */
int site_plant_internal(struct err *err);

/*
 * addr or symbol_name and offset, as the kernel's _kprobe_addr() has it.
 * *entry: whether that is a function's entry.
 */
int name_address(struct sym_proc *sym, kprobe_opcode_t *addr, const char *name,
                 unsigned long offset, uint64_t *ret, bool *entry, struct err *err);
bool name_denied(struct sym_proc *sym, uint64_t addr);
/* The part of it that patch/survey.h doesn't know. */
bool name_denied_here(struct sym_proc *sym, uint64_t addr);

/* Whether memory at addr is as the file has it, or with a breakpoint of ours. */
int kprobe_check_memory(struct sym_proc *sym, uint64_t addr, struct err *err);
/* Starts the engine; what it needs in modules that came since. */
int kprobe_follow_modules(struct sym_proc *sym, struct err *err);
int kprobe_register_locked(struct kprobe *p, struct sym_proc *sym, struct err *err);
/* False: it wasn't registered. */
bool kprobe_unlink_locked(struct kprobe *p);

#endif
