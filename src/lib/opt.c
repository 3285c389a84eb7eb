/* SPDX-License-Identifier: MIT */
/*
 * The optimizer: a thread that turns breakpoints into jumps, some milliseconds
 * after the last change or at once when somebody waits for it.
 *
 * It is made when there is something to do and ends when there is nothing left.
 * It blocks all signals but those that its own instructions may raise; what it
 * runs into of our user's probes is nobody's hit (guard_quiet()).  A forked child
 * has no such thread and needs none: registering is refused there.
 *
 * The queue and all sites are under the lock of the library; running and waiters
 * under a lock of their own, taken inside that one.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/signal.h"
#include "lib/jump.h"
#include "lib/opt.h"
#include "lib/sets.h"
#include "lib/still/settle.h"
#include "patch/deny.h"

#define DELAY_NS 5000000   /* for more to come */
#define SHORTEST_NS 100000 /* between tries, doubled each time */
#define LONGEST_NS 20000000
#define MAX_TRIES 60  /* stops for one jump */
#define MAX_JUMPS 256 /* in one stop */

static const char stays[] = "a thread stays inside the jump's window";
static const char late[] = "the threads of this process don't come to a stop";
static const char off[] = "optimization is off";
static const char coming[] = "the jump is on its way";
static const char no_thread[] = "no thread could be made for it";

static struct lib_site *queue;
static int enabled = -1; /* not asked yet */

static pthread_mutex_t state = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changes;
static bool running;
static unsigned int waiters;

/* Its time doesn't jump. */
static void __attribute__((constructor)) make_changes(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&changes, &attr);
	pthread_condattr_destroy(&attr);
}

bool ukp_kprobes_optimization(void)
{
	const char *env;

	if (enabled < 0) {
		env = getenv("UKPROBES_OPTIMIZATION");
		enabled = !(env && env[0] == '0');
	}
	return enabled;
}

static bool eligible(const struct lib_site *s)
{
	/* Our own as well: a program may call sigaction(), or throw, with all signals blocked. */
	return s->armed && !s->head && !s->live && !site_wants_post(s) && site_is_wanted(s);
}

static void enqueue(struct lib_site *s)
{
	if (s->queued)
		return;
	s->queued = true;
	s->next_queued = queue;
	queue = s;
}

static void consider(struct lib_site *s)
{
	struct lib_site *from = s->from ? site_find(s->from) : NULL;

	s->why = NULL;
	s->tries = 0;
	if (from)
		from->tries = 0;
	if (eligible(s))
		enqueue(s);
}

void opt_queue_window(const struct lib_site *s, uint64_t len)
{
	uint64_t at;

	if (!ukp_kprobes_optimization())
		return;
	for (at = s->addr; at < s->addr + len; at++) {
		struct lib_site *t = site_find(at);

		if (t)
			consider(t);
	}
}

/* Whoever is before it may have been kept back by it. */
void opt_queue(struct lib_site *s)
{
	uint64_t at;

	if (!ukp_kprobes_optimization())
		return;
	for (at = s->addr - LIB_JUMP_SIZE + 1; at < s->addr; at++) {
		struct lib_site *t = site_find(at);

		if (t && t->armed)
			consider(t);
	}
	consider(s);
	/* So may exits behind it, whose jumps begin before them. */
	for (at = s->addr + 1; at < s->addr + jump_longest(); at++) {
		struct lib_site *t = site_find(at);

		if (t && t->from && t->armed && !t->head)
			consider(t);
	}
}

