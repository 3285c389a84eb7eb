/* SPDX-License-Identifier: MIT */
/*
 * The pages that a first hit would fault in, some microseconds each, are made
 * present before it.  One byte of each is read through /proc/PID/mem, which maps
 * it there, too, shared memory with the right to write; nobody has to stand
 * still for it, and nothing is changed.  Only the beginnings: what thousands of
 * probes need comes with use.
 */
#include "agent/agent.h"
#include "patch/area.h"
#include "session/target.h"

#define WARM_MAX (256u << 10) /* of one area */
#define AHEAD (16u << 10)     /* of the control area's end, for what is planted next */
#define HISTS 8

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void touch(struct target *t, uint64_t addr, uint64_t len)
{
	uint64_t end = addr + least(len, WARM_MAX);
	unsigned char byte;

	for (addr &= ~(uint64_t)(AREA_PAGE - 1); addr < end; addr += AREA_PAGE)
		if (inject_read(t->inject, addr, &byte, 1))
			return; /* gone: whoever needs it will say so */
}

static void warm_shard(struct chan *c, uint32_t i)
{
	const struct ukp_chan *l = &c->layout;
	uint64_t hist = (sizeof(struct ukp_hist) + AREA_PAGE - 1) & ~(uint64_t)(AREA_PAGE - 1);
	uint32_t k;

	touch(c->target,
	      c->addr + l->off_stats + (uint64_t)i * l->nr_stats * sizeof(struct ukp_stat),
	      c->next_id * sizeof(struct ukp_stat));
	touch(c->target,
	      c->addr + l->off_counters + (uint64_t)i * l->nr_counters * sizeof(uint64_t),
	      least(c->next_counter * sizeof(uint64_t), AHEAD));
	for (k = 0; k < c->next_hist && k < HISTS; k++)
		touch(c->target,
		      c->addr + l->off_hists + ((uint64_t)k * ukp_chan_hist_shards(l) + i) * hist,
		      hist);
}

/* Nobody has a record yet: zeroes over zeroes, so that the pages are there to be written. */
static void make_present(struct target *t, uint64_t addr, uint64_t len)
{
	const unsigned char none = 0;
	uint64_t at;

	for (at = addr; at < addr + len; at = (at | (AREA_PAGE - 1)) + 1)
		if (inject_write(t->inject, at, &none, 1))
			return;
}

void target_warm_frames(struct target *t)
{
	struct ukp_frames f;
	uint64_t at = target_frames(t, &f);

	make_present(t, at + sizeof(f), (f.near + 1ull) * sizeof(struct ukp_frames_bucket));
	make_present(t, at + f.off_records,
	             (f.near + 1ull) * UKP_FRAMES_WORDS * sizeof(struct ukp_instance));
}

void target_warm_sites(struct target *t)
{
	touch(t, t->own.self, t->own.next_free + AHEAD);
}

void chan_warm(struct chan *c)
{
	const struct ukp_chan *l = &c->layout;
	uint64_t head = l->ring_stride - ((uint64_t)l->nr_subs << l->sub_shift);
	struct target *t = c->target;
	uint32_t i;

	touch(t, c->addr, sizeof(*l));
	for (i = 0; i < l->nr_shards; i++)
		warm_shard(c, i);
	/* Its head, and the first records. */
	for (i = 0; i < l->nr_rings; i++)
		touch(t, c->addr + l->off_rings + i * l->ring_stride, head + AREA_PAGE);
	target_warm_sites(t);
	touch(t, t->own.text, agent_size());
	/* The first stub, and what all of its file lead to. */
	touch(t, t->own.stubs, 1);
	touch(t, t->own.stubs + t->own.stub_chunk - 1, 1);
}
