/* SPDX-License-Identifier: MIT */
/* What the files of the bench share: child processes to measure in, and samples. */
#ifndef UKP_BENCH_BENCH_H
#define UKP_BENCH_BENCH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct child {
	pid_t pid;
	int in, out;
};

/* Starts the target program (bench/target.c) at path.  Exits on failure. */
void child_start(struct child *c, const char *path);
/* Sends one command line, returns the number it answers.  Exits on failure. */
double child_ask(struct child *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void child_end(struct child *c);

_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Nanoseconds of CPU time a call of fn, over n of them, each with the last one's result. */
double ns_a_call(long (*volatile fn)(long, long), long n);

double median(const double *v, size_t n);
double worst(const double *v, size_t n);
double least(const double *v, size_t n);
/* Median of a[i] / b[i]: both were measured in round i. */
double median_ratio(const double *a, const double *b, size_t n);

/*
 * The kernel's uprobe on a function of path, in process pid alone, counting.
 * Returns a perf event to read(), or -1 with the reason in *why.
 */
int uprobe_open(pid_t pid, const char *path, const char *func, int ret, const char **why);
uint64_t uprobe_count(int fd);

#endif
