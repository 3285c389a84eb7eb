/* SPDX-License-Identifier: MIT */
/*
 * A thread that works beside another makes a pause whenever that one asks for it: the
 * tracer's own helper must not keep a CPU that the held target needs.
 *
 *	worker: pause_mine(&p);  then pause_point() wherever it does much of the same
 *	other:  pause_begin(&p);  ...  pause_end(&p);
 *
 * pause_begin() doesn't wait.  The worker stands at its next point, so there it must not
 * own what the other may want meanwhile; nor may the other wait for its results.
 * A point in a thread that has no pause of its own costs a load and does nothing.
 */
#ifndef UKP_BASE_PAUSE_H
#define UKP_BASE_PAUSE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct pause {
	atomic_bool on; /* changed under the lock */
	pthread_mutex_t lock;
	pthread_cond_t end;
};

void pause_init(struct pause *p);
void pause_destroy(struct pause *p); /* nobody is in it */

void pause_begin(struct pause *p);
void pause_end(struct pause *p);

extern _Thread_local struct pause *pause_of_thread; /* NULL: none; pause_mine() sets it */
void pause_mine(struct pause *p);
void pause_wait(struct pause *p);

static inline void pause_point(void)
{
	struct pause *p = pause_of_thread;

	/* Only a hint: what is true is read under the lock. */
	if (p && atomic_load_explicit(&p->on, memory_order_relaxed))
		pause_wait(p);
}

#endif
