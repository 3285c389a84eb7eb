/* SPDX-License-Identifier: MIT */
/* The thread that computes target sets, and what it has computed. */
#include "session/modules.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/pause.h"
#include "patch/target_set.h"

/* So many places of a module by themselves, then all of it. */
#define NEAR_MAX 8

struct near {
	uint64_t addr;
	struct plan_targets *targets; /* NULL once made: only the whole set can tell */
};

struct module_set {
	struct module_set *next;
	char *id; /* build-id, or the path where it has none */
	uint64_t bias;
	struct sym_facts *facts; /* the thread's while it works */
	struct near near[NEAR_MAX];
	size_t nr_near, made;
	struct plan_targets *targets;
	struct plan_exits *exits;
	bool want, want_exits; /* the whole set; and exits */
	bool done, done_exits;
};

/*
 * lock guards the list and all of each set but what it is of.  Targets and exits
 * that are there never change, and stay until the end.
 */
struct modules {
	pthread_t thread;
	struct pause pause; /* of the thread; it owns no lock then */
	pthread_mutex_t lock;
	pthread_cond_t work, ready;
	struct module_set *list;
	int fd;
	bool stop;
};

static bool is_done(const struct module_set *s)
{
	return s->want ? s->done && (s->done_exits || !s->want_exits) : s->made == s->nr_near;
}

static struct module_set *next_work(struct modules *m)
{
	struct module_set *s;

	for (s = m->list; s && is_done(s); s = s->next)
		;
	return s;
}

/* The lock is let go of while the thread computes. */
static void make_near(struct modules *m, struct module_set *s, struct sym_facts *facts)
{
	struct plan_targets *to[NEAR_MAX] = { NULL }, *whole = NULL;
	const size_t first = s->made, n = s->nr_near - first;
	uint64_t addr[NEAR_MAX];
	size_t i;

	for (i = 0; i < n; i++)
		addr[i] = s->near[first + i].addr;
	pthread_mutex_unlock(&m->lock);
	if (facts)
		target_set_near(facts, addr, n, to, &whole);
	pthread_mutex_lock(&m->lock);
	for (i = 0; i < n; i++) {
		s->near[first + i].targets = to[i];
		/* Then it has been tried, whatever came of it. */
		s->done = s->done || !to[i];
	}
	s->want = s->want || s->done;
	s->targets = whole;
	s->made = first + n;
}

static void make_whole(struct modules *m, struct module_set *s, struct sym_facts *facts)
{
	struct plan_targets *targets = s->targets;
	struct plan_exits *exits = NULL;
	const bool want_exits = s->want_exits;

	pthread_mutex_unlock(&m->lock);
	if (facts && want_exits)
		exits = target_set_exits(facts, &targets);
	else if (facts)
		targets = target_set_make(facts);
	pthread_mutex_lock(&m->lock);
	s->targets = targets;
	s->exits = exits;
	s->done = true;
	s->done_exits = want_exits;
}

/* What of it is wanted and not there yet. */
static void make(struct modules *m, struct module_set *s)
{
	struct sym_facts *facts = s->facts;

	s->facts = NULL;
	if (s->want)
		make_whole(m, s, facts);
	else
		make_near(m, s, facts);
}

