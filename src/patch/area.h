/* SPDX-License-Identifier: MIT */
/*
 * The memory that the engine works from, as whoever brings it into a process
 * lays it out: the broker into another one, the library into its own.
 */
#ifndef UKP_PATCH_AREA_H
#define UKP_PATCH_AREA_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/ctl.h"
#include "wire/frames.h"
#include "wire/instance.h"

#define AREA_PAGE 4096ull
#define AREA_INSTANCES (1u << 20)
#define AREA_FRAMES (1u << 17)
#define AREA_SHARDS 16
#define AREA_STUB_CHUNK (2u << 20)
/* The last 32 bytes are the way out. */
#define AREA_STUBS_PER_CHUNK ((AREA_STUB_CHUNK - 32) / UKP_STUB_SIZE)
#define AREA_CHUNKS ((AREA_INSTANCES + AREA_STUBS_PER_CHUNK - 1) / AREA_STUBS_PER_CHUNK)

#define AREA_WIPEONFORK 18 /* MADV_WIPEONFORK */

static inline uint64_t area_page_up(uint64_t n)
{
	return (n + AREA_PAGE - 1) & ~(AREA_PAGE - 1);
}

/* The heads of the private mapping (at 0) and of its pool (at off_pool). */
void area_layout(struct ukp_priv *priv, struct ukp_objpool *pool, uint32_t nr_instances);
/*
 * Room behind them for records by frame, whose table's head (at off_frames) is t.
 * Each call of ours that is on its way by exit sites has one.
 */
void area_frames(struct ukp_priv *priv, struct ukp_frames *t, uint32_t nr_frames);

/*
 * What no debugger asks a core for (MADV_DONTDUMP): all but the sites and detours, the
 * heads, and the instances that are in use mostly.
 */
#define AREA_LEFT_OUT 3
struct area_piece {
	bool priv;         /* of the private mapping, not the control area */
	uint64_t off, len; /* whole pages */
};
void area_left_out(const struct ukp_priv *priv, struct area_piece out[AREA_LEFT_OUT]);

/*
 * One file with as many stubs as it holds and their way out, mapped again and
 * again: the stubs' calls are relative and the address at the end absolute, so
 * every mapping of it is right.  buf: AREA_STUB_CHUNK bytes.
 */
void area_stubs(unsigned char *buf, uint64_t return_entry);

/* UKP_CTL_* of the CPU that this runs on. */
uint32_t area_cpu_flags(void);

/* How our handler of sig is installed over old. */
uint64_t area_signal_flags(int sig, const struct ukp_sigaction *old);

/* Names the site at off in a table of mask + 1 entries, behind older ones of its address. */
void area_table_put(struct ukp_site_table *table, uint32_t mask, uint64_t addr, uint32_t off);

#endif
