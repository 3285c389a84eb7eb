/* SPDX-License-Identifier: MIT */
/*
 * ukprobe stat: how often each place was hit, counted inside the target; the
 * table is printed in the end, most hit first, or all as JSON.
 */
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front/run.h"

#define WAIT_MS 250 /* how late the end of the run may be seen at worst */

struct stat_run {
	const struct options *o;
	struct run run;
	FILE *out;
	unsigned int nr, *id;
	struct ukp_place_hits *place;
	size_t nr_places, room, nr_hit;
	uint64_t hits;
	char name[1024];
	struct ukp_counts calls; /* of those of which returns are counted */
};

static int failed(struct stat_run *s, int err)
{
	const char *why = err == -ENOMEM ? "" : ukp_session_error(s->run.s);

	complain("%s", *why ? why : strerror(-err));
	return err;
}

static int on_place(const struct ukp_place_hits *p, void *arg)
{
	struct stat_run *s = arg;

	if (s->nr_places == s->room) {
		size_t room = s->room ? s->room * 2 : 1024;
		void *more = realloc(s->place, room * sizeof(*s->place));

		if (!more)
			return -ENOMEM;
		s->place = more;
		s->room = room;
	}
	s->place[s->nr_places++] = *p;
	return 0;
}

static int by_addr(const void *a, const void *b)
{
	const struct ukp_place_hits *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->ret - y->ret;
}

static int most_first(const void *a, const void *b)
{
	const struct ukp_place_hits *x = a, *y = b;

	if (x->hits != y->hits)
		return x->hits < y->hits ? 1 : -1;
	return by_addr(a, b);
}

/* A place that several definitions mean is one place; each has counted its hits. */
static void unite(struct stat_run *s)
{
	size_t out = 0;

	qsort(s->place, s->nr_places, sizeof(*s->place), by_addr);
	for (size_t i = 0; i < s->nr_places; i++) {
		if (!out || by_addr(&s->place[out - 1], &s->place[i]))
			s->place[out++] = s->place[i];
		else if (s->place[out - 1].hits < s->place[i].hits)
			s->place[out - 1].hits = s->place[i].hits;
	}
	s->nr_places = out;
	s->nr_hit = 0;
	s->hits = 0;
	for (size_t i = 0; i < out; i++) {
		s->nr_hit += s->place[i].hits != 0;
		s->hits += s->place[i].hits;
	}
	qsort(s->place, out, sizeof(*s->place), most_first);
}

static int read_places(struct stat_run *s)
{
	int err = 0;

	s->nr_places = 0;
	for (unsigned int i = 0; i < s->nr && !err; i++)
		err = ukp_session_stat(s->run.s, s->id[i], on_place, s);
	if (!err && s->nr_places)
		unite(s);
	return err ? err : ukp_session_counts(s->run.s, UINT_MAX, &s->calls);
}

/* As the kernel writes it of a return: FUNC%return, without the offset of its entry. */
static const char *name_of(struct stat_run *s, const struct ukp_place_hits *p)
{
	const char *name = ukp_session_symbol(s->run.s, p->addr), *offset, *module;

	if (!p->ret)
		return name;
	module = strstr(name, " [");
	module = module ? module : name + strlen(name);
	offset = strstr(name, "+0x");
	snprintf(s->name, sizeof(s->name), "%.*s%%return%s",
	         (int)((offset && offset < module ? offset : module) - name), name, module);
	return s->name;
}

/* Names come from symbol tables of foreign files. */
static void put_name(FILE *f, const char *name)
{
	for (; *name; name++)
		fputc((unsigned char)*name < ' ' || *name == 0x7f ? '?' : *name, f);
}

/* Calls whose returns were not seen, and why; none of them is in the sum. */
static void print_missed(struct stat_run *s)
{
	const char *sep = "";

	if (!s->calls.misses)
		return;
	fprintf(s->out, "%12" PRIu64 "  calls without a return (", s->calls.misses);
	for (unsigned int i = 0; i < UKP_NR_MISSES; i++) {
		if (!s->calls.miss[i])
			continue;
		fprintf(s->out, "%s%s %" PRIu64, sep, ukp_miss_name(i), s->calls.miss[i]);
		sep = ", ";
	}
	fputs(")\n", s->out);
}

static void print_table(struct stat_run *s)
{
	fprintf(s->out, "%12s  %s\n", "HITS", "PLACE");
	for (size_t i = 0; i < s->nr_hit; i++) {
		fprintf(s->out, "%12" PRIu64 "  ", s->place[i].hits);
		put_name(s->out, name_of(s, &s->place[i]));
		fputc('\n', s->out);
	}
	print_missed(s);
	fprintf(s->out, "%12" PRIu64 "  in %zu of %zu places\n", s->hits, s->nr_hit, s->nr_places);
}

