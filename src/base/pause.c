/* SPDX-License-Identifier: MIT */
#include "base/pause.h"

_Thread_local struct pause *pause_of_thread;

void pause_init(struct pause *p)
{
	atomic_init(&p->on, false);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->end, NULL);
}

void pause_destroy(struct pause *p)
{
	pthread_cond_destroy(&p->end);
	pthread_mutex_destroy(&p->lock);
}

static void set(struct pause *p, bool on)
{
	pthread_mutex_lock(&p->lock);
	atomic_store_explicit(&p->on, on, memory_order_relaxed);
	if (!on)
		pthread_cond_broadcast(&p->end);
	pthread_mutex_unlock(&p->lock);
}

void pause_begin(struct pause *p)
{
	set(p, true);
}

void pause_end(struct pause *p)
{
	set(p, false);
}

void pause_mine(struct pause *p)
{
	pause_of_thread = p;
}

void pause_wait(struct pause *p)
{
	pthread_mutex_lock(&p->lock);
	while (atomic_load_explicit(&p->on, memory_order_relaxed))
		pthread_cond_wait(&p->end, &p->lock);
	pthread_mutex_unlock(&p->lock);
}
