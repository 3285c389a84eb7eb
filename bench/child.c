/* SPDX-License-Identifier: MIT */
/* Child processes to measure in, and what is made of their samples. */
#include "bench.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SAMPLES_MAX 4096

void die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fprintf(stderr, "bench: ");
	vfprintf(stderr, format, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	exit(1);
}

void child_start(struct child *c, const char *path)
{
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		die("no pipe");
	fflush(stdout);
	c->pid = fork();
	if (c->pid < 0)
		die("no process");
	if (!c->pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	c->in = in[1];
	c->out = out[0];
}

double child_ask(struct child *c, const char *format, ...)
{
	char line[128];
	size_t len;
	va_list ap;

	va_start(ap, format);
	vsnprintf(line, sizeof(line) - 1, format, ap);
	va_end(ap);
	len = strlen(line);
	line[len++] = '\n';
	if (write(c->in, line, len) != (ssize_t)len)
		die("the target is gone");
	for (len = 0; len < sizeof(line) - 1; len++)
		if (read(c->out, line + len, 1) != 1)
			die("the target is gone");
		else if (line[len] == '\n')
			break;
	line[len] = 0;
	return atof(line);
}

void child_end(struct child *c)
{
	close(c->in);
	close(c->out);
	waitpid(c->pid, NULL, 0);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double ns_a_call(long (*volatile fn)(long, long), long n)
{
	struct timespec from, to;
	long i, s = 1;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	for (i = 0; i < n; i++)
		s += fn(i, s);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	__asm__ volatile("" ::"r"(s));
	return ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) /
	       (double)n;
}

double median(const double *v, size_t n)
{
	double copy[SAMPLES_MAX];

	if (!n || n > SAMPLES_MAX)
		return 0;
	memcpy(copy, v, n * sizeof(*v));
	qsort(copy, n, sizeof(*copy), compare);
	return n % 2 ? copy[n / 2] : (copy[n / 2 - 1] + copy[n / 2]) / 2;
}

double least(const double *v, size_t n)
{
	double min = v[0];
	size_t i;

	for (i = 1; i < n; i++)
		min = v[i] < min ? v[i] : min;
	return min;
}

double worst(const double *v, size_t n)
{
	double max = 0;
	size_t i;

	for (i = 0; i < n; i++)
		max = v[i] > max ? v[i] : max;
	return max;
}

double median_ratio(const double *a, const double *b, size_t n)
{
	double ratio[SAMPLES_MAX];
	size_t i;

	for (i = 0; i < n && i < SAMPLES_MAX; i++)
		ratio[i] = a[i] / b[i];
	return median(ratio, i);
}
