/* SPDX-License-Identifier: MIT */
/* Memory of the calls that are followed (hit/calls.c). */
#include <errno.h>
#include <sys/mman.h>

#include "lib/lib.h"
#include "patch/area.h"

int calls_init(struct ukp_calls *c, size_t len, int maxactive)
{
	void *p;

	*c = (struct ukp_calls){ .maxactive = maxactive > 0 ? (uint64_t)maxactive : 0 };
	if (len <= sizeof(((struct ukp_instance *)0)->data))
		return 0;
	/* A place for each instance and record there can be; only pages in use cost memory. */
	c->stride = (len + 15) & ~15ull;
	c->size = area_page_up(c->stride * (AREA_INSTANCES + own_records()));
	p = mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
	         -1, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	c->memory = (uint64_t)p;
	return 0;
}

void calls_free(struct ukp_calls *c)
{
	if (c->memory)
		munmap((void *)c->memory, c->size);
}
