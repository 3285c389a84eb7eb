/* SPDX-License-Identifier: MIT */
/*
 * What the library does on a hit, and what it works from.
 *
 * Everything in this folder and in ../x86 lies in the section ukp_hit_text,
 * with the engine: it calls nothing outside but handlers, and no probe may
 * stand in it.
 *
 *	int3 -> engine -> ukp_lib_hit(): guard on, handlers newest first, guard
 *	off -> slot -> back, or ukp_post_entry -> ukp_lib_post()
 *	jump -> detour -> ukp_lib_jump_hit() -> handlers, or engine -> ukp_lib_hit()
 *	-> copy -> back
 *	stub -> engine -> ukp_lib_return()
 *	exit site -> ukp_lib_hit(), behind its kprobes -> ukp_lib_exits() -> engine
 *	-> ukp_lib_return()
 *
 * Lists of probes change under a mutex (src/lib/kprobe.c); readers are inside
 * the guard.  What was unlinked is let go after guard_wait().
 */
#ifndef UKP_LIB_HIT_HIT_H
#define UKP_LIB_HIT_HIT_H

#include "engine/hit.h"
#include "plan/plan.h"
#include "plan/returns.h"
#include "ukprobes/kprobes.h"
#include "wire/detour.h"

#pragma GCC visibility push(hidden)

#define LIB_JUMP_SIZE 5

/*
 * A place where a followed function leaves, for one probe of it.  Calls are told
 * apart by ctx: a struct ukp_kret or ukp_fprobe.
 */
struct lib_exit {
	struct lib_exit *next;
	uint64_t ctx;
	struct lib_site *site; /* in whose list it is; NULL: in none */
	uint64_t addr, window; /* where it is, and the jump over it may begin (0: nowhere) */
	bool fprobe;
};

/* By which mechanism a probe follows the calls of a function, and why. */
struct lib_returns {
	uint8_t want,
		by; /* enum plan_mechanism; by: EXIT or SLOT, which may become a call in place */
	uint32_t nr;
	struct lib_exit *exit; /* by exit sites: nr of them */
	const char *why;
};

/* A probed address; never freed. */
struct lib_site {
	uint64_t addr;
	struct kprobe *probes;      /* newest first */
	struct ukp_fplace *fprobes; /* newest first */
	/* Of a function that has it for an exit: as what was hooked first comes back last. */
	struct lib_exit *exits;
	struct ukp_site *site; /* in force */
	uint32_t action;       /* ours, that runs the probes; offset in the control area */
	uint32_t slots;        /* how many of its probes want their calls not to be made in place */
	uint32_t followers;    /* how many follow calls at all, or may */
	bool live;             /* in code that the program may rewrite */
	bool armed;
	bool anchor;    /* armed for nothing but the jump over an exit behind it, which is there */
	uint8_t covers; /* bytes under the jump that it would head, once that is known */
	struct plan_insn insn;
	struct lib_site *next; /* of all */
	/*
	 * The jump form (lib/jump.c).  over: the detour of the jump that it heads,
	 * while that is there or on its way.
	 */
	const struct ukp_detour *over;
	struct lib_site *head; /* whose jump is over this place: itself or one before it */
	struct lib_window *window;
	const char *why; /* it keeps the base form; NULL: not known yet, or it does not */
	uint64_t from;   /* an exit that has no room behind it: where its jump begins; 0: here */
	uint8_t reach;   /* bytes that the jump from here is to cover, for exits behind it */
	struct lib_site *next_queued;
	bool queued;
	uint8_t tries;
};

/* From a slot, or a detour (its head), to its site; arenas are only ever added. */
struct lib_arena {
	struct lib_arena *next;
	uint64_t addr, len;
	struct lib_site *site[]; /* one for UKP_SLOT_SIZE bytes */
};

/*
 * The calls that something follows, and their data: in the engine's instance
 * where it fits, else in memory with one place for each instance of the engine.
 */
struct ukp_calls {
	uint64_t active;    /* live instances */
	uint64_t maxactive; /* 0: as many as the engine has */
	uint64_t memory;    /* of data that doesn't fit the engine's; 0: it does */
	uint64_t stride, size;
	uint64_t looked; /* buckets of records, for what won't come back */
};

/* False: there are maxactive. */
bool calls_take(struct ukp_calls *c);
/* The last touch of what c is in: it may be freed now. */
void calls_give(struct ukp_calls *c);
void *calls_data(const struct ukp_ctl *ctl, const struct ukp_calls *c, struct ukp_instance *inst);
/*
 * A record for the call whose entry this hit is, by the mechanism of how; NULL: a
 * miss.  To be hooked, or given back (by calls_decline(), which is none).
 */
struct ukp_instance *calls_follow(struct ukp_hit *hit, struct ukp_calls *c,
                                  const struct lib_returns *how, ukp_action_fn fn, uint64_t ctx);
void calls_hook(struct ukp_hit *hit, const struct lib_returns *how, struct ukp_instance *inst);
void calls_decline(struct ukp_hit *hit, struct ukp_calls *c, const struct lib_returns *how,
                   struct ukp_instance *inst);
/* This entry runs no handler, but its exit will come. */
void calls_missed(struct ukp_hit *hit, const struct lib_returns *how, uint64_t ctx);

/* What instances point to; outlives its kretprobe until the last is back. */
struct ukp_kret {
	struct kretprobe *rp; /* NULL: unregistered */
	struct kretprobe *of; /* the same, and stays: for its handlers, that are waited for */
	struct ukp_calls calls;
	struct lib_returns how;
	struct ukp_kret *next_dead;
};

