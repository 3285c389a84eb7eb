/* SPDX-License-Identifier: MIT */
/*
 * Exit sites on a hit: whose calls end here.  The engine finds each call's
 * record by its frame; without one its entry was a miss, or came before the
 * probe.
 */
#include "engine/frames.h"
#include "lib/hit/guard.h"

void ukp_lib_exits(struct ukp_hit *hit, struct lib_site *s)
{
	struct lib_exit *x;
	struct guard g;
	enum guard_state state = guard_on_kind(&g, GUARD_EXIT);

	/* Without a guard of this thread's, those in the list may go at any moment. */
	if (state == GUARD_FULL) {
		ukp_count(&hit->site->nmissed);
		return;
	}
	/* Acquire: an exit is complete before it is linked. */
	for (x = __atomic_load_n(&s->exits, __ATOMIC_ACQUIRE); x && state != GUARD_QUIET;
	     x = __atomic_load_n(&x->next, __ATOMIC_ACQUIRE))
		ukp_exit_hit(hit, x->ctx);
	if (state == GUARD_ON)
		guard_off(&g);
}
