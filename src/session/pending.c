/* SPDX-License-Identifier: MIT */
/* See pending.h. */
#include "session/pending.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "session/exits.h"
#include "session/optimize.h"
#include "session/proto.h"
#include "session/sites.h"

#define LOOK_MS 50  /* where the target doesn't wake us, and to see that we are to end */
#define REST_US 500 /* a target that counts up for fun doesn't keep us busy */

/* A thread that sleeps on the target's count of changes, as nothing else can. */
struct pending {
	pthread_t thread;
	uint32_t *seq;
	int fd;
	bool stop;
	bool again; /* something was in the way */
};

static void *watch(void *arg)
{
	const struct timespec look = { .tv_nsec = LOOK_MS * 1000000l };
	struct pending *w = arg;
	uint32_t seen = __atomic_load_n(w->seq, __ATOMIC_ACQUIRE), now;
	uint64_t one = 1;

	while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
		syscall(SYS_futex, w->seq, FUTEX_WAIT, seen, &look, NULL, 0);
		now = __atomic_load_n(w->seq, __ATOMIC_ACQUIRE);
		if (now == seen && !__atomic_exchange_n(&w->again, false, __ATOMIC_RELAXED))
			continue;
		seen = now;
		if (write(w->fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
			break;
		usleep(REST_US);
	}
	return NULL;
}

static int open_watch(struct target *t)
{
	struct pending *w = calloc(1, sizeof(*w));
	sigset_t all, old;
	int fail;

	if (!w)
		return -ENOMEM;
	w->seq = &t->ctl->load_seq;
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	/* Signals are for the thread that traces. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	fail = w->fd < 0 ? errno : pthread_create(&w->thread, NULL, watch, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (fail) {
		if (w->fd >= 0)
			close(w->fd);
		free(w);
		return -fail;
	}
	t->pending = w;
	return 0;
}

void pending_close(struct target *t)
{
	struct pending *w = t->pending;

	if (!w)
		return;
	__atomic_store_n(&w->stop, true, __ATOMIC_RELAXED);
	pthread_join(w->thread, NULL);
	close(w->fd);
	free(w);
	t->pending = NULL;
}

int pending_fd(const struct target *t)
{
	return t->pending ? t->pending->fd : -1;
}

/* A file name as libraries have them: not the FILE.c of FILE.c:LINE, nor a namespace. */
static bool is_library(const char *module)
{
	const char *name = strrchr(module, '/');

	name = name ? name + 1 : module;
	return !strncmp(name, "lib", 3) || strstr(name, ".so") ||
	       (strlen(name) > 5 && !strcmp(name + strlen(name) - 5, ".node"));
}

bool pending_may(struct target *t, const struct lang_def *def)
{
	const struct lang_place *pl = &def->place;
	struct err ignored = ERR_INIT;
	struct sym_module *m;

	return pl->module && is_library(pl->module) && lang_find_module(pl, t->sym, &m, &ignored);
}

static bool has_hook(const struct target *t)
{
	const struct probe *p;

	for (p = t->internal; p; p = p->next_mine)
		if (p->id == AGENT_LOADER_HIT && p->site)
			return true;
	return false;
}

int pending_check(struct target *t, int column, struct err *err)
{
	if (t->no_traps)
		return err_at(err, -EOPNOTSUPP, column,
		              "Failed to find symbol: no such library is mapped, and a thread of "
		              "the process blocks SIGTRAP: the linker can't be watched");
	return has_hook(t) ? 0
	                   : err_at(err, -EOPNOTSUPP, column,
	                            "Failed to find symbol: no such library is mapped, and this "
	                            "program has no dynamic linker that would say when it is");
}

static bool waits(const struct probe *p)
{
	return p->late && p->started && !p->gone && !p->site;
}

/* Those that have landed follow their library when it goes and comes again. */
static bool any_late(const struct target *t)
{
	const struct chan *c;
	const struct probe *p;

	for (c = t->chans; c; c = c->next)
		for (p = c->probes; p; p = p->next_mine)
			if (p->late && p->started && !p->gone)
				return true;
	return false;
}

/* They are unlinked from what isn't there, and wait again. */
static void back_to_waiting(struct target *t)
{
	struct chan *c;
	struct probe *p;

	for (c = t->chans; c; c = c->next)
		for (p = c->probes; p; p = p->next_mine)
			if (p->late && p->site && p->site->gone) {
				probe_unlink(t, p);
				exits_unplant(t, p);
				p->decided = p->firm = p->frames = false;
			}
}

static bool is_due(struct target *t, const struct probe *p)
{
	if (p->late && p->site && !p->gone && p->enabled && !p->site->armed)
		return true; /* its library is back where it was */
	return waits(p) && !pending_may(t, p->def);
}

static bool any_due(struct target *t)
{
	const struct chan *c;
	const struct probe *p;

	for (c = t->chans; c; c = c->next)
		for (p = c->probes; p; p = p->next_mine)
			if (is_due(t, p))
				return true;
	return false;
}

static void land(struct target *t, struct probe *p)
{
	struct err err = ERR_INIT;

	if (p->site ? probe_arm(t, p, &err) : probe_land(p, &err)) {
		p->failed = strdup(err.text);
		if (p->site)
			probe_unlink(t, p);
		p->gone = true;
	} else {
		p->landed = true;
	}
}

static void land_all(struct target *t)
{
	struct chan *c;
	struct probe *p;

	for (c = t->chans; c; c = c->next)
		for (p = c->probes; p; p = p->next_mine)
			if (is_due(t, p))
				land(t, p);
}

/* Whoever waits at the hook goes on. */
static void answer(struct target *t, uint32_t seq)
{
	__atomic_store_n(&t->ctl->load_done, seq, __ATOMIC_RELEASE);
	syscall(SYS_futex, &t->ctl->load_done, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static bool look(struct target *t)
{
	struct err ignored = ERR_INIT;

	if (sym_refresh(t->sym, &ignored) || !(target_lost(t) || any_due(t)))
		return false;
	/* Changes start from breakpoints. */
	if (optimize_off(t, &ignored) || target_refresh(t, &ignored)) {
		__atomic_store_n(&t->pending->again, true, __ATOMIC_RELAXED);
		return true;
	}
	back_to_waiting(t);
	land_all(t);
	return true;
}

bool pending_look(struct target *t)
{
	uint32_t seq = __atomic_load_n(&t->ctl->load_seq, __ATOMIC_ACQUIRE);
	uint64_t count;
	bool changed;

	if (!t->pending || t->dead)
		return false;
	if (read(t->pending->fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return false;
	changed = look(t);
	answer(t, seq);
	return changed;
}

bool pending_is_filtered(const struct target *t)
{
	return proto_status(t->pid, "Seccomp", 10);
}

static void set_hook(struct target *t, bool on)
{
	struct err ignored = ERR_INIT;
	struct probe *p;

	__atomic_store_n(&t->ctl->loader,
	                 !on                      ? UKP_LOADER_OFF
	                 : pending_is_filtered(t) ? UKP_LOADER_TELLS
	                                          : UKP_LOADER_WAITS,
	                 __ATOMIC_RELEASE);
	for (p = t->internal; p; p = p->next_mine) {
		if (p->id != AGENT_LOADER_HIT || !p->site)
			continue;
		p->enabled = on;
		if (on)
			probe_arm(t, p, &ignored);
		else if (!site_wanted(p->site))
			probe_disarm(t, p); /* else somebody has a probe there, too */
	}
	if (!on)
		answer(t, __atomic_load_n(&t->ctl->load_seq, __ATOMIC_ACQUIRE));
}

bool pending_settle(struct target *t)
{
	struct err ignored = ERR_INIT;
	bool wanted = !t->dead && any_late(t);

	if (wanted && !t->pending) {
		/* The hook is a breakpoint.  What can't be done now is tried at the next change. */
		if (jump_only_land_hooks(t, &ignored) < 0 || open_watch(t))
			return false;
		set_hook(t, true);
		/* One that was loaded just before that. */
		return look(t);
	}
	if (!wanted && t->pending) {
		if (!t->dead)
			set_hook(t, false);
		pending_close(t);
	}
	return false;
}

int pending_print(const struct chan *c, char *buf, size_t len)
{
	const struct probe *p;
	char place[384];
	size_t used = 0;

	buf[0] = 0;
	for (p = c->probes; p && used < len; p = p->next_mine) {
		if (!p->late || p->landed)
			continue;
		probe_place(p, place, sizeof(place));
		used += snprintf(buf + used, len - used, "%s: %s%s\n", place,
		                 p->failed ? p->failed : p->def->place.module,
		                 p->failed ? "" : " is not loaded");
	}
	return (int)used;
}
