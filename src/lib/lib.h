/* SPDX-License-Identifier: MIT */
/*
 * The engine in one's own process.
 *
 *	own.c	     memory, text and signals of this process
 *	site.c	     sites and slots, the one byte
 *	name.c	     from names to places; the blacklist
 *	jump.c       five bytes instead of the one: windows and detours
 *	room.c       where the jumps over exits begin
 *	opt.c        when that happens: the optimizer's thread
 *	hold.c       all threads stand still for it
 *	live.c       code that the program may rewrite
 *	kprobe.c     register, unregister, enable
 *	kretprobe.c  the same at returns
 *	fprobe.c     many functions at once
 *	gather.c     which ones those are
 *	exits.c      where functions leave, and which mechanism follows their calls
 *	regs.c	     registers by name
 *	bulk.c	     many places at once
 *	objpool.c, rethook.c  what their headers declare
 *	jump_label.c, deferred.c  static branches
 *	calls.c	     memory of calls that are followed
 *	vec.c	     what the CPU has of vector state
 *	hit/, x86/   what runs on a hit
 *	still/       what runs while threads stand still
 *
 * All but the last three run under lib_lock(), hosted, and may sleep.
 */
#ifndef UKP_LIB_LIB_H
#define UKP_LIB_LIB_H

#include "base/err.h"
#include "engine/hit.h"
#include "lib/hit/hit.h"
#include "patch/place.h"
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
/* Code that nobody runs yet. */
int own_fill(uint64_t addr, const void *buf, size_t len);
/* One byte of text; every core has seen it after own_sync(), which lib_unlock() does. */
int own_write(uint64_t addr, uint8_t byte);
void own_sync(void);
/* Several bytes of code that runs meanwhile: see patch/poke.h.  Under the lock, after own_init().
 */
int own_poke(struct poke *v, size_t n);
bool own_can_poke(void); /* the kernel can */
/*
 * Around many writes of single bytes, or of code that nobody runs yet: faster,
 * and seen by every core at the end.  Under the lock.
 */
void own_batch_begin(void);
void own_batch_end(void);
uint32_t own_alloc(size_t size); /* in the control area; 0: full */
struct slots *own_slots(void);
/* The table of calls by their frames, for exit sites: made when it is first asked for. */
int own_frames(struct err *err);
uint32_t own_records(void); /* how many it has, or would have */
void vec_init(void);

/*
 * By which mechanism the calls of the function at addr are to be followed, as
 * flags have it or as is right.  must: why its return address must stay, by the
 * lists; or NULL.  -EINVAL with the reason, which names no function.  x keeps what
 * was chosen until exits_free(); its exits can be probed, as far as survey (or
 * NULL) says.
 */
struct survey;
int exits_choose(struct sym_proc *sym, uint64_t addr, unsigned int flags, const char *must,
                 struct survey *survey, struct lib_returns *x, struct err *err);
void exits_free(struct lib_returns *x);
/* Arm the exits, before the entry is.  On failure none is. */
int exits_link(struct lib_returns *x, uint64_t ctx, bool fprobe, struct err *err);
void exits_unlink(struct lib_returns *x);
/*
 * Of ctx no call is to be reported any more; after lib_wait().  Not known: which
 * of ctx's calls are by exit sites.
 */
void exits_forget(uint64_t ctx);
/* The calls whose frames are in [low, high). */
void exits_flush(uint64_t low, uint64_t high);
/* UKP_BY_*, and why, with what keeps exits from the jump form. */
int exits_describe(const struct lib_site *s, const struct lib_returns *x, char *buf, size_t len);

/* For calls with len bytes of data each, at most maxactive (<= 0: any number) at a time. */
int calls_init(struct ukp_calls *c, size_t len, int maxactive);
void calls_free(struct ukp_calls *c);

/* Lock-free. */
struct lib_site *site_find(uint64_t addr);
/* The site of addr, made if need be, whose slot serves post handlers if post. */
int site_get(uint64_t addr, bool post, struct lib_site **ret, struct err *err);
/* The same in code that the program may rewrite. */
int site_get_live(uint64_t addr, bool post, struct lib_site **ret, struct err *err);
int site_link(struct lib_site *s, struct kprobe *p, struct err *err);
void site_unlink(struct lib_site *s, struct kprobe *p);
/* One probe that follows calls so is linked (1) or unlinked (-1). */
void site_count_followers(struct lib_site *s, const struct lib_returns *how, int by);
bool site_has(const struct lib_site *s, const struct kprobe *p);
/* Text as the enabled probes want it. */
int site_update(struct lib_site *s, struct err *err);
/* Do any of them want it armed? */
bool site_is_wanted(const struct lib_site *s);
/*
 * A breakpoint for the jump that is to begin here, on behalf of others: nobody
 * gets into its window by its first instruction from then on.
 */
