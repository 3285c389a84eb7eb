/* SPDX-License-Identifier: MIT */
/* The whole command on a fake session: output, exit status, signals. */
#include <setjmp.h>
#include <stdarg.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_session.h"
#include "front/options.h"

#define ARGS_MAX 16

/* What the last command wrote and how it ended. */
static char out[1 << 20], err[1 << 16];
static int status;
/* What to tell of the fake at the end, in the child. */
static bool told;

static void read_back(FILE *f, char *to, size_t size)
{
	size_t n;

	rewind(f);
	n = fread(to, 1, size - 1, f);
	to[n] = 0;
	fclose(f);
}

static void tell(void)
{
	fprintf(stderr, "fake: opened %u started %u stopped %u closed %u\n", fake.opened,
	        fake.started, fake.stopped, fake.closed);
}

/* In a child, as a command is: words apart by blanks, + stands for a blank. */
static void child(const char *line, int out_fd, int err_fd)
{
	static char words[512], *argv[ARGS_MAX + 1];
	int argc = 0, ret;

	snprintf(words, sizeof(words), "%s", line);
	for (char *w = strtok(words, " "); w && argc < ARGS_MAX; w = strtok(NULL, " ")) {
		for (char *p = w; (p = strchr(p, '+'));)
			*p = ' ';
		argv[argc++] = w;
	}
	/* A crash is the child's end, not cmocka's to go on from. */
	signal(SIGSEGV, SIG_DFL);
	signal(SIGABRT, SIG_DFL);
	dup2(out_fd, STDOUT_FILENO);
	dup2(err_fd, STDERR_FILENO);
	ret = command_main(argc, argv);
	fflush(stdout);
	if (told)
		tell();
	_exit(ret);
}

static void finish(pid_t pid, FILE *o, FILE *e)
{
	if (waitpid(pid, &status, 0) != pid)
		abort();
	status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
	read_back(o, out, sizeof(out));
	read_back(e, err, sizeof(err));
}

static void run(const char *line)
{
	FILE *o = tmpfile(), *e = tmpfile();
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		child(line, fileno(o), fileno(e));
	finish(pid, o, e);
}

static unsigned int lines(const char *s)
{
	unsigned int n = 0;

	for (; *s; s++)
		n += *s == '\n';
	return n;
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no '%s' in '%s'", part, text);
}

/* Status 1, one line on stderr with this in it, nothing on stdout. */
static void fails(const char *line, const char *part)
{
	run(line);
	assert_int_equal(status, 1);
	has(err, part);
	assert_int_equal(strncmp(err, "ukprobe: ", 9), 0);
	assert_int_equal(lines(err), 1);
	assert_string_equal(out, "");
}

static int setup(void **state)
{
	fake_reset();
	told = false;
	return 0;
}

static void help_goes_to_standard_output(void **state)
{
	char line[64];

	run("ukprobe --help");
	assert_int_equal(status, 0);
	for (const struct command *c = commands; c->name; c++)
		has(out, c->name);
	assert_null(strstr(out, "\n  broker"));
	for (const struct command *c = commands; c->name; c++) {
		snprintf(line, sizeof(line), "ukprobe %s --help", c->name);
		run(line);
		assert_int_equal(status, 0);
		assert_string_equal(out, c->usage);
		assert_string_equal(err, "");
		snprintf(line, sizeof(line), "ukprobe help %s", c->name);
		run(line);
		assert_string_equal(out, c->usage);
	}
	run("ukprobe --version");
	assert_string_equal(out, "ukprobe " UKP_VERSION "\n");
}

static void mistakes_are_one_line_and_status_1(void **state)
{
	fails("ukprobe", "no command");
	fails("ukprobe trce -p 1", "did you mean 'trace'?");
	fails("ukprobe --nonsense", "no option");
	fails("ukprobe trace -p x p+a", "not a process id");
	fails("ukprobe trace -p 1 r:get lookupKey $retval", "single quotes");
	fails("ukprobe help nonsense-word", "no command");
	fake.open_error = -ESRCH;
	fails("ukprobe trace -p 77 p+a", "no process 77");
	fails("ukprobe latency -p 77 f", "no process 77");
}

static void the_broker_gets_its_words(void **state)
{
	run("ukprobe broker 1 2");
	assert_int_equal(status, 43);
}

