/* SPDX-License-Identifier: MIT */
/*
 * Static keys that are switched off later: a list by time, and a thread that is
 * there while it isn't empty.
 *
 * The lock is not held while a key changes, so that whoever changes keys may
 * wait for it.  A forked child has the list and no thread: the next deferral
 * there makes one.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "lib/labels.h"
#include "lib/lib.h"
#include "ukprobes/jump_label.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct ukp_deferred *list; /* soonest first */
static pid_t runner;              /* the process that has the thread; 0: none */

/* Its time doesn't jump. */
static void make_cond(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &attr);
	pthread_condattr_destroy(&attr);
}

static unsigned long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long long)t.tv_sec * 1000000000 + (unsigned long long)t.tv_nsec;
}

static void insert(struct ukp_deferred *w)
{
	struct ukp_deferred **q = &list;

	while (*q && (*q)->ukp_due <= w->ukp_due)
		q = &(*q)->ukp_next;
	w->ukp_next = *q;
	*q = w;
}

static void take_out(struct ukp_deferred *w)
{
	struct ukp_deferred **q = &list;

	while (*q != w)
		q = &(*q)->ukp_next;
	*q = w->ukp_next;
	w->ukp_due = 0;
}

static void wait_for(const struct ukp_deferred *w)
{
	struct timespec t = { (time_t)(w->ukp_due / 1000000000), (long)(w->ukp_due % 1000000000) };

	pthread_cond_timedwait(&changed, &lock, &t);
}

static void *work(void *arg)
{
	struct static_key *key;

	pthread_mutex_lock(&lock);
	while (list) {
		if (list->ukp_due > now_ns()) {
			wait_for(list);
			continue;
		}
		key = list->ukp_key;
		take_out(list);
		pthread_mutex_unlock(&lock);
		static_key_slow_dec(key);
		pthread_mutex_lock(&lock);
	}
	runner = 0;
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* Signals are the program's threads' business, but for those that our instructions may raise. */
static int start(void)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t t;
	int ret;

	sigfillset(&all);
	sigdelset(&all, SIGTRAP);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&t, &attr, work, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (!ret)
		runner = getpid();
	return -ret;
}

int ukp_static_key_dec_deferred(struct static_key *key, struct ukp_deferred *w,
                                unsigned long timeout)
{
	int ret = 0;

	if (label_dec_not_one(key))
		return 0;
	pthread_once(&once, make_cond);
	pthread_mutex_lock(&lock);
	/* One that is due already does it. */
	if (!w->ukp_due) {
		w->ukp_key = key;
		w->ukp_due = now_ns() + timeout * 1000000ull;
		insert(w);
		if (runner != getpid())
			ret = start();
		if (ret)
			take_out(w);
		pthread_cond_signal(&changed);
	}
	pthread_mutex_unlock(&lock);
	return ret ? static_key_slow_dec(key) : 0;
}

int ukp_static_key_flush(struct ukp_deferred *w)
{
	bool due;

	pthread_mutex_lock(&lock);
	due = w->ukp_due;
	if (due)
		take_out(w);
	pthread_mutex_unlock(&lock);
	return due ? static_key_slow_dec(w->ukp_key) : 0;
}