/*
 * Where a return goes on is not for its handlers to say, as in the kernel: each
 * sees the same ip and sp, whatever the one before it wrote there.
 */
struct where {
	unsigned long ip, sp;
};

static inline struct where where_is(const struct pt_regs *regs)
{
	return (struct where){ regs->ip, regs->sp };
}

static inline void where_was(struct pt_regs *regs, struct where where)
{
	regs->ip = where.ip;
	regs->sp = where.sp;
}

/*
 * Vector and x87 registers as they are at a return, while its handler runs: in the
 * signal frame, else in what ukp_vec_call() keeps.
 */
struct lib_result {
	const struct lib_result *outer;
	const struct pt_regs *regs; /* of that handler */
	const void *fpstate, *saved;
};

/* One handler run of one thread. */
struct guard {
	struct guard_bucket *at;
	uint64_t key;
	uint64_t home;   /* first bucket of its key */
	uint64_t passed; /* buckets that it has passed */
	uint32_t slot;   /* of at */
	int saved;
	int *error; /* the thread's errno; NULL: it has none */
};

/* Handlers of one kind are not entered twice; the kinds don't keep each other out. */
enum guard_kind {
	GUARD_KPROBE,
	GUARD_FPROBE,
	GUARD_RETHOOK,
	GUARD_EXIT, /* a list of exits is walked: no handler, but what it calls must stay */
};

enum guard_state {
	GUARD_ON,
	GUARD_NESTED, /* this thread runs a handler of the kind already */
	GUARD_FULL,   /* thousands of threads do */
	GUARD_QUIET,  /* a thread of the library's own: its calls are nobody's hits */
};

/*
 * Enter handlers in this thread.  ON: guard_off() must follow.  Any number of
 * threads, signal handlers too.
 */
enum guard_state guard_on(struct guard *g); /* GUARD_KPROBE */
enum guard_state guard_on_kind(struct guard *g, enum guard_kind kind);
void guard_off(struct guard *g);
void guard_set_running(struct guard *g, struct kprobe *p);
/*
 * What the handler of this kind has at hand, which this thread runs innermost; a
 * signal handler may come between and do the same.  In a guard that is on or nested.
 */
void guard_push_result(struct guard *g, struct lib_result *r);
void guard_pop_result(struct guard *g, struct lib_result *r);
/* The one with these registers, or NULL. */
const struct lib_result *guard_result(const struct pt_regs *regs);
/* The kprobe that this thread handles, or NULL; *on: whether handlers of any kind run. */
struct kprobe *guard_running(bool *on);
/* The guard of kprobes without a handler, for busy; nothing if it is on. */
void guard_set_busy(struct kprobe *busy);
void guard_clear_busy(struct kprobe *busy);
/*
 * Wait until all handlers that run now have returned, but for this thread's.
 * pause is called between looks.
 */
void guard_wait(void (*pause)(void));

/* guard_on() is GUARD_QUIET in this thread, until it says no. */
void guard_quiet(bool on);
bool guard_is_quiet(void);

/* Made by the first registration, never freed: a thread may be on a hit at any time. */
extern struct ukp_ctl *ukp_lib_ctl;
/* Filled in before the first probe. */
extern struct lib_arena *ukp_lib_arenas;
extern int64_t ukp_lib_errno_off; /* of errno from the thread pointer, in all threads */

int ukp_lib_hit(struct ukp_hit *hit, uint64_t ctx);    /* action: struct lib_site */
int ukp_lib_return(struct ukp_hit *hit, uint64_t ctx); /* action: struct ukp_kret */
void ukp_lib_fprobes(struct ukp_hit *hit, struct lib_site *s);
/* This function leaves now, by the way that s is on. */
void ukp_lib_exits(struct ukp_hit *hit, struct lib_site *s);
/* The entry half of a kretprobe. */
void ukp_lib_entry(struct ukp_hit *hit, struct kprobe *p);

/* Behind an instruction with post handlers; ra is the address inside its slot. */
void ukp_lib_post(struct pt_regs *regs, uint64_t ra);
void ukp_post_entry(void);

/*
 * What detours call.  It aligns the stack, which is as the program had it.  The hit
 * has no CPU, which would take as long as all else: see hit_cpu().
 */
int ukp_lib_jump_hit(struct pt_regs *regs, struct ukp_site *site);
/* The same at a function's entry, where calls may be followed: see ukp_detour_entry(). */
int ukp_lib_jump_entry(struct pt_regs *regs, struct ukp_site *site);
/* Before a call is followed. */
void hit_cpu(struct ukp_hit *hit);

/*
 * In orig_ax of a hit's registers once a handler has chosen ip: from then on who
 * looks at this stack must take ip for where the thread goes on.  Until then it
 * is -1, as handlers see it, and ip says no more than where the hit was.
 */
#define LIB_MOVED 0x6465766f6d706b75ul /* "ukpmoved" */

/*
 * Call fn with vector and x87 state kept and in the ABI's initial state (vec.S).  In
 * saved is what is kept, as the instruction of ukp_vec_kind has written it.
 */
void ukp_vec_call(void (*fn)(void *arg, const void *saved), void *arg);
enum { VEC_FXSAVE, VEC_XSAVE, VEC_XSAVEC };
extern uint32_t ukp_vec_kind, ukp_vec_mask, ukp_vec_size;

#pragma GCC visibility pop

#endif
