/* SPDX-License-Identifier: MIT */
/*
 * A tracer that waits for its turn makes the whole target wait, so it has the best nice
 * value for as long as it holds, where it may: it may then be as much before others as
 * the scheduler lets anybody, and is never without a turn.
 *
 * Not as a real-time thread, though that goes before all that woke it: real-time threads
 * have a budget together, and whose CPU has used it up (another such thread that spins)
 * stands still until the next second, or for as long as that one spins, and with it the
 * target.  That was seen to last for minutes.
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
#include <sys/syscall.h>

#define FIRST (-20)       /* nice */
#define SLICE_NS 100000ul /* who asks for short ones goes before others, since Linux 6.12 */

/* sched_setattr()'s, which libc doesn't have. */
struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/* Of a thread of the normal policy; 0 is the kernel's own slice. */
static void set_slice(int nice, uint64_t ns)
{
	struct attr a = { .size = sizeof(a), .policy = SCHED_OTHER, .nice = nice, .runtime = ns };

	if (sched_getscheduler(0) == SCHED_OTHER)
		syscall(SYS_sched_setattr, 0, &a, 0);
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
	errno = 0;
	t->nice = getpriority(PRIO_PROCESS, 0);
	t->first = !errno && t->nice > FIRST && !setpriority(PRIO_PROCESS, 0, FIRST);
	set_slice(t->first ? FIRST : t->nice, SLICE_NS);
}

void relax(struct inject *t)
{
	if (t->first)
		setpriority(PRIO_PROCESS, 0, t->nice);
	set_slice(t->nice, 0);
	t->first = false;
	t->hurries = false;
	if (t->beside)
		pause_end(t->beside);
}
