/* SPDX-License-Identifier: MIT */
/* What can be attached to, and the sentence for what can't. */
#include "help.h"
#include "inject/internal.h"
#include "targets/targets.h"

#include <grp.h>
#include <sys/stat.h>

#define NOBODY 65534

static int run_pause(void *arg)
{
	if (arg)
		*(volatile long *)arg = 1;
	while (pause())
		;
	return 0;
}

static void refused(pid_t pid, int code, const char *part)
{
	struct err err = ERR_INIT;

	assert_int_equal(inject_preflight(pid, &err), code);
	if (!strstr(err.text, part))
		fail_msg("\"%s\" does not say \"%s\"", err.text, part);
}

static void ones_own_child_is_accepted(void **state)
{
	pid_t pid = child(run_pause, NULL);

	assert_int_equal(inject_preflight(pid, NULL), 0);
	assert_int_equal(status_number(pid, "TracerPid"), 0);
	child_kill(pid);
}

static void ourselves_are_refused(void **state)
{
	refused(getpid(), -EINVAL, "itself");
}

static void a_pid_that_is_not_there_is_refused(void **state)
{
	refused(0, -ESRCH, "no process");
	refused(0x3fffffff, -ESRCH, "no process");
}

static void a_kernel_thread_is_refused(void **state)
{
	struct stat st;

	if (stat("/proc/2", &st)) {
		print_message("skipped: no kernel threads visible here\n");
		skip();
	}
	refused(2, -EOPNOTSUPP, "kernel thread");
}

static int run_end(void *arg)
{
	return 0;
}

static void a_zombie_is_refused(void **state)
{
	pid_t pid = child(run_end, NULL);

	await_state(pid, 'Z');
	refused(pid, -EOPNOTSUPP, "zombie");
	child_status(pid);
}

static void a_32_bit_program_is_refused(void **state)
{
	const char *path = target_build("echo", "gcc", "-m32 -static");
	int fd[2];
	pid_t pid;

	if (!path || !target_runs(path)) {
		print_message("skipped: 32-bit programs can't be built or run here\n");
		skip();
	}
	assert_int_equal(pipe(fd), 0);
	pid = fork();
	if (!pid) {
		dup2(fd[0], 0);
		execl(path, path, NULL);
		_exit(127);
	}
	await_call(pid, "3 0x0 "); /* read(), of its kind */
	refused(pid, -EOPNOTSUPP, "32-bit");
	child_kill(pid);
	close(fd[0]);
	close(fd[1]);
}

static void a_program_file_is_known_by_its_class_and_cpu(void **state)
{
	const char *path = target_build("echo", "gcc", "");
	uint8_t head[64] = { 0x7f, 'E', 'L', 'F', 1, 1, 1 };
	char other[] = "/tmp/ukp-elf-XXXXXX";
	int fd = mkstemp(other);

	assert_int_equal(preflight_exe(path), EXE_OURS);
	assert_int_equal(preflight_exe("/does/not/exist"), EXE_UNKNOWN);
	assert_int_equal(preflight_exe("tests/targets/echo.c"), EXE_UNKNOWN);
	head[18] = 3; /* EM_386 */
	assert_int_equal(pwrite(fd, head, sizeof(head), 0), sizeof(head));
	assert_int_equal(preflight_exe(other), EXE_32_BIT);
	head[4] = 2;
	head[18] = 183; /* EM_AARCH64 */
	assert_int_equal(pwrite(fd, head, sizeof(head), 0), sizeof(head));
	assert_int_equal(preflight_exe(other), EXE_OTHER_CPU);
	close(fd);
	unlink(other);
}

