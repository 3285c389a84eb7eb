/* SPDX-License-Identifier: MIT */
/*
 * How long a process stands still: at the attach, at planting 20 probes, at
 * taking them out and at leaving, with 1, 4, 50 and 100 threads, one of them
 * calling the probed functions and the rest asleep or all of them calling.
 * From the first interrupt to the last detach, as the tracer sees it; of
 * several holds in one step, the longest.
 * And the wall time of all that through the session API, broker included; and how
 * long the machine itself takes from one CPU to the other and back.
 */
#include "bench.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject/inject.h"
#include "session/target.h"
#include "ukprobes/session.h"

#define ROUNDS 21
#define NR_PROBES 20
#define FLOOR_ROUNDS 2000

__asm__(".text\n"
        ".macro victim n\n"
        ".balign 16\n"
        ".globl victim_\\n\n"
        ".type victim_\\n, @function\n"
        "victim_\\n:	lea	1(%rdi), %rax\n"
        "	ret\n"
        ".size victim_\\n, . - victim_\\n\n"
        ".endm\n"
        ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19\n"
        "victim \\n\n"
        ".endr\n");
long victim_0(long x);
long victim_19(long x);

enum step { ATTACH, CHANNEL, PLANT, UNPLANT, DETACH, NR_STEPS };
static const char *const step_name[] = { "attach", "channel", "plant 20", "unplant", "detach" };

static void *busy(void *arg)
{
	for (long i = 0;; i++)
		victim_0(victim_19(i));
	return arg;
}

static void *idle(void *arg)
{
	while (pause())
		;
	return arg;
}

static pid_t start_target(int threads, void *(*rest)(void *))
{
	pthread_t th;
	int ready[2], i;
	pid_t pid;
	char c;

	if (pipe(ready))
		die("no pipe");
	fflush(stdout);
	pid = fork();
	if (pid) {
		/* It blocks all signals while it makes a thread, so it is not probed then. */
		close(ready[1]);
		if (read(ready[0], &c, 1) != 1)
			die("the target ended");
		close(ready[0]);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 1; i < threads; i++)
		if (pthread_create(&th, NULL, rest, NULL))
			_exit(1);
	if (write(ready[1], "", 1) != 1)
		_exit(1);
	busy(NULL);
	_exit(0);
}

static void check(int ret, const struct err *err)
{
	if (ret)
		die("%s", err->text);
}

static void one_round(pid_t pid, double us[NR_STEPS])
{
	struct err err = ERR_INIT;
	struct target *t;
	struct chan *c;
	struct probe *p;
	char line[32];
	int i;

	check(target_attach(&t, pid, NULL, &err), &err);
	us[ATTACH] = (double)inject_longest_us(t->inject);
	check(chan_open(t, &c, &err), &err);
	us[CHANNEL] = (double)inject_longest_us(t->inject);
	for (i = 0; i < NR_PROBES; i++) {
		snprintf(line, sizeof(line), "%c victim_%d", i % 2 ? 'r' : 'p', i);
		check(probe_add(c, line, ADD_EVENT, PLAN_BY_NONE, &p, &err), &err);
	}
	check(probe_start(c, &err), &err);
	us[PLANT] = (double)inject_longest_us(t->inject);
	check(chan_close(c, &err), &err);
	us[UNPLANT] = (double)inject_longest_us(t->inject);
	check(target_detach(t, &err), &err);
	us[DETACH] = (double)inject_longest_us(t->inject);
	target_free(t);
}

static void measure(int threads, void *(*rest)(void *), const char *name)
{
	pid_t pid = start_target(threads, rest);
	static double us[NR_STEPS][ROUNDS];
	int i, s;

	for (i = 0; i < ROUNDS; i++) {
		double round[NR_STEPS];

		one_round(pid, round);
		for (s = 0; s < NR_STEPS; s++)
			us[s][i] = round[s] / 1000;
	}
	printf("%3d threads, %-12s", threads, name);
	for (s = 0; s < NR_STEPS; s++)
		printf(" %6.2f %6.2f %6.2f", least(us[s], ROUNDS), median(us[s], ROUNDS),
		       worst(us[s], ROUNDS));
	printf("%s\n", threads == 4 ? "  (aim: 1)" : threads == 100 ? "  (aim: 5)" : "");
	fflush(stdout);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void wall_time(void)
{
	pid_t pid = start_target(4, idle);
	double open[ROUNDS], plant[ROUNDS], leave[ROUNDS];
	struct ukp_session *s;
	char line[32];
	int i, k, ret;

	for (i = 0; i < ROUNDS; i++) {
		double at = now_ms(), then;

		if (ukp_session_open(&s, pid))
			die("%s", ukp_session_error(s));
		then = now_ms();
		open[i] = then - at;
		for (k = ret = 0; k < NR_PROBES && !ret; k++) {
			snprintf(line, sizeof(line), "p victim_%d", k);
			ret = ukp_session_add(s, line, NULL);
		}
		if (ret || ukp_session_start(s))
			die("%s", ukp_session_error(s));
		at = now_ms();
		plant[i] = at - then;
		ukp_session_close(s);
		leave[i] = now_ms() - at;
	}
	printf("\nwall time, 4 threads, ms, median: open %.1f, add and plant %d probes %.1f, "
	       "close %.1f\n",
	       median(open, ROUNDS), NR_PROBES, median(plant, ROUNDS), median(leave, ROUNDS));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* A real-time thread on one CPU asks one on another: no stop is faster than this. */
static void go_first_on(int cpu)
{
	struct sched_param param = { .sched_priority = 1 };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
}

static int asked[2], answered[2];

static void *answer(void *arg)
{
	char c;

	go_first_on(1);
	while (read(asked[0], &c, 1) == 1 && write(answered[1], &c, 1) == 1)
		;
	return arg;
}

/* The last thing: the process stays real-time. */
static void floor_of_the_machine(void)
{
	const struct timespec pause = { 0, 500000 };
	static double us[FLOOR_ROUNDS];
	pthread_t th;
	char c = 0;
	int i;

	if (pipe(asked) || pipe(answered) || pthread_create(&th, NULL, answer, NULL))
		die("no pipe or thread");
	go_first_on(0);
	for (i = 0; i < FLOOR_ROUNDS; i++) {
		double at;

		nanosleep(&pause, NULL);
		at = now_ms();
		if (write(asked[1], &c, 1) != 1 || read(answered[0], &c, 1) != 1)
			die("no answer");
		us[i] = (now_ms() - at) * 1000;
	}
	printf("floor: a thread on another CPU answers after %.0f, %.0f, %.0f us "
	       "(least, median, worst of %d)\n",
	       least(us, FLOOR_ROUNDS), median(us, FLOOR_ROUNDS), worst(us, FLOOR_ROUNDS),
	       FLOOR_ROUNDS);
}

int main(void)
{
	static const int threads[] = { 1, 4, 50, 100 };
	int i, s;

	printf("the target stands still for, ms:");
	for (s = 0; s < NR_STEPS; s++)
		printf("%*s%-9s", s ? 12 : 2, "", step_name[s]);
	printf("\n%-25s", "least, median, worst of 21");
	for (s = 0; s < NR_STEPS; s++)
		printf("  least median  worst");
	printf("\n");
	for (i = 0; i < 4; i++)
		measure(threads[i], idle, "one busy");
	measure(4, busy, "all busy");
	wall_time();
	floor_of_the_machine();
	return 0;
}
