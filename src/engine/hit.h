/* SPDX-License-Identifier: MIT */
/*
 * A hit, as actions see it, and the helpers that run on one.
 *
 * Everything below runs in the probed thread, at any instruction, also inside
 * signal handlers of the program and nested in itself.  Nothing allocates,
 * locks, calls the system or changes vector registers.
 */
#ifndef UKP_ENGINE_HIT_H
#define UKP_ENGINE_HIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/arch.h"
#include "ukprobes/pt_regs.h"
#include "wire/chan.h"
#include "wire/ctl.h"
#include "wire/instance.h"

/* All of it is internal to the image that links it. */
#pragma GCC visibility push(hidden)

enum {
	UKP_HIT_NOREAD = 1,  /* a fault here would kill: treat every read as one */
	UKP_HIT_UNWOUND = 2, /* at returns: it won't come, account for it */
	UKP_HIT_CHILD = 4,   /* in a forked child: only what must run there */
	UKP_HIT_JUMP = 8,    /* from a detour: nobody has saved vector state */
	UKP_HIT_FRAMES = 16, /* its call is followed by exit sites */
	UKP_HIT_SLOT = 32,   /* its stub is put into the frame, and not called from */
};

struct ukp_hit {
	struct ukp_ctl *ctl;
	struct ukp_site *site;           /* NULL at returns */
	struct ukp_instance *inst;       /* at returns */
	const struct ukp_action *action; /* that runs, at a site */
	struct pt_regs *regs;
	const void *fpstate; /* vector state in a signal frame; NULL: in the registers */
	uint64_t stub;       /* at an entry: that this hit has put into the frame; 0: none */
	struct ukp_instance *stub_inst; /* whose */
	uint64_t tsc;                   /* 0: nobody has asked yet, see ukp_hit_time() */
	uint32_t cpu;
	uint32_t flags;
};

/*
 * All of it but the CPU, which only some need.  Field by field: a compiler clears a
 * whole one by rep stos, which takes as long as thirty stores.
 */
static inline void ukp_hit_init(struct ukp_hit *hit, struct ukp_ctl *ctl, struct ukp_site *site,
                                struct pt_regs *regs, uint32_t flags)
{
	hit->ctl = ctl;
	hit->site = site;
	hit->inst = NULL;
	hit->action = NULL;
	hit->regs = regs;
	hit->fpstate = NULL;
	hit->stub = 0;
	hit->stub_inst = NULL;
	hit->tsc = 0;
	hit->cpu = 0;
	hit->flags = flags;
}

/* At a site: nonzero: regs->ip is where to go on.  At a return: ignored. */
typedef int (*ukp_action_fn)(struct ukp_hit *hit, uint64_t ctx);

/*
 * Provided by whoever links the engine: the agent or the library.  Written before the
 * first hit, never again: but not by this program, mostly.
 */
extern struct ukp_ctl *const volatile ukp_engine_ctl_word;

static inline struct ukp_ctl *ukp_engine_ctl(void)
{
	return ukp_engine_ctl_word;
}

/* For actions that want hit->tsc: reading the clock takes as long as much else. */
static inline void ukp_hit_time(struct ukp_hit *hit)
{
	if (!hit->tsc)
		hit->tsc = ukp_arch_clock();
}

struct ukp_site *ukp_site_find(const struct ukp_ctl *ctl, uint64_t addr);
/* From a detour; nonzero: regs->ip is where to go on. */
int ukp_detour_hit(struct pt_regs *regs, struct ukp_site *site);
/* The same at a function's entry, where negative is: call it in place. */
int ukp_detour_entry(struct pt_regs *regs, struct ukp_site *site);
static inline struct ukp_priv *ukp_priv_of(const struct ukp_ctl *ctl)
{
	return (struct ukp_priv *)ctl->priv;
}

/* At an entry: the function has returned 0, to ret, as it were. */
static inline int ukp_hit_returned(struct pt_regs *regs, uint64_t ret)
{
	regs->ax = 0;
	regs->ip = ret;
	regs->sp += 8;
	return 1;
}

/* Does an action with these flags run in this forked child? */
static inline bool ukp_hit_in_child(const struct ukp_ctl *ctl, uint32_t flags)
{
	/* A channel that came later is not in its memory. */
	return (flags & UKP_ACTION_ALWAYS) ||
	       ((flags & UKP_ACTION_FOLLOW) &&
	        flags >> UKP_ACTION_CHANS_SHIFT <= ((struct ukp_priv *)ctl->priv)->chans);
}

