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

void grace_start(struct grace *g)
{
	free(g->tid);
	*g = (struct grace){ .begun = false };
}

static size_t find(const struct target *t, pid_t tid)
{
	size_t i;

	for (i = 0; i < inject_nr_threads(t->inject); i++)
		if (inject_thread_at(t->inject, i)->tid == tid)
			break;
	return i;
}

static void begin(struct target *t, struct grace *g)
{
	size_t i, n = inject_nr_threads(t->inject);

	g->tid = malloc((n + 1) * sizeof(*g->tid));
	g->begun = g->tid != NULL;
	for (i = 0; g->begun && i < n; i++)
		g->tid[g->nr++] = inject_thread_at(t->inject, i)->tid;
}

bool grace_over(struct target *t, struct grace *g)
{
	struct leave l = leave_looking(t);
	size_t i, at, left = 0;

	if (!g->begun)
		begin(t, g);
	for (i = 0; i < g->nr; i++) {
		at = find(t, g->tid[i]);
		if (at < inject_nr_threads(t->inject) && leave_inside(&l, at))
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
