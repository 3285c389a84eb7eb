/* SPDX-License-Identifier: MIT */
/* One run of trace or latency; see run.h. */
#include "front/again.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HINT_NAMES 3
#define ASK_NS 500000000ull

static volatile sig_atomic_t ends;
static struct ukp_session *volatile interruptible;
static volatile pid_t child; /* launched command that gets our SIGTERM and SIGHUP; 0 */

static void on_signal(int sig)
{
	int saved = errno;

	ends++;
	/*
	 * Ctrl-C reaches the command by itself, as it is in our foreground
	 * group; what was sent to us alone is meant for it as well.
	 */
	if (child && (sig == SIGTERM || sig == SIGHUP))
		kill(child, sig);
	if (interruptible)
		ukp_session_interrupt(interruptible);
	errno = saved;
}

static void on_pipe(int sig)
{
}

/*
 * Handlers, never SIG_IGN, which a launched command would inherit.  restart:
 * only while records are written does a signal have to break a system call.
 */
static void signals_set(bool restart)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = restart ? SA_RESTART : 0 };
	struct sigaction old;

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	/* nohup(1) has it ignored, and means it. */
	if (!sigaction(SIGHUP, NULL, &old) && old.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &sa, NULL);
	/* EPIPE says it better. */
	sa.sa_handler = on_pipe;
	sigaction(SIGPIPE, &sa, NULL);
}

int run_signals(void)
{
	return ends;
}

uint64_t run_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Said once: a broker that is gone fails all that follows. */
static int failed(const struct run *r, int err)
{
	const char *why = r->s ? ukp_session_error(r->s) : NULL;
	static int before;

	if (err != -EPIPE || err != before)
		complain("%s", why && *why ? why : strerror(-err));
	before = err;
	return err;
}

void run_set(struct ukp_session *s, const struct options *o)
{
	if (o->strict)
		ukp_session_set_strict(s, true);
	ukp_session_set_any_text(s, o->any_text);
	ukp_session_set_follow(s, o->follow);
	ukp_session_set_ret(s, (enum ukp_ret)o->ret);
}

int run_open(struct run *r, const struct options *o)
{
	int err;

	memset(r, 0, sizeof(*r));
	r->o = o;
	if (!o->again)
		ends = 0;
	signals_set(true);
	err = o->cmd ? ukp_session_launch(&r->s, o->cmd) : ukp_session_open(&r->s, o->pid);
	r->launched = o->cmd && !err;
	if (r->s)
		run_set(r->s, o);
	interruptible = r->s;
	if (err)
		return failed(r, err);
	if (*ukp_session_hazard(r->s))
		complain("warning: %s", ukp_session_hazard(r->s));
	return 0;
}

/* Of many places some can't be probed: how many, and why. */
static void say_refused(struct ukp_session *s)
{
	const char *line = ukp_session_refused(s), *end;

	for (; *line; line = *end ? end + 1 : end) {
		const char *colon = strstr(line, ": ");

		end = strchrnul(line, '\n');
		if (colon && colon < end)
			complain("%.*s places are not probed: %.*s", (int)(colon - line), line,
			         (int)(end - colon - 2), colon + 2);
	}
}

/* The "PLACE: why" lines of something. */
static void say_lines(const char *line, const char *what)
{
	const char *end;

	for (; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		complain("%s: %.*s", what, (int)(end - line), line);
	}
}

/* A line for each definition that waits for its library, or waited in vain. */
static void say_pending(struct ukp_session *s, const char *what)
{
	say_lines(ukp_session_pending(s), what);
}

static void ask_dropped(struct run *r)
{
	if (r->asked)
		say_lines(ukp_session_dropped(r->s), "taken out");
}

void run_dropped(struct run *r)
{
	uint64_t now = run_now();

	if (!r->asked || now - r->asked < ASK_NS)
		return;
	r->asked = now;
	ask_dropped(r);
}

