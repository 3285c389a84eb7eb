/* SPDX-License-Identifier: MIT */
/* A broker that is killed while a thread of the target makes system calls for it. */
#include "../inject/help.h"

#include "session/target.h"

#define KILLS 10

struct shared {
	volatile long rounds, stop, bad;
	int go[2];
};

/* Ends with 7 if its registers, its call and its mask were left alone. */
static int run_target(void *arg)
{
	struct shared *s = arg;
	long a = 1, b = 2, c = 3;
	double x = 0.5;
	sigset_t set;
	char byte;

	if (read(s->go[0], &byte, 1) != 1)
		s->bad++;
	while (!s->stop) {
		__asm__ volatile("nop" : "+r"(a), "+r"(b), "+r"(c), "+x"(x));
		if (a != 1 || b != 2 || c != 3 || x != 0.5)
			s->bad++;
		s->rounds++;
	}
	sigprocmask(SIG_BLOCK, NULL, &set);
	return s->bad || sigismember(&set, SIGUSR1) || sigismember(&set, SIGTRAP) ? 1 : 7;
}

static struct target *attached(pid_t pid)
{
	struct err err = ERR_INIT;
	struct target *t;

	if (target_attach(&t, pid, NULL, &err))
		fail_msg("%s", err.text);
	return t;
}

/* The target itself ends it: the calls behind that are made, and their end is met. */
static int run_broker(void *arg)
{
	struct inject_call v[3] = { { SYS_getpid, { 0 }, 0 },
		                    { SYS_kill, { getpid(), SIGKILL }, 0 },
		                    { SYS_getpid, { 0 }, 0 } };
	struct target *t = attached(*(pid_t *)arg);
	struct err err = ERR_INIT;

	if (!target_hold(t, &err) && !target_begin(t, &err))
		inject_calls(t->inject, v, 3);
	return 1;
}

static bool holds_an_agent(pid_t pid)
{
	char path[64], line[512];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		found |= strstr(line, "/memfd:ukprobes") != NULL;
	fclose(f);
	return found;
}

static void cure(pid_t pid)
{
	struct target *t = attached(pid);
	struct err err = ERR_INIT;

	assert_true(holds_an_agent(pid));
	if (target_detach(t, &err))
		fail_msg("%s", err.text);
	target_free(t);
	assert_false(holds_an_agent(pid));
}

static void the_target_goes_on_where_it_was(void **state)
{
	struct shared *s = shared_page();
	pid_t pid;
	int i;

	assert_int_equal(pipe(s->go), 0);
	pid = child(run_target, s);
	await_state(pid, 'S');
	for (i = 0; i < 2 * KILLS; i++) {
		long rounds = s->rounds;

		if (i == KILLS)
			assert_int_equal(write(s->go[1], "x", 1), 1);
		if (i >= KILLS)
			await_word(&s->rounds, rounds + 1);
		assert_int_equal(child_status(child(run_broker, &pid)), SIGKILL);
		assert_true(holds_an_agent(pid));
		rounds = s->rounds;
		if (i >= KILLS)
			await_word(&s->rounds, rounds + 1);
		else
			await_state(pid, 'S');
	}
	cure(pid);
	s->stop = 1;
	assert_int_equal(child_status(pid), 7 << 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_target_goes_on_where_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