static int print_string(FILE *f, const char *text)
{
	struct json_object *o = json_object_new_string(text);

	if (!o)
		return -ENOMEM;
	fputs(json_object_to_json_string_ext(o, JSON_C_TO_STRING_NOSLASHESCAPE), f);
	json_object_put(o);
	return 0;
}

static void print_calls(struct stat_run *s)
{
	const char *sep = "";

	fprintf(s->out, "\"calls\":%" PRIu64 ",\"missed\":%" PRIu64 ",\"misses\":{", s->calls.hits,
	        s->calls.misses);
	for (unsigned int i = 0; i < UKP_NR_MISSES; i++) {
		if (!s->calls.miss[i])
			continue;
		fprintf(s->out, "%s\"%s\":%" PRIu64, sep, ukp_miss_name(i), s->calls.miss[i]);
		sep = ",";
	}
	fputs("},", s->out);
}

static int print_json(struct stat_run *s, double seconds)
{
	int err = 0;

	fprintf(s->out,
	        "{\"pid\":%d,\"seconds\":%.6f,\"places\":%zu,\"hit\":%zu,\"hits\":%" PRIu64 ",",
	        ukp_session_pid(s->run.s), seconds, s->nr_places, s->nr_hit, s->hits);
	print_calls(s);
	fputs("\"by_place\":[", s->out);
	for (size_t i = 0; i < s->nr_places && !err; i++) {
		const struct ukp_place_hits *p = &s->place[i];

		fprintf(s->out,
		        "%s\n{\"address\":\"0x%" PRIx64 "\",\"return\":%s,\"hits\":%" PRIu64
		        ",\"place\":",
		        i ? "," : "", p->addr, p->ret ? "true" : "false", p->hits);
		err = print_string(s->out, name_of(s, p));
		fputc('}', s->out);
	}
	fputs("]}\n", s->out);
	return err;
}

static int print(struct stat_run *s, double seconds)
{
	bool bad;
	int err = read_places(s);

	if (!err && s->o->json)
		err = print_json(s, seconds);
	else if (!err)
		print_table(s);
	if (err)
		return failed(s, err);
	errno = 0;
	bad = fflush(s->out) || ferror(s->out);
	if (s->out != stdout && fclose(s->out))
		bad = true;
	s->out = NULL;
	/* Nobody reads any more: that is no failure. */
	if (bad && errno != EPIPE)
		return -complain("can't write to %s: %s",
		                 s->o->output ? s->o->output : "standard output", strerror(errno));
	return 0;
}

static int prepare(struct stat_run *s)
{
	int err;

	s->id = calloc(s->o->nr_words, sizeof(*s->id));
	if (!s->id)
		return failed(s, -ENOMEM);
	for (; s->nr < s->o->nr_words; s->nr++) {
		err = ukp_session_add_stat(s->run.s, s->o->words[s->nr], &s->id[s->nr]);
		if (err)
			return failed(s, err);
	}
	/* Last, so that a refused definition leaves the old file as it was. */
	s->out = s->o->output ? fopen(s->o->output, s->o->again ? "ae" : "we") : stdout;
	if (s->out)
		return 0;
	err = -errno;
	complain("can't open %s: %s", s->o->output, strerror(errno));
	return err;
}

/* What is counted writes no records. */
static int no_record(const struct ukp_record *r, void *arg)
{
	return 0;
}

static int watch(struct stat_run *s)
{
	/* Asks which places they are, while the broker surely is there. */
	int err = read_places(s);
	long n;

	while (!err && !run_over(&s->run)) {
		n = ukp_session_read(s->run.s, no_record, NULL, run_timeout(&s->run, WAIT_MS));
		if (n == -ESRCH)
			run_gone(&s->run);
		else if (n < 0 && n != -EINTR)
			err = (int)n;
		run_dropped(&s->run);
	}
	return err ? failed(s, err) : 0;
}

static void forget(struct stat_run *s)
{
	free(s->id);
	free(s->place);
	if (s->out && s->out != stdout)
		fclose(s->out);
}

int cmd_stat(const struct options *o)
{
	struct stat_run s = { .o = o };
	uint64_t stopped;
	int status;

	if (run_open(&s.run, o) || prepare(&s) || run_start(&s.run, o)) {
		forget(&s);
		return run_abandon(&s.run);
	}
	status = watch(&s) ? 1 : 0;
	stopped = run_now();
	if (run_stop(&s.run))
		status = 1;
	if (print(&s, (double)(stopped - s.run.started) / 1e9))
		status = 1;
	forget(&s);
	return run_close(&s.run, status);
}
