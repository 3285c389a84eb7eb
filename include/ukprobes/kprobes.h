/* SPDX-License-Identifier: MIT */
/*
 * kprobes and kretprobes in one's own process, by the kernel's names.
 *
 *	static int pre(struct kprobe *p, struct pt_regs *regs)
 *	{
 *		fprintf(stderr, "open %s\n", (char *)regs_get_kernel_argument(regs, 0));
 *		return 0;
 *	}
 *	static struct kprobe kp = { .symbol_name = "open", .pre_handler = pre };
 *
 *	int err = register_kprobe(&kp);
 *	...
 *	unregister_kprobe(&kp);
 *
 * Follows kernel/kprobes.c and include/linux/kprobes.h of Linux 6.12.  What
 * differs is marked "here:".
 *
 * Units: addresses are the process's own, sizes are bytes.
 *
 * Ownership: the caller owns struct kprobe and struct kretprobe.  From
 * register_*() until unregister_*() returns they must stay where they are, and
 * only flags, nmissed and the handlers' own data may be read.  Strings that they
 * point to are needed during register_*() only.
 *
 * Errors: 0 or a negative errno, in the kernel's order of checks;
 * ukp_kprobe_error() has the sentence.
 *
 * Context: registering and unregistering may sleep, allocate and take locks;
 * any thread may do it, no signal handler and no probe handler should (see
 * each function).  Handlers run in the thread that hit, at any instruction,
 * perhaps while it holds the locks of malloc or stdio: they are in the position
 * of a signal handler, but at the entry and the return of a function that the
 * program itself may call there.  Vector registers, errno and flags are kept for
 * the program around each handler.  A handler returns: it must not longjmp,
 * throw or end its thread.
 *
 * Recursion: a probe that is hit while a handler of the same thread runs is
 * counted in nmissed of every probe at that address and runs no handler; the
 * probed instruction is executed all the same.
 *
 * Signals: the first registration takes SIGTRAP, and SIGSEGV, SIGBUS, SIGFPE,
 * SIGILL in such a way that the program's own handlers go on to work, also those
 * set later by sigaction(); but for SIGTRAP, which must have no handler and not be
 * ignored when that comes (-EBUSY).  A thread that blocks SIGTRAP must not hit a probe:
 * the kernel would kill the process.
 *
 * fork: a child runs on with the probed text; nothing is reported there and
 * registering fails with -EOPNOTSUPP.
 */
#ifndef UKPROBES_KPROBES_H
#define UKPROBES_KPROBES_H

#include <stdbool.h>
#include <stddef.h>

#include <ukprobes/pt_regs.h>
#include <ukprobes/rethook.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

typedef unsigned char kprobe_opcode_t;

struct kprobe;
struct kretprobe;
struct kretprobe_instance;

/*
 * Before the instruction; regs->ip is the probed address + 1.  0: go on.
 * Anything else: the handler has set regs->ip (and what else of regs it
 * wanted) itself; the instruction and its post handlers don't run, probes
 * registered earlier at this address aren't called.
 */
typedef int (*kprobe_pre_handler_t)(struct kprobe *p, struct pt_regs *regs);
/*
 * After the instruction; regs->ip is where the program goes on.  flags is 0.
 * What it writes to regs takes effect.
 */
typedef void (*kprobe_post_handler_t)(struct kprobe *p, struct pt_regs *regs, unsigned long flags);

/* struct kprobe.flags; of these a caller may set DISABLED, UKP_NOVEC, UKP_ANY_TEXT and, in
 * kretprobes, UKP_BY_*.
 */
#define KPROBE_FLAG_GONE 1           /* its text was unmapped */
#define KPROBE_FLAG_DISABLED 2       /* temporarily off */
#define KPROBE_FLAG_OPTIMIZED 4      /* in the jump form; here: in each probe, while it is */
#define KPROBE_FLAG_ON_FUNC_ENTRY 16 /* at a function's first instruction */
/*
 * Here: the handlers touch no vector or x87 register (compiled with
 * -mgeneral-regs-only, and so is all that they call): they needn't be saved.
 */
#define UKP_NOVEC 0x10000
/*
 * Here: the place may also be in code that has no file to be compared with, or differs
 * from it: what a JIT has written, writable code, code of a file that the program has
 * changed.  What is in memory is probed.  The program may rewrite it at any time: then
 * the probe is hit no more, and what the program wrote runs as it is.  In memory of no
 * file, that addr is an instruction's start is the caller's word.  Not in shared
 * mappings, and not for returns.  The breakpoint stays a breakpoint.  A program that
 * copies such code elsewhere must not do so while it has a probe.
 */
