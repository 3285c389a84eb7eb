/* SPDX-License-Identifier: MIT */
/* The command line of a subcommand, by getopt_long(3); see options.h. */
#include "front/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ukprobes/session.h"

/* Where one sentence about a failure goes. */
struct why {
	const struct command *c;
	char *text;
	size_t size;
};

enum { OPT_FOR = 256, OPT_JSON, OPT_STRICT, OPT_RET, OPT_BUDGET, OPT_ANY_TEXT };

static const struct {
	struct option o;
	unsigned int takes; /* 0: every subcommand does */
} all[] = {
	{ { "help", no_argument, NULL, 'h' }, 0 },
	{ { "pid", required_argument, NULL, 'p' }, TAKES_PID },
	{ { "for", required_argument, NULL, OPT_FOR }, TAKES_FOR },
	{ { "count", required_argument, NULL, 'n' }, TAKES_COUNT },
	{ { "output", required_argument, NULL, 'o' }, TAKES_OUTPUT },
	{ { "json", no_argument, NULL, OPT_JSON }, TAKES_JSON },
	{ { "strict", no_argument, NULL, OPT_STRICT }, TAKES_STRICT },
	{ { "ret", required_argument, NULL, OPT_RET }, TAKES_RET },
	{ { "max-overhead", required_argument, NULL, OPT_BUDGET }, TAKES_BUDGET },
	{ { "follow", no_argument, NULL, 'f' }, TAKES_FOLLOW },
	{ { "any-text", no_argument, NULL, OPT_ANY_TEXT }, TAKES_ANY_TEXT },
};
#define NR_ALL (sizeof(all) / sizeof(all[0]))

