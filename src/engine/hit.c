/* SPDX-License-Identifier: MIT */
/* From an address to its site, and the walk over the site's actions. */
#include "engine/hit.h"

#include "engine/arch.h"

struct ukp_site *ukp_site_find(const struct ukp_ctl *ctl, uint64_t addr)
{
	const struct ukp_site_table *t;
	uint32_t i, n, off;

	/* Acquire: the table's content is older than its publication. */
	off = __atomic_load_n(&ctl->sites, __ATOMIC_ACQUIRE);
	if (!off)
		return NULL;
	t = ukp_ctl_at(ctl, off);
	i = ukp_site_hash(addr);
	for (n = 0; n <= t->mask; n++, i++) {
		struct ukp_site *s;

		/* Acquire: an entry is stored after the site it names. */
		off = __atomic_load_n(&t->site[i & t->mask], __ATOMIC_ACQUIRE);
		if (!off)
			return NULL;
		s = ukp_ctl_at(ctl, off);
		if (s->addr == addr)
			return s;
	}
	return NULL;
}

int ukp_hit_run(struct ukp_hit *hit)
{
	uint32_t off;

	/* Acquire: an action is complete before it is linked. */
	off = __atomic_load_n(&hit->site->action, __ATOMIC_ACQUIRE);
	while (off) {
		const struct ukp_action *a = ukp_ctl_at(hit->ctl, off);
		int flow = 0;

		hit->action = a;
		if (!(hit->flags & UKP_HIT_CHILD) || (a->flags & UKP_ACTION_ALWAYS))
			flow = ((ukp_action_fn)a->fn)(hit, a->ctx);
		if (flow)
			return flow;
		off = __atomic_load_n(&a->next, __ATOMIC_ACQUIRE);
	}
	return 0;
}

struct ukp_stat *ukp_hit_stat(const struct ukp_chan *chan, uint32_t cpu, uint32_t row)
{
	uint64_t shard = ukp_shard(cpu, chan->nr_shards);

	return (struct ukp_stat *)((char *)chan + chan->off_stats) + shard * chan->nr_stats + row;
}
