/* SPDX-License-Identifier: MIT */
/*
 * A target as its broker sees it: the process, the agent in it, and what is
 * planted.  One thread, the one that traces.
 *
 *	target.c   attach and detach; memory in the target
 *	areas.c    the memory that an attach brings in
 *	bring.c    what it takes hold of then
 *	inside.c   threads inside our code
 *	grace.c    what all threads have seen
 *	shared.c   other processes in its memory
 *	leave.c    the way out, from nothing but what lies in the target
 *	leave_signals.c  its dispositions and masks
 *	orphan.c   and that of what a killed broker has left
 *	copies.c   of stacks, with stubs in them, at the way out
 *	restore.c  its text
 *	probe.c    from a line of text to a checked probe
 *	plant.c    sites, slots, actions
 *	sites.c    the tables of sites
 *	jump_only.c  places where no breakpoint may stand
 *	many.c     definitions of many places: which they are
 *	bulk.c     and their planting
 *	pages.c    breakpoints of many sites
 *	tally.c    what was refused
 *	pending.c  definitions that wait for their library
 *	gone.c     libraries that were unloaded
 *	live.c     text that the program rewrites
 *	children.c processes forked meanwhile
 *	budget.c   probes that take too much of the program's time
 *	optimize.c jumps in the place of breakpoints
 *	windows.c  where they may be; cover.c, making.c, stays.c: one of them
 *	jumps.c    into the text and out of it
 *	exits.c    return probes by exit sites
 *	chan.c     channels
 *	heap.c     memory of the control area that comes back
 *	warm.c     pages for first hits
 */
#ifndef UKP_SESSION_TARGET_H
#define UKP_SESSION_TARGET_H

#include <stdbool.h>

#include "inject/inject.h"
#include "lang/lang.h"
#include "plan/returns.h"
#include "session/children.h"
#include "session/heap.h"
#include "sym/sym.h"
#include "wire/chan.h"
#include "wire/ctl.h"
#include "wire/event.h"
#include "wire/frames.h"
#include "wire/hist.h"

/* One planted address; the broker's own copy, never read back from the target. */
struct site {
	uint64_t addr;
	uint32_t off;  /* of its struct ukp_site in the control area */
	uint8_t first; /* the byte that the int3 replaced, from the file */
	/*
	 * Why no breakpoint may stand there, where nothing else is against a
	 * probe: a jump or nothing.  NULL: one may.
	 */
	const char *jump_only;
	bool live;  /* in text that its program may rewrite, live.c */
	bool armed; /* wanted, and its code is as planned: the breakpoint is in, if one may be */
	struct probe *probes; /* newest first */
	struct ukp_site plan;
	/* The jump form, optimize.c. */
	struct window *window; /* that covers it; NULL: none yet */
	bool resumes;          /* traps go on in its copy */
	bool jumped;           /* the jump is in the text */
	bool gone;             /* its library was unloaded; addr is 0 */
	const char *base;      /* why there is no jump; NULL: not looked at yet */
};

enum probe_kind {
	PROBE_ENTRY,
	PROBE_RETURN,
	PROBE_LATENCY,
	PROBE_COUNT,        /* hits by place, nothing else */
	PROBE_COUNT_RETURN, /* the same of returns */
	PROBE_INTERNAL,
	PROBE_EXIT, /* where calls of a return probe end */
};

/* Places that were refused, by reason: static texts. */
#define TALLY_ROWS 48
struct tally_row {
	const char *why;
	size_t n;
};

struct tally {
	struct tally_row row[TALLY_ROWS];
	unsigned int nr;
	size_t total;
};

