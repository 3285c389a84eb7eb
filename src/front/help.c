/* SPDX-License-Identifier: MIT */
/*
 * The subcommands and their usage.  Each is explained in docs/man/; a test
 * keeps the options here and there the same.
 */
#include <limits.h>
#include <string.h>

#include "front/options.h"

#define HELP "  -h, --help          this text\n"
#define PID "  -p, --pid PID       the process\n"
#define BUDGET                                                                                 \
	"      --max-overhead PERCENT\n"                                                       \
	"                      take out what is hit too often for this share of the target's " \
	"time\n"
#define FOLLOW                                                                                   \
	"  -f, --follow        also in processes that it forks, until they execute a program,\n" \
	"                      and in the program that it executes itself\n"
#define ANY_TEXT                                                                                \
	"      --any-text      also code that has no file or differs from it, as a JIT makes\n" \
	"                      it: one place by its address\n"
#define RET                                                                                   \
	"      --ret HOW       what catches returns: exit (probes at the exits), call (the\n" \
	"                      function is called from its entry), slot (the return\n"        \
	"                      address is replaced), or auto, which chooses\n"

static const char trace_usage[] =
	"usage: ukprobe trace [-f] [-n COUNT] [--for SECONDS] [--ret=HOW] [--strict]\n"
	"                     [--any-text] [--max-overhead PERCENT] [-o FILE] -p PID DEF...\n"
	"       ukprobe trace [-f] [-n COUNT] [--for SECONDS] [--ret=HOW] [--strict]\n"
	"                     [--any-text] [--max-overhead PERCENT] [-o FILE] [DEF...]\n"
	"                     -- CMD [ARG...]\n"
	"\n"
	"Plants probes and prints a line for each hit, until Ctrl-C or the end of the target.\n"
	"\n"
	"  DEF                 p[:[GRP/]EVENT] PLACE [ARGS]             at a place\n"
	"                      r[MAXACTIVE][:[GRP/]EVENT] PLACE [ARGS]  at the returns of a "
	"function\n"
	"                      f[MAXACTIVE][:[GRP/]EVENT] [MOD:]GLOB[%return] [ARGS]\n"
	"                                                               at many functions\n"
	"                      one word of the shell: put it in single quotes; see ukprobes(7)\n"
	"  -- CMD [ARG...]     start a command, with the probes in before main\n" PID FOLLOW
	"  -n, --count COUNT   end after COUNT lines\n"
	"      --for SECONDS   end after a time, fractions allowed\n" RET BUDGET
	"      --strict        refuse a definition if one of its places can't be probed\n" ANY_TEXT
	"  -o, --output FILE   lines to FILE instead of standard output\n" HELP "\n"
	"  ukprobe trace -p 1234 'r:get lookupKey ret=$retval ns=$duration'\n";

static const char latency_usage[] =
	"usage: ukprobe latency [-f] [--for SECONDS] [--ret=HOW] [--max-overhead PERCENT]\n"
	"                       [--json] [-o FILE] -p PID FUNC[=KIND]...\n"
	"       ukprobe latency [-f] [--for SECONDS] [--ret=HOW] [--max-overhead PERCENT]\n"
	"                       [--json] [-o FILE] FUNC[=KIND]... -- CMD [ARG...]\n"
	"\n"
	"Times functions, inside the target: how often, how long, how many errors.\n"
	"\n"
	"  FUNC[=KIND]         a function, and what counts as an error of it:\n"
	"                        ptr   NULL, or a pointer in the range of ERR_PTR\n"
	"                        s32   a negative int     s64   a negative long\n"
	"                        none  nothing            (none given) an int in -4095..-1\n"
	"  -- CMD [ARG...]     start a command, with the probes in before main\n" PID FOLLOW
	"      --for SECONDS   end after a time, fractions allowed\n" RET BUDGET
	"      --json          one JSON object instead of the table\n"
	"  -o, --output FILE   result to FILE instead of standard output\n" HELP "\n"
	"  ukprobe latency -p 1234 --for 10 processCommand lookupKey=ptr\n";

static const char stat_usage[] =
	"usage: ukprobe stat [-f] [--for SECONDS] [--ret=HOW] [--strict] [--any-text]\n"
	"                    [--max-overhead PERCENT] [--json] [-o FILE] -p PID DEF...\n"
	"       ukprobe stat [-f] [--for SECONDS] [--ret=HOW] [--strict] [--any-text]\n"
	"                    [--max-overhead PERCENT] [--json] [-o FILE] DEF... -- CMD [ARG...]\n"
	"\n"
	"Counts hits by place, inside the target, and prints a table in the end, most hit first.\n"
	"\n"
	"  DEF                 p PLACE             one place; with [MOD:]GLOB+* each instruction:\n"
	"                                          what was executed of functions\n"
	"                      f [MOD:]GLOB        all functions that match; MOD:* a whole file\n"
	"  -- CMD [ARG...]     start a command, with the probes in before main\n" PID FOLLOW
	"      --for SECONDS   end after a time, fractions allowed\n" RET BUDGET
	"      --strict        refuse a definition if one of its places can't be probed\n" ANY_TEXT
	"      --json          one JSON object instead of the table, with places never hit\n"
	"  -o, --output FILE   result to FILE instead of standard output\n" HELP "\n"
	"  ukprobe stat -p 1234 --for 10 'f libz:*'\n";

