/* SPDX-License-Identifier: MIT */
/*
 * One handler for the entries, and one for the returns, of many functions.
 *
 *	static int enter(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
 *			 struct pt_regs *regs, void *entry_data)
 *	{
 *		*(long *)entry_data = regs_get_kernel_argument(regs, 0);
 *		return 0;
 *	}
 *	static void leave(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
 *			  struct pt_regs *regs, void *entry_data);
 *
 *	static struct fprobe fp = { .entry_handler = enter, .exit_handler = leave,
 *				    .entry_data_size = sizeof(long) };
 *
 *	int err = register_fprobe(&fp, "libz:*", "libz:*_init*");
 *	...
 *	unregister_fprobe(&fp);
 *
 * Follows include/linux/fprobe.h of Linux 6.12.  What differs is marked "here:".
 *
 * Units: addresses are the process's own, sizes are bytes.
 *
 * Ownership: the caller owns struct fprobe, which must be zeroed but for what
 * is filled in.  From register_fprobe*() until unregister_fprobe() returns it
 * must stay where it is; nmissed may be read, FPROBE_FL_DISABLED be changed.
 *
 * Errors: 0 or a negative errno; ukp_kprobe_error() has the sentence.
 *
 * Context: registering and unregistering may sleep, allocate and take locks; no
 * signal handler and no probe handler should do it.  Handlers run in the thread
 * that called: see <ukprobes/kprobes.h> for what they may do.  At a function's
 * entry or return that is what a function called there could do: allocate,
 * print, take locks that its callers don't hold.
 *
 * Recursion: a function that is hit while an fprobe's handler of the same
 * thread runs has no handler called and counts in nmissed.  A kprobe hit
 * meanwhile is handled, and a function with an fprobe that a kprobe's handler
 * calls is, too, unless FPROBE_FL_KPROBE_SHARED is set.
 */
#ifndef UKPROBES_FPROBE_H
#define UKPROBES_FPROBE_H

#include <ukprobes/kprobes.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct fprobe;

/*
 * The function at entry_ip was called and will return to ret_ip; regs->sp points
 * to its return address.  entry_data: entry_data_size bytes, aligned to 8, not
 * cleared; NULL without an exit_handler or with a size of 0.  Nonzero:
 * exit_handler isn't called for this call, which is no miss.
 *
 * Here: what is written to regs->ip has no effect.
 */
typedef int (*fprobe_entry_cb)(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                               struct pt_regs *regs, void *entry_data);
/*
 * It has returned to ret_ip, which is regs->ip; regs->sp is as after the ret.
 * What is written to regs->ax is what the caller gets; to ip and sp, it has no
 * effect.  entry_data is that of the entry.
 */
typedef void (*fprobe_exit_cb)(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                               struct pt_regs *regs, void *entry_data);

/* struct fprobe.flags; UKP_NOVEC and UKP_BY_*, too (see <ukprobes/kprobes.h>). */
#define FPROBE_FL_DISABLED 1 /* handlers aren't called; set and cleared at any time */
/*
 * The handlers are shared with kprobes': they don't run while a kprobe's handler
 * of the same thread does, which counts in nmissed, and the other way round.
 * Here: at the exit, too.
 */
#define FPROBE_FL_KPROBE_SHARED 2

#define FPROBE_MAX_DATA_SIZE KRETPROBE_MAX_DATA_SIZE

struct fprobe {
	/*
	 * Zeroed by registering.  Calls that weren't handled: during a handler,
	 * past nr_maxactive, on a stack word that can't be used; and those that
	 * were but ended by an exception.
	 */
	unsigned long nmissed;
	unsigned int flags;
	size_t entry_data_size; /* at most FPROBE_MAX_DATA_SIZE */
	/*
	 * How many calls are followed at a time, with an exit_handler.  Here: 0
	 * is no limit of its own (2^20 live calls in the process).
	 */
	int nr_maxactive;
	fprobe_entry_cb entry_handler; /* or NULL */
	fprobe_exit_cb exit_handler;   /* or NULL */

	/* The library's own. */
	struct ukp_fprobe *ukp_fprobe;
	unsigned long ukp_reserved[4];
};

/*
 * At the entry of all functions whose name matches filter and not notfilter
 * (or NULL).  Both are globs (* ? []); here: over all modules of the process
 * but the library itself, or "MODULE:GLOB" over one.  Functions that can't be
 * probed are left out (here: ukp_kprobe_error() tells how many, and why the
 * first).
 *
 *	-EINVAL	no fp or filter, nr_maxactive is negative, nothing matches
 *	-ENOENT here: no such module
 *	-EEXIST	registered already
 *	-E2BIG	entry_data_size
 *	-ENOMEM, and those of register_kprobe() about signals, memory, context
 */
int register_fprobe(struct fprobe *fp, const char *filter, const char *notfilter);
/*
 * At each of num addresses; all or none.  -EINVAL, too: num <= 0, or one is no
 * function's entry, or can't be probed.
 */
int register_fprobe_ips(struct fprobe *fp, unsigned long *addrs, int num);
/*
 * At each of num functions by name (here: also "MODULE:SYMBOL"), and sorts syms;
 * all or none.  -ENOENT, too: one is unknown.
 */
int register_fprobe_syms(struct fprobe *fp, const char **syms, int num);
/*
 * Waits until no handler of it runs, but not when called from a handler.  Calls
 * on their way return unreported.  -EINVAL: it isn't registered.
 */
int unregister_fprobe(struct fprobe *fp);
/* Any context. */
bool fprobe_is_registered(struct fprobe *fp);
/* Here: at how many functions it is; 0: it isn't registered. */
size_t ukp_fprobe_functions(struct fprobe *fp);

/*
 * Here: the mechanism that follows the calls of the function at entry_ip, as
 * ukp_kretprobe_mechanism().  -EINVAL: it follows none there.
 */
int ukp_fprobe_mechanism(struct fprobe *fp, unsigned long entry_ip, char *buf, size_t len);

static inline void disable_fprobe(struct fprobe *fp)
{
	if (fp)
		__atomic_fetch_or(&fp->flags, FPROBE_FL_DISABLED, __ATOMIC_RELAXED);
}

static inline void enable_fprobe(struct fprobe *fp)
{
	if (fp)
		__atomic_fetch_and(&fp->flags, ~FPROBE_FL_DISABLED, __ATOMIC_RELAXED);
}

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
