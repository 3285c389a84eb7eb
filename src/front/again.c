/* SPDX-License-Identifier: MIT */
/* See again.h. */
#include "front/again.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPEN_NS 3000000000ull /* those of the old program leave first */
#define FIND_NS 150000000ull  /* its libraries are mapped by then, mostly */
#define REST_US 5000

static struct {
	pid_t pid; /* 0: none */
	uint64_t deadline;
	pid_t child;
	struct ukp_session *s; /* in which it was tried what can be probed */
	char **words;
} next;

void again_note(const struct run *r, bool launched)
{
	next.pid = ukp_session_pid(r->s);
	next.deadline = r->deadline;
	if (launched)
		next.child = next.pid;
}

pid_t again_child(void)
{
	return next.child;
}

static bool lives(pid_t pid)
{
	return !kill(pid, 0) || errno == EPERM;
}

static int try_to_open(const struct options *o)
{
	const uint64_t end = run_now() + OPEN_NS;
	int err;

	for (;;) {
		err = ukp_session_open(&next.s, o->pid);
		/* It says so of the program before, too. */
		if ((err != -ESRCH && err != -EBUSY && err != -EPIPE) || run_now() >= end ||
		    !lives(o->pid) || run_signals())
			break;
		ukp_session_close(next.s);
		next.s = NULL;
		usleep(REST_US);
	}
	if (!err)
		run_set(next.s, o);
	return err;
}

/* Numbers mean something in one program only. */
static bool is_address(const char *def)
{
	size_t n = strcspn(def, " \t");
	const char *place = def[n] ? def + n + strspn(def + n, " \t") : def, *colon;

	n = strcspn(place, " \t=%");
	colon = memrchr(place, ':', n);
	return isdigit((unsigned char)(colon ? colon[1] : place[0]));
}

static int add(const struct command *c, const char *def)
{
	if (c->run == cmd_latency)
		return ukp_session_add_latency(next.s, def, NULL);
	if (c->run == cmd_stat)
		return ukp_session_add_stat(next.s, def, NULL);
	return ukp_session_add(next.s, def, NULL);
}

static bool is_there(const struct command *c, const char *def, uint64_t end)
{
	while (!is_address(def)) {
		if (!add(c, def))
			return true;
		if (run_now() >= end || run_signals())
			break;
		usleep(REST_US);
	}
	complain("not in this program: %s: %.*s", def,
	         is_address(def) ? 33 : (int)strcspn(ukp_session_error(next.s), "\n"),
	         is_address(def) ? "an address is of one program only" : ukp_session_error(next.s));
	return false;
}

/* The words that are found there come first; how many. */
static unsigned int sift(const struct command *c, const struct options *o, char **words)
{
	const uint64_t end = run_now() + FIND_NS;
	unsigned int n = 0, i;

	for (i = 0; i < o->nr_words; i++)
		if (is_there(c, o->words[i], end))
			words[n++] = o->words[i];
	return n;
}

static void say(const struct options *o, unsigned int n)
{
	char path[64], exe[4096];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/exe", o->pid);
	len = readlink(path, exe, sizeof(exe) - 1);
	exe[len > 0 ? len : 0] = 0;
	complain("process %d has executed another program, %s: %u of %u definitions go on in it",
	         o->pid, exe, n, o->nr_words);
}

bool again(const struct command *c, struct options *o)
{
	char **words;
	unsigned int n;

	again_settle();
	if (!next.pid || run_signals())
		return false;
	o->pid = next.pid;
	o->cmd = NULL;
	o->again = true;
	if (o->for_ns)
		o->for_ns = next.deadline > run_now() ? next.deadline - run_now() : 1;
	next.pid = 0;
	if (try_to_open(o)) {
		/* One that has ended meanwhile is nothing to complain of. */
		if (lives(o->pid) && !run_signals())
			complain("it can't be followed: %s",
			         next.s ? ukp_session_error(next.s) : strerror(ENOMEM));
		again_settle();
		return false;
	}
	words = calloc(o->nr_words + 1, sizeof(*words));
	n = words ? sift(c, o, words) : 0;
	say(o, n);
	free(next.words);
	next.words = o->words = words;
	o->nr_words = n;
	return n;
}

void again_settle(void)
{
	if (next.s)
		ukp_session_close(next.s);
	next.s = NULL;
}

int again_status(int status)
{
	int wait;

	again_settle();
	free(next.words);
	next.words = NULL;
	if (!next.child)
		return status;
	while (waitpid(next.child, &wait, 0) < 0)
		if (errno != EINTR)
			return status;
	next.child = 0;
	return run_status(wait, status);
}