#define UKP_ANY_TEXT 0x100000
/*
 * Here: how a kretprobe, or an fprobe with an exit handler, gets to know that a
 * function has come back (docs/returns.md); at most one of them, in the flags.
 *
 *	EXIT	a probe at each of its exits, the stack stays as it is.  Refused
 *		where they aren't known, or one of them is a jump to another
 *		function.  Up to 2^17 calls at a time in the process.
 *		The first one in a module looks through all of its code: a tenth
 *		of a second for libc, and other registrations wait
 *	CALL	the entry's detour calls the function in place, once it has the
 *		jump form, and follows calls as SLOT until then.  Refused where it
 *		can't have that form
 *	SLOT	a stub's address in the place of its return address.  Refused
 *		where that must stay
 *
 * Without a wish it is CALL where the entry gets the jump form, else SLOT, and EXIT
 * where the return address must stay.
 */
#define UKP_BY_EXIT 0x20000
#define UKP_BY_CALL 0x40000
#define UKP_BY_SLOT 0x80000
#define UKP_BY_MASK (UKP_BY_EXIT | UKP_BY_CALL | UKP_BY_SLOT)

struct kprobe {
	/* Exactly one of addr and symbol_name; addr is filled in and stays set. */
	kprobe_opcode_t *addr;
	/*
	 * A function's name; here: "MODULE:SYMBOL" with a mapped file's base
	 * name, and "SYMBOL@VERSION", tell equal names apart.
	 */
	const char *symbol_name;
	unsigned int offset;                /* from the symbol or from addr */
	kprobe_pre_handler_t pre_handler;   /* or NULL */
	kprobe_post_handler_t post_handler; /* or NULL */
	unsigned long nmissed;              /* zeroed by register_kprobe() */
	unsigned int flags;                 /* KPROBE_FLAG_*, UKP_* */

	/* The library's own. */
	struct kprobe *ukp_next;
	struct ukp_kret *ukp_ret;
	unsigned long ukp_reserved[4];
};

/*
 * Plants a probe.  Newer probes at one address run first.
 *
 *	-EINVAL	    both or neither of addr and symbol_name (so also: registered
 *		    again without clearing addr); registered already; not text,
 *		    shared text; without UKP_ANY_TEXT writable text and bytes that
 *		    differ from the file's;
 *		    on the blacklist; an instruction that can't run elsewhere
 *	-ENOENT	    no such symbol, or the address is in no known function
 *	-EILSEQ	    not an instruction boundary, or undecodable
 *	-EOPNOTSUPP far branches and the like; a forked child
 *	-ENOSPC	    no memory within reach of the module
 *	-ENOMEM
 *	-EBUSY	    here: SIGTRAP is handled or blocked by the program; or called
 *		    from a handler
 *
 * On failure addr is as it was.
 */
int register_kprobe(struct kprobe *p);
/*
 * Takes it out, and waits until no handler of it runs any more.  Called from a
 * probe handler it does not wait, so p must stay as it is.  The place keeps its
 * few bytes of memory and is used again for the same address.  One that isn't
 * registered gets addr = NULL.
 */
void unregister_kprobe(struct kprobe *p);
/* All or none; -EINVAL for num <= 0. */
int register_kprobes(struct kprobe **kps, int num);
/* With one wait for all. */
void unregister_kprobes(struct kprobe **kps, int num);
/* -EINVAL: not registered; disabling what is disabled is no error. */
int enable_kprobe(struct kprobe *kp);
int disable_kprobe(struct kprobe *kp);

/* The newest probe at addr, or NULL.  Any context. */
struct kprobe *get_kprobe(void *addr);
/* The probe whose handler runs in this thread, or NULL.  Any context. */
struct kprobe *kprobe_running(void);
/*
 * In between, this thread counts as inside a kprobe's handler: probes that it
 * hits are missed (kprobe_running() gives &kprobe_busy).  Not in handlers, where
 * both do nothing, and not twice.  Unregistering in other threads waits for
 * the end.
 */
void kprobe_busy_begin(void);
void kprobe_busy_end(void);
extern struct kprobe kprobe_busy;
/* Whether probes at addr are refused because they would disturb the library itself. */
bool within_kprobe_blacklist(unsigned long addr);
/* 0: a function's entry; -EINVAL: not; -ENOENT: no such place. */
int kprobe_on_func_entry(kprobe_opcode_t *addr, const char *sym, unsigned long offset);
/*
 * Puts the function around entry on the blacklist, from entry on: its size, or
 * -EINVAL (no function there), -ENOMEM.
 */
int kprobe_add_ksym_blacklist(unsigned long entry);
/* All code in [start, end): 0, or -EINVAL, -ENOMEM. */
int kprobe_add_area_blacklist(unsigned long start, unsigned long end);
/* Here: what NOKPROBE_SYMBOL() calls at start; looks nothing up yet. */
void ukp_nokprobe(unsigned long entry);
/* Names p, its place and its state on stderr. */
void dump_kprobe(struct kprobe *p);
/* Here: why the last failing call of this thread failed; "" if none did. */
const char *ukp_kprobe_error(void);