static const char list_usage[] =
	"usage: ukprobe list -p PID\n"
	"\n"
	"Lists the probes in a process, in the format of the kernel's kprobes/list, with the\n"
	"form that each has and why.\n"
	"\n" PID HELP;

static const char blacklist_usage[] =
	"usage: ukprobe blacklist [-p PID]\n"
	"\n"
	"Lists what must not be probed; with -p, by the addresses in that process.\n"
	"\n" PID HELP;

static const char funcs_usage[] =
	"usage: ukprobe funcs -p PID [[MOD:]GLOB]\n"
	"\n"
	"Lists functions that can be probed: name, address, size and module, separated by tabs.\n"
	"\n"
	"  [MOD:]GLOB          only names that match: 'lookup*', 'libz:*'; put it in quotes\n" PID
		HELP;

static const char verify_usage[] =
	"usage: ukprobe verify -p PID\n"
	"\n"
	"Compares the code of a process with its files and says whether an agent is present.\n"
	"Exit status 0 only if the process is untouched.\n"
	"\n" PID HELP;

static const char cure_usage[] = "usage: ukprobe cure -p PID\n"
				 "\n"
				 "Removes from a process whatever a crashed broker left in it.\n"
				 "\n" PID HELP;

static const char doctor_usage[] =
	"usage: ukprobe doctor [-p PID]\n"
	"\n"
	"Says what would hinder an attach here and now, and what to do about it.\n"
	"\n"
	"  -p, --pid PID       to this process; without it, to any on this machine\n" HELP;

const struct command commands[] = {
	{ "trace", "print a line for each hit of a probe",
	  TAKES_PID | TAKES_CMD | TAKES_FOR | TAKES_COUNT | TAKES_OUTPUT | TAKES_RET |
	          TAKES_STRICT | TAKES_BUDGET | TAKES_ANY_TEXT | TAKES_FOLLOW,
	  1, UINT_MAX, "a definition", trace_usage, cmd_trace },
	{ "latency", "time functions: histogram, percentiles, errors",
	  TAKES_PID | TAKES_CMD | TAKES_FOR | TAKES_JSON | TAKES_OUTPUT | TAKES_RET | TAKES_BUDGET |
	          TAKES_FOLLOW,
	  1, UINT_MAX, "a function", latency_usage, cmd_latency },
	{ "stat", "count hits by place",
	  TAKES_PID | TAKES_CMD | TAKES_FOR | TAKES_JSON | TAKES_OUTPUT | TAKES_RET | TAKES_STRICT |
	          TAKES_BUDGET | TAKES_ANY_TEXT | TAKES_FOLLOW,
	  1, UINT_MAX, "a definition", stat_usage, cmd_stat },
	{ "list", "list the probes in a process", TAKES_PID | NEEDS_PID, 0, 0, "", list_usage,
	  cmd_list },
	{ "blacklist", "list what must not be probed", TAKES_PID, 0, 0, "", blacklist_usage,
	  cmd_blacklist },
	{ "funcs", "list functions that can be probed", TAKES_PID | NEEDS_PID, 0, 1, "GLOB",
	  funcs_usage, cmd_funcs },
	{ "verify", "prove that a process is untouched", TAKES_PID | NEEDS_PID, 0, 0, "",
	  verify_usage, cmd_verify },
	{ "cure", "remove what a crashed broker left", TAKES_PID | NEEDS_PID, 0, 0, "", cure_usage,
	  cmd_cure },
	{ "doctor", "say what would hinder an attach", TAKES_PID, 0, 0, "", doctor_usage,
	  cmd_doctor },
	{ NULL, NULL, 0, 0, 0, NULL, NULL, NULL },
};

const struct command *command_find(const char *name)
{
	for (const struct command *c = commands; c->name; c++)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

#define NEAR_MAX 16

/* Edit distance: letters to insert, delete or change; two swapped ones count two. */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[NEAR_MAX + 1], left, corner, up, lb = (unsigned int)strlen(b);

	for (unsigned int j = 0; j <= lb; j++)
		row[j] = j;
	for (unsigned int i = 0; a[i]; i++) {
		corner = row[0];
		row[0] = left = i + 1;
		for (unsigned int j = 0; j < lb; j++) {
			up = row[j + 1];
			left = left < up ? left + 1 : up + 1;
			if (corner + (a[i] != b[j]) < left)
				left = corner + (a[i] != b[j]);
			corner = up;
			row[j + 1] = left;
		}
	}
	return row[lb];
}

const struct command *command_near(const char *name)
{
	const struct command *best = NULL;
	unsigned int d, least = UINT_MAX;
	size_t len = strlen(name);

	if (!len || len > NEAR_MAX)
		return NULL;
	for (const struct command *c = commands; c->name; c++) {
		d = distance(name, c->name);
		/* Shortened, or written out: the start is what people remember. */
		if (!strncmp(name, c->name, len < 3 ? len : 3) && d > 2)
			d = 2;
		if (d < least) {
			least = d;
			best = c;
		}
	}
	return least <= 2 || least < len / 2 ? best : NULL;
}
