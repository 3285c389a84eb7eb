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
 *
 * A thread that works beside the tracer makes a pause meanwhile.  It would keep its CPU
 * for a slice of milliseconds, and a thread that is to stop, or to work for us in the
 * target, may be waiting for that very CPU; being the last by its policy doesn't help, as
 * only who wakes up goes before such a thread, not who was waiting already.
 */
#include "inject/internal.h"

#include "base/pause.h"

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

void inject_beside(struct inject *t, struct pause *pause)
{
	if (t->beside)
		pause_end(t->beside);
	t->beside = pause;
	if (pause && t->hurries)
		pause_begin(pause);
}

void hurry(struct inject *t)
{
	t->hurries = true;
	if (t->beside)
		pause_begin(t->beside);
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
	t->hurries = false;
	if (t->beside)
		pause_end(t->beside);
}
