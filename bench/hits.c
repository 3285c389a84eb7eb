/* SPDX-License-Identifier: MIT */
/*
 * What a hit costs, in ratios: our base form, the int3 floor and the kernel's
 * uprobes on the same two functions, in rounds that take each row in turn, so
 * that whatever the machine does meanwhile happens to all of them.
 *
 *	hits TARGET
 */
#include "bench.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ukprobes/session.h"

#define PROCESSES 9 /* a process is fast or slow by where its pages lie */
#define TURNS 3
#define ROUNDS (PROCESSES * TURNS)

enum row_mode { PLAIN, OURS, FLOOR, UPROBE };

enum row_kind {
	PLAIN_MOV,
	PLAIN_PUSH,
	GETPPID,
	P_MOV,
	P_PUSH,
	P_ARGS,
	LAT_MOV,
	LAT_PUSH,
	R_MOV,
	R_PUSH,
	FLOOR_MOV,
	FLOOR_PUSH,
	UP_MOV,
	UP_PUSH,
	UR_MOV,
	UR_PUSH,
	NR_ROWS
};

struct row {
	const char *what;
	enum row_mode mode;
	const char *call;
	const char *def; /* ours: what is enabled for it */
	long n;          /* calls a slice */
	uint64_t calls;  /* since the probe was planted */
	unsigned int id;
	double ns[ROUNDS];
};

static struct row rows[NR_ROWS] = {
	[PLAIN_MOV] = { "plain call of work_mov", PLAIN, "mov" },
	[PLAIN_PUSH] = { "plain call of work_push", PLAIN, "push" },
	[GETPPID] = { "a system call (getppid)", PLAIN, "getppid" },
	[P_MOV] = { "p work_mov: entry, one record", OURS, "mov", "p work_mov" },
	[P_PUSH] = { "p work_push", OURS, "push", "p work_push" },
	[P_ARGS] = { "p work_mov, three arguments", OURS, "mov",
	             "p work_mov $arg1 +0(%sp):x64 %ax" },
	[LAT_MOV] = { "latency work_mov: entry + return", OURS, "mov", "=work_mov" },
	[LAT_PUSH] = { "latency work_push", OURS, "push", "=work_push" },
	[R_MOV] = { "r work_mov: entry + return + record", OURS, "mov",
	            "r work_mov $retval $duration" },
	[R_PUSH] = { "r work_push", OURS, "push", "r work_push $retval $duration" },
	[FLOOR_MOV] = { "int3 floor, work_mov", FLOOR, "mov" },
	[FLOOR_PUSH] = { "int3 floor, work_push", FLOOR, "push" },
	[UP_MOV] = { "uprobe work_mov, counting", UPROBE, "mov" },
	[UP_PUSH] = { "uprobe work_push, counting", UPROBE, "push" },
	[UR_MOV] = { "uretprobe work_mov, counting", UPROBE, "mov" },
	[UR_PUSH] = { "uretprobe work_push, counting", UPROBE, "push" },
};

static struct child child;
static struct ukp_session *session;
static const char *no_uprobes;

static int ignore_record(const struct ukp_record *r, void *arg)
{
	(void)r;
	(void)arg;
	return 0;
}

static void check(int ret)
{
	if (ret)
		die("%s", ukp_session_error(session));
}

static double slice(struct row *r)
{
	r->calls += (uint64_t)r->n + 1; /* one warms up */
	return child_ask(&child, "%s %ld", r->call, r->n);
}

/* A figure of probes that were not hit, or wrote nothing, is none. */
static void check_counts(const struct row *r, uint64_t hits, uint64_t records)
{
	if (hits != r->calls || records != r->calls)
		die("%s: %lu calls, %lu hits, %lu records: the figure would be wrong", r->what,
		    (unsigned long)r->calls, (unsigned long)hits, (unsigned long)records);
}

static void measure_ours(int round)
{
	struct ukp_counts c;
	struct row *r;

	check(ukp_session_open(&session, child.pid));
	for (r = rows; r < rows + NR_ROWS; r++)
		if (r->mode == OURS) {
			check(*r->def == '=' ? ukp_session_add_latency(session, r->def + 1, &r->id)
			                     : ukp_session_add(session, r->def, &r->id));
			r->calls = 0;
		}
	check(ukp_session_start(session));
	for (r = rows; r < rows + NR_ROWS; r++)
		if (r->mode == OURS)
			check(ukp_session_enable(session, r->id, false));
	for (r = rows; r < rows + NR_ROWS; r++) {
		if (r->mode != OURS)
			continue;
		check(ukp_session_enable(session, r->id, true));
		r->ns[round] = slice(r);
		check(ukp_session_enable(session, r->id, false));
		/* A full ring would be cheaper than it should be. */
		while (ukp_session_read(session, ignore_record, NULL, 0) > 0)
			;
		check(ukp_session_counts(session, r->id, &c));
		if (!getenv("NOCHK"))
			check_counts(r, c.hits, c.records);
	}
	ukp_session_close(session);
	session = NULL;
}

