/* SPDX-License-Identifier: MIT */
/* Latency functions: the time between entry and return goes into a histogram. */
#include "engine/arch.h"
#include "engine/follow.h"
#include "engine/hist_in.h"

int ukp_latency_entry(struct ukp_hit *hit, uint64_t ctx)
{
	struct ukp_latency *l = (struct ukp_latency *)ctx;

	if (!__atomic_load_n(&l->enabled, __ATOMIC_RELAXED))
		return 0;
	ukp_hit_time(hit);
	ukp_follow(hit, ukp_latency_return, ctx, 0,
	           ukp_hit_stat((struct ukp_chan *)l->chan, hit->cpu, l->id));
	return 0;
}

/* Another has the shard. */
static __attribute__((noinline)) void add_openly(const struct ukp_latency *l, uint64_t ticks,
                                                 uint64_t retval)
{
	struct ukp_hist *open = (struct ukp_hist *)(l->hist + l->nr_shards * l->stride);

	hist_add_call(open, ticks, retval, l->kind, 0);
}

/* What is in the histogram is what a record is elsewhere: it isn't counted twice. */
int ukp_latency_return(struct ukp_hit *hit, uint64_t ctx)
{
	const struct ukp_latency *l = (const struct ukp_latency *)ctx;
	uint64_t ticks, retval;
	struct ukp_hist *hist;
	uint32_t kind;

	if (__builtin_expect(hit->flags & UKP_HIT_UNWOUND, 0)) {
		ukp_count(&ukp_hit_stat((struct ukp_chan *)l->chan, hit->cpu, l->id)
		                   ->miss[UKP_MISS_UNWOUND]);
		return 0;
	}
	ukp_hit_time(hit);
	ticks = hit->tsc - hit->inst->tsc;
	hist = (struct ukp_hist *)(l->hist + ukp_shard(hit->cpu, l->nr_shards) * l->stride);
	/* What is loaded behind a locked instruction waits for it. */
	retval = hit->regs->ax;
	kind = l->kind;
	if (__builtin_expect(hist_take(hist), 1)) {
		hist_add_call(hist, ticks, retval, kind, 1);
		hist_give(hist);
	} else {
		add_openly(l, ticks, retval);
	}
	return 0;
}
