/* SPDX-License-Identifier: MIT */
/*
 * <ukprobes/objpool.h> for handlers, on the engine's pool of indices: object i
 * lies at i times the size.
 */
#include "engine/arch.h"
#include "engine/objpool.h"
#include "lib/hit/pool.h"

static uint32_t cpu_of(const struct objpool_head *p)
{
	return ukp_arch_cpu_by(p->flags & POOL_RDPID);
}

void *pool_pop(struct objpool_head *p)
{
	uint32_t index = ukp_objpool_pop(p->ukp_pool, cpu_of(p));

	return index == UKP_OBJPOOL_NONE ? NULL : p->ukp_objs + (uint64_t)index * p->obj_size;
}

bool pool_push(struct objpool_head *p, void *obj)
{
	uint64_t off = (uint64_t)((char *)obj - p->ukp_objs), index = off / p->obj_size;

	if (index >= (uint64_t)p->nr_objs || off % p->obj_size)
		return false;
	ukp_objpool_push(p->ukp_pool, cpu_of(p), (uint32_t)index);
	return true;
}

bool pool_put(struct objpool_head *p, unsigned int n)
{
	/* Release and acquire: who takes the last reference sees all that others did before. */
	return !__atomic_sub_fetch(&p->ref, n, __ATOMIC_ACQ_REL);
}