static void measure_floor(int round)
{
	struct row *r;

	for (r = rows; r < rows + NR_ROWS; r++) {
		if (r->mode != FLOOR)
			continue;
		child_ask(&child, "int3 %s on", r->call);
		r->ns[round] = slice(r);
		child_ask(&child, "int3 %s off", r->call);
	}
}

static void measure_plain(int round)
{
	struct row *r;

	for (r = rows; r < rows + NR_ROWS; r++)
		if (r->mode == PLAIN)
			r->ns[round] = slice(r);
}

/*
 * Last in each process: once it had a uprobe, the kernel looks for one at
 * every int3, so ours and the floor would pay for that.
 */
static void measure_uprobes(const char *path, int round)
{
	struct row *r;
	int turn, fd;

	for (r = rows + UP_MOV; r < rows + NR_ROWS && !no_uprobes; r++) {
		const char *func = strcmp(r->call, "push") ? "work_mov" : "work_push";

		fd = uprobe_open(child.pid, path, func, r >= rows + UR_MOV, &no_uprobes);
		if (fd < 0)
			return;
		no_uprobes = NULL;
		r->calls = 0;
		for (turn = 0; turn < TURNS; turn++)
			r->ns[round + turn] = slice(r);
		check_counts(r, uprobe_count(fd), r->calls);
		close(fd);
	}
}

static void measure(const char *path)
{
	int round, turn, i;

	for (i = 0; i < NR_ROWS; i++)
		rows[i].n = rows[i].mode != PLAIN ? 500 : i == GETPPID ? 5000 : 100000;
	for (round = 0; round < ROUNDS; round += TURNS) {
		child_start(&child, path);
		child_ask(&child, "mov 1"); /* it runs */
		for (turn = 0; turn < TURNS; turn++) {
			measure_plain(round + turn);
			measure_floor(round + turn);
			measure_ours(round + turn);
		}
		measure_uprobes(path, round);
		child_end(&child);
	}
}

static int skipped(int i)
{
	return no_uprobes && i >= UP_MOV;
}

static void print_rows(void)
{
	int i;

	printf("%-40s %10s %9s\n", "one call, thread CPU time", "ns, median", "/ floor");
	for (i = 0; i < NR_ROWS; i++) {
		struct row *r = &rows[i];
		struct row *floor = &rows[strcmp(r->call, "push") ? FLOOR_MOV : FLOOR_PUSH];

		if (!skipped(i))
			printf("%-40s %10.1f %9.3f\n", r->what, median(r->ns, ROUNDS),
			       median_ratio(r->ns, floor->ns, ROUNDS));
	}
	if (no_uprobes)
		printf("uprobes: skipped: %s\n", no_uprobes);
}

static void ratio(const char *what, int a, int b, const char *aim)
{
	if (!skipped(a) && !skipped(b))
		printf("%-48s = %5.2f%s\n", what, median_ratio(rows[a].ns, rows[b].ns, ROUNDS),
		       aim);
}

static void print_ratios(void)
{
	printf("\nratios of rows that were measured side by side, medians of %d\n", ROUNDS);
	ratio("base form entry / int3 floor", P_MOV, FLOOR_MOV, "  (aim <= 0.90)");
	ratio("base form entry / int3 floor, push", P_PUSH, FLOOR_PUSH, "  (aim <= 0.90)");
	ratio("base form entry / uprobe", P_MOV, UP_MOV, "");
	ratio("base form entry / uprobe, push", P_PUSH, UP_PUSH, "");
	ratio("base form return / uretprobe", R_MOV, UR_MOV, "");
	ratio("base form return / uretprobe, push", R_PUSH, UR_PUSH, "");
	ratio("base form latency / uretprobe", LAT_MOV, UR_MOV, "");
	ratio("base form latency / uretprobe, push", LAT_PUSH, UR_PUSH, "");
}

int main(int argc, char **argv)
{
	if (argc != 2)
		die("usage: hits TARGET");
	signal(SIGPIPE, SIG_IGN);
	measure(argv[1]);
	print_rows();
	print_ratios();
	return 0;
}
