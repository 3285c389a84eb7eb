/* SPDX-License-Identifier: MIT */
/*
 * The options of all subcommands, and the subcommands themselves.
 */
#ifndef UKP_FRONT_OPTIONS_H
#define UKP_FRONT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What a subcommand takes; the rest is refused. */
enum {
	TAKES_PID = 1 << 0,
	NEEDS_PID = 1 << 1,
	TAKES_CMD = 1 << 2, /* -- CMD ARG...; then exactly one of -p and -- */
	TAKES_FOR = 1 << 3,
	TAKES_COUNT = 1 << 4,
	TAKES_OUTPUT = 1 << 5,
	TAKES_JSON = 1 << 6,
	TAKES_STRICT = 1 << 7,
	TAKES_RET = 1 << 8,
	TAKES_BUDGET = 1 << 9,
	TAKES_ANY_TEXT = 1 << 10,
	TAKES_FOLLOW = 1 << 11,
};

struct options {
	pid_t pid;          /* 0: none */
	char **cmd;         /* NULL: none; ends with NULL */
	uint64_t for_ns;    /* 0: no end */
	uint64_t count;     /* 0: no end */
	const char *output; /* NULL: standard output */
	double budget;      /* share of the target's time; 0: none */
	bool json;
	bool follow;   /* forked children, and what it executes, too */
	bool again;    /* it goes on in another program: output is appended */
	bool any_text; /* also code that its program may rewrite */
	bool strict;   /* refuse a definition of which one place is refused */
	uint8_t ret;   /* enum ukp_ret */
	bool help;     /* print the usage, do nothing else */
	char **words;  /* definitions, functions, GLOB */
	unsigned int nr_words;
};

struct command {
	const char *name;
	const char *summary;
	unsigned int takes;
	unsigned int min_words, max_words;
	const char *word; /* what a word is, for errors: "a definition" */
	const char *usage;
	int (*run)(const struct options *o); /* exit status */
};

/* The table of them, ends with a NULL name (help.c). */
extern const struct command commands[];

/*
 * argv[0] is the subcommand; argv is permuted, and what options point to lives
 * in it.  On failure: -EINVAL and one sentence in why.
 */
int options_parse(struct options *o, const struct command *c, int argc, char **argv, char *why,
                  size_t size);

/* The subcommand nearest to a mistyped one; NULL: none is near. */
const struct command *command_find(const char *name);
const struct command *command_near(const char *name);

/* The whole of ukprobe (dispatch.c): main()'s arguments, exit status. */
int command_main(int argc, char **argv);

int cmd_trace(const struct options *o);
int cmd_latency(const struct options *o);
int cmd_stat(const struct options *o);
int cmd_list(const struct options *o);
int cmd_blacklist(const struct options *o);
int cmd_funcs(const struct options *o);
int cmd_verify(const struct options *o);
int cmd_cure(const struct options *o);
int cmd_doctor(const struct options *o);

/* "ukprobe: ..." and a newline on stderr; returns 1, the exit status. */
int complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
