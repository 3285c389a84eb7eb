/* SPDX-License-Identifier: MIT */
/* What a program changes between an attach and the first start is seen at the start. */
#include "victim.h"

enum what { NOTHING, HANDLER, BLOCKS };

struct late {
	volatile enum what change;
	volatile long changed, rounds, hits, stop;
};

static struct late *late;

__attribute__((noinline)) static void late_work(void)
{
	__asm__ volatile("nop; nop; nop; nop; nop; nop" ::: "memory");
	late->hits++;
}

/* With all signals blocked: a breakpoint in there ends the program. */
static void on_signal(int sig)
{
	(void)sig;
	late_work();
}

static void change(enum what what)
{
	struct sigaction sa = { .sa_handler = on_signal };
	sigset_t some;

	sigfillset(&sa.sa_mask);
	sigemptyset(&some);
	sigaddset(&some, SIGTRAP);
	sigaddset(&some, SIGUSR1);
	if (what == HANDLER)
		sigaction(SIGUSR2, &sa, NULL);
	if (what == BLOCKS)
		sigprocmask(SIG_BLOCK, &some, NULL);
}

static int program(void *arg)
{
	const struct timespec nap = { .tv_nsec = 200000 };

	(void)arg;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!late->stop) {
		if (late->change && !late->changed) {
			change(late->change);
			late->changed = 1;
		}
		late_work();
		if (late->changed && late->change == HANDLER)
			raise(SIGUSR2);
		late->rounds++;
		nanosleep(&nap, NULL);
	}
	return 7;
}

/* What the start says of a program that has changed since the attach. */
static int start_after(enum what what)
{
	struct err err = ERR_INIT;
	struct target *t;
	struct chan *c;
	struct probe *p;
	pid_t pid;
	int ret;

	memset((void *)late, 0, sizeof(*late));
	pid = child(program, NULL);
	await_word(&late->rounds, 10);
	assert_int_equal(target_attach(&t, pid, NULL, &err), 0);
	assert_int_equal(chan_open(t, &c, &err), 0);
	late->change = what;
	if (what)
		await_word(&late->changed, 1);
	assert_int_equal(probe_add(c, "p late_work", ADD_COUNT, PLAN_BY_NONE, &p, &err), 0);
	ret = probe_start(c, &err);
	await_word(&late->rounds, late->rounds + 200);
	assert_int_equal(chan_close(c, &err), 0);
	assert_int_equal(target_detach(t, &err), 0);
	target_free(t);
	await_word(&late->rounds, late->rounds + 10);
	late->stop = 1;
	assert_int_equal(child_status(pid), 7 << 8);
	return ret;
}

static void a_handler_that_came_since_may_run_into_breakpoints(void **state)
{
	(void)state;
	assert_int_equal(start_after(HANDLER), 0);
	assert_true(late->hits > late->rounds);
}

static void who_has_blocked_the_trap_since_gets_no_breakpoint(void **state)
{
	(void)state;
	assert_int_equal(start_after(BLOCKS), -EAGAIN);
}

static void what_has_not_changed_is_probed(void **state)
{
	(void)state;
	assert_int_equal(start_after(NOTHING), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_handler_that_came_since_may_run_into_breakpoints),
		cmocka_unit_test(who_has_blocked_the_trap_since_gets_no_breakpoint),
		cmocka_unit_test(what_has_not_changed_is_probed),
	};

	setenv("UKPROBES_OPTIMIZATION", "0", 1);
	late = mmap(NULL, sizeof(*late), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return late == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
