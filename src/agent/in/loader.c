/* SPDX-License-Identifier: MIT */
/*
 * The function that the dynamic linker calls when libraries have come or gone,
 * probed while definitions wait for one: the broker is told, and has a moment to
 * plant them before constructors run.  The only hit that makes system calls, and
 * the only one that waits; the thread holds the linker's lock meanwhile.
 */
#include "engine/arch.h"
#include "engine/hit.h"

enum { NR_futex = 202, FUTEX_WAIT = 0, FUTEX_WAKE = 1 };

/* 20 times 5 ms; a signal shortens one. */
#define WAITS 20
#define WAIT_NS 5000000

#pragma GCC visibility push(hidden)
int ukp_loader_hit(struct ukp_hit *hit, uint64_t ctx);
#pragma GCC visibility pop

/* A broker that is killed meanwhile answers no more. */
static void await(struct ukp_ctl *ctl, uint32_t seq)
{
	const int64_t rest[2] = { 0, WAIT_NS };
	unsigned int i;

	for (i = 0; i < WAITS && __atomic_load_n(&ctl->loader, __ATOMIC_RELAXED); i++) {
		/* Acquire: what it planted by then is there. */
		uint32_t done = __atomic_load_n(&ctl->load_done, __ATOMIC_ACQUIRE);

		if ((int32_t)(done - seq) >= 0)
			return;
		ukp_arch_syscall(NR_futex, (long)&ctl->load_done, FUTEX_WAIT, done, (long)rest);
	}
}

int ukp_loader_hit(struct ukp_hit *hit, uint64_t ctx)
{
	struct ukp_ctl *ctl = hit->ctl;
	uint32_t seq;

	if (hit->flags & UKP_HIT_CHILD)
		return 0;
	seq = __atomic_add_fetch(&ctl->load_seq, 1, __ATOMIC_RELEASE);
	if (__atomic_load_n(&ctl->loader, __ATOMIC_RELAXED) != UKP_LOADER_WAITS)
		return 0;
	ukp_arch_syscall(NR_futex, (long)&ctl->load_seq, FUTEX_WAKE, 1, 0);
	await(ctl, seq);
	return 0;
}
