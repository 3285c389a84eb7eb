/* SPDX-License-Identifier: MIT */
/*
 * toggler PROGRAM THREADS JUMPS [SECONDS]: plants and removes probes in straddle, from
 * outside, while it runs: all its windows by one definition, or one of them, until
 * so many jumps have been seen in and were taken out again; in between some rounds go
 * before their jumps can be there.  Counting probes that stay behind the windows
 * must come to the program's own counts; probes on mark_...() must see each call that
 * is asked for while they are in.  It ends after SECONDS with what it has come to.
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

#define NR 48
#define NR_MARKS 4
#define CALLS 25
#define PATIENCE 60 /* s, for jumps */
#define LOOK_US 5000

/* What is toggled: so many windows, seen in the list by their offset. */
static const struct kind {
	const char *text;
	unsigned int windows;
	const char *at;
	bool stat, marks;
} kinds[] = {
	{ "f:t win_*", NR, "+0x0 ", .stat = true },
	{ "f:m mark_*", NR_MARKS, "+0x0 ", .stat = true, .marks = true },
	{ "f:t win_*", NR, "+0x0 " },
	{ "f:m mark_*%return $retval", NR_MARKS, "+0x0 ", .marks = true },
	{ "p:t win_*+*", NR, "+0x0 ", .stat = true },
	{ "r:t win_b_page_3_many $retval", 1, "+0x0 " },
	{ "f:t win_*%return", NR, "+0x0 ", .stat = true },
	{ "p:m mark_page_one $arg1", 1, "+0x0 ", .marks = true },
	{ "p:t win_c_line_2_many+1", 1, "+0x1 " },
	{ "f:m mark_*", NR_MARKS, "+0x0 ", .marks = true },
};
#define NR_KINDS (sizeof(kinds) / sizeof(*kinds))

static FILE *to, *from;
static pid_t target;
static unsigned long rounds, toggles, jumps;

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("after %lu rounds: ", rounds);
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

/* Of the events of one probe. */
struct seen {
	unsigned int id;
	unsigned long records;
};

static int count_record(const struct ukp_record *r, void *arg)
{
	struct seen *seen = arg;

	seen->records += r->event->id == seen->id;
	return 0;
}

static void need(struct ukp_session *s, int ret, const char *what)
{
	if (ret)
		die("%s: %s", what, ukp_session_error(s));
}

/* How many places at this offset are jumps. */
static unsigned int jumps_at(const char *at)
{
	char *text = NULL, *line, *save = NULL;
	unsigned int found = 0;
	const char *why;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f || ukp_list(target, f, &why))
		die("no list: %s", why);
	fclose(f);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		found += strstr(line, at) && strstr(line, "[OPTIMIZED]");
	free(text);
	return found;
}

static void await_jumps(const struct kind *k)
{
	time_t end = time(NULL) + PATIENCE;

	while (jumps_at(k->at) < k->windows) {
		if (time(NULL) > end)
			die("%s: %u of %u jumps come", k->text, jumps_at(k->at), k->windows);
		usleep(LOOK_US);
	}
	jumps += k->windows;
}

static int each_is_exact(const struct ukp_place_hits *place, void *arg)
{
	if (place->hits != CALLS)
		die("%#lx: %lu hits, %d calls", place->addr, place->hits, CALLS);
	++*(unsigned int *)arg;
	return 0;
}

static void check_places(struct ukp_session *s, const struct kind *k, unsigned int id)
{
	unsigned int places = 0;

	if (!k->marks)
		return;
	ukp_session_stat(s, id, each_is_exact, &places);
	if (places != k->windows)
		die("%s: %u places", k->text, places);
}

/*
 * What it counted is what it recorded and missed, and all that was recorded comes.  A
 * thread that has lost its CPU in the middle of a hit ends that when its turn comes.
 */
