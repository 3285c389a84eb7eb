/* SPDX-License-Identifier: MIT */
/*
 * Which threads have been outside the engine since something was published.
 * One that is born later has been: threads are not made in there.
 */
#include <errno.h>
#include <stdlib.h>

#include "session/leave.h"
#include "session/target.h"

/* Long enough that threads which wait for a CPU have been on it: each look is a stop. */
#define REST_US 1000
#define REST_MAX 32000
#define TRIES 12
#define RUN_MAX 16 /* threads in one stop */

void grace_start(struct grace *g)
{
	free(g->tid);
	*g = (struct grace){ .begun = false };
}

/* Threads keep their order: the search starts where the last one ended. */
static size_t find(const struct target *t, pid_t tid, size_t *hint)
{
	const size_t n = inject_nr_threads(t->inject);
	size_t i;

	for (i = 0; i < n; i++) {
		size_t at = (*hint + i) % n;

		if (inject_thread_at(t->inject, at)->tid == tid) {
			*hint = at + 1;
			return at;
		}
	}
	return n;
}

static void begin(struct target *t, struct grace *g)
{
	size_t i, n = inject_nr_threads(t->inject);

	g->tid = malloc((n + 1) * sizeof(*g->tid));
	g->begun = g->tid != NULL;
	for (i = 0; g->begun && i < n; i++)
		g->tid[g->nr++] = inject_thread_at(t->inject, i)->tid;
}

static bool is_outside(void *l, size_t i)
{
	return !leave_inside(l, i);
}

/*
 * A thread that runs from breakpoint to breakpoint is inside whenever it is looked at:
 * it is let run to the next one, and is outside when it meets that.
 */
static bool comes_out(struct target *t, struct leave *l, size_t i, unsigned int *n)
{
	if (!leave_inside(l, i))
		return true;
	if (*n >= RUN_MAX || !leave_in_trap(t, i))
		return false;
	++*n;
	return inject_run_on(t->inject, i, is_outside, l) > 0;
}

bool grace_over(struct target *t, struct grace *g)
{
	struct leave l = leave_looking(t);
	size_t i, at, hint = 0, left = 0;
	unsigned int nr_run = g->runs ? 0 : RUN_MAX;

	if (!g->begun)
		begin(t, g);
	for (i = 0; i < g->nr; i++) {
		at = find(t, g->tid[i], &hint);
		if (at < inject_nr_threads(t->inject) && !comes_out(t, &l, at, &nr_run))
			g->tid[left++] = g->tid[i];
	}
	g->nr = left;
	return g->begun && !left;
}

int grace_settle(struct target *t, struct grace *g, struct err *err)
{
	unsigned int us = REST_US, tries;
	int ret;

	for (tries = 0; !grace_over(t, g); tries++) {
		if (tries > TRIES)
			return -EAGAIN;
		ret = inject_breathe(t->inject, us, err);
		if (!ret)
			ret = target_still_ours(t, err);
		if (ret)
			return ret;
		us = us < REST_MAX ? us * 2 : us;
	}
	return 0;
}