struct probe {
	struct probe *next;      /* of its site */
	struct probe *next_mine; /* of its channel */
	struct site *site;       /* NULL: not planted (yet, any more) */
	struct chan *chan;       /* NULL: internal */
	enum probe_kind kind;
	uint32_t id;
	uint64_t addr;
	const char *jump_only; /* as its site's */
	bool live;             /* the same */
	uint32_t action_off;   /* struct ukp_action */
	uint32_t ctx_off;      /* struct ukp_event, ukp_latency or, of a member, ukp_counter */
	bool enabled;
	bool gone;    /* removed, kept for its counters */
	bool fresh;   /* planted by the start that is going on */
	bool late;    /* its library was not mapped when it was added */
	bool started; /* a late one lands as soon as that is */
	bool landed;  /* late: has been */
	char *failed; /* late: what it was refused for then */
	/*
	 * A definition of many places is a head, which has all but a site, and
	 * members, which have a site and nothing of their own beside.
	 */
	struct probe *head; /* of a member */
	struct probe *member;
	size_t nr_members, nr_planted;
	bool planted;
	struct lang_def *def;
	char *name; /* symbol, for listings */
	uint64_t name_off;
	char *module;            /* "" in the executable */
	struct ukp_event *event; /* compiled, until planted */
	struct lang_field *fields;
	uint32_t err_kind;
	uint32_t hist;    /* index in the channel */
	uint32_t counter; /* COUNT, COUNT_RETURN: the same; a head's first */
	/* Of a return probe but of a head: what catches the returns, exits.h. */
	uint8_t want; /* enum plan_mechanism; a head's is its members' */
	uint8_t by;   /* the same */
	bool decided; /* by and why hold */
	bool firm;    /* exit sites from the first hit on */
	bool frames;  /* calls have records now */
	bool drains;  /* calls had records once: some may be on their way */
	const char *why;
	uint64_t func;      /* where its function starts; addr may lie behind */
	struct probe *exit; /* its exit sites */
	uint32_t nr_exits;
	const struct probe *of; /* of an exit site: its return probe */
	uint64_t seen;          /* budget.c: hits until the last look */
};

struct chan {
	struct target *target;
	struct chan *next;
	uint32_t number;
	uint64_t addr; /* in the target */
	uint64_t size;
	int fd;
	struct ukp_chan *map; /* shared: written, never read back */
	struct ukp_chan layout;
	struct probe *probes;
	uint32_t next_id;
	uint32_t next_hist, next_counter;
	size_t waiting; /* of the places of the last start: their jumps are still to come */
	bool strict;    /* one refused place refuses a definition */
	bool any_text;  /* what has been asked for, live.c */
	bool follow;    /* its probes count in forked children, too */
	uint32_t born;  /* UKP_ACTION_CHANS_SHIFT has it; 0: follows nobody */
	bool leaving;   /* its calls that are on their way count as unreturned */
	struct heap_blocks loose; /* of probes that it has no more */
	struct budget *budget;    /* NULL: none */
	struct tally refused;
	/* "PLACE: why" lines of what went without being asked to, until they are asked for. */
	char dropped[4096];
	size_t dropped_used;
};

struct target {
	pid_t pid;
	struct inject *inject;
	struct sym_proc *sym;
	unsigned int holds;  /* nested target_hold() */
	unsigned int begins; /* nested target_begin() */
	bool dead;
	bool taken; /* the dispositions are ours */
	bool locks; /* memory that the process maps is locked, as it has asked (mlockall()) */
	/* Why no breakpoint may stand anywhere, or NULL: a thread blocks the signal. */
	const char *no_traps;
	uint64_t altstack; /* bytes of a thread's alternate signal stack; 0: none, unknown */

	/*
	 * The control area is the target's to write.  What we rely on is in
	 * own, and goes from there to the area; nothing is read back.
	 */
	struct ukp_ctl *ctl;
	struct ukp_ctl own;
	uint32_t table_mask;
	int ctl_fd;           /* the file of all that an attach brings */
	bool has_stubs;       /* in it, for calls that are followed */
	unsigned char *image; /* of the agent, until it is there */
	size_t image_len;

	struct site **sites;
	size_t nr_sites, max_sites;
	struct site **by_addr; /* sites.c */
	size_t by_mask;
	struct slots *slots;
	struct modules *modules;
	struct optimizer *optimizer;
	bool frames; /* some call may have a record */
	struct pending *pending;
	uint64_t budget_at;   /* ms of CLOCK_MONOTONIC: the next look */
	struct family family; /* who shares the control area */
	struct heap heap;
	uint64_t maps_sum; /* gone.c: of the mappings that the sites were last held against */
	struct chan *chans;
	struct probe *internal;
	uint32_t next_chan;
	uint64_t chans_mapped; /* so many ever, as the target has it */
};

/* Agent in.  held: the process is stopped already (launched). */
int target_attach(struct target **ret, pid_t pid, struct inject *held, struct err *err);
/* Everything out, memory freed.  Says in err what could not be taken out. */
int target_detach(struct target *t, struct err *err);
void target_free(struct target *t);

