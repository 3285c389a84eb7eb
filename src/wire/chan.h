/* SPDX-License-Identifier: MIT */
/*
 * A channel: the memory that one client and the target share.  A memfd made in
 * the target, mapped there and by the client that reads it.
 *
 *   page 0   struct ukp_chan, written once before the first hit
 *   stats    struct ukp_stat[nr_shards][nr_stats], one row a probe, one shard a
 *            CPU (index cpu % nr_shards); the sum over shards is exact
 *   counters uint64_t[nr_shards][nr_counters], one a place that is only counted
 *   hists    allotted by the broker, struct ukp_hist[nr_shards + 1] each (wire/hist.h)
 *   rings    nr_rings of ukp_ring_stride() bytes
 *
 * The client trusts nothing in it: it keeps its own copy of the geometry and
 * reads records and counters through wire/check.h only.
 */
#ifndef UKP_WIRE_CHAN_H
#define UKP_WIRE_CHAN_H

#include <stdint.h>

#define UKP_CHAN_MAGIC 0x6e616863706b75ull /* "ukpchan" */
#define UKP_CHAN_VERSION 3
#define UKP_CHAN_STATS 65536 /* events and latency functions a channel */
#define UKP_CHAN_HISTS 1024
#define UKP_CHAN_COUNTERS (1u << 20) /* places that are only counted */
#define UKP_CHAN_OFF_STATS 4096      /* as the broker lays it out */

enum ukp_miss {
	UKP_MISS_MAXACTIVE,  /* a fixed maxactive was reached */
	UKP_MISS_ARENA,      /* no instance left in the arena */
	UKP_MISS_RING,       /* the ring was full */
	UKP_MISS_RECURSION,  /* hit inside a handler */
	UKP_MISS_UNRETURNED, /* still inside the function at detach */
	UKP_MISS_UNWOUND,    /* left by an exception or longjmp */
	UKP_MISS_FRAME,      /* the return slot could not be replaced */
	UKP_MISS_NR,
};

struct ukp_stat {
	uint64_t hits;
	uint64_t records;
	uint64_t miss[UKP_MISS_NR];
	uint64_t pad[16 - 2 - UKP_MISS_NR];
};

struct ukp_chan {
	uint64_t magic;
	uint32_t version;
	uint32_t nr_shards;
	uint32_t nr_stats;
	uint32_t nr_rings;
	uint32_t nr_subs;
	uint32_t sub_shift;
	uint32_t nr_counters;
	uint32_t reserved;
	uint64_t off_stats;
	uint64_t off_counters;
	uint64_t off_hists;
	uint64_t off_rings;
	uint64_t ring_stride;
	uint64_t size; /* of the whole */
};

static inline uint32_t ukp_chan_hist_shards(const struct ukp_chan *c)
{
	return c->nr_shards + 1;
}

/* In the control area: what counting a place's hits, or its returns, needs. */
struct ukp_counter {
	uint64_t counter; /* address of shard 0's in the target */
	uint64_t stride;  /* bytes to the next shard's */
	uint64_t event;   /* returns: address of what all places of a definition share */
	uint32_t nr_shards;
	uint32_t enabled;
};

#endif
