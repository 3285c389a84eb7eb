/* SPDX-License-Identifier: MIT */
/* Calls that are followed: how many, by what, and where their data lies. */
#include "engine/frames.h"
#include "engine/orphans.h"
#include "engine/rethook.h"
#include "lib/hit/hit.h"

/* Buckets of records, or instances, that an entry looks through when there are maxactive. */
#define LOOK_THROUGH 64

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

/* Behind the instances are the records, in one order. */
void *calls_data(const struct ukp_ctl *ctl, const struct ukp_calls *c, struct ukp_instance *inst)
{
	struct ukp_priv *priv = (struct ukp_priv *)ctl->priv;
	struct ukp_instance *all = (struct ukp_instance *)((char *)priv + priv->off_instances);
	uint64_t index;

	if (!c->memory)
		return inst->data;
	index = ukp_frame_index(ctl, inst);
	index = index == UINT32_MAX ? (uint64_t)(inst - all) : ctl->nr_instances + index;
	return (void *)(c->memory + index * c->stride);
}

struct orphan {
	const struct ukp_ctl *ctl;
	uint64_t ctx;
};

static bool is_orphan(const struct ukp_instance *inst, void *arg)
{
	const struct orphan *o = arg;

	return __atomic_load_n(&inst->key, __ATOMIC_RELAXED) == o->ctx &&
	       ukp_frame_is_dead(inst, (void *)o->ctl);
}

/* There are maxactive: are there such among them as won't come back? */
static bool find_room(struct ukp_hit *hit, struct ukp_calls *c, const struct lib_returns *how,
                      uint64_t ctx)
{
	struct orphan o = { hit->ctl, ctx };

	if (how->by != PLAN_BY_EXIT) {
		hit_cpu(hit);
		ukp_orphans_room(hit, LOOK_THROUGH);
		return calls_take(c);
	}
	ukp_frame_drop(hit, ctx);
	if (calls_take(c))
		return true;
	if (!(hit->flags & UKP_HIT_NOREAD))
		ukp_frames_drop(hit, __atomic_fetch_add(&c->looked, LOOK_THROUGH, __ATOMIC_RELAXED),
		                LOOK_THROUGH, is_orphan, &o);
	return calls_take(c);
}

struct ukp_instance *calls_follow(struct ukp_hit *hit, struct ukp_calls *c,
                                  const struct lib_returns *how, ukp_action_fn fn, uint64_t ctx)
{
	struct ukp_instance *inst;
	enum ukp_miss why;

	if (!calls_take(c) && !find_room(hit, c, how, ctx))
		return NULL;
	if (how->by == PLAN_BY_EXIT) {
		inst = ukp_frame_get(hit, fn, ctx, &why);
	} else {
		hit_cpu(hit);
		inst = ukp_rethook_get(hit, fn, ctx, &why);
	}
	if (!inst)
		calls_give(c);
	return inst;
}

void calls_hook(struct ukp_hit *hit, const struct lib_returns *how, struct ukp_instance *inst)
{
	if (how->by == PLAN_BY_EXIT)
		ukp_frame_hook(hit, inst);
	else
		ukp_rethook_hook(hit, inst);
}

void calls_decline(struct ukp_hit *hit, struct ukp_calls *c, const struct lib_returns *how,
                   struct ukp_instance *inst)
{
	if (how->by == PLAN_BY_EXIT)
		ukp_frame_put(hit->ctl, inst);
	else
		ukp_rethook_put(hit->ctl, inst);
	calls_give(c);
}

void calls_missed(struct ukp_hit *hit, const struct lib_returns *how, uint64_t ctx)
{
	if (how->by == PLAN_BY_EXIT)
		ukp_frame_drop(hit, ctx);
}
