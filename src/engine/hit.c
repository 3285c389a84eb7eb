/* SPDX-License-Identifier: MIT */
/* From an address to its site. */
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