int site_anchor(struct lib_site *s, bool on, struct err *err);
bool site_wants_post(const struct lib_site *s);
struct lib_site *site_first(void); /* of all, by next */
/* Where traps at addr go on instead of the slot; 0: in the slot. */
void site_set_resume(uint64_t addr, uint64_t to);
/* One more detour that s heads, at off in the control area. */
int site_add_detour(struct lib_site *s, const struct ukp_detour *d, uint32_t off);
/* Whoever traps at addr, where no probe may be, goes on at to. */
int site_divert(uint64_t addr, uint64_t to);
void site_undivert(uint64_t addr);
/* Probes that the engine needs for itself. */
int site_plant_internal(struct err *err);

/*
 * The jump form in the background (opt.c).  Something has changed at s, or at
 * what is within len bytes of it: whether a jump may come is to be seen.
 */
void opt_queue(struct lib_site *s);
/* Why s has no jump; NULL: it has one, that may be another site's. */
const char *opt_why(const struct lib_site *s);
void opt_queue_window(const struct lib_site *s, uint64_t len);

/*
 * Nobody is inside these windows any more, but for those that come out as stuck.
 * -EAGAIN: better luck later; -EPERM: never, with the reason.
 */
struct settle_window;
int hold_settle(struct settle_window *w, uint32_t nr, const char **why);

/*
 * What the program itself would get by a name, asked for before lib_lock() and
 * forgotten by lib_unlock().  The dynamic linker has a lock of its own, which
 * whoever loads an object holds while its constructors run, and these may wait
 * for ours.  -ENOMEM; NULL is no name.
 */
int name_bind(const char *name, struct err *err);
void name_unbind(void);
/*
 * addr or symbol_name (bound) and offset, as the kernel's _kprobe_addr() has it.
 * *entry: whether that is a function's entry.
 */
int name_address(struct sym_proc *sym, kprobe_opcode_t *addr, const char *name,
                 unsigned long offset, uint64_t *ret, bool *entry, struct err *err);
/* Why no probe may be there; NULL: it may. */
const char *name_denied(struct sym_proc *sym, uint64_t addr);
/* The part of it that patch/survey.h doesn't know. */
const char *name_denied_here(struct sym_proc *sym, uint64_t addr);
/* The section of what runs on hits. */
void name_hit_range(uint64_t *start, uint64_t *end);

/* Has p asked for code that the program may rewrite, and is it that at addr? */
bool own_live_is_asked(const struct kprobe *p, struct sym_proc *sym, uint64_t addr);
int own_live_check(const struct kprobe *p, struct sym_proc *sym, uint64_t addr, struct err *err);
/* This process's memory, as it would be without us. */
extern const struct place_live own_live_text;
/* Is s's code what it was made for? */
bool own_live_is_current(const struct lib_site *s);
/* The breakpoint in, if it is; out, if it is ours still; and its probes will never come again. */
int own_live_arm(struct lib_site *s, struct err *err);
int own_live_disarm(struct lib_site *s);
void own_live_forget(struct lib_site *s);

/* Whether memory at addr is as the file has it, or with a breakpoint of ours. */
int kprobe_check_memory(struct sym_proc *sym, uint64_t addr, struct err *err);
/* Starts the engine; what it needs in modules that came since. */
int kprobe_follow_modules(struct sym_proc *sym, struct err *err);
/*
 * Which of n can be probed as far as files and lists say: what is true needs no
 * further look before planting.  NULL: none was looked at.  To be freed.
 */
bool *bulk_check(struct sym_proc *sym, struct kprobe *const *kps, size_t n, bool ret_probe);

/* -EINVAL, with a sentence that names the place as the caller did. */
int kprobe_refuse(const struct kprobe *p, uint64_t addr, const char *why, struct err *err);
/* checked: by bulk_check(). */
int kprobe_register_locked(struct kprobe *p, struct sym_proc *sym, bool checked, struct err *err);
/* False: it wasn't registered. */
bool kprobe_unlink_locked(struct kprobe *p);

#endif