static void trace_ends_with_its_target_and_counts(void **state)
{
	fake.records = 1000;
	fake.gone = true;
	fake.counts = (struct ukp_counts){
		.hits = 1003, .records = 1000, .misses = 3, .miss = { 2, 0, 1 }
	};
	run("ukprobe trace -p 1 p+a");
	assert_int_equal(status, 0);
	assert_int_equal(lines(out), 1000);
	has(err, "ukprobe: 1003 hits, 1000 records, 3 misses (maxactive 2, ring full 1)\n"
	         "ukprobe: lines came faster than they were written");
	fake.counts = (struct ukp_counts){ .hits = 1000, .records = 1000 };
	run("ukprobe trace -p 1 p+a");
	assert_string_equal(err, "ukprobe: 1000 hits, 1000 records, 0 misses\n");
	fake.damage = "damaged";
	run("ukprobe trace -p 1 p+a");
	assert_int_equal(status, 1);
	assert_string_equal(err, "ukprobe: damaged\nukprobe: 1000 hits, 1000 records, 0 misses\n");
	fake.damage = NULL;
	fake.hazard = "take care";
	run("ukprobe trace -p 1 p+a");
	assert_int_equal(status, 0);
	has(err, "ukprobe: warning: take care\n");
}

static void a_probe_that_was_never_hit_is_told_in_one_line(void **state)
{
	fake.gone = true;
	run("ukprobe trace -p 1 p+a p+b p+c p+d");
	assert_int_equal(status, 0);
	assert_int_equal(lines(err), 2);
	has(err, "ukprobe: 0 hits, 0 records, 0 misses\n"
	         "ukprobe: never hit: returns of get+0x0/0x80 [prog], returns of get+0x0/0x80 "
	         "[prog], returns of get+0x0/0x80 [prog], ...; was it ");
	has(err, "compiled into its callers");
	fake.counts.hits = 1;
	run("ukprobe trace -p 1 p+a");
	assert_int_equal(lines(err), 1);
	fake.counts.hits = 0;
	run("ukprobe latency -p 1 f");
	assert_int_equal(status, 0);
	assert_int_equal(lines(err), 1);
	has(err, "never hit: returns of get+0x0/0x80");
	/* Nothing was asked for. */
	run("ukprobe trace -- true");
	assert_int_equal(lines(err), 1);
}

static void trace_ends_after_n_lines(void **state)
{
	fake.records = 1000;
	run("ukprobe trace -n 7 -p 1 p+a");
	assert_int_equal(status, 0);
	assert_int_equal(lines(out), 7);
	fake.burst = false;
	run("ukprobe trace -n 7 -p 1 p+a");
	assert_int_equal(lines(out), 7);
}

static void trace_ends_after_its_time(void **state)
{
	run("ukprobe trace --for 0.05 -p 1 p+a");
	assert_int_equal(status, 0);
	assert_string_equal(out, "");
}

static void trace_writes_to_a_file(void **state)
{
	static char text[1 << 20];
	char path[] = "/tmp/ukprobe-test-XXXXXX", line[128];
	FILE *f;

	close(mkstemp(path));
	fake.records = 5000;
	fake.gone = true;
	snprintf(line, sizeof(line), "ukprobe trace -o %s -p 1 p+a", path);
	run(line);
	assert_int_equal(status, 0);
	assert_string_equal(out, "");
	f = fopen(path, "r");
	read_back(f, text, sizeof(text));
	assert_int_equal(lines(text), 5000);
	/* A refused definition leaves it as it was. */
	snprintf(line, sizeof(line), "ukprobe trace -o %s -p 1 p+bad", path);
	run(line);
	assert_int_equal(status, 1);
	f = fopen(path, "r");
	read_back(f, text, sizeof(text));
	assert_int_equal(lines(text), 5000);
	unlink(path);
}

static void a_file_that_fails_is_told(void **state)
{
	fails("ukprobe trace -o /nonexistent/x -p 1 p+a", "can't open /nonexistent/x");
	fails("ukprobe latency -o /nonexistent/x -p 1 f", "can't open /nonexistent/x");
	fake.records = 100000;
	fake.gone = true;
	run("ukprobe trace -o /dev/full -p 1 p+a");
	assert_int_equal(status, 1);
	has(err, "can't write to /dev/full: No space left on device\n");
	told = true;
	run("ukprobe trace -o /dev/full -p 1 p+a");
	has(err, "stopped 1 closed 1");
}

static void a_refused_definition_plants_nothing(void **state)
{
	told = true;
	run("ukprobe trace -p 1 p+good p+a+%bad");
	assert_int_equal(status, 1);
	assert_string_equal(err, "ukprobe: Invalid register name\n  p a %bad\n       ^\n"
	                         "fake: opened 1 started 0 stopped 0 closed 1\n");
	run("ukprobe latency -p 1 f bad");
	assert_int_equal(status, 1);
	has(err, "started 0");
}

static void places_that_wait_for_their_jumps_are_told(void **state)
{
	run("ukprobe stat -p 1 --for 0.01 p+a");
	assert_null(strstr(err, "wait for their jumps"));
	fake.waiting = 3;
	run("ukprobe stat -p 1 --for 0.01 p+a");
	assert_int_equal(status, 0);
	has(err, "3 places wait for their jumps");
}

