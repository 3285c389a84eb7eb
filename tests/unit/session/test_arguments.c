/* SPDX-License-Identifier: MIT */
/* Threads that are about to set masks and handlers whenever somebody comes and goes. */
#include "victim.h"

#define THREADS 2
#define ROUNDS 30

struct calls {
	volatile long ready, stop, bad, made[THREADS];
};

static struct calls *calls;

static void ignore_it(int sig)
{
	(void)sig;
}

static bool set_mask(int how, const sigset_t *set)
{
	return !pthread_sigmask(how, set, NULL);
}

static bool set_handler(const sigset_t *mask, struct sigaction *old)
{
	struct sigaction sa = { .sa_handler = ignore_it, .sa_mask = *mask };

	return !sigaction(SIGUSR2, &sa, old);
}

/* The program's own: SIGTRAP in it is the difference that our leaving must not make. */
static bool keeps_what_it_set(const sigset_t *full)
{
	struct sigaction sa;
	sigset_t now;

	return set_mask(SIG_SETMASK, full) && !pthread_sigmask(SIG_SETMASK, NULL, &now) &&
	       sigismember(&now, SIGTRAP) == 1 && sigismember(&now, SIGSEGV) == 1 &&
	       set_handler(full, NULL) && !sigaction(SIGUSR2, NULL, &sa) &&
	       sigismember(&sa.sa_mask, SIGTRAP) == 1;
}

static void *run_calls(void *arg)
{
	volatile long *made = arg;
	sigset_t full, none;

	sigfillset(&full);
	sigemptyset(&none);
	__atomic_add_fetch(&calls->ready, 1, __ATOMIC_RELAXED);
	while (!calls->stop) {
		if (!set_mask(SIG_SETMASK, &full) || !set_handler(&full, NULL) ||
		    !set_mask(SIG_SETMASK, &none))
			__atomic_add_fetch(&calls->bad, 1, __ATOMIC_RELAXED);
		++*made;
	}
	if (!keeps_what_it_set(&full))
		__atomic_add_fetch(&calls->bad, 1000000, __ATOMIC_RELAXED);
	return NULL;
}

static int program(void *arg)
{
	pthread_t th[THREADS];
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&th[i], NULL, run_calls, (void *)&calls->made[i]))
			return 1;
	for (i = 0; i < THREADS; i++)
		pthread_join(th[i], NULL);
	(void)arg;
	return 7;
}

static void come_and_go(pid_t pid)
{
	struct err err = ERR_INIT;
	struct target *t;
	struct chan *c;

	must(target_attach(&t, pid, NULL, &err), &err);
	must(chan_open(t, &c, &err), &err);
	must(add(c, "p calls_never_made", &err), &err);
	must(probe_start(c, &err), &err);
	nap_ms(2);
	must(chan_close(c, &err), &err);
	must(target_detach(t, &err), &err);
	target_free(t);
}

void calls_never_made(void);
void calls_never_made(void)
{
	__asm__ volatile("nop\n\tnop\n\tnop\n\tnop\n\tnop");
}

static void calls_on_their_way_get_what_their_caller_gave_when_we_leave(void **state)
{
	long before = 0;
	pid_t pid;
	int i;

	calls = shared_page();
	pid = child(program, NULL);
	await_word(&calls->ready, THREADS);
	for (i = 0; i < ROUNDS; i++) {
		before = calls->made[0];
		come_and_go(pid);
		assert_int_equal(calls->bad, 0);
	}
	assert_true(calls->made[0] > before);
	calls->stop = 1;
	assert_int_equal(child_status(pid), 7 << 8);
	assert_int_equal(calls->bad, 0);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_on_their_way_get_what_their_caller_gave_when_we_leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
