/* SPDX-License-Identifier: MIT */
/*
 * A program whose true counts are known.
 *
 *	counter THREADS CALLS [recurse=N] [born] [sigprof] [usec=N] [hold]
 *
 * Says "ready" with addresses, waits for a line, does its calls in so many
 * threads, says how often each function was entered, and waits for the next
 * line ("again" does it once more).
 *
 *	work(i)		returns a pointer, NULL for every tenth i
 *	recurse(n)	calls itself n deep
 *	tick()		called by the SIGPROF handler, as is work(1)
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static unsigned long nr_threads, nr_calls, depth, usec;
static int born, sigprof;
static unsigned long entered_work, entered_recurse, entered_tick, wrong;
static char memory[64];

#define COUNT(x) __atomic_fetch_add(&(x), 1, __ATOMIC_RELAXED)

__attribute__((noinline)) void *work(unsigned long i)
{
	COUNT(entered_work);
	return i % 10 ? memory + i % 64 : NULL;
}

__attribute__((noinline)) unsigned long recurse(unsigned long n)
{
	COUNT(entered_recurse);
	return n ? recurse(n - 1) + 1 : 0;
}

__attribute__((noinline)) void tick(void)
{
	COUNT(entered_tick);
	work(1);
}

static void on_prof(int sig)
{
	tick();
}

static void *run(void *arg)
{
	unsigned long i;

	for (i = 0; i < (unsigned long)arg; i++) {
		if (work(i) != (i % 10 ? memory + i % 64 : NULL))
			COUNT(wrong);
		if (depth && i % 16 == 0 && recurse(depth) != depth)
			COUNT(wrong);
		if (usec)
			usleep(usec);
	}
	return NULL;
}

static void create(pthread_t *t, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	if (pthread_create(t, &attr, fn, arg))
		abort();
	pthread_attr_destroy(&attr);
}

/* born: each thread does a little, and another one takes its place. */
static void *mother(void *arg)
{
	unsigned long left = (unsigned long)arg, part;
	pthread_t t;

	while (left) {
		part = left < 20 ? left : 20;
		create(&t, run, (void *)part);
		pthread_join(t, NULL);
		left -= part;
	}
	return NULL;
}

static void *meet(void *barrier)
{
	pthread_barrier_wait(barrier);
	return NULL;
}

/* libc keeps the stacks of threads that were: so later ones change nothing. */
static void warm_up(void)
{
	pthread_barrier_t barrier;
	pthread_t t[256];
	unsigned long i;

	pthread_barrier_init(&barrier, NULL, nr_threads);
	for (i = 0; i < nr_threads; i++)
		create(&t[i], meet, &barrier);
	for (i = 0; i < nr_threads; i++)
		pthread_join(t[i], NULL);
}

static void timer(int on)
{
	struct itimerval it = { { 0, on ? 1000 : 0 }, { 0, on ? 1000 : 0 } };

	setitimer(ITIMER_PROF, &it, NULL);
}

static void all(void)
{
	pthread_t t[256];
	unsigned long i;

	if (sigprof)
		timer(1);
	for (i = 0; i < nr_threads; i++)
		create(&t[i], born ? mother : run, (void *)nr_calls);
	for (i = 0; i < nr_threads; i++)
		pthread_join(t[i], NULL);
	if (sigprof)
		timer(0);
	printf("work %lu\nrecurse %lu\ntick %lu\nwrong %lu\ndone\n", entered_work, entered_recurse,
	       entered_tick, wrong);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_prof, .sa_flags = SA_RESTART };
	char line[64];
	int i;

	nr_threads = strtoul(argv[1], NULL, 0);
	nr_calls = strtoul(argv[2], NULL, 0);
	for (i = 3; i < argc; i++) {
		born |= !strcmp(argv[i], "born");
		sigprof |= !strcmp(argv[i], "sigprof");
		sscanf(argv[i], "recurse=%lu", &depth);
		sscanf(argv[i], "usec=%lu", &usec);
	}
	sigaction(SIGPROF, &sa, NULL);
	warm_up();
	printf("&work %p\nready\n", (void *)work);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n"))
		all();
	return 0;
}