static void a_refused_definition_starts_no_command(void **state)
{
	run("ukprobe trace p+bad -- echo started");
	assert_int_equal(status, 1);
	assert_string_equal(out, "");
	run("ukprobe latency bad -- echo started");
	assert_int_equal(status, 1);
	assert_string_equal(out, "");
}

static void the_status_is_the_commands_own(void **state)
{
	run("ukprobe trace -- sh -c exit+7");
	assert_int_equal(status, 7);
	run("ukprobe trace p+a -- sh -c kill+-9+$$");
	assert_int_equal(status, 128 + 9);
	run("ukprobe latency f -- false");
	assert_int_equal(status, 1);
	run("ukprobe trace -- echo hello");
	assert_int_equal(status, 0);
	assert_string_equal(out, "hello\n");
	run("ukprobe trace --for 0.01 p+a -- sh -c sleep+0.2;exit+3");
	assert_int_equal(status, 3);
}

static void a_detach_that_fails_is_told(void **state)
{
	fake.stop_error = -EBUSY;
	run("ukprobe trace --for 0.01 -p 1 p+a");
	assert_int_equal(status, 1);
	has(err, "one slot is still in use");
	/* From a target that has ended nothing is to be removed. */
	fake.gone = true;
	run("ukprobe trace -p 1 p+a");
	assert_int_equal(status, 0);
}

static void raise_int_late(void)
{
	static int n;

	if (++n == 3)
		raise(SIGINT);
}

static void ctrl_c_detaches_and_prints_what_is_left(void **state)
{
	fake.records = 300;
	fake.burst = false;
	fake.on_read = raise_int_late;
	told = true;
	run("ukprobe trace -p 1 p+a");
	assert_int_equal(status, 0);
	assert_int_equal(lines(out), 300);
	has(err, "0 misses\n");
	has(err, "started 1 stopped 1 closed 1");
}

static void raise_term_late(void)
{
	static int n;

	if (++n == 3)
		raise(SIGTERM);
}

static void sigterm_ends_a_launched_command_too(void **state)
{
	fake.on_read = raise_term_late;
	run("ukprobe trace p+a -- sleep 60");
	assert_int_equal(status, 128 + SIGTERM);
}

static void a_launched_command_inherits_no_ignored_signal(void **state)
{
	unsigned long ignored;
	const char *at;

	run("ukprobe trace -- grep SigIgn /proc/self/status");
	at = strstr(out, "SigIgn:\t");
	assert_non_null(at);
	/* The real-time signals above are as whoever started the test left them. */
	ignored = strtoul(at + strlen("SigIgn:\t"), NULL, 16) & 0x7fffffff;
	assert_int_equal(ignored, 0);
}

/*
 * Ctrl-C until it has ended: the first takes the probes out, one that comes after
 * that gives up lines that still wait.
 */
static void insist(pid_t pid)
{
	siginfo_t si;

	do {
		kill(pid, SIGINT);
		usleep(10000);
		si.si_pid = 0;
	} while (!waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) && !si.si_pid);
}

/* A reader that goes away, and one that stands still. */
static void with_pipe(const char *line, bool stand_still)
{
	FILE *e = tmpfile();
	char c;
	int fds[2];
	pid_t pid;

	if (pipe(fds))
		abort();
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(fds[0]);
		child(line, fds[1], fileno(e));
	}
	close(fds[1]);
	if (read(fds[0], &c, 1) != 1)
		abort();
	if (stand_still)
		insist(pid);
	else
		close(fds[0]);
	finish(pid, tmpfile(), e);
	if (stand_still)
		close(fds[0]);
}

static void a_closed_pipe_is_no_failure(void **state)
{
	fake.records = 1000000000;
	told = true;
	with_pipe("ukprobe trace -p 1 p+a", false);
	assert_int_equal(status, 0);
	assert_null(strstr(err, "write"));
	has(err, "stopped 1 closed 1");
}

static void a_reader_that_stands_still_can_not_keep_us(void **state)
{
	fake.records = 1000000000;
	told = true;
	with_pipe("ukprobe trace -p 1 p+a", true);
	assert_int_equal(status, 1);
	has(err, "the last lines are not written");
	has(err, "stopped 1 closed 1");
}

static void a_line_is_not_held_back_until_a_block_is_full(void **state)
{
	fake.records = 1;
	/* It reads a byte before it sends a signal: it would wait for ever. */
	with_pipe("ukprobe trace -p 1 p+a", true);
	assert_int_equal(status, 0);
	has(err, "0 misses");
}

