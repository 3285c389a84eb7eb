/* SPDX-License-Identifier: MIT */
/* Command lines of the subcommands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "front/options.h"

#define ARGS_MAX 16

static char why[512];
static char words[512];

/* Parses a line, words apart by single blanks. */
static int parse(struct options *o, const char *line)
{
	static char *argv[ARGS_MAX + 1];
	int argc = 0;

	snprintf(words, sizeof(words), "%s", line);
	for (char *w = strtok(words, " "); w && argc < ARGS_MAX; w = strtok(NULL, " "))
		argv[argc++] = w;
	argv[argc] = NULL;
	why[0] = 0;
	return options_parse(o, command_find(argv[0]), argc, argv, why, sizeof(why));
}

static void refused(const char *line, const char *part)
{
	struct options o;

	if (!parse(&o, line))
		fail_msg("'%s' was taken", line);
	if (!strstr(why, part))
		fail_msg("'%s': '%s' has no '%s'", line, why, part);
	assert_null(strchr(why, '\n'));
}

static void options_may_stand_anywhere_before_the_command(void **state)
{
	struct options o;

	assert_int_equal(parse(&o, "trace p:a --for 0.5 r:b -n 10 -p 42 -o out"), 0);
	assert_int_equal(o.pid, 42);
	assert_int_equal(o.count, 10);
	assert_int_equal(o.for_ns, 500000000);
	assert_string_equal(o.output, "out");
	assert_int_equal(o.nr_words, 2);
	assert_string_equal(o.words[0], "p:a");
	assert_string_equal(o.words[1], "r:b");
	assert_null(o.cmd);
}

static void long_names_mean_the_same(void **state)
{
	struct options o;

	assert_int_equal(parse(&o, "trace --pid=42 --count 3 --output=x p:a"), 0);
	assert_int_equal(o.pid, 42);
	assert_int_equal(o.count, 3);
	assert_string_equal(o.output, "x");
}

static void what_follows_the_dashes_is_the_commands_own(void **state)
{
	struct options o;

	assert_int_equal(parse(&o, "trace p:a --for 1 -- ls -p 7 --help -- x"), 0);
	assert_int_equal(o.pid, 0);
	assert_false(o.help);
	assert_int_equal(o.nr_words, 1);
	assert_string_equal(o.words[0], "p:a");
	assert_string_equal(o.cmd[0], "ls");
	assert_string_equal(o.cmd[3], "--help");
	assert_string_equal(o.cmd[4], "--");
	assert_null(o.cmd[6]);
}

static void a_command_may_run_without_a_definition(void **state)
{
	struct options o;

	assert_int_equal(parse(&o, "trace -- true"), 0);
	assert_int_equal(o.nr_words, 0);
	refused("latency -- true", "needs a function");
	refused("trace -p 1", "needs a definition");
}

static void exactly_one_target_is_needed(void **state)
{
	refused("trace p:a", "no target");
	refused("trace -p 1 p:a -- ls", "exclude");
	refused("trace p:a --", "no command after --");
	refused("trace -p 1 -p 2 p:a", "twice");
	refused("list", "no target");
	refused("list -p 1 -- ls", "starts no command");
}

static void bad_values_are_refused(void **state)
{
	static const char *const pid[] = { "0", "-1", "12x", "x", "2147483648", "+5", "1.5" };
	static const char *const time[] = { "0", "-1", "nan", "inf", "1e99", "1s", "x" };
	char line[64];

	for (size_t i = 0; i < sizeof(pid) / sizeof(pid[0]); i++) {
		snprintf(line, sizeof(line), "list -p %s", pid[i]);
		refused(line, "not a process id");
	}
	for (size_t i = 0; i < sizeof(time) / sizeof(time[0]); i++) {
		snprintf(line, sizeof(line), "trace -p 1 --for %s p:a", time[i]);
		refused(line, "not a time");
	}
	refused("trace -p 1 -n 0 p:a", "not a count");
	refused("trace -p 1 -n 99999999999999999999 p:a", "not a count");
	refused("trace -p 1 p:a -n", "needs a value");
	refused("trace p:a --pid", "needs a value");
}

static void options_of_others_are_refused(void **state)
{
	refused("trace -p 1 --json p:a", "--json");
	refused("latency -p 1 -n 3 f", "-n");
	refused("list -p 1 --nonsense", "--nonsense");
	refused("trace -p 1 -x p:a", "-x");
}

static void words_too_many_are_refused(void **state)
{
	struct options o;

	refused("list -p 1 x", "takes no 'x'");
	refused("funcs -p 1 a b", "one GLOB");
	assert_int_equal(parse(&o, "funcs -p 1 look*"), 0);
	assert_string_equal(o.words[0], "look*");
	assert_int_equal(parse(&o, "blacklist"), 0);
	assert_int_equal(parse(&o, "doctor"), 0);
}

static void help_needs_nothing_else(void **state)
{
	struct options o;

	for (const struct command *c = commands; c->name; c++) {
		char line[64];

		snprintf(line, sizeof(line), "%s --help", c->name);
		assert_int_equal(parse(&o, line), 0);
		assert_true(o.help);
		snprintf(line, sizeof(line), "%s -h", c->name);
		assert_int_equal(parse(&o, line), 0);
		assert_true(o.help);
	}
}

static void mistyped_commands_find_the_near_one(void **state)
{
	assert_string_equal(command_near("trce")->name, "trace");
	assert_string_equal(command_near("latancy")->name, "latency");
	assert_string_equal(command_near("lat")->name, "latency");
	assert_string_equal(command_near("verfy")->name, "verify");
	assert_string_equal(command_near("functions")->name, "funcs");
	assert_string_equal(command_near("lists")->name, "list");
	assert_null(command_near("wxyzq"));
	assert_null(command_near(""));
	assert_null(command_near("a-very-long-word-that-is-nothing"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_may_stand_anywhere_before_the_command),
		cmocka_unit_test(long_names_mean_the_same),
		cmocka_unit_test(what_follows_the_dashes_is_the_commands_own),
		cmocka_unit_test(a_command_may_run_without_a_definition),
		cmocka_unit_test(exactly_one_target_is_needed),
		cmocka_unit_test(bad_values_are_refused),
		cmocka_unit_test(options_of_others_are_refused),
		cmocka_unit_test(words_too_many_are_refused),
		cmocka_unit_test(help_needs_nothing_else),
		cmocka_unit_test(mistyped_commands_find_the_near_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