static int by_address(const void *a, const void *b)
{
	const struct lib_site *x = *(struct lib_site *const *)a, *y = *(struct lib_site *const *)b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

struct batch {
	struct lib_site **site;
	size_t n;
	struct lib_site **head; /* of jumps to be written after a stop, from the start */
	size_t nr_heads;
	size_t nr_easy; /* those that need none, from the end */
	bool again;
};

/* The whole queue, by address; its order decides who heads a window. */
static int take_queue(struct batch *b)
{
	struct lib_site *s;
	size_t n = 0;

	for (s = queue; s; s = s->next_queued)
		n++;
	b->site = calloc(n + 1, sizeof(*b->site));
	b->head = calloc(n + 1, sizeof(*b->head));
	if (!b->site || !b->head)
		return -ENOMEM;
	for (; queue; queue = s) {
		s = queue->next_queued;
		queue->queued = false;
		b->site[b->n++] = queue;
	}
	qsort(b->site, b->n, sizeof(*b->site), by_address);
	return 0;
}

static void drop_batch(struct batch *b)
{
	free(b->site);
	free(b->head);
}

/* The head of the jump over s, prepared; NULL: none, and perhaps s->why. */
static struct lib_site *prepare_one(struct lib_site *s)
{
	const struct plan_targets *targets;
	const struct sym_module *m = sym_module_of(own_sym_last(), s->addr);
	struct lib_site *head = NULL;
	uint64_t bias = 0;

	targets = sets_find(s->addr, &bias);
	if (!own_can_poke())
		s->why = "the kernel has no membarrier() that serialises cores";
	else if (m && deny_jumps(m))
		s->why = deny_jumps(m);
	else if (!targets)
		s->why = "the module's code could not be followed";
	else
		head = jump_head(s, &s->why);
	if (head)
		s->why = jump_prepare(head, targets, bias);
	else if (!s->why)
		enqueue(s);
	return s->why ? NULL : head;
}

static void prepare(struct batch *b)
{
	size_t i;

	for (i = 0; i < b->n; i++)
		if (b->site[i]->from && eligible(b->site[i]))
			jump_make_room(b->site[i]);
	for (i = 0; i < b->n; i++) {
		struct lib_site *s = b->site[i];

		if (!eligible(s) || jump_is_covered(s))
			continue;
		s = prepare_one(s);
		if (!s)
			continue;
		if (jump_must_settle(s))
			b->head[b->nr_heads++] = s;
		else
			b->head[b->n - ++b->nr_easy] = s;
	}
	/* Those over exits begin before what they are for. */
	qsort(b->head, b->nr_heads, sizeof(*b->head), by_address);
	if (b->nr_easy)
		jump_write(b->head + b->n - b->nr_easy, b->nr_easy);
}

/* never: why it makes no sense; else why it was no success this time. */
static void try_again(struct batch *b, struct lib_site *s, const char *never, const char *why)
{
	jump_cancel(s);
	if (never || ++s->tries >= MAX_TRIES) {
		jump_give_up(s, never ? never : why);
		return;
	}
	jump_for_each(s, enqueue);
	b->again = true;
}

/* At most MAX_JUMPS. */
static void settle(struct batch *b, struct lib_site **head, size_t n)
{
	struct settle_window w[MAX_JUMPS];
	const char *why = NULL;
	size_t i, ready = 0;
	int ret;

	for (i = 0; i < n; i++)
		w[i] = (struct settle_window){ .d = head[i]->over };
	ret = hold_settle(w, (uint32_t)n, &why);
	for (i = 0; i < n; i++) {
		if (ret || w[i].stuck)
			try_again(b, head[i], why, ret ? late : stays);
		else
			head[ready++] = head[i];
	}
	if (ready)
		jump_write(head, ready);
}

/* One look at all that is queued; true: some of it is to be looked at again. */
static bool round_of(struct err *err)
{
	struct batch b = { 0 };
	struct sym_proc *sym;
	size_t i, n;

	if (own_sym(&sym, err) || take_queue(&b)) {
		drop_batch(&b);
		return true;
	}
	if (ukp_kprobes_optimization()) {
		own_batch_begin();
		prepare(&b);
		own_batch_end();
	}
	for (i = 0; i < b.nr_heads; i += n) {
		n = b.nr_heads - i < MAX_JUMPS ? b.nr_heads - i : MAX_JUMPS;
		settle(&b, b.head + i, n);
	}
	drop_batch(&b);
	return b.again;
}

/* The target set of one module that has none yet; without the lock while it is made. */
static bool make_a_set(struct err *err)
{
	struct sets_work *w = NULL;
	struct lib_site *s;

	for (s = queue; s && !w; s = s->next_queued)
		w = eligible(s) ? sets_begin(s->addr) : NULL;
	if (!w)
		return false;
	lib_unlock();
	sets_work(w);
	if (lib_lock(false, err))
		return false;
	sets_end(w);
	return true;
}

static void pause_for(uint64_t ns, bool even_if_waited_for)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += (long)ns;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	pthread_mutex_lock(&state);
	while ((even_if_waited_for || !waiters) &&
	       pthread_cond_timedwait(&changes, &state, &t) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&state);
}

