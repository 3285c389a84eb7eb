/* SPDX-License-Identifier: MIT */
/*
 * One call that is on its way: made at a function's entry, used at its return.
 * The same record serves every mechanism that catches returns.
 *
 * An instance with a stub has the return address of its frame replaced by the
 * stub of its index.  Further return probes of the same frame (a second probe,
 * or a tail call) hang on that one as a chain, newest first, and have no stub
 * in use: two stubs on one frame would confuse unwinders.
 *
 * Who writes: the thread that made it, until it is freed; the broker while all
 * threads stand still.
 */
#ifndef UKP_WIRE_INSTANCE_H
#define UKP_WIRE_INSTANCE_H

#include <stdint.h>

#include "wire/event.h"
#include "wire/objpool.h"

enum ukp_instance_state {
	UKP_INST_FREE,
	UKP_INST_LIVE,  /* its stub is the frame's return address */
	UKP_INST_CHAIN, /* hangs on a live one */
};

/*
 * Its action is chosen and runs.  Set before fn is read: whoever finds it clear
 * while the thread stands still may still change fn.
 */
#define UKP_INST_RETURNING (1u << 31)

/* The function is called by the stub's way in (engine/rethook.h). */
#define UKP_INST_CALLED (1u << 30)
/*
 * The stub is not in its word yet: that holds the return address, or for two
 * instructions before a call in place the address of the function's copy.  With
 * CALLED it stays set, for nobody is there any more to clear it.
 */
#define UKP_INST_COMING (1u << 29)

/* In whose process it was made: ukp_hit_process().  Others that have a copy don't run it. */
#define UKP_INST_PROCESS_SHIFT 16
#define UKP_INST_PROCESS 0x1fffu

struct ukp_instance {
	uint64_t ret_addr; /* where the function really returns to */
	uint64_t frame;    /* address of the stack word that held it */
	uint64_t fn;       /* action at the return */
	uint64_t ctx;      /* its context */
	uint64_t func;     /* entry address of the probed function */
	uint64_t tsc;      /* at entry */
	union {
		uint64_t thread; /* of a stub: whose call, ukp_arch_thread() */
		uint64_t key;    /* in a table of frames: who asked */
	};
	uint32_t state;
	uint32_t chain; /* LIVE: newest chained index + 1; CHAIN: next; 0: end */
	uint32_t flags; /* UKP_HIT_* at entry, UKP_INST_* */
	union {
		uint32_t gen;   /* of a record in a table of frames: grows with each use */
		uint32_t bound; /* of a stub: it only ever leads to this ret_addr (engine/orphans.h)
		                 */
	};
	uint64_t data[UKP_EDATA_MAX];
};

#define UKP_NR_SIGNALS 32
#define UKP_NR_SET_MASKS 64
#define UKP_NR_BOUND 4096

/* Indices that lead to one return address only; they are free. */
struct ukp_bound {
	uint64_t ret_addr; /* 0: none yet */
	uint64_t head;     /* of a stack of the pool's */
};

/* The kernel's struct sigaction. */
struct ukp_sigaction {
	uint64_t handler;
	uint64_t flags;
	uint64_t restorer;
	uint64_t mask;
};

/* A private mapping of the target. */
struct ukp_priv {
	/* page 0, wiped on fork */
	uint64_t alive; /* in the process that was attached to: its pid as it sees it itself */
	uint64_t child; /* tells a forked child from its parents; 0: not asked yet, or the target */
	unsigned char pad[4096 - 16];
	/* the pool, then at these offsets from the start of the mapping: */
	uint64_t off_instances;
	uint64_t off_pool;
	uint64_t size;
	uint64_t any_bound; /* see below */
	/* The program's own dispositions of the signals that we took: each process has its own. */
	struct ukp_sigaction old[UKP_NR_SIGNALS];
	uint64_t off_frames; /* struct ukp_frames, as the offsets above; 0: none */
	uint64_t chans;      /* how many channels have been mapped; a child's: by its fork */
	/* engine/orphans.h */
	struct ukp_bound bound[UKP_NR_BOUND]; /* open addressing */
	uint64_t looked;                      /* how many looks at instances there have been */
	uint64_t spared;                      /* how many indices may be taken with few looks */
	/*
	 * Bit n-1: signal n, none of those that we took, has a handler whose mask we took
	 * SIGTRAP from, unless it was changed since: old says what it was.
	 */
	uint64_t opened;
	/* Masks that threads set, with UKP_SIGNALS_OPEN in them, and libc's sigset_t without; 0:
	 * none. */
	uint64_t mask[UKP_NR_SET_MASKS], set[UKP_NR_SET_MASKS][16];
	uint64_t unread; /* where the kernel says an old mask that the program is told otherwise */
};

#endif