static void check_records(struct ukp_session *s, const struct kind *k, unsigned int id)
{
	time_t end = time(NULL) + PATIENCE;
	struct seen seen = { .id = id };
	struct ukp_counts c;

	for (;;) {
		while (ukp_session_read(s, count_record, &seen, 0) > 0)
			;
		need(s, ukp_session_counts(s, id, &c), "counts");
		if (c.hits == c.records + c.misses && (!k->marks || seen.records == c.records))
			break;
		if (time(NULL) > end)
			die("%s: %lu hits, %lu records, %lu of them seen, %lu misses", k->text,
			    c.hits, c.records, seen.records, c.misses);
		usleep(LOOK_US);
	}
	if (k->marks && (c.hits != CALLS * k->windows || c.misses))
		die("%s: %lu hits, %lu misses, %u calls", k->text, c.hits, c.misses,
		    CALLS * k->windows);
}

static void toggle(struct ukp_session *s, const struct kind *k, bool wait)
{
	unsigned int id;
	char line[32];

	rounds++;
	toggles += k->windows;
	need(s, k->stat ? ukp_session_add_stat(s, k->text, &id) : ukp_session_add(s, k->text, &id),
	     k->text);
	need(s, ukp_session_start(s), k->text);
	if (wait)
		await_jumps(k);
	if (k->marks) {
		snprintf(line, sizeof(line), "mark %d", CALLS);
		say(line);
		await("marked");
	}
	need(s, ukp_session_remove(s, id), "remove");
	if (k->stat)
		check_places(s, k, id);
	else
		check_records(s, k, id);
}

static int add_hits(const struct ukp_place_hits *place, void *arg)
{
	*(unsigned long *)arg += place->hits;
	return 0;
}

static void name_of(unsigned int i, char *name, size_t len)
{
	snprintf(name, len, "win_%c_%s_%u_%s", 'a' + i / 16, i / 2 % 2 ? "page" : "line",
	         i / 4 % 4 + 1, i % 2 ? "many" : "one");
}

/* They count from before the first call that the program counts. */
static void stay(struct ukp_session *s, unsigned int id[NR])
{
	char name[32], text[64];
	unsigned int i;

	for (i = 0; i < NR; i++) {
		name_of(i, name, sizeof(name));
		snprintf(text, sizeof(text), "p:s%u %s+%d", i, name, i % 2 ? 11 : 7);
		need(s, ukp_session_add_stat(s, text, &id[i]), text);
	}
	need(s, ukp_session_start(s), "start");
}

static void compare(struct ukp_session *s, const unsigned int id[NR])
{
	unsigned long hits, calls, signals, ms;
	unsigned int i;
	char name[32];

	say("stop");
	for (i = 0; i < NR; i++) {
		name_of(i, name, sizeof(name));
		calls = await(name);
		hits = 0;
		ukp_session_stat(s, id[i], add_hits, &hits);
		if (hits != calls)
			die("%s: %lu hits, %lu calls", name, hits, calls);
		printf("%s %lu\n", name, calls);
	}
	signals = await("signals");
	ms = await("ms");
	printf("signals %lu\n%lu signals a second\n", signals, signals * 1000 / (ms + 1));
	calls = await("wrong");
	if (calls)
		die("%lu results are wrong", calls);
}

int main(int argc, char **argv)
{
	unsigned long n = strtoul(argv[3], NULL, 0);
	struct ukp_session *stays, *s;
	unsigned int id[NR];
	const char *why;
	time_t end = argc > 4 ? time(NULL) + atol(argv[4]) : 0;

	start(argv[1], argv[2]);
	await("ready");
	if (ukp_session_open(&stays, target))
		die("%s", ukp_session_error(stays));
	stay(stays, id);
	say("go");
	await("running");
	if (ukp_session_open(&s, target))
		die("%s", ukp_session_error(s));
	/* Each kind with its jumps, and after it the next one without. */
	while (jumps < n && (!end || time(NULL) < end)) {
		toggle(s, &kinds[rounds / 2 % NR_KINDS], true);
		toggle(s, &kinds[(rounds / 2 + 3) % NR_KINDS], false);
	}
	compare(stays, id);
	ukp_session_close(s);
	ukp_session_close(stays);
	if (ukp_verify(target, stdout, &why))
		die("verify: %s", why);
	fclose(to);
	waitpid(target, NULL, 0);
	printf("%lu jumps came and went, %lu toggles in %lu rounds\n", jumps, toggles, rounds);
	return 0;
}