__attribute__((format(printf, 2, 3))) static int refuse(struct why *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->text, w->size, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("ukprobe: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	return 1;
}

/* --- values of options ------------------------------------------------------- */

static bool whole(const char *s, unsigned long long max, unsigned long long *v)
{
	char *end;

	if (*s < '0' || *s > '9')
		return false;
	errno = 0;
	*v = strtoull(s, &end, 10);
	return !errno && !*end && *v && *v <= max;
}

static int set_pid(struct options *o, const char *s, struct why *w)
{
	unsigned long long v;

	if (!whole(s, INT_MAX, &v))
		return refuse(w, "'%s' is not a process id; -p takes one whole number", s);
	if (o->pid)
		return refuse(w, "-p is given twice; a command works on one process");
	o->pid = (pid_t)v;
	return 0;
}

static int set_count(struct options *o, const char *s, struct why *w)
{
	unsigned long long v;

	if (!whole(s, ULLONG_MAX, &v))
		return refuse(w, "'%s' is not a count; -n takes a whole number from 1 on", s);
	o->count = v;
	return 0;
}

static int set_for(struct options *o, const char *s, struct why *w)
{
	char *end;
	double v;

	v = strtod(s, &end);
	/* Written so that a NaN is refused too. */
	if (end == s || *end || !(v >= 1e-9 && v <= 1e9))
		return refuse(w, "'%s' is not a time; --for takes seconds, like 10 or 0.5", s);
	o->for_ns = (uint64_t)(v * 1e9);
	return 0;
}

static int set_ret(struct options *o, const char *s, struct why *w)
{
	static const char *const how[] = {
		[UKP_RET_AUTO] = "auto",
		[UKP_RET_EXIT] = "exit",
		[UKP_RET_CALL] = "call",
		[UKP_RET_SLOT] = "slot",
	};

	for (uint8_t i = 0; i < sizeof(how) / sizeof(how[0]); i++)
		if (!strcmp(s, how[i])) {
			o->ret = i;
			return 0;
		}
	return refuse(w, "'%s' catches no returns; --ret takes auto, exit, call or slot", s);
}

static int set_budget(struct options *o, const char *s, struct why *w)
{
	char *end;
	double v;

	v = strtod(s, &end);
	if (end == s || (*end && strcmp(end, "%")) || !(v >= 0.001 && v <= 100))
		return refuse(w,
		              "'%s' is no share; --max-overhead takes percent of the target's CPU "
		              "time, like 5%%",
		              s);
	o->budget = v / 100;
	return 0;
}

static int set_option(struct options *o, int c, const char *arg, struct why *w)
{
	switch (c) {
	case 'h':
		o->help = true;
		return 0;
	case 'p':
		return set_pid(o, arg, w);
	case 'n':
		return set_count(o, arg, w);
	case 'o':
		o->output = arg;
		return *arg ? 0 : refuse(w, "-o needs the name of a file");
	case OPT_FOR:
		return set_for(o, arg, w);
	case OPT_JSON:
		o->json = true;
		return 0;
	case OPT_STRICT:
		o->strict = true;
		return 0;
	case 'f':
		o->follow = true;
		return 0;
	case OPT_ANY_TEXT:
		o->any_text = true;
		return 0;
	case OPT_RET:
		return set_ret(o, arg, w);
	case OPT_BUDGET:
		return set_budget(o, arg, w);
	}
	return 0;
}

/* --- the line ---------------------------------------------------------------- */

/* The tables for getopt_long() of what this subcommand takes. */
static void tables(const struct command *c, struct option *longs, char *shorts)
{
	unsigned int n = 0;
	char *p = shorts;

	*p++ = ':'; /* tell a missing argument from an unknown option */
	for (unsigned int i = 0; i < NR_ALL; i++) {
		if (all[i].takes && !(c->takes & all[i].takes))
			continue;
		longs[n++] = all[i].o;
		if (all[i].o.val > UCHAR_MAX)
			continue;
		*p++ = (char)all[i].o.val;
		if (all[i].o.has_arg)
			*p++ = ':';
	}
	memset(&longs[n], 0, sizeof(longs[n]));
	*p = 0;
}

/* getopt_long() said '?' or ':' about the word before optind, or a letter in it. */
static int refuse_option(struct why *w, int c, char **argv)
{
	const char *name = w->c->name, *word = argv[optind - 1];

	if (c == ':')
		return refuse(w, "%s needs a value; see ukprobe %s --help", word, name);
	if (optopt && optopt <= UCHAR_MAX && strncmp(word, "--", 2))
		return refuse(w, "%s has no option -%c; see ukprobe %s --help", name, optopt, name);
	return refuse(w, "%s has no option %s, or not in this form; see ukprobe %s --help", name,
	              word, name);
}

static int check_target(const struct options *o, struct why *w)
{
	const struct command *c = w->c;

	if (c->takes & TAKES_CMD) {
		if (o->pid && o->cmd)
			return refuse(w, "-p and -- exclude each other; give the one target");
		if (!o->pid && !o->cmd)
			return refuse(w, "no target: give -p PID, or -- and a command to start");
		if (o->cmd && !*o->cmd)
			return refuse(w, "no command after --");
		return 0;
	}
	if (o->cmd)
		return refuse(w, "%s starts no command; give -p PID", c->name);
	if ((c->takes & NEEDS_PID) && !o->pid)
		return refuse(w, "no target: give -p PID");
	return 0;
}

/* Its time is measured against one process's, and its hits would be all of them. */
static int check_follow(const struct options *o, struct why *w)
{
	if (o->follow && o->budget > 0)
		return refuse(w, "--follow and --max-overhead exclude each other");
	return 0;
}

static int check_words(const struct options *o, struct why *w)
{
	const struct command *c = w->c;

	/* A command to start needs no words: "trace -- CMD" is legal. */
	if (o->nr_words < c->min_words && !((c->takes & TAKES_COUNT) && o->cmd))
		return refuse(w, "%s needs %s; see ukprobe %s --help", c->name, c->word, c->name);
	if (o->nr_words > c->max_words && !c->max_words)
		return refuse(w, "%s takes no '%s'; see ukprobe %s --help", c->name, o->words[0],
		              c->name);
	if (o->nr_words > c->max_words)
		return refuse(w, "%s takes one %s only; put it in quotes", c->name, c->word);
	return 0;
}

int options_parse(struct options *o, const struct command *c, int argc, char **argv, char *text,
                  size_t size)
{
	struct why w = { c, text, size };
	struct option longs[NR_ALL + 1];
	char shorts[2 * NR_ALL + 2];
	int opt, ret = 0;

	memset(o, 0, sizeof(*o));
	tables(c, longs, shorts);
	/*
	 * Cut at -- ourselves: getopt_long() moves words that stand before it
	 * to behind it, where they can't be told from the command's any more.
	 */
	for (int i = 1; i < argc && !o->cmd; i++) {
		if (!strcmp(argv[i], "--")) {
			o->cmd = &argv[i + 1];
			argc = i;
		}
	}
	optind = 0; /* glibc: start anew */
	opterr = 0;
	while (!ret && (opt = getopt_long(argc, argv, shorts, longs, NULL)) >= 0) {
		if (opt == '?' || opt == ':')
			ret = refuse_option(&w, opt, argv);
		else
			ret = set_option(o, opt, optarg, &w);
	}
	if (ret || o->help)
		return ret;
	o->words = &argv[optind];
	o->nr_words = (unsigned int)(argc - optind);
	ret = check_target(o, &w);
	if (!ret)
		ret = check_follow(o, &w);
	return ret ? ret : check_words(o, &w);
}
