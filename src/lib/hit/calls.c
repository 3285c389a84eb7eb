/* SPDX-License-Identifier: MIT */
/* Calls that are followed: how many, and where their data lies. */
#include "lib/hit/hit.h"

bool calls_take(struct ukp_calls *c)
{
	if (__atomic_add_fetch(&c->active, 1, __ATOMIC_RELAXED) <= c->maxactive || !c->maxactive)
		return true;
	__atomic_sub_fetch(&c->active, 1, __ATOMIC_RELAXED);
	return false;
}

void calls_give(struct ukp_calls *c)
{
	/* Release: all that the call did with c comes before it may be freed. */
	__atomic_sub_fetch(&c->active, 1, __ATOMIC_RELEASE);
}

void *calls_data(const struct ukp_ctl *ctl, const struct ukp_calls *c, struct ukp_instance *inst)
{
	struct ukp_priv *priv = (struct ukp_priv *)ctl->priv;
	struct ukp_instance *all = (struct ukp_instance *)((char *)priv + priv->off_instances);

	if (!c->memory)
		return inst->data;
	return (void *)(c->memory + (uint64_t)(inst - all) * c->stride);
}