/*
 * The jump form.  A breakpoint costs microseconds; some milliseconds after
 * registering, a thread of the library's turns it into a jump, which costs
 * nanoseconds, where the module's code allows it and no probe there has a
 * post_handler.  It goes back to a breakpoint when a condition goes, and comes
 * again.  The environment's UKPROBES_OPTIMIZATION=0 keeps all breakpoints.
 *
 * ukp_set_kprobes_optimization() is the kernel's debug.kprobes-optimization:
 * switching off waits until all jumps are breakpoints again.  0, or the errors
 * of register_kprobe().
 */
int ukp_set_kprobes_optimization(bool on);
bool ukp_kprobes_optimization(void);
/* Waits until each probe has the form that it will keep.  Not from a handler: returns at once. */
void wait_for_kprobe_optimizer(void);
/*
 * 1: the probe is in the jump form; 0: it isn't, buf says why (at most len bytes
 * with the NUL); -EINVAL: not registered; -EBUSY: from a handler.
 */
int ukp_kprobe_form(const struct kprobe *kp, char *buf, size_t len);

/*
 * Keep probes off a function of one's own: __kprobes in its definition, or
 * NOKPROBE_SYMBOL(its name) at file scope.  What the compiler makes of it besides
 * (name.cold, name.isra.0) is meant, too.
 */
#define __kprobes __attribute__((__section__(".kprobes.text")))
#define NOKPROBE_SYMBOL(fname)                                              \
	static void __attribute__((constructor)) ukp_nokprobe_##fname(void) \
	{                                                                   \
		ukp_nokprobe((unsigned long)(fname));                       \
	}                                                                   \
	struct kprobe

/*
 * One call on its way from entry to return.  Lives until the return handler
 * has returned; data has data_size bytes, aligned to 8, not cleared.
 */
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc99-extensions"
#endif

struct kretprobe_instance {
	struct ukp_kret *rph;      /* the library's own */
	kprobe_opcode_t *ret_addr; /* where the function returns to */
	void *fp;                  /* address of the stack word that held it */
	__extension__ char data[];
};

#ifdef __clang__
#pragma clang diagnostic pop
#endif

typedef int (*kretprobe_handler_t)(struct kretprobe_instance *ri, struct pt_regs *regs);

#define KRETPROBE_MAX_DATA_SIZE 4096

struct kretprobe {
	struct kprobe kp; /* where; its handlers are not used */
	/*
	 * At the return: regs->ip is the return address, regs->sp as after the
	 * ret, and what is written to regs->ax is what the caller gets.  What is
	 * written to ip and sp has no effect, the next handler doesn't see it
	 * either.  The result is ignored.
	 */
	kretprobe_handler_t handler;
	/* At the entry, or NULL; nonzero: don't follow this call, which is no miss. */
	kretprobe_handler_t entry_handler;
	/*
	 * How many calls are followed at a time.  Calls beyond are counted in
	 * nmissed, entry_handler isn't called for them.  Here: <= 0 is no limit of
	 * its own (2^20 live calls for all kretprobes of the process), and is
	 * not written back as a number.
	 */
	int maxactive;
	/*
	 * Calls that weren't followed: past maxactive, or an unusable stack
	 * word; and those that were but ended by an exception.  Hits during a
	 * handler are counted in kp.nmissed.
	 */
	int nmissed;
	size_t data_size; /* at most KRETPROBE_MAX_DATA_SIZE */
};

/*
 * In this order: -EINVAL or -ENOENT if it isn't a function's entry; -EINVAL
 * registered already, or a function whose returns can't be caught, as asked for
 * or at all; -E2BIG data_size; -ENOMEM; then those
 * of register_kprobe().
 */
int register_kretprobe(struct kretprobe *rp);
/* Calls on their way return normally and unreported.  Waits for handlers that run. */
void unregister_kretprobe(struct kretprobe *rp);
int register_kretprobes(struct kretprobe **rps, int num);
void unregister_kretprobes(struct kretprobe **rps, int num);

/*
 * Here: the mechanism that follows its calls now, one of UKP_BY_*.  buf says why that
 * one, and which exits cost a breakpoint (at most len bytes with the NUL).
 * -EINVAL: not registered; -EBUSY: from a handler.
 */
int ukp_kretprobe_mechanism(const struct kretprobe *rp, char *buf, size_t len);

/* The probe that an instance is of, for its handlers; never NULL, as with the kernel's rethooks. */
struct kretprobe *get_kretprobe(struct kretprobe_instance *ri);

static inline unsigned long get_kretprobe_retaddr(struct kretprobe_instance *ri)
{
	return (unsigned long)ri->ret_addr;
}

