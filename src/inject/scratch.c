/* SPDX-License-Identifier: MIT */
/* Memory of the target that is lent to the arguments of calls. */
#include "inject/internal.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

/* Is it memory that the program itself may write?  mem would write to any. */
static void *borrow(pid_t tid, uint64_t addr, size_t len)
{
	struct iovec there = { (void *)addr, len };
	struct iovec here = { malloc(len), len };

	if (here.iov_base && process_vm_readv(tid, &here, 1, &there, 1, 0) == (ssize_t)len &&
	    process_vm_writev(tid, &here, 1, &there, 1, 0) == (ssize_t)len)
		return here.iov_base;
	free(here.iov_base);
	return NULL;
}

static uint64_t lend(struct remote *r, uint64_t addr, size_t len, void *saved)
{
	if (r->nr_scratch == SCRATCH_MAX) {
		free(saved);
		return 0;
	}
	r->scratch[r->nr_scratch++] = (struct scratch){ addr, len, saved };
	return addr;
}

uint64_t scratch_on_stack(struct inject *t, size_t len)
{
	struct remote *r = &t->remote;
	uint64_t addr = (r->low - len) & ~15ull, low = r->low;
	void *saved;

	if (addr >= low)
		return 0;
	saved = borrow(t->threads[r->worker].pub.tid, addr, low - addr);
	if (!saved || !lend(r, addr, low - addr, saved))
		return 0;
	r->low = addr;
	return addr;
}

uint64_t inject_scratch(struct inject *t, size_t len)
{
	struct remote *r = &t->remote;
	uint64_t addr;
	long mapped;

	if (!r->active || r->dead || r->nr_scratch == SCRATCH_MAX || !len)
		return 0;
	addr = scratch_on_stack(t, len);
	if (addr)
		return addr;
	mapped = inject_syscall(t, SYS_mmap, 0, len, PROT_READ | PROT_WRITE,
	                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mapped < 0 && mapped > -4096)
		return 0;
	addr = lend(r, mapped, len, NULL);
	if (!addr)
		inject_syscall(t, SYS_munmap, mapped, len, 0, 0, 0, 0);
	return addr;
}

void scratch_unmap(struct inject *t)
{
	struct remote *r = &t->remote;
	size_t i;

	for (i = 0; i < r->nr_scratch; i++)
		if (!r->scratch[i].saved)
			inject_syscall(t, SYS_munmap, r->scratch[i].addr, r->scratch[i].len, 0, 0,
			               0, 0);
}

/* The newest first: those on the stack lie side by side. */
void scratch_return(struct inject *t)
{
	struct remote *r = &t->remote;

	while (r->nr_scratch) {
		struct scratch *s = &r->scratch[--r->nr_scratch];

		if (s->saved)
			inject_write(t, s->addr, s->saved, s->len);
		free(s->saved);
	}
}
