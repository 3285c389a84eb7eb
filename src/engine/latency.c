/* SPDX-License-Identifier: MIT */
/* Latency functions: the time between entry and return goes into a histogram. */
#include "engine/arch.h"
#include "engine/follow.h"
#include "engine/hist.h"

int ukp_latency_entry(struct ukp_hit *hit, uint64_t ctx)
{
	struct ukp_latency *l = (struct ukp_latency *)ctx;
	struct ukp_stat *stat;
	enum ukp_miss why;

	if (!__atomic_load_n(&l->enabled, __ATOMIC_RELAXED))
		return 0;
	ukp_hit_time(hit);
	stat = ukp_hit_stat((struct ukp_chan *)l->chan, hit->cpu, l->id);
	ukp_count(&stat->hits);
	if (!ukp_follow(hit, ukp_latency_return, ctx, 0, &why))
		ukp_count(&stat->miss[why]);
	return 0;
}

int ukp_latency_return(struct ukp_hit *hit, uint64_t ctx)
{
	struct ukp_latency *l = (struct ukp_latency *)ctx;
	struct ukp_stat *stat = ukp_hit_stat((struct ukp_chan *)l->chan, hit->cpu, l->id);
	struct ukp_hist *hist, *open;

	if (hit->flags & UKP_HIT_UNWOUND) {
		ukp_count(&stat->miss[UKP_MISS_UNWOUND]);
		return 0;
	}
	ukp_hit_time(hit);
	hist = (struct ukp_hist *)(l->hist + ukp_shard(hit->cpu, l->nr_shards) * l->stride);
	open = (struct ukp_hist *)(l->hist + l->nr_shards * l->stride);
	/* What is in the histogram is what a record is elsewhere: it isn't counted twice. */
	ukp_hist_add(hist, open, hit->tsc - hit->inst->tsc, hit->regs->ax, l->kind);
	return 0;
}