/* Run a site's actions, newest first. */
static inline int ukp_hit_run(struct ukp_hit *hit)
{
	uint32_t off;

	/* Acquire: an action is complete before it is linked. */
	off = __atomic_load_n(&hit->site->action, __ATOMIC_ACQUIRE);
	while (off) {
		const struct ukp_action *a = ukp_ctl_at(hit->ctl, off);
		int flow = 0;

		hit->action = a;
		if (!(hit->flags & UKP_HIT_CHILD) || ukp_hit_in_child(hit->ctl, a->flags))
			flow = ((ukp_action_fn)a->fn)(hit, a->ctx);
		if (flow)
			return flow;
		off = __atomic_load_n(&a->next, __ATOMIC_ACQUIRE);
	}
	return 0;
}

/* False in a child that inherited the probes by fork. */
static inline bool ukp_hit_alive(const struct ukp_ctl *ctl)
{
	return __atomic_load_n(&((struct ukp_priv *)ctl->priv)->alive, __ATOMIC_RELAXED) != 0;
}

/*
 * What tells this process from those that it was forked from and that it forks: 0 in the
 * one that was attached to.  Others may be the same by chance, one in some thousands.
 */
static inline uint32_t ukp_hit_process(const struct ukp_ctl *ctl)
{
	struct ukp_priv *priv = (struct ukp_priv *)ctl->priv;
	uint64_t mine = 0, made;

	if (__builtin_expect(ukp_hit_alive(ctl), 1))
		return 0;
	made = ukp_arch_clock() % UKP_INST_PROCESS + 1;
	if (__atomic_compare_exchange_n(&priv->child, &mine, made, false, __ATOMIC_RELAXED,
	                                __ATOMIC_RELAXED))
		return (uint32_t)made;
	return (uint32_t)mine;
}

static inline struct ukp_sigaction *ukp_old_action(const struct ukp_ctl *ctl, int sig)
{
	return &((struct ukp_priv *)ctl->priv)->old[sig];
}

/* In the memory of slots and detours? */
bool ukp_in_slots(const struct ukp_ctl *ctl, uint64_t pc);

static inline struct ukp_stat *ukp_hit_stat(const struct ukp_chan *chan, uint32_t cpu, uint32_t row)
{
	uint64_t shard = ukp_shard(cpu, chan->nr_shards);

	return (struct ukp_stat *)((char *)chan + chan->off_stats) + shard * chan->nr_stats + row;
}

static inline void ukp_count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* A hit that is not followed; false. */
static inline bool ukp_hit_missed(struct ukp_stat *stat, enum ukp_miss why)
{
	ukp_count(&stat->hits);
	ukp_count(&stat->miss[why]);
	return false;
}

/* Actions; ctx is an address in this process. */
int ukp_event_hit(struct ukp_hit *hit, uint64_t ctx);     /* struct ukp_event: p */
int ukp_event_entry(struct ukp_hit *hit, uint64_t ctx);   /* struct ukp_event: r at entry */
int ukp_event_return(struct ukp_hit *hit, uint64_t ctx);  /* the same at its return */
int ukp_latency_entry(struct ukp_hit *hit, uint64_t ctx); /* struct ukp_latency */
int ukp_latency_return(struct ukp_hit *hit, uint64_t ctx);
int ukp_count_hit(struct ukp_hit *hit, uint64_t ctx);     /* struct ukp_counter */
int ukp_count_entry(struct ukp_hit *hit, uint64_t ctx);   /* the same of returns, at entry */
int ukp_count_return(struct ukp_hit *hit, uint64_t ctx);  /* struct ukp_event: at the return */
int ukp_sigmask_hit(struct ukp_hit *hit, uint64_t ctx);   /* of its pthread_sigmask() */
int ukp_sigaction_hit(struct ukp_hit *hit, uint64_t ctx); /* entry of libc's sigaction() */
int ukp_unwind_hit(struct ukp_hit *hit, uint64_t ctx);    /* entries of the unwinder */

int ukp_mute_return(struct ukp_hit *hit, uint64_t ctx);

#pragma GCC visibility pop

#endif
