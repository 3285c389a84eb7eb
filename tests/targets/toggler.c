/* SPDX-License-Identifier: MIT */
/*
 * toggler PROGRAM THREADS TOGGLES EVERY [SECONDS]: plants and removes a probe in straddle
 * so often, from outside, while it runs.  Counting probes that stay behind the
 * windows must come to the program's own counts; a probe that is toggled on
 * mark() must see each call that is asked for while it is in.  Every so often a
 * probe stays until the list says that it is a jump.  It ends after SECONDS with
 * what it has come to.
 */
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ukprobes/session.h"

#define NR 4
#define MARKS 25
#define PATIENCE 60 /* s, for jumps */

static const char *const stays[NR] = { "p:s0 line_one+7", "p:s1 line_many+11", "p:s2 page_one+7",
	                               "p:s3 page_many+11" };
static const char *const name[NR] = { "line_one", "line_many", "page_one", "page_many" };
static const char *const toggled[] = {
	"p:t line_one",          "p:t line_many",        "p:t page_one",
	"p:t page_many",         "p:t line_many+1",      "p:t page_many+1",
	"r:t line_many $retval", "r:t page_one $retval", "p:t page_many $arg1",
};

static FILE *to, *from;
static pid_t target;
static unsigned long toggles;

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("after %lu toggles: ", toggles);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	exit(1);
}

static void start(const char *program, const char *threads)
{
	int in[2], out[2];

	if (pipe2(in, 0) || pipe2(out, 0))
		die("no pipe");
	target = fork();
	if (!target) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		close(out[0]);
		execl(program, program, threads, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	to = fdopen(in[1], "w");
	from = fdopen(out[0], "r");
}

/* The number behind a word, of the next line that has it. */
static unsigned long await(const char *word)
{
	static char line[128];
	size_t len = strlen(word);

	while (fgets(line, sizeof(line), from))
		if (!strncmp(line, word, len))
			return strtoul(line + len, NULL, 10);
	die("the target ended before '%s'", word);
}

static void say(const char *line)
{
	fprintf(to, "%s\n", line);
	fflush(to);
}

static int count_record(const struct ukp_record *r, void *arg)
{
	++*(unsigned long *)arg;
	return 0;
}

static void need(struct ukp_session *s, int ret, const char *what)
{
	if (ret)
		die("%s: %s", what, ukp_session_error(s));
}

/* Is there a line of the list with this name and a jump? */
static bool is_jump(const char *place)
{
	char *text = NULL, *line, *save = NULL;
	const char *why;
	size_t len;
	bool found = false;
	FILE *f = open_memstream(&text, &len);

	if (!f || ukp_list(target, f, &why))
		die("no list: %s", why);
	fclose(f);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		found |= strstr(line, place) && strstr(line, "[OPTIMIZED]");
	free(text);
	return found;
}

static void await_jump(const char *place)
{
	time_t end = time(NULL) + PATIENCE;

	while (!is_jump(place)) {
		if (time(NULL) > end)
			die("no jump comes at %s", place);
		usleep(10000);
	}
}

/* What it counted is what it recorded and missed; all that came are read meanwhile. */
static void toggle(struct ukp_session *s, const char *text, const char *jump, bool marks)
{
	unsigned long records = 0;
	struct ukp_counts c;
	unsigned int id;
	char line[32];

	toggles++;
	need(s, ukp_session_add(s, text, &id), text);
	need(s, ukp_session_start(s), text);
	if (jump)
		await_jump(jump);
	if (marks) {
		snprintf(line, sizeof(line), "mark %d", MARKS);
		say(line);
		await("marked");
	}
	need(s, ukp_session_remove(s, id), "remove");
	while (ukp_session_read(s, count_record, &records, 0) > 0)
		;
	need(s, ukp_session_counts(s, id, &c), "counts");
	if (c.hits != c.records + c.misses)
		die("%s: %lu hits, %lu records, %lu misses", text, c.hits, c.records, c.misses);
	if (marks && (c.hits != MARKS || records < MARKS))
		die("%s: %lu hits, %lu records seen, %d calls", text, c.hits, records, MARKS);
}

static int add_hits(const struct ukp_place_hits *place, void *arg)
{
	*(unsigned long *)arg += place->hits;
	return 0;
}

static void compare(struct ukp_session *s, const unsigned int id[NR])
{
	unsigned long hits, calls;
	unsigned int i;

	say("stop");
	for (i = 0; i < NR; i++) {
		calls = await(name[i]);
		hits = 0;
		ukp_session_stat(s, id[i], add_hits, &hits);
		if (hits != calls)
			die("%s: %lu hits, %lu calls", name[i], hits, calls);
		printf("%s %lu\n", name[i], calls);
	}
	calls = await("wrong");
	if (calls)
		die("%lu results are wrong", calls);
}

int main(int argc, char **argv)
{
	unsigned long i, n = strtoul(argv[3], NULL, 0), every = strtoul(argv[4], NULL, 0);
	unsigned long jumps = 0, kinds = sizeof(toggled) / sizeof(*toggled);
	struct ukp_session *stay, *s;
	unsigned int id[NR], k;
	const char *why;
	time_t end = argc > 5 ? time(NULL) + atol(argv[5]) : 0;
	char place[64];

	start(argv[1], argv[2]);
	await("ready");
	if (ukp_session_open(&stay, target))
		die("%s", ukp_session_error(stay));
	for (k = 0; k < NR; k++)
		need(stay, ukp_session_add_stat(stay, stays[k], &id[k]), stays[k]);
	/* They count from before the first call that the program counts. */
	need(stay, ukp_session_start(stay), "start");
	say("go");
	await("running");
	if (ukp_session_open(&s, target))
		die("%s", ukp_session_error(s));
	for (i = 0; i < n && (!end || time(NULL) < end); i++) {
		const char *text = toggled[i % kinds];
		bool wait = every && i % every == 0;

		if (i % 4 == 3) {
			toggle(s, i % 8 == 3 ? "p:m mark" : "r:m mark $retval", NULL, true);
			continue;
		}
		snprintf(place, sizeof(place), "%s+0x0", name[i % NR]);
		if (wait) {
			snprintf(place, sizeof(place), "%.*s+0x0", (int)strcspn(text + 4, "+ "),
			         text + 4);
			jumps += !strchr(text + 4, '+');
		}
		toggle(s, text, wait && !strchr(text + 4, '+') ? place : NULL, false);
	}
	compare(stay, id);
	ukp_session_close(s);
	ukp_session_close(stay);
	if (ukp_verify(target, stdout, &why))
		die("verify: %s", why);
	fclose(to);
	waitpid(target, NULL, 0);
	printf("%lu toggles, %lu waited for their jump\n", toggles, jumps);
	return 0;
}
