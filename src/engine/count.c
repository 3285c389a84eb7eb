/* SPDX-License-Identifier: MIT */
/* A hit that is only counted: one locked add on this CPU's counter of the place. */
#include "engine/hit.h"

int ukp_count_hit(struct ukp_hit *hit, uint64_t ctx)
{
	const struct ukp_counter *c = (const struct ukp_counter *)ctx;

	if (__atomic_load_n(&c->enabled, __ATOMIC_RELAXED))
		ukp_count((uint64_t *)(c->counter + hit->cpu % c->nr_shards * c->stride));
	return 0;
}
