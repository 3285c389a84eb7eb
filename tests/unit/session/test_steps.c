/* SPDX-License-Identifier: MIT */
/*
 * A broker that is killed at any of its steps: each system call by which it changes
 * something, before the call and behind it, from the attach to the end of the detach.
 * Who comes next finds the target serving, attaches or cures, and leaves nothing.
 *
 *	STEPS=N		each N-th step only
 *	FROM=N TO=N	these steps
 *	ROUNDS=4	each with whoever comes next in each way
 *	CORES=1		the target may leave a core where it dies
 */
#include "victim.h"

#include <sys/ptrace.h>

#define EVERY 67 /* as long as nothing else is said */

static int run_broker(void *arg)
{
	struct err err = ERR_INIT;
	int ret;

	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	ret = live(*(pid_t *)arg, &err);
	if (ret)
		fprintf(stderr, "broker: %s\n", err.text);
	return ret ? 2 : 0;
}

/* --- its steps ---------------------------------------------------------------------- */

struct step {
	long nr;
	uint64_t arg;
	bool behind;
};

static bool changes_something(const struct step *s)
{
	switch (s->nr) {
	case SYS_ptrace:
		switch (s->arg) {
		case PTRACE_CONT:
		case PTRACE_SYSCALL:
		case PTRACE_SETREGS:
		case PTRACE_DETACH:
		case PTRACE_SETREGSET:
		case PTRACE_SEIZE:
		case PTRACE_INTERRUPT:
		case 0x420b: /* PTRACE_SETSIGMASK */
			return true;
		}
		return false;
	case SYS_pwrite64:
	case SYS_process_vm_writev:
	case SYS_ftruncate:
	case SYS_fcntl:
	case SYS_mmap:
	case SYS_munmap:
		return true;
	}
	return false;
}

/* At a stop: is it a step? */
static bool look(pid_t broker, int status, struct step *s)
{
	struct __ptrace_syscall_info info;
	static long nr;
	static uint64_t arg;

	if (WSTOPSIG(status) != (SIGTRAP | 0x80) ||
	    ptrace(PTRACE_GET_SYSCALL_INFO, broker, sizeof(info), &info) <= 0)
		return false;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		nr = info.entry.nr;
		arg = info.entry.args[0];
	}
	*s = (struct step){ nr, arg, info.op == PTRACE_SYSCALL_INFO_EXIT };
	return changes_something(s);
}

static void say_step(char *buf, size_t len, long n, const struct step *s)
{
	snprintf(buf, len, "step %ld, %s call %ld(%#lx)", n, s->behind ? "behind" : "before", s->nr,
	         (unsigned long)s->arg);
}

/* Lets a broker go its way to its n-th step; false: it has come to its end before. */
static bool broker_up_to(pid_t pid, long n, char *what, size_t len)
{
	pid_t broker;
	struct step s = { 0 };
	long at = 0;
	int st, sig = 0;

	shared->between = true;
	broker = child(run_broker, &pid);
	assert_int_equal(waitpid(broker, &st, 0), broker);
	assert_true(WIFSTOPPED(st));
	ptrace(PTRACE_SETOPTIONS, broker, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	for (;;) {
		if (ptrace(PTRACE_SYSCALL, broker, 0, (long)sig))
			fail_msg("the broker is gone");
		assert_int_equal(waitpid(broker, &st, 0), broker);
		if (WIFEXITED(st)) {
			assert_int_equal(st, 0);
			printf("a broker has %ld steps\n", at);
			shared->between = false;
			return false;
		}
		assert_true(WIFSTOPPED(st));
		sig = WSTOPSIG(st) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(st);
		if (look(broker, st, &s) && at++ == n)
			break;
	}
	say_step(what, len, n, &s);
	child_kill(broker);
	return true;
}

/* From step n on with one target; the step behind the last one, -1: that was all. */
static long kill_at(unsigned int mode, long round, long n, long every, long end)
{
	pid_t pid = start_target(mode);
	char *before = snapshot(pid);
	bool more = true;

	failed = false;
	while (n < end && (more = broker_up_to(pid, n, what, sizeof(what)))) {
		come_next(pid, n / every + round);
		if (!failed)
			check_untouched(pid, before);
		n += every;
		if (failed)
			break;
	}
	free(before);
	if (failed) {
		child_kill(pid);
		return n;
	}
	shared->stop = 1;
	assert_int_equal(child_status(pid), 7 << 8);
	return more ? -1 : -n;
}

static void kills(unsigned int mode)
{
	long every = number("STEPS", EVERY), from = number("FROM", 0), n;
	long end = number("TO", 1l << 40), rounds = number("ROUNDS", 1), i;
	unsigned int bad = 0;

	shared = shared_page();
	for (i = 0; i < rounds; i++) {
		n = from;
		while ((n = kill_at(mode, i, n, every, end)) > 0)
			bad++;
	}
	if (bad)
		fail_msg("%u kills have left something", bad);
}

static void a_target_that_runs(void **state)
{
	kills(0);
}

static void a_target_that_sleeps(void **state)
{
	kills(SLEEPS);
}

static void a_target_that_handles_all_signals(void **state)
{
	kills(HANDLES | SLEEPS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_target_that_runs),
		cmocka_unit_test(a_target_that_sleeps),
		cmocka_unit_test(a_target_that_handles_all_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