static void end_running(void)
{
	guard_quiet(false);
	pthread_mutex_lock(&state);
	running = false;
	pthread_cond_broadcast(&changes);
	pthread_mutex_unlock(&state);
}

static void *work(void *arg)
{
	struct err err = ERR_INIT;
	uint64_t ns = SHORTEST_NS;
	bool again;

	guard_quiet(true);
	pause_for(DELAY_NS, false);
	while (!lib_lock(false, &err)) {
		while (make_a_set(&err))
			;
		again = round_of(&err);
		if (!queue) {
			end_running();
			lib_unlock();
			return NULL;
		}
		lib_unlock();
		pause_for(ns, true);
		ns = again && ns * 2 < LONGEST_NS ? ns * 2 : ns;
	}
	end_running();
	return NULL;
}

/* Blocks what a program's handlers might be called for; what instructions raise must come. */
static int make_thread(void)
{
	pthread_attr_t attr;
	sigset_t most, old;
	pthread_t t;
	int ret, sig;

	sigfillset(&most);
	for (sig = 1; sig < UKP_NR_SIGNALS; sig++)
		if (UKP_SIGNALS & 1ull << (sig - 1))
			sigdelset(&most, sig);
	if (pthread_attr_init(&attr))
		return -ENOMEM;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &most, &old);
	ret = pthread_create(&t, &attr, work, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -ret;
}

void opt_start(void)
{
	struct lib_site *s;
	bool start;

	/* Where a thread can't be made, the next call does it. */
	if (!queue || lib_in_handler())
		return;
	pthread_mutex_lock(&state);
	start = !running;
	running = true;
	pthread_mutex_unlock(&state);
	if (!start || !make_thread())
		return;
	for (; queue; queue = s) {
		s = queue->next_queued;
		queue->queued = false;
		queue->why = no_thread;
	}
	end_running();
}

void wait_for_kprobe_optimizer(void)
{
	if (lib_in_handler() || (ukp_lib_ctl && !ukp_hit_alive(ukp_lib_ctl)))
		return;
	pthread_mutex_lock(&state);
	waiters++;
	pthread_cond_broadcast(&changes);
	while (running)
		pthread_cond_wait(&changes, &state);
	waiters--;
	pthread_mutex_unlock(&state);
}

int ukp_set_kprobes_optimization(bool on)
{
	struct err *err = lib_err();
	struct lib_site *s;
	int ret = lib_lock(false, err);

	if (ret)
		return ret;
	enabled = on;
	if (!on)
		ret = jump_take_back_all(err);
	for (s = site_first(); s && on; s = s->next)
		consider(s);
	lib_unlock();
	if (!on)
		wait_for_kprobe_optimizer();
	return ret;
}

const char *opt_why(const struct lib_site *s)
{
	if (s->head)
		return NULL;
	if (s->live)
		return "its program may rewrite it";
	if (site_wants_post(s))
		return "a post handler needs the breakpoint";
	if (!ukp_kprobes_optimization())
		return off;
	return s->why ? s->why : coming;
}

/* NULL: it has the jump form. */
static const char *form(const struct lib_site *s, const struct kprobe *kp)
{
	return kp->flags & KPROBE_FLAG_DISABLED ? "the probe is disabled" : opt_why(s);
}

int ukp_kprobe_form(const struct kprobe *kp, char *buf, size_t len)
{
	struct err *err = lib_err();
	const struct lib_site *s;
	const char *why;
	int ret = lib_lock(false, err);

	if (ret)
		return ret;
	s = site_find((uint64_t)kp->addr);
	if (!s || !site_has(s, kp)) {
		ret = err_set(err, -EINVAL, "the probe is not registered");
	} else {
		why = form(s, kp);
		snprintf(buf, len, "%s", why ? why : "");
		ret = !why;
	}
	lib_unlock();
	return ret;
}
