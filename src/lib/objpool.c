/* SPDX-License-Identifier: MIT */
/*
 * <ukprobes/objpool.h>: making and ending pools.  One mapping holds the
 * engine's pool of indices and behind it the objects.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/objpool.h"
#include "lib/hit/pool.h"
#include "patch/area.h"

#define MAX_SHARDS 1024

static uint32_t shards(void)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	return n < 1 ? 1 : n > MAX_SHARDS ? MAX_SHARDS : (uint32_t)n;
}

static int power_of_two(int n)
{
	int p = 1;

	while (p < n)
		p *= 2;
	return p;
}

static int map(struct objpool_head *p)
{
	uint32_t nr_shards = (uint32_t)p->nr_possible_cpus;
	uint64_t own = area_page_up(ukp_objpool_size((uint32_t)p->nr_objs, nr_shards));
	void *mem;

	p->ukp_size = own + (uint64_t)p->nr_objs * (uint64_t)p->obj_size;
	mem = mmap(NULL, p->ukp_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return -ENOMEM;
	p->ukp_pool = mem;
	p->ukp_objs = (char *)mem + own;
	ukp_objpool_init(p->ukp_pool, (uint32_t)p->nr_objs, nr_shards);
	return 0;
}

static void unmap(struct objpool_head *p)
{
	munmap(p->ukp_pool, p->ukp_size);
	p->ukp_pool = NULL;
}

static int init_objects(struct objpool_head *p, objpool_init_obj_cb objinit)
{
	int i, ret = 0;

	for (i = 0; objinit && i < p->nr_objs && !ret; i++)
		ret = objinit(p->ukp_objs + (size_t)i * (size_t)p->obj_size, p->context);
	if (ret)
		unmap(p);
	return ret;
}

int objpool_init(struct objpool_head *pool, int nr_objs, int object_size, gfp_t gfp, void *context,
                 objpool_init_obj_cb objinit, objpool_fini_cb release)
{
	int ret;

	if (nr_objs <= 0 || (unsigned long)nr_objs > OBJPOOL_NR_OBJECT_MAX || object_size <= 0 ||
	    (unsigned long)object_size > OBJPOOL_OBJECT_SIZE_MAX)
		return -EINVAL;
	memset(pool, 0, sizeof(*pool));
	pool->nr_objs = nr_objs;
	pool->obj_size = (object_size + 7) & ~7;
	pool->nr_possible_cpus = (int)shards();
	pool->capacity = power_of_two(nr_objs);
	pool->gfp = gfp;
	pool->context = context;
	pool->release = release;
	pool->flags = area_cpu_flags() & UKP_CTL_RDPID ? POOL_RDPID : 0;
	ret = map(pool);
	if (!ret)
		ret = init_objects(pool, objinit);
	if (!ret)
		pool->ref = (unsigned int)nr_objs + 1;
	return ret;
}

void *objpool_pop(struct objpool_head *pool)
{
	return pool_pop(pool);
}

int objpool_push(void *obj, struct objpool_head *pool)
{
	return pool_push(pool, obj) ? 0 : -EINVAL;
}

void objpool_free(struct objpool_head *pool)
{
	if (!pool->ukp_pool)
		return;
	unmap(pool);
	if (pool->release)
		pool->release(pool, pool->context);
}

int objpool_drop(void *obj, struct objpool_head *pool)
{
	if (!obj || !pool)
		return -EINVAL;
	if (!pool_put(pool, 1))
		return -EAGAIN;
	objpool_free(pool);
	return 0;
}

void objpool_fini(struct objpool_head *pool)
{
	unsigned int in = 1; /* the pool's own reference */

	if (!pool->ukp_pool)
		return;
	while (pool_pop(pool))
		in++;
	if (pool_put(pool, in))
		objpool_free(pool);
}
