/* SPDX-License-Identifier: MIT */
/*
 * Planting many places of one definition: 1 to all functions of a library that
 * lies dense, of one that has a page for each function, and of a large one.
 *
 *	scale TARGET LIBRARY GLOB [AIM-MS] ...
 *
 * Each round is a new target with 4 threads and a new tracer, so all is cold
 * but the page cache.  "plant" begins with the text of the definition and ends
 * when all is in, cpu is the tracer's for that; "stop" is of the holds of planting and of removing,
 * as the tracer sees it: the least of the rounds, which load on the machine changes least.  Memory:
 * the tracer's peak, and what the target grew.
 */
#include "bench.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject/inject.h"
#include "session/target.h"

#define ROUNDS 5
#define NR_COLS (sizeof(struct result) / sizeof(double))

struct result {
	double places, refused;
	double plant_ms, remove_ms, leave_ms;
	double tracer_mb, target_mb;
	double cpu_ms; /* of planting */
	double stop_plant, stop_remove, stop_leave;
};

static double read_ms(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static double now_ms(void)
{
	return read_ms(CLOCK_MONOTONIC);
}

static pid_t start_target(const char *target, const char *library)
{
	int out[2];
	char line[16];
	pid_t pid;

	if (pipe2(out, O_CLOEXEC))
		die("no pipe");
	pid = fork();
	if (!pid) {
		dup2(out[1], 1);
		execl(target, target, library, "4", (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	if (read(out[0], line, sizeof(line)) < 5)
		die("%s does not start with %s", target, library);
	close(out[0]);
	return pid;
}

/* MB in memory that is its own: what it didn't share with a file. */
static double own_mb(pid_t pid)
{
	char path[64], line[256];
	long anon = 0, shmem = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "RssAnon: %ld", &anon);
		sscanf(line, "RssShmem: %ld", &shmem);
	}
	if (f)
		fclose(f);
	return (double)(anon + shmem) / 1024;
}

static void check(int ret, const struct err *err)
{
	if (ret)
		die("%s", err->text);
}

static double stop_ms(const struct target *t)
{
	return (double)inject_stop_us(t->inject) / 1e3;
}

static void trace(pid_t pid, const char *line, struct result *r)
{
	struct err err = ERR_INIT;
	struct rusage usage;
	struct target *t;
	struct chan *c;
	struct probe *p;
	double at;

	check(target_attach(&t, pid, NULL, &err), &err);
	check(chan_open(t, &c, &err), &err);
	r->target_mb = -own_mb(pid);
	r->cpu_ms = -read_ms(CLOCK_PROCESS_CPUTIME_ID);
	at = now_ms();
	check(probe_add(c, line, ADD_COUNT, PLAN_BY_NONE, &p, &err), &err);
	check(probe_start(c, &err), &err);
	r->plant_ms = now_ms() - at;
	r->cpu_ms += read_ms(CLOCK_PROCESS_CPUTIME_ID);
	r->stop_plant = stop_ms(t);
	r->places = (double)p->nr_planted;
	r->refused = (double)c->refused.total;
	r->target_mb += own_mb(pid);
	at = now_ms();
	check(chan_stop(c, &err), &err);
	r->remove_ms = now_ms() - at;
	r->stop_remove = stop_ms(t);
	at = now_ms();
	check(chan_close(c, &err), &err);
	check(target_detach(t, &err), &err);
	r->leave_ms = now_ms() - at;
	r->stop_leave = stop_ms(t);
	target_free(t);
	getrusage(RUSAGE_SELF, &usage);
	r->tracer_mb = (double)usage.ru_maxrss / 1024;
}

static void one_round(const char *target, const char *library, const char *line, struct result *r)
{
	pid_t pid = start_target(target, library), child;
	int out[2];

	if (pipe2(out, O_CLOEXEC))
		die("no pipe");
	fflush(stdout);
	child = fork();
	if (!child) {
		memset(r, 0, sizeof(*r));
		trace(pid, line, r);
		_exit(write(out[1], r, sizeof(*r)) != sizeof(*r));
	}
	close(out[1]);
	if (read(out[0], r, sizeof(*r)) != sizeof(*r))
		die("a round failed");
	close(out[0]);
	waitpid(child, NULL, 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static double worst_stop(double col[][ROUNDS])
{
	double max = 0, w;
	int k;

	for (k = 8; k <= 10; k++) {
		w = worst(col[k], ROUNDS);
		max = w > max ? w : max;
	}
	return max;
}

static void measure(const char *target, const char *library, const char *glob, const char *aim)
{
	const char *name = strrchr(library, '/');
	double col[NR_COLS][ROUNDS];
	char line[512];
	struct result r;
	int i;

	name = name ? name + 1 : library;
	snprintf(line, sizeof(line), "f %s:%s", name, glob);
	for (i = 0; i < ROUNDS; i++) {
		const double *v = (const double *)&r;
		size_t k;

		one_round(target, library, line, &r);
		for (k = 0; k < NR_COLS; k++)
			col[k][i] = v[k];
	}
	printf("%-16.16s %6.0f %7.0f %7.1f %6s %7.1f %7.1f %7.1f  %5.2f %5.2f %5.2f %6.2f  %6.0f "
	       "%6.0f %7.2f\n",
	       name, r.places, r.refused, median(col[2], ROUNDS), aim, median(col[7], ROUNDS),
	       median(col[3], ROUNDS), median(col[4], ROUNDS), least(col[8], ROUNDS),
	       least(col[9], ROUNDS), least(col[10], ROUNDS), worst_stop(col),
	       median(col[5], ROUNDS), median(col[6], ROUNDS),
	       median(col[2], ROUNDS) * 1000 / r.places);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int i;

	printf("%-45s%15s  %-25s  %s\n%-16s %6s %7s %7s %6s %7s %7s %7s  %5s %5s %5s %6s  %6s %6s "
	       "%7s\n",
	       "", "ms", "target stands still, ms", "MB grown", "functions of", "places", "refused",
	       "plant", "(aim)", "cpu", "remove", "leave", "plant", "rem.", "leave", "worst",
	       "tracer", "target", "us each");
	for (i = 2; i + 2 < argc; i += 3)
		measure(argv[1], argv[i], argv[i + 1], argv[i + 2]);
	printf("median of %d, of stops the least and the worst; 4 threads (aim for every stop: "
	       "1)\n",
	       ROUNDS);
	return 0;
}