static void a_process_under_strace_is_refused_by_name(void **state)
{
	char arg[16];
	pid_t pid = child(run_pause, NULL), strace;
	time_t end = patience();

	snprintf(arg, sizeof(arg), "%d", pid);
	strace = fork();
	if (!strace) {
		execlp("strace", "strace", "-qq", "-o", "/dev/null", "-p", arg, NULL);
		_exit(127);
	}
	while (status_number(pid, "TracerPid") <= 0 && !waitpid(strace, NULL, WNOHANG) &&
	       patient(end))
		;
	if (status_number(pid, "TracerPid") <= 0) {
		child_kill(pid);
		child_kill(strace);
		print_message("skipped: strace doesn't work here\n");
		skip();
	}
	refused(pid, -EBUSY, "strace");
	child_kill(pid);
	child_kill(strace);
}

static int as_nobody(void)
{
	return geteuid() ? 0 : setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY);
}

static int run_attach_to_parent(void *arg)
{
	struct err err = ERR_INIT;
	struct inject *t;

	if (as_nobody())
		return 1;
	if (inject_preflight(getppid(), &err) != -EPERM || !strstr(err.text, "belongs to user 0"))
		return 2;
	return inject_open(&t, getppid(), &err) == -EPERM ? 7 : 3;
}

static void a_process_of_another_user_is_refused_by_its_owner(void **state)
{
	if (geteuid()) {
		print_message("skipped: needs root to become another user\n");
		skip();
	}
	assert_int_equal(child_status(child(run_attach_to_parent, NULL)), 7 << 8);
}

/* As nobody, to a process of nobody's: 7, or which step failed. */
static int run_attach_unprivileged(void *arg)
{
	struct err err = ERR_INIT;
	volatile long *ready = shared_page();
	struct inject *t;
	pid_t pid;

	if (as_nobody() || prctl(PR_SET_DUMPABLE, 1))
		return 1;
	pid = child(run_pause, (void *)ready);
	await_word(ready, 1);
	if (inject_preflight(pid, &err) || inject_open(&t, pid, &err))
		return 2;
	if (inject_seize(t, &err) || inject_begin(t, &err))
		return 3;
	if (inject_syscall(t, SYS_getuid, 0, 0, 0, 0, 0, 0) != getuid())
		return 4;
	inject_close(t);
	child_kill(pid);
	return 7;
}

static void without_privilege_ones_own_process_can_be_held(void **state)
{
	skip_if_yama_forbids();
	assert_int_equal(child_status(child(run_attach_unprivileged, NULL)), 7 << 8);
}

static int run_undumpable(void *arg)
{
	prctl(PR_SET_DUMPABLE, 0);
	return run_pause(arg);
}

static int run_attach_undumpable(void *arg)
{
	struct err err = ERR_INIT;
	volatile long *ready = shared_page();
	pid_t pid;

	if (as_nobody() || prctl(PR_SET_DUMPABLE, 1))
		return 1;
	pid = child(run_undumpable, (void *)ready);
	await_word(ready, 1);
	if (inject_preflight(pid, &err) != -EPERM || !strstr(err.text, "not dumpable"))
		return 2;
	child_kill(pid);
	return 7;
}

static void a_process_that_is_not_dumpable_is_refused_for_that(void **state)
{
	assert_int_equal(child_status(child(run_attach_undumpable, NULL)), 7 << 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ones_own_child_is_accepted),
		cmocka_unit_test(ourselves_are_refused),
		cmocka_unit_test(a_pid_that_is_not_there_is_refused),
		cmocka_unit_test(a_kernel_thread_is_refused),
		cmocka_unit_test(a_zombie_is_refused),
		cmocka_unit_test(a_32_bit_program_is_refused),
		cmocka_unit_test(a_program_file_is_known_by_its_class_and_cpu),
		cmocka_unit_test(a_process_under_strace_is_refused_by_name),
		cmocka_unit_test(a_process_of_another_user_is_refused_by_its_owner),
		cmocka_unit_test(without_privilege_ones_own_process_can_be_held),
		cmocka_unit_test(a_process_that_is_not_dumpable_is_refused_for_that),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