/* What can be found out while the target runs; nothing in it changes. */
int target_prepare(struct target *t, struct err *err);
/*
 * The agent's memory, what fills it, and then what can be told of the threads.  All but
 * the filling only while held, between begin and end; in between the target may run, for
 * nothing leads to the agent yet.
 */
int target_image(struct target *t, struct err *err); /* before: the agent to be written */
int target_bring(struct target *t, struct err *err);
int target_fill(struct target *t, struct err *err);
/* How much address space that takes, and what c says of its pieces if it lies at addr. */
uint64_t target_area_size(void);
uint64_t target_priv_size(void); /* of it, what is private and may be written */
void target_lay_out(struct ukp_ctl *c, uint64_t addr);
/* What was mapped with PROT_NONE while memory is locked: to be read and written, page by page. */
int target_unlock(struct target *t, uint64_t addr, uint64_t len);
int target_settle(struct target *t, struct err *err);
/* Between target_begin() and target_end(): signals' dispositions ours; masks of handlers opened. */
int target_take_signals(struct target *t, struct err *err);
void target_open_handlers(struct target *t);

/* Held, before that: lets the target run until no thread blocks SIGTRAP for a moment only. */
int target_await_open(struct target *t, struct err *err);

/* Stop all threads; nests. */
int target_hold(struct target *t, struct err *err);
void target_release(struct target *t);
/* -ESRCH: it has executed another program, maybe while it ran on in between. */
int target_still_ours(struct target *t, struct err *err);

/* System calls in the target between the two; only while held; nests. */
int target_begin(struct target *t, struct err *err);
void target_end(struct target *t);

/* Memory for copies of code at this very place, with a record in the control area; 0 on failure. */
uint64_t target_map_slots(struct target *t, uint64_t at, uint64_t len, struct err *err);
/* Remote mmap of a descriptor there, which is closed in any case. */
uint64_t target_map_fd(struct target *t, uint64_t len, int remote, enum ukp_map_kind kind,
                       uint32_t arg, struct err *err);
void target_unmap(struct target *t, uint64_t addr);
/* The record alone, of what was mapped otherwise. */
void target_mapped(struct target *t, struct ukp_mapping *at, uint64_t addr, uint64_t len,
                   enum ukp_map_kind kind, uint32_t arg);
/*
 * A memfd made in the target and open here too; *remote is closed by the
 * caller.  In two steps for whoever makes several at once: the flags of
 * memfd_create() there, and what is done with its result.
 */
int target_memfd(struct target *t, const char *name, uint64_t size, long *remote, struct err *err);
unsigned int target_memfd_flags(void);
int target_memfd_open(struct target *t, long remote, uint64_t size, struct err *err);

/* The stubs that calls return to: 2 MiB, so before the first probe that follows calls. */
int target_stubs(struct target *t, struct err *err);

/* Where the table of records by frame is, with its head as it was laid out. */
uint64_t target_frames(const struct target *t, struct ukp_frames *head);

/* Memory in the control area, all zeros; 0: full. */
uint32_t target_alloc(struct target *t, size_t size);
/* The pages of the next len bytes, at once. */
void target_populate(struct target *t, size_t len);
/* What lies there, and the same for the agent. */
void *target_at(struct target *t, uint32_t off);

/* Does another process run in its memory, which no stop stops? */
bool target_shares_memory(const struct target *t);
/* -EOPNOTSUPP: one that a breakpoint would kill.  Waits a moment for it to go. */
int target_check_shared(struct target *t, struct err *err);
/*
 * Why a probe can't be at addr, or NULL: one of our own that only a jump may be begins
 * there, or its jump may lie there.  It would have to go while the other comes.
 */
const char *target_has_hook(const struct target *t, uint64_t addr);
/*
 * Before any breakpoint: signals' dispositions become ours, masks are opened, and our own
 * breakpoints come.  After our jump on sigaction(), by which the program sees what it has
 * set; where that can't be, without it.  Again: masks that were set since.
 */
int target_take(struct target *t, struct err *err);
/*
 * Has each thread been seen outside the engine since grace_start()?  Whatever
 * was published before that, all that are inside now have seen.  So it ends
 * under fire, too, when there is always someone inside.  Only while held.
 */
