/* SPDX-License-Identifier: MIT */
/*
 * The control area: what the engine in one process works from.  In a foreign
 * target it is a memfd that the broker maps too; in the library it is plain
 * memory.  Links inside it are offsets from its start, so that it means the
 * same on both sides; addresses are the target's.
 *
 *   target's address space; the first four side by side, in this order
 *     ctl     rw-  this area (shared with the broker)
 *     text    r-x  the agent: engine code and constants, ctl's address patched in
 *     stubs   r-x  one return stub an instance, one file mapped again and again
 *     priv    rw-  one page wiped on fork, then instances and their pool (private)
 *     slots   r-x  out-of-line copies, near each probed module
 *     chan    rw-  one a client (shared with it)
 *
 * Who writes: the broker (the library), before a site is published or with
 * single aligned stores; the engine writes only counters and the pool.  The
 * broker never believes what it reads back but for handing it to the target
 * again: original bytes come from files, and its own tables stay its own.
 */
#ifndef UKP_WIRE_CTL_H
#define UKP_WIRE_CTL_H

#include <stdint.h>

#include "wire/site.h"

#define UKP_CTL_MAGIC 0x6c746370706b75ull /* "ukppctl" */
#define UKP_CTL_VERSION 9
#define UKP_CTL_SIZE (512u << 20) /* address space; pages come with use, 300 bytes a site */

/* A mapping that we made in the target, for whoever has to take it away. */
enum ukp_map_kind {
	UKP_MAP_FREE,
	UKP_MAP_TEXT,
	UKP_MAP_CTL,
	UKP_MAP_PRIV,
	UKP_MAP_STUBS,
	UKP_MAP_SLOTS,
	UKP_MAP_CHAN,
};

struct ukp_mapping {
	uint64_t addr;
	uint64_t len;
	uint32_t kind;
	uint32_t arg; /* CHAN: the client's number; SLOTS: below */
};

/*
 * Slots are listed before they are mapped, and begin with this and the area's address:
 * so whoever cures after a kill at any moment knows which are there.
 */
#define UKP_SLOTS_MAGIC 0x73746f6c73706b75ull /* "ukpslots" */
enum {
	UKP_SLOTS_THERE,
	UKP_SLOTS_TO_COME,
};

#define UKP_NR_MAPPINGS 256
#define UKP_NR_MASKS 64   /* different masks that we took SIGTRAP from, and like ones */
#define UKP_NR_SIGNALS 32 /* old dispositions, by signal number */

enum {
	UKP_CTL_RDPID = 1,
	UKP_CTL_DIRECT = 2, /* resume without rt_sigreturn */
	UKP_CTL_OWN = 4,    /* private memory: a forked child has a copy of all of it */
	UKP_CTL_OPENS = 8,  /* handlers run with SIGTRAP open, struct ukp_priv's opened */
};

enum {
	UKP_LOADER_OFF,
	UKP_LOADER_TELLS, /* the broker looks now and then: a seccomp filter may forbid futexes */
	UKP_LOADER_WAITS,
};

/* Open addressing, linear; 0: free.  Never more than half full. */
struct ukp_site_table {
	uint32_t mask; /* entries - 1 */
	uint32_t used;
	uint32_t site[]; /* offsets of struct ukp_site */
};

enum {
	UKP_ACTION_ALWAYS = 1, /* also in a forked child, which has its own dispositions */
	UKP_ACTION_EXITS = 2,  /* its function has exit sites, that look for its calls */
	UKP_ACTION_FRAMES = 4, /* and its calls are to be found there */
	UKP_ACTION_SLOT = 8,   /* slots are overwritten, also where calling in place could be */
	/*
	 * Also in a forked child that has its channel's memory: if the flags from this
	 * bit on are no more than struct ukp_priv's chans was when it was forked.
	 */
	UKP_ACTION_FOLLOW = 16,
	UKP_ACTION_CHANS_SHIFT = 16,
};

struct ukp_action {
	uint64_t fn;  /* address in the target: enum ukp_agent_fn made absolute */
	uint64_t ctx; /* what it gets: an address in the target */
	uint32_t next;
	uint32_t flags; /* UKP_ACTION_* */
};

struct ukp_ctl {
	uint64_t magic;
	uint32_t version;
	uint32_t flags;
	uint64_t self; /* its address in the target */
	uint64_t size;
	uint64_t priv;       /* struct ukp_priv */
	uint32_t sites;      /* offset of the table in force (release/acquire) */
	uint32_t tid_off;    /* of the tid from fs base; 0: unknown */
	uint64_t stubs;      /* address of the first */
	uint32_t stub_chunk; /* bytes of the mapped file */
	uint32_t stubs_per_chunk;
	uint32_t nr_instances;
	int32_t broker;      /* its pid, informative */
	uint64_t text;       /* address of the agent */
	uint64_t start_time; /* of the target, as /proc/PID/stat has it */
	uint64_t restorer;   /* the program's own, for dispositions it sets meanwhile */
	uint32_t detours;    /* offset of the newest struct ukp_detour, by next to the others */
	uint32_t next_free;  /* the broker's bump allocator */
	uint32_t nr_mappings;
	uint64_t mask[UKP_NR_MASKS]; /* as they were, with SIGTRAP */
	uint32_t nr_masks;
	uint32_t runner; /* offset from text of what makes system calls for us */
	uint64_t taken;  /* bit n-1: disposition of signal n is ours */
	struct ukp_mapping mapping[UKP_NR_MAPPINGS];
	/* Libraries that come and go, agent/in/loader.c. */
	uint32_t loader;    /* UKP_LOADER_* */
	uint32_t load_seq;  /* counts them; a futex of the broker's */
	uint32_t load_done; /* the last one that the broker has seen; a futex of the program's */
};

static inline void *ukp_ctl_at(const struct ukp_ctl *ctl, uint32_t off)
{
	return (char *)(uintptr_t)ctl + off;
}

/*
 * A stub:
 *
 *	way in	lea 120(%rsp),%rsp
 *		call *-8(%rsp)		pushes the stub over what it has read
 *	stub	lea -8(%rsp),%rsp	its address is an instance's return address
 *		call common		pushes it below that word, which stays as it is
 *		ret
 */
#define UKP_STUB_SIZE 24
#define UKP_STUB_CALL 10  /* bytes from the stub to behind its call */
#define UKP_STUB_WAY_IN 9 /* bytes from there to the stub */

/* The return stub of an instance.  Few are in use mostly, and all in the first file. */
static inline uint64_t ukp_ctl_stub(const struct ukp_ctl *ctl, uint32_t i)
{
	const uint64_t first = ctl->stubs + UKP_STUB_WAY_IN;

	if (i < ctl->stubs_per_chunk)
		return first + (uint64_t)i * UKP_STUB_SIZE;
	return first + (uint64_t)(i / ctl->stubs_per_chunk) * ctl->stub_chunk +
	       i % ctl->stubs_per_chunk * UKP_STUB_SIZE;
}

static inline uint32_t ukp_site_hash(uint64_t addr)
{
	return (uint32_t)((addr * 0x9e3779b97f4a7c15ull) >> 40);
}

#endif
