/* SPDX-License-Identifier: MIT */
/*
 * The library's own probes, on sigaction() and on unwinders: what they keep for the
 * program stays kept in both forms, and as jumps they need no signal.
 */
#include <execinfo.h>
#include <signal.h>
#include <sys/syscall.h>

#include "scenario.h"

static unsigned int hits;

TARGET int plain(int x)
{
	__asm__ volatile("nop\n\tnop\n\tnop\n\tnop\n\tnop");
	return x + 1;
}

static int count(struct kprobe *p, struct pt_regs *regs)
{
	(void)p;
	(void)regs;
	hits++;
	return 0;
}

static void on_fault(int sig)
{
	(void)sig;
}

/* The kernel's, whatever sigaction() tells. */
static void *in_force(int sig)
{
	void *act[4] = { NULL };

	assert_int_equal(syscall(SYS_rt_sigaction, sig, NULL, act, 8), 0);
	return act[0];
}

static void set_and_read_back(void)
{
	void *engine = in_force(SIGSEGV);
	struct sigaction sa = { .sa_handler = on_fault }, before, now;

	assert_ptr_not_equal(engine, SIG_DFL);
	assert_int_equal(sigaction(SIGSEGV, &sa, &before), 0);
	assert_ptr_equal(in_force(SIGSEGV), engine);
	assert_int_equal(sigaction(SIGSEGV, NULL, &now), 0);
	assert_ptr_equal(now.sa_handler, on_fault);
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
	assert_ptr_equal(in_force(SIGSEGV), engine);
}

static void a_programs_handler_of_faults_is_kept_and_not_in_force(void **state)
{
	struct kprobe kp = { .addr = (void *)plain, .pre_handler = count };

	register_ok(register_kprobe(&kp));
	set_and_read_back();
	unregister_kprobe(&kp);
	set_and_read_back();
	assert_int_equal(plain(1), 2);
}

static void so_it_is_beside_a_probe_on_sigaction(void **state)
{
	struct kprobe kp = { .symbol_name = "sigaction", .pre_handler = count };

	hits = 0;
	register_ok(register_kprobe(&kp));
	if (in_jumps)
		has_jump(&kp);
	set_and_read_back();
	assert_int_equal(hits, 3);
	unregister_kprobe(&kp);
	set_and_read_back();
	assert_int_equal(hits, 3);
}

/* A breakpoint would end the program there. */
static void as_jumps_they_may_be_met_with_all_signals_blocked(void **state)
{
	struct kprobe kp = { .addr = (void *)plain, .pre_handler = count };
	struct sigaction sa = { .sa_handler = on_fault }, before;
	sigset_t all, old;
	void *from[8];

	if (!in_jumps)
		return;
	backtrace(from, 8); /* loads the unwinder */
	register_ok(register_kprobe(&kp));
	assert_int_equal(*(const volatile unsigned char *)(void *)sigaction, 0xe9);
	sigfillset(&all);
	assert_int_equal(sigprocmask(SIG_SETMASK, &all, &old), 0);
	assert_int_equal(sigaction(SIGUSR1, &sa, &before), 0);
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
	assert_true(backtrace(from, 8) > 1);
	assert_int_equal(sigprocmask(SIG_SETMASK, &old, NULL), 0);
	unregister_kprobe(&kp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_programs_handler_of_faults_is_kept_and_not_in_force,
		                          untouched),
		cmocka_unit_test_teardown(so_it_is_beside_a_probe_on_sigaction, untouched),
		cmocka_unit_test_teardown(as_jumps_they_may_be_met_with_all_signals_blocked,
		                          untouched),
	};

	return run_in_both_forms(tests);
}