/* For who walks a stack, see is_rethook_trampoline() and rethook_find_ret_addr(). */
static inline bool is_kretprobe_trampoline(unsigned long addr)
{
	return is_rethook_trampoline(addr);
}

static inline unsigned long kretprobe_find_ret_addr(struct task_struct *tsk, void *fp,
                                                    struct llist_node **cur)
{
	return rethook_find_ret_addr(tsk, (unsigned long)fp, cur);
}

static inline int enable_kretprobe(struct kretprobe *rp)
{
	return enable_kprobe(&rp->kp);
}

static inline int disable_kretprobe(struct kretprobe *rp)
{
	return disable_kprobe(&rp->kp);
}

/* arch/x86/include/asm/ptrace.h */
static inline unsigned long regs_return_value(struct pt_regs *regs)
{
	return regs->ax;
}

/*
 * Here: results that are elsewhere, in the handler of a kretprobe, an fprobe's exit or a
 * rethook, by the regs that it was given: a float or double (xmm0), a long double
 * (st(0)), and 16 bytes of xmm0 or xmm1 (n), as structures and complex numbers have
 * them.  They are as the function left them, by each mechanism; nothing tells its type.
 * False: not there, with other regs, with UKP_NOVEC, or st(0) is empty.
 */
bool ukp_return_f32(const struct pt_regs *regs, float *value);
bool ukp_return_f64(const struct pt_regs *regs, double *value);
bool ukp_return_f80(const struct pt_regs *regs, long double *value);
bool ukp_return_xmm(const struct pt_regs *regs, unsigned int n, void *value);

static inline void regs_set_return_value(struct pt_regs *regs, unsigned long rc)
{
	regs->ax = rc;
}

static inline unsigned long instruction_pointer(struct pt_regs *regs)
{
	return regs->ip;
}

static inline void instruction_pointer_set(struct pt_regs *regs, unsigned long val)
{
	regs->ip = val;
}

static inline unsigned long kernel_stack_pointer(struct pt_regs *regs)
{
	return regs->sp;
}

static inline unsigned long user_stack_pointer(struct pt_regs *regs)
{
	return regs->sp;
}

static inline unsigned long frame_pointer(struct pt_regs *regs)
{
	return regs->bp;
}

static inline void frame_pointer_set(struct pt_regs *regs, unsigned long val)
{
	regs->bp = val;
}

static inline unsigned long profile_pc(struct pt_regs *regs)
{
	return regs->ip;
}

/* Here: always. */
static inline int user_mode(struct pt_regs *regs)
{
	(void)regs;
	return 1;
}

#define MAX_REG_OFFSET offsetof(struct pt_regs, ss)

/* From "ax", "r8", "ip", "orig_ax" ... to its offset in struct pt_regs; -EINVAL: no such. */
int regs_query_register_offset(const char *name);
/* And back; NULL: no register begins there. */
const char *regs_query_register_name(unsigned int offset);

/* The register at offset; 0 past the end. */
static inline unsigned long regs_get_register(struct pt_regs *regs, unsigned int offset)
{
	if (offset > MAX_REG_OFFSET)
		return 0;
	return *(unsigned long *)((char *)regs + offset);
}

/*
 * Whether addr belongs to the stack that regs are on.  Here: from the red zone
 * below sp up to 16 KiB; who asks for more than the stack has, faults.
 */
#define UKP_STACK_REACH 16384UL

static inline int regs_within_kernel_stack(struct pt_regs *regs, unsigned long addr)
{
	return addr - (regs->sp - 128) < UKP_STACK_REACH;
}

/* The n-th word of the stack from sp on; NULL, or 0, where that is out of reach. */
static inline unsigned long *regs_get_kernel_stack_nth_addr(struct pt_regs *regs, unsigned int n)
{
	unsigned long *addr = (unsigned long *)regs->sp + n;

	return regs_within_kernel_stack(regs, (unsigned long)addr) ? addr : NULL;
}

static inline unsigned long regs_get_kernel_stack_nth(struct pt_regs *regs, unsigned int n)
{
	unsigned long *addr = regs_get_kernel_stack_nth_addr(regs, n);

	return addr ? *addr : 0;
}

/* At a function's entry, its n-th integer or pointer argument from 0. */
static inline unsigned long regs_get_kernel_argument(struct pt_regs *regs, unsigned int n)
{
	switch (n) {
	case 0:
		return regs->di;
	case 1:
		return regs->si;
	case 2:
		return regs->dx;
	case 3:
		return regs->cx;
	case 4:
		return regs->r8;
	case 5:
		return regs->r9;
	default:
		/* Above the return address. */
		return regs_get_kernel_stack_nth(regs, n - 5);
	}
}

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