static void *work(void *arg)
{
	struct modules *m = arg;
	struct module_set *s;
	uint64_t one = 1;

	pause_mine(&m->pause);
	pthread_mutex_lock(&m->lock);
	while (!m->stop) {
		s = next_work(m);
		if (!s) {
			pthread_cond_wait(&m->work, &m->lock);
			continue;
		}
		make(m, s);
		pthread_cond_broadcast(&m->ready);
		if (write(m->fd, &one, sizeof(one)) < 0)
			m->stop = true;
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

int modules_open(struct modules **ret)
{
	struct modules *m = calloc(1, sizeof(*m));
	sigset_t all, old;
	int fail;

	if (!m)
		return -ENOMEM;
	m->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pause_init(&m->pause);
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->work, NULL);
	pthread_cond_init(&m->ready, NULL);
	/* Signals are for the thread that traces. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	fail = m->fd < 0 ? errno : pthread_create(&m->thread, NULL, work, m);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (fail) {
		pause_destroy(&m->pause);
		if (m->fd >= 0)
			close(m->fd);
		free(m);
		return -fail;
	}
	*ret = m;
	return 0;
}

void modules_close(struct modules *m)
{
	struct module_set *s;
	size_t i;

	pthread_mutex_lock(&m->lock);
	m->stop = true;
	pthread_cond_signal(&m->work);
	pthread_mutex_unlock(&m->lock);
	pthread_join(m->thread, NULL);
	while ((s = m->list)) {
		m->list = s->next;
		if (s->facts)
			sym_facts_free(s->facts);
		for (i = 0; i < s->made; i++)
			plan_targets_free(s->near[i].targets);
		plan_exits_free(s->exits);
		plan_targets_free(s->targets);
		free(s->id);
		free(s);
	}
	pause_destroy(&m->pause);
	close(m->fd);
	free(m);
}

struct pause *modules_pause(struct modules *m)
{
	return &m->pause;
}

int modules_fd(const struct modules *m)
{
	return m->fd;
}

const char *modules_id(const struct sym_module *mod)
{
	const char *id = sym_module_build_id(mod);

	return *id ? id : sym_module_path(mod);
}

/* By what it is and where: a module may go and another come in its place. */
static struct module_set *find(struct modules *m, const struct sym_module *mod)
{
	struct module_set *s = m->list;

	if (!mod)
		return NULL;
	while (s && (s->bias != sym_module_bias(mod) || strcmp(s->id, modules_id(mod))))
		s = s->next;
	return s;
}

static struct module_set *add(struct modules *m, const struct sym_module *mod)
{
	struct module_set *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->id = strdup(modules_id(mod));
	if (!s->id) {
		free(s);
		return NULL;
	}
	s->bias = sym_module_bias(mod);
	s->next = m->list;
	m->list = s;
	return s;
}

static struct module_set *find_or_add(struct modules *m, const struct sym_module *mod)
{
	struct module_set *s = find(m, mod);

	return s ? s : add(m, mod);
}

/* The place that a set for addr was made or asked for; nr_near: none was. */
static size_t near_of(const struct module_set *s, uint64_t addr)
{
	uint64_t from, to;
	size_t i;

	for (i = 0; i < s->nr_near && s->near[i].addr != addr; i++) {
		if (!s->near[i].targets)
			continue;
		plan_targets_range(s->near[i].targets, &from, &to);
		if (addr - from < to - from)
			break;
	}
	return i;
}

/* The thread may have taken the facts of an earlier wish. */
static void wake(struct modules *m, struct module_set *s, struct sym_module *mod)
{
	if (!s->facts && sym_facts_open(mod, &s->facts, NULL))
		s->facts = NULL;
	pthread_cond_signal(&m->work);
}

bool modules_want(struct modules *m, struct sym_module *mod, uint64_t addr)
{
	struct module_set *s;
	bool whole;

	if (!mod)
		return false;
	pthread_mutex_lock(&m->lock);
	s = find_or_add(m, mod);
	if (s && !s->want && near_of(s, addr - s->bias) == s->nr_near) {
		if (s->nr_near < NEAR_MAX)
			s->near[s->nr_near++].addr = addr - s->bias;
		else
			s->want = true;
		wake(m, s, mod);
	}
	whole = !s || s->want;
	pthread_mutex_unlock(&m->lock);
	return whole;
}

void modules_want_exits(struct modules *m, struct sym_module *mod)
{
	struct module_set *s;

	if (!mod)
		return;
	pthread_mutex_lock(&m->lock);
	s = find_or_add(m, mod);
	if (s && !s->want_exits) {
		s->want = s->want_exits = true;
		wake(m, s, mod);
	}
	pthread_mutex_unlock(&m->lock);
}

void modules_wait_exits(struct modules *m, const struct sym_module *mod)
{
	struct module_set *s;

	pause_end(&m->pause);
	pthread_mutex_lock(&m->lock);
	while (!m->stop && (s = find(m, mod)) && !is_done(s))
		pthread_cond_wait(&m->ready, &m->lock);
	pthread_mutex_unlock(&m->lock);
}

bool modules_ready(struct modules *m, const struct sym_module *mod, uint64_t addr)
{
	struct module_set *s;
	bool ready = false;
	size_t i;

	pthread_mutex_lock(&m->lock);
	s = find(m, mod);
	if (s) {
		i = near_of(s, addr - s->bias);
		ready = s->done || (i < s->nr_near && s->near[i].targets);
	}
	pthread_mutex_unlock(&m->lock);
	return ready;
}

const struct plan_targets *modules_targets(struct modules *m, const struct sym_module *mod,
                                           uint64_t addr, uint64_t *bias)
{
	const struct plan_targets *targets = NULL;
	struct module_set *s;
	size_t i;

	pthread_mutex_lock(&m->lock);
	s = find(m, mod);
	if (s) {
		*bias = s->bias;
		i = near_of(s, addr - s->bias);
		targets = s->targets ? s->targets : i < s->nr_near ? s->near[i].targets : NULL;
	}
	pthread_mutex_unlock(&m->lock);
	return targets;
}

bool modules_exits_ready(struct modules *m, const struct sym_module *mod)
{
	struct module_set *s;
	bool ready;

	pthread_mutex_lock(&m->lock);
	s = find(m, mod);
	ready = s && s->done_exits;
	pthread_mutex_unlock(&m->lock);
	return ready;
}

const struct plan_exits *modules_exits(struct modules *m, const struct sym_module *mod,
                                       uint64_t *bias)
{
	const struct plan_exits *exits = NULL;
	struct module_set *s;

	pthread_mutex_lock(&m->lock);
	s = find(m, mod);
	if (s && s->done_exits) {
		exits = s->exits;
		*bias = s->bias;
	}
	pthread_mutex_unlock(&m->lock);
	return exits;
}
