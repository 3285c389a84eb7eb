/* SPDX-License-Identifier: MIT */
/*
 * A hit that is only counted: one locked add on this CPU's counter of the place.
 *
 * Returns are counted where they return.  The call that is on its way names the
 * event that all places of its definition share, as recorded ones do, so that
 * whoever takes the definition out finds it; its place's counter is its data.
 */
#include "engine/arch.h"
#include "engine/follow.h"
#include "engine/hit.h"
#include "engine/rethook.h"

static void count(const struct ukp_hit *hit, const struct ukp_counter *c)
{
	ukp_count((uint64_t *)(c->counter + ukp_shard(hit->cpu, c->nr_shards) * c->stride));
}

int ukp_count_hit(struct ukp_hit *hit, uint64_t ctx)
{
	const struct ukp_counter *c = (const struct ukp_counter *)ctx;

	if (__atomic_load_n(&c->enabled, __ATOMIC_RELAXED))
		count(hit, c);
	return 0;
}

int ukp_count_entry(struct ukp_hit *hit, uint64_t ctx)
{
	const struct ukp_counter *c = (const struct ukp_counter *)ctx;

	if (__atomic_load_n(&c->enabled, __ATOMIC_RELAXED))
		ukp_event_follow(hit, (struct ukp_event *)c->event, ukp_count_return, ctx);
	return 0;
}

int ukp_count_return(struct ukp_hit *hit, uint64_t ctx)
{
	struct ukp_event *ev = (struct ukp_event *)ctx;
	struct ukp_stat *stat = ukp_hit_stat((struct ukp_chan *)ev->chan, hit->cpu, ev->id);

	if (!ukp_event_returned(hit, ev, stat))
		return 0;
	count(hit, (const struct ukp_counter *)hit->inst->data[0]);
	ukp_count(&stat->records);
	return 0;
}