int run_start(struct run *r, const struct options *o)
{
	int err;

	if (ends) {
		complain("interrupted before anything was planted");
		return -EINTR;
	}
	/* From here on the command runs, and a signal may come at any time. */
	if (r->launched)
		child = ukp_session_pid(r->s);
	else
		child = again_child();
	err = o->budget > 0 ? ukp_session_set_budget(r->s, o->budget) : 0;
	if (!err)
		err = ukp_session_start(r->s);
	if (err)
		return failed(r, err);
	again_settle();
	r->started = run_now();
	r->asked = o->budget > 0 || o->any_text ? r->started : 0;
	say_refused(r->s);
	say_pending(r->s, "waiting");
	if (ukp_session_waiting(r->s))
		complain("%u places wait for their jumps, and are not probed before: 'ukprobe list "
		         "-p %d' says which",
		         ukp_session_waiting(r->s), ukp_session_pid(r->s));
	if (o->for_ns)
		r->deadline = r->started + o->for_ns;
	signals_set(false);
	return 0;
}

void run_gone(struct run *r)
{
	r->gone = true;
	/* Not by its end, which is nothing to complain of, but as another program. */
	r->another = r->o->follow && *ukp_session_error(r->s);
	if (*ukp_session_error(r->s) && !r->another)
		complain("%s", ukp_session_error(r->s));
}

bool run_over(const struct run *r)
{
	return ends || r->gone || (r->deadline && run_now() >= r->deadline);
}

int run_timeout(const struct run *r, int max_ms)
{
	uint64_t now = run_now(), left;

	if (!r->deadline)
		return max_ms;
	if (now >= r->deadline)
		return 0;
	left = (r->deadline - now + 999999) / 1000000;
	return left < (uint64_t)max_ms ? (int)left : max_ms;
}

int run_stop(struct run *r)
{
	int err;

	signals_set(true);
	ask_dropped(r);
	err = ukp_session_stop(r->s);
	signals_set(false);
	/* From a target that has ended nothing needs to be removed. */
	if (!err || !ukp_session_alive(r->s)) {
		r->gone = r->gone || !ukp_session_alive(r->s);
		return 0;
	}
	return failed(r, err);
}

/* Has one of these "PLACE: why" lines this place? */
static bool is_listed(const char *lines, const char *place)
{
	size_t n = strlen(place);

	for (; *lines; lines += strcspn(lines, "\n"), lines += *lines == '\n')
		if (!strncmp(lines, place, n) && !strncmp(lines + n, ": ", 2))
			return true;
	return false;
}

void run_hint(const struct run *r, unsigned int nr)
{
	char names[512] = "";
	const char *waits = ukp_session_pending(r->s);
	unsigned int idle = 0;
	struct ukp_counts c;
	size_t used = 0;

	for (unsigned int id = 0; id < nr; id++) {
		const struct ukp_event_info *e = ukp_session_event(r->s, id);

		if (!e || is_listed(waits, e->place) || ukp_session_counts(r->s, id, &c) || c.hits)
			continue;
		if (idle++ < HINT_NAMES && used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s%.128s",
			                         idle > 1 ? ", " : "", e->ret ? "returns of " : "",
			                         e->place);
	}
	say_pending(r->s, "never probed");
	if (idle)
		complain("never hit: %s%s; was it not called, or compiled into its callers, or is "
		         "another copy of it called?",
		         names, idle > HINT_NAMES ? ", ..." : "");
}

static void forget(struct run *r)
{
	child = 0;
	interruptible = NULL;
	if (r->s)
		ukp_session_close(r->s);
	r->s = NULL;
}

int run_abandon(struct run *r)
{
	pid_t pid = r->launched ? ukp_session_pid(r->s) : 0;
	int wait, status = 1;

	/* A command that never was one has a status all the same. */
	if (r->s && !r->launched && !ukp_session_wait(r->s, &wait) && WIFEXITED(wait))
		status = WEXITSTATUS(wait);

	if (pid > 0)
		kill(pid, SIGKILL);
	/* As long as the broker holds it, it can't be reaped: so this comes first. */
	forget(r);
	if (pid > 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	return status;
}

int run_status(int wait, int status)
{
	if (WIFSIGNALED(wait))
		return 128 + WTERMSIG(wait);
	/* A command that did well doesn't hide that we didn't. */
	return WEXITSTATUS(wait) ? WEXITSTATUS(wait) : status;
}

int run_close(struct run *r, int status)
{
	int wait = 0, err;

	if (r->another && !ends)
		again_note(r, r->launched);
	if (!r->launched || (r->another && !ends)) {
		forget(r);
		return status;
	}
	signals_set(true);
	do {
		err = ukp_session_wait(r->s, &wait);
	} while (err == -EINTR);
	if (err)
		failed(r, err);
	forget(r);
	if (err)
		return 1;
	return run_status(wait, status);
}
