/* SPDX-License-Identifier: MIT */
/* The thread that computes target sets, and what it has computed. */
#include "session/modules.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "patch/target_set.h"

struct module_set {
	struct module_set *next;
	char *id; /* build-id, or the path where it has none */
	uint64_t bias;
	struct sym_facts *facts; /* the thread's while it works */
	struct plan_targets *targets;
	struct plan_exits *exits;
	bool want_exits;
	bool done, done_exits; /* with the one and the other */
};

/*
 * lock guards the list and all of each set but what it is of.  Targets and exits
 * that are there never change.
 */
struct modules {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work, ready;
	struct module_set *list;
	int fd;
	bool stop;
};

static bool is_ready(const struct module_set *s)
{
	return s->done && (s->done_exits || !s->want_exits);
}

static struct module_set *next_work(struct modules *m)
{
	struct module_set *s;

	for (s = m->list; s && is_ready(s); s = s->next)
		;
	return s;
}

/* What of it is wanted and not there yet; the lock is let go of meanwhile. */
static void make(struct modules *m, struct module_set *s)
{
	struct plan_targets *targets = s->targets;
	struct plan_exits *exits = NULL;
	struct sym_facts *facts = s->facts;
	const bool want_exits = s->want_exits;

	s->facts = NULL;
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

static void *work(void *arg)
{
	struct modules *m = arg;
	struct module_set *s;
	uint64_t one = 1;

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
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->work, NULL);
	pthread_cond_init(&m->ready, NULL);
	/* Signals are for the thread that traces. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	fail = m->fd < 0 ? errno : pthread_create(&m->thread, NULL, work, m);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (fail) {
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

	pthread_mutex_lock(&m->lock);
	m->stop = true;
	pthread_cond_signal(&m->work);
	pthread_mutex_unlock(&m->lock);
	pthread_join(m->thread, NULL);
	while ((s = m->list)) {
		m->list = s->next;
		if (s->facts)
			sym_facts_free(s->facts);
		plan_exits_free(s->exits);
		plan_targets_free(s->targets);
		free(s->id);
		free(s);
	}
	close(m->fd);
	free(m);
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

void modules_want(struct modules *m, struct sym_module *mod, bool exits)
{
	struct module_set *s;
	bool more;

	if (!mod)
		return;
	pthread_mutex_lock(&m->lock);
	s = find(m, mod);
	more = !s || (exits && !s->want_exits);
	if (!s)
		s = add(m, mod);
	if (s && more) {
		s->want_exits = exits;
		/* The thread may have taken the facts of the earlier wish. */
		if (!s->facts && sym_facts_open(mod, &s->facts, NULL))
			s->facts = NULL;
		pthread_cond_signal(&m->work);
	}
	pthread_mutex_unlock(&m->lock);
}

void modules_wait(struct modules *m, const struct sym_module *mod)
{
	struct module_set *s;

	pthread_mutex_lock(&m->lock);
	while (!m->stop && (s = find(m, mod)) && !is_ready(s))
		pthread_cond_wait(&m->ready, &m->lock);
	pthread_mutex_unlock(&m->lock);
}

bool modules_ready(struct modules *m, const struct sym_module *mod)
{
	struct module_set *s;
	bool ready;

	pthread_mutex_lock(&m->lock);
	s = find(m, mod);
	ready = s && is_ready(s);
	pthread_mutex_unlock(&m->lock);
	return ready;
}

const struct plan_targets *modules_targets(struct modules *m, const struct sym_module *mod,
                                           uint64_t *bias)
{
	const struct plan_targets *targets = NULL;
	struct module_set *s;

	pthread_mutex_lock(&m->lock);
	s = find(m, mod);
	if (s && s->done) {
		targets = s->targets;
		*bias = s->bias;
	}
	pthread_mutex_unlock(&m->lock);
	return targets;
}

const struct plan_exits *modules_exits(struct modules *m, const struct sym_module *mod,
                                       uint64_t *bias)
{
	const struct plan_exits *exits = NULL;
	struct module_set *s;

	pthread_mutex_lock(&m->lock);
	s = find(m, mod);
	if (s && is_ready(s)) {
		exits = s->exits;
		*bias = s->bias;
	}
	pthread_mutex_unlock(&m->lock);
	return exits;
}