struct grace {
	bool runs; /* who is inside is let run on, in the stop */
	bool begun;
	pid_t *tid; /* not seen outside yet */
	size_t nr;
};
void grace_start(struct grace *g);
bool grace_over(struct target *t, struct grace *g);
/* Until it is, a moment of running after the other; -EAGAIN: not yet. */
int grace_settle(struct target *t, struct grace *g, struct err *err);

/* A line for chan_dropped(), or none where they are too many. */
__attribute__((format(printf, 3, 4))) void chan_say(struct chan *c, const struct probe *p,
                                                    const char *fmt, ...);
/* The lines since the last call; returns what snprintf does. */
int chan_dropped(struct chan *c, char *buf, size_t len);
int chan_open(struct target *t, struct chan **ret, struct err *err);
/* Takes its probes out and unmaps it from the target. */
int chan_close(struct chan *c, struct err *err);
/* Before a start: the pages that first hits will need (warm.c). */
void chan_warm(struct chan *c);
/* The same before a call has the first record by its frame, and when exits were planted. */
void target_warm_frames(struct target *t);
void target_warm_sites(struct target *t);
/* Take the probes out, keep the memory. */
int chan_stop(struct chan *c, struct err *err);
/* After unplanting, while held: mute what calls are on their way; -EAGAIN: some are inside still.
 */
int chan_mute(struct chan *c, struct err *err);

static inline bool probe_is_many(const struct probe *p)
{
	return p->member;
}

static inline bool probe_counts(const struct probe *p)
{
	return p->kind == PROBE_COUNT || p->kind == PROBE_COUNT_RETURN;
}

/* Does it follow calls until they return? */
static inline bool probe_returns(const struct probe *p)
{
	return p->kind == PROBE_RETURN || p->kind == PROBE_LATENCY || p->kind == PROBE_COUNT_RETURN;
}

void tally_add(struct tally *t, const char *why, size_t n);
void tally_merge(struct tally *to, const struct tally *from);
/* "N: reason" lines, most first; returns what snprintf does. */
int tally_print(const struct tally *t, char *buf, size_t len);
/* The commonest reason. */
const char *tally_most(const struct tally *t);
/* Against a place that can have a jump alone: why that, and why no jump.  Lives on. */
const char *tally_both(const char *jump_only, const char *why);

/* The places of p->def, checked, become p's members; what is refused is added to the channel's. */
int many_fill(struct chan *c, struct probe *p, struct err *err);
/* Plants the fresh members of all heads of a channel; all or nothing but for refused places. */
int bulk_start(struct chan *c, struct err *err);
/* Is what the fresh heads have planted enough, with so many of nr places refused? */
int bulk_judge(struct chan *c, const struct tally *refused, size_t nr, struct err *err);
/* Takes out what bulk_start() planted of p, or of all heads; no thread has to stand still. */
void bulk_stop(struct chan *c, struct probe *p);
/* Takes out one of the members; its counts stay. */
void bulk_drop(struct probe *m);
/* The bytes of p's places, after p->enabled changed. */
int bulk_enable(struct probe *p, struct err *err);
/*
 * Puts the bytes of all sites back, while the target runs; what others changed
 * stays.  Those of our own probes go last, while nothing runs.
 */
void bulk_restore(struct target *t);
void bulk_restore_own(struct target *t);

/* Parse, resolve, plan: nothing in the target changes. */
enum add_what { ADD_EVENT, ADD_LATENCY, ADD_COUNT };
/* want: of returns, what is to catch them. */
int probe_add(struct chan *c, const char *text, enum add_what what, enum plan_mechanism want,
              struct probe **ret, struct err *err);
/* Plant all added ones: all or nothing. */
int probe_start(struct chan *c, struct err *err);
int probe_remove(struct chan *c, uint32_t id, struct err *err);
int probe_enable(struct chan *c, uint32_t id, bool on, struct err *err);
/*
 * One at a time.  Nobody has to stand still: nothing leads there before its
 * breakpoint is in, and then all that a hit needs is there.
 */