static const uint64_t samples[] = { 100, 200, 300, 400 };

static void latency_prints_one_table(void **state)
{
	fake.sample = samples;
	fake.nr_samples = 4;
	fake.counts.hits = 4;
	fake.latency = (struct ukp_latency_info){
		.name = "f", .kind = "auto", .count = 4, .min = 100, .max = 400, .mean = 250
	};
	run("ukprobe latency --for 0.05 -p 1 f");
	assert_int_equal(status, 0);
	has(out, "FUNCTION");
	has(out, "[64ns, 128ns)");
	assert_null(strchr(out, '\033'));
	assert_string_equal(err, "");
	fake.gone = true;
	run("ukprobe latency --json -p 1 f g");
	assert_int_equal(status, 0);
	has(out, "\"functions\"");
}

static void stat_shows_returns_beside_entries(void **state)
{
	static const struct ukp_place_hits place[] = {
		{ .addr = 0x402000, .hits = 9 },
		{ .addr = 0x402000, .hits = 7, .ret = true },
		{ .addr = 0x500000, .hits = 8, .ret = true },
		{ .addr = 0x402000, .hits = 7, .ret = true }, /* of another definition */
	};

	fake.place = place;
	fake.nr_places = 4;
	run("ukprobe stat --for 0.05 -p 1 f");
	assert_int_equal(status, 0);
	assert_string_equal(out, "        HITS  PLACE\n"
	                         "           9  caller+0x0/0xf0 [prog]\n"
	                         "           8  0x500000%return\n"
	                         "           7  caller%return [prog]\n"
	                         "          24  in 3 of 3 places\n");
	fake.counts = (struct ukp_counts){ .hits = 20, .records = 15, .misses = 5 };
	fake.counts.miss[0] = 2;
	fake.counts.miss[5] = 3;
	run("ukprobe stat --for 0.05 -p 1 f");
	has(out, "           5  calls without a return (maxactive 2, unwound 3)\n");
	run("ukprobe stat --for 0.05 --json -p 1 f");
	has(out, "\"hits\":24,\"calls\":20,\"missed\":5,"
	         "\"misses\":{\"maxactive\":2,\"unwound\":3},\"by_place\":[");
	has(out, "{\"address\":\"0x402000\",\"return\":false,\"hits\":9,"
	         "\"place\":\"caller+0x0/0xf0 [prog]\"}");
	has(out, "{\"address\":\"0x402000\",\"return\":true,\"hits\":7,"
	         "\"place\":\"caller%return [prog]\"}");
}

static void the_rest_hands_on_what_the_session_says(void **state)
{
	run("ukprobe list -p 5");
	assert_string_equal(out, "list 5\n");
	run("ukprobe blacklist");
	assert_string_equal(out, "blacklist 0\n");
	run("ukprobe funcs -p 5 look*");
	assert_string_equal(out, "look* 5\n");
	run("ukprobe funcs -p 5");
	assert_string_equal(out, "all 5\n");
	run("ukprobe doctor");
	assert_string_equal(out, "doctor 0\n");
	run("ukprobe cure -p 5");
	assert_int_equal(status, 0);
	run("ukprobe verify -p 5");
	assert_int_equal(status, 0);
	fake.about_error = -EEXIST;
	run("ukprobe verify -p 5");
	assert_int_equal(status, 1);
	assert_string_equal(out, "verify 5\n");
	assert_int_equal(lines(err), 1);
	fake.about_why = "the reason";
	run("ukprobe cure -p 5");
	assert_int_equal(status, 1);
	assert_string_equal(err, "ukprobe: the reason\n");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		T(help_goes_to_standard_output),
		T(mistakes_are_one_line_and_status_1),
		T(the_broker_gets_its_words),
		T(trace_ends_with_its_target_and_counts),
		T(a_probe_that_was_never_hit_is_told_in_one_line),
		T(trace_ends_after_n_lines),
		T(trace_ends_after_its_time),
		T(trace_writes_to_a_file),
		T(a_file_that_fails_is_told),
		T(a_refused_definition_plants_nothing),
		T(places_that_wait_for_their_jumps_are_told),
		T(a_refused_definition_starts_no_command),
		T(the_status_is_the_commands_own),
		T(a_detach_that_fails_is_told),
		T(ctrl_c_detaches_and_prints_what_is_left),
		T(sigterm_ends_a_launched_command_too),
		T(a_launched_command_inherits_no_ignored_signal),
		T(a_closed_pipe_is_no_failure),
		T(a_reader_that_stands_still_can_not_keep_us),
		T(a_line_is_not_held_back_until_a_block_is_full),
		T(latency_prints_one_table),
		T(stat_shows_returns_beside_entries),
		T(the_rest_hands_on_what_the_session_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
