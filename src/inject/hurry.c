/* SPDX-License-Identifier: MIT */
/*
 * A tracer that waits for its turn makes the whole target wait, so it goes first for
 * as long as it holds: as a real-time thread of the lowest priority where it may, else
 * with the best nice value.  The latter is not enough by itself: a thread that the
 * tracer wakes, to stop it or to let it go, has its turn before a tracer that has just
 * had one, and keeps it for a slice.  Without the right to either, nothing changes.
 *
 * No flag resets it on a fork, as only the privileged may take that back; who holds
 * makes no children.
 */
#include "inject/internal.h"

#include <sched.h>
#include <sys/resource.h>

#define FIRST (-20) /* nice */

/* Before whom it goes already: real-time threads, deadlines. */
static bool may_wait(int policy)
{
	return policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE;
}

static bool set_policy(int policy, int priority)
{
	struct sched_param param = { .sched_priority = priority };

	return !sched_setscheduler(0, policy, &param);
}

void hurry(struct inject *t)
{
	t->pace = PACE_OWN;
	t->policy = sched_getscheduler(0);
	if (!may_wait(t->policy & ~SCHED_RESET_ON_FORK))
		return;
	if (set_policy(SCHED_FIFO | (t->policy & SCHED_RESET_ON_FORK), 1)) {
		t->pace = PACE_REAL_TIME;
		return;
	}
	errno = 0;
	t->nice = getpriority(PRIO_PROCESS, 0);
	if (!errno && !setpriority(PRIO_PROCESS, 0, FIRST))
		t->pace = PACE_NICE;
}

void relax(struct inject *t)
{
	if (t->pace == PACE_REAL_TIME)
		set_policy(t->policy, 0);
	else if (t->pace == PACE_NICE)
		setpriority(PRIO_PROCESS, 0, t->nice);
	t->pace = PACE_OWN;
}
