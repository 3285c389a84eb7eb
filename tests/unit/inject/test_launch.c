/* SPDX-License-Identifier: MIT */
/* Starting a program held at its entry point. */
#include "help.h"
#include "targets/targets.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

enum inherit { INHERIT_NOTHING, INHERIT_IGNORED, INHERIT_BLOCKED, INHERIT_SIGNALS };

static void prepare(enum inherit what)
{
	struct itimerval timer = { { 0, 500 }, { 0, 500 } };
	sigset_t set;

	sigemptyset(&set);
	if (what == INHERIT_IGNORED)
		signal(SIGTRAP, SIG_IGN);
	if (what == INHERIT_BLOCKED)
		sigaddset(&set, SIGTRAP);
	sigprocmask(SIG_SETMASK, &set, NULL);
	if (what == INHERIT_SIGNALS) {
		signal(SIGALRM, SIG_IGN);
		setitimer(ITIMER_REAL, &timer, NULL);
	}
}

static pid_t launch(struct inject **t, enum inherit what, char *const argv[], int *ret,
                    struct err *err)
{
	int fd[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fd[0]);
		prepare(what);
		if (inject_child_wait(fd[1]))
			_exit(126);
		execv(argv[0], argv);
		_exit(127);
	}
	close(fd[1]);
	*t = NULL;
	*ret = inject_exec(t, pid, fd[0], err);
	close(fd[0]);
	return pid;
}

static pid_t launched(struct inject **t, enum inherit what, char *const argv[])
{
	struct err err = ERR_INIT;
	int ret;
	pid_t pid = launch(t, what, argv, &ret, &err);

	if (ret)
		fail_msg("%s", err.text);
	assert_true(inject_held(*t));
	assert_int_equal(inject_nr_threads(*t), 1);
	return pid;
}

static bool maps_have(pid_t pid, const char *text)
{
	char path[64], line[512];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		found |= strstr(line, text) != NULL;
	if (f)
		fclose(f);
	return found;
}

static void run_hello(const char *compiler, const char *flags, enum inherit what, char *arg)
{
	const char *path = target_build("hello", compiler, flags);
	char *argv[] = { (char *)path, arg, NULL };
	struct inject *t;
	uint8_t byte;
	pid_t pid;

	if (!path) {
		print_message("skipped: %s %s can't build tests/targets/hello.c here\n", compiler,
		              flags);
		skip();
	}
	pid = launched(&t, what, argv);
	/* at the entry, whose first byte is the program's own again */
	assert_int_equal(inject_read(t, inject_thread_at(t, 0)->regs.rip, &byte, 1), 0);
	assert_int_not_equal(byte, 0xcc);
	if (!strcmp(compiler, "gcc") && !flags[0])
		assert_true(maps_have(pid, "libc.so.6"));
	begun(t);
	assert_int_equal(inject_syscall(t, SYS_getpid, 0, 0, 0, 0, 0, 0), pid);
	inject_end(t);
	inject_close(t);
	assert_int_equal(child_status(pid), (arg ? 42 : 41) << 8);
}

static void a_dynamic_program_is_held_with_its_libraries(void **state)
{
	run_hello("gcc", "", INHERIT_NOTHING, NULL);
}

static void a_position_dependent_program_is_held(void **state)
{
	run_hello("gcc", "-no-pie", INHERIT_NOTHING, NULL);
}

static void a_static_program_is_held(void **state)
{
	run_hello("gcc", "-static", INHERIT_NOTHING, NULL);
}

static void a_static_pie_program_is_held(void **state)
{
	run_hello("gcc", "-static-pie", INHERIT_NOTHING, NULL);
}

static void a_musl_program_is_held(void **state)
{
	run_hello("musl-gcc", "", INHERIT_NOTHING, NULL);
}

static void an_inherited_ignored_sigtrap_stays_ignored(void **state)
{
	run_hello("gcc", "", INHERIT_IGNORED, "ignored");
}

static void an_inherited_blocked_sigtrap_stays_blocked(void **state)
{
	run_hello("gcc", "", INHERIT_BLOCKED, "blocked");
}

static void signals_on_the_way_to_the_entry_do_no_harm(void **state)
{
	run_hello("gcc", "", INHERIT_SIGNALS, NULL);
}

static void a_script_is_held_at_its_interpreter(void **state)
{
	char path[] = "/tmp/ukp-script-XXXXXX";
	char *argv[] = { path, NULL };
	int fd = mkstemp(path);
	struct inject *t;
	pid_t pid;

	assert_int_equal(write(fd, "#!/bin/sh\nexit 9\n", 17), 17);
	fchmod(fd, 0755);
	close(fd);
	pid = launched(&t, INHERIT_NOTHING, argv);
	inject_close(t);
	assert_int_equal(child_status(pid), 9 << 8);
	unlink(path);
}

static void a_program_that_does_not_exist_is_reported(void **state)
{
	char *argv[] = { "/does/not/exist", NULL };
	struct err err = ERR_INIT;
	struct inject *t;
	pid_t pid;
	int ret;

	pid = launch(&t, INHERIT_NOTHING, argv, &ret, &err);
	assert_int_equal(ret, -ECHILD);
	assert_int_equal(err.code, -ECHILD);
	assert_int_equal(child_status(pid), 127 << 8);
}

static void a_32_bit_program_is_refused_and_not_run(void **state)
{
	const char *path = target_build("hello", "gcc", "-m32 -static");
	char *argv[] = { (char *)path, NULL };
	struct err err = ERR_INIT;
	struct inject *t;
	pid_t pid;
	int ret;

	if (!path || !target_runs(path)) {
		print_message("skipped: 32-bit programs can't be built or run here\n");
		skip();
	}
	pid = launch(&t, INHERIT_NOTHING, argv, &ret, &err);
	assert_int_equal(ret, -EOPNOTSUPP);
	assert_int_equal(child_status(pid), SIGKILL);
}

static void a_child_whose_tracer_gives_up_does_not_exec(void **state)
{
	int fd[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	pid = fork();
	if (!pid) {
		close(fd[0]);
		_exit(inject_child_wait(fd[1]) < 0 ? 7 : 1);
	}
	close(fd[0]);
	close(fd[1]);
	assert_int_equal(child_status(pid), 7 << 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dynamic_program_is_held_with_its_libraries),
		cmocka_unit_test(a_position_dependent_program_is_held),
		cmocka_unit_test(a_static_program_is_held),
		cmocka_unit_test(a_static_pie_program_is_held),
		cmocka_unit_test(a_musl_program_is_held),
		cmocka_unit_test(an_inherited_ignored_sigtrap_stays_ignored),
		cmocka_unit_test(an_inherited_blocked_sigtrap_stays_blocked),
		cmocka_unit_test(signals_on_the_way_to_the_entry_do_no_harm),
		cmocka_unit_test(a_script_is_held_at_its_interpreter),
		cmocka_unit_test(a_program_that_does_not_exist_is_reported),
		cmocka_unit_test(a_32_bit_program_is_refused_and_not_run),
		cmocka_unit_test(a_child_whose_tracer_gives_up_does_not_exec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