int probe_plant(struct target *t, struct probe *p, struct err *err);
/* All of it but the breakpoint, which probe_arm() writes. */
int probe_ready(struct target *t, struct probe *p, struct err *err);
int probe_arm(struct target *t, struct probe *p, struct err *err);
void probe_disarm(struct target *t, struct probe *p);
/* A late one, its library mapped: found, checked, compiled and planted. */
int probe_land(struct probe *p, struct err *err);
/* "MOD:SYM+0xOFF", as a late one's definition has it. */
void probe_place(const struct probe *p, char *buf, size_t len);
/* Reads the mappings again; sites of libraries that have gone are forgotten.  No jumps are in. */
int target_refresh(struct target *t, struct err *err);
/* Would it forget any?  By the mappings as they were read last; jumps may be in. */
bool target_lost(struct target *t);
void probe_unplant(struct probe *p);
/* Nothing is written there any more, and whoever asks for the address gets a new site. */
void site_forget(struct target *t, struct site *s);
struct probe *probe_find(struct chan *c, uint32_t id);
/* Its action and context, linked as the first of its site: plant.c's, for bulk.c. */
int probe_link(struct target *t, struct site *s, struct probe *p, struct err *err);
void probe_unlink(struct target *t, struct probe *p);
bool site_wanted(const struct site *s);
/* UKP_SITE_* of what is known of it before it is planned. */
uint8_t site_flags(const struct site *s);
/* Why only a jump may stand at a place: its own reason, or the process's; or NULL. */
static inline const char *jump_only_at(const struct target *t, const char *jump_only)
{
	return jump_only ? jump_only : t->no_traps;
}

/* Why a definition can't have a place that jump_only speaks of, or NULL; ret: of returns. */
const char *jump_only_refusal(const struct target *t, const struct lang_def *def, bool ret,
                              const char *jump_only);
/* The beginning of a start: our own, before anything else is planted.  1: that was to do. */
int jump_only_land_hooks(struct target *t, struct err *err);
/*
 * The end of a start: waits until what the channel has planted in such places
 * has its jumps, or a reason why not, or too long; judges.
 */
int jump_only_land(struct chan *c, struct err *err);
/* The context that p's action gets, in the control area; 0: full. */
uint32_t probe_context(struct target *t, struct probe *p);
/* Does it wait for a return?  Then its place is a function's entry. */
bool probe_follows(const struct probe *p);
/* What the control area has of p and its members alone. */
void probe_blocks(const struct probe *p, struct heap_blocks *b);
/* Plan a probe for ourselves at a function, if it is there; target_bring() plants it. */
int probe_internal(struct target *t, const char *sym, uint32_t agent_fn, struct err *err);
void probe_free_all(struct target *t, struct probe *list);

/*
 * Leave a target by what lies in it: restores text from the files, return
 * addresses from instances, dispositions from the control area, then unmaps.
 * rest: it may run for a moment before the memory goes, when nothing leads
 * there any more; not so a launched one that must not have run at all.
 * ctl is a private copy, and area too where it is the same: an orphaned agent's.
 * Of our own agent it is the shared area itself, of which sites alone are read,
 * and the text must be back (bulk_restore()).
 */
int leave_target(struct inject *t, struct sym_proc *sym, const struct ukp_ctl *ctl,
                 const void *area, size_t len, bool rest, struct err *err);
/* Is there anything of a killed broker's?  By the mappings as they were read last. */
bool orphan_seen(struct sym_proc *sym, pid_t pid);
/* The broker that serves it and lives, whoever's, or 0. */
pid_t orphan_broker(struct sym_proc *sym, pid_t pid);
/*
 * -EBUSY where a broker serves it after all, one of another user's, or with another /tmp;
 * 0: none.  By what the target's memory says: it can only have itself refused.
 */
int orphan_is_served(struct sym_proc *sym, pid_t pid, struct err *err);
unsigned int orphan_files(struct sym_proc *sym, pid_t pid); /* descriptors */
bool orphan_is_area(const struct sym_map *m);
/* All of it out, while held; rest: as above. */
int orphan_leave(struct inject *t, struct sym_proc *sym, bool rest, struct err *err);
/* Where saved contexts on the threads' stacks lead to, malloc'ed.  Only while held. */
int leave_contexts(struct target *t, uint64_t **ip, size_t *nr);
/*
 * Make instances of one channel's probes that were taken out mute; those whose
 * action runs already count themselves, unless all: how many there are.
 */
unsigned int leave_mute(struct target *t, const struct chan *c, bool all);

#endif
