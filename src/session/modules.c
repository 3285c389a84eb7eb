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
	bool done; /* under the lock */
};

/*
 * lock guards the list and each set's done, targets and facts until done; a set
 * that is done never changes.
 */
struct modules {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct module_set *list;
	int fd;
	bool stop;
};

static struct module_set *next_work(struct modules *m)
{
	struct module_set *s;

	for (s = m->list; s; s = s->next)
		if (!s->done)
			return s;
	return NULL;
}

static void *work(void *arg)
{
	struct modules *m = arg;
	struct module_set *s;
	uint64_t one = 1;

	pthread_mutex_lock(&m->lock);
	while (!m->stop) {
		struct plan_targets *targets = NULL;
		struct sym_facts *facts;

		s = next_work(m);
		if (!s) {
			pthread_cond_wait(&m->work, &m->lock);
			continue;
		}
		facts = s->facts;
		pthread_mutex_unlock(&m->lock);
		if (facts)
			targets = target_set_make(facts);
		pthread_mutex_lock(&m->lock);
		s->facts = NULL;
		s->targets = targets;
		s->done = true;
		if (write(m->fd, &one, sizeof(one)) < 0)
			break;
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

void modules_want(struct modules *m, struct sym_module *mod)
{
	struct module_set *s;

	pthread_mutex_lock(&m->lock);
	if (mod && !find(m, mod) && (s = calloc(1, sizeof(*s)))) {
		s->id = strdup(modules_id(mod));
		if (!s->id) {
			free(s);
			pthread_mutex_unlock(&m->lock);
			return;
		}
		s->bias = sym_module_bias(mod);
		if (sym_facts_open(mod, &s->facts, NULL))
			s->facts = NULL;
		s->next = m->list;
		m->list = s;
		pthread_cond_signal(&m->work);
	}
	pthread_mutex_unlock(&m->lock);
}

bool modules_ready(struct modules *m, const struct sym_module *mod)
{
	struct module_set *s;
	bool ready;

	pthread_mutex_lock(&m->lock);
	s = find(m, mod);
	ready = s && s->done;
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
