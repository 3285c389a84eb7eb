/* SPDX-License-Identifier: MIT */
/*
 * Names of the target's threads.  Records carry the id that the thread has in
 * its own pid namespace; where that is ours too, the two are the same.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "session/client.h"

#define BUCKETS 1024
#define MAX_NAMES 65536
#define FRESH_NS 1000000000ull /* names may change */

struct name {
	struct name *next;
	uint32_t ns_tid;
	pid_t tid;
	uint64_t read; /* when */
	char comm[17];
};

struct threads {
	pid_t pid;
	bool same_ns;
	bool family; /* threads of its children, too */
	unsigned int nr;
	struct name *bucket[BUCKETS];
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static bool same_namespace(pid_t pid)
{
	char path[64], a[64], b[64];
	ssize_t n, m;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	n = readlink(path, a, sizeof(a));
	m = readlink("/proc/self/ns/pid", b, sizeof(b));
	return n < 0 || m < 0 || (n == m && !memcmp(a, b, n));
}

void threads_close(struct threads *t)
{
	unsigned int i;

	for (i = 0; t && i < BUCKETS; i++)
		while (t->bucket[i]) {
			struct name *next = t->bucket[i]->next;

			free(t->bucket[i]);
			t->bucket[i] = next;
		}
	free(t);
}

static bool read_comm(struct threads *t, pid_t tid, char comm[17])
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", t->pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && t->family) {
		snprintf(path, sizeof(path), "/proc/%d/comm", tid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (fd < 0)
		return false;
	n = read(fd, comm, 16);
	close(fd);
	if (n <= 0)
		return false;
	comm[n] = 0;
	comm[strcspn(comm, "\n")] = 0;
	return true;
}

/* The innermost id of a thread that we know by an outer one. */
static uint32_t inner_tid(struct threads *t, pid_t tid)
{
	char path[64], line[256];
	uint32_t inner = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", t->pid, tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "NSpid:", 6)) {
			char *p = strrchr(line, '\t');

			inner = p ? strtoul(p, NULL, 10) : 0;
			break;
		}
	if (f)
		fclose(f);
	return inner;
}

static pid_t outer_tid(struct threads *t, uint32_t ns_tid)
{
	struct dirent *e;
	char path[64];
	pid_t found = 0;
	DIR *d;

	if (t->same_ns)
		return (pid_t)ns_tid;
	snprintf(path, sizeof(path), "/proc/%d/task", t->pid);
	d = opendir(path);
	while (d && !found && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]) && inner_tid(t, atoi(e->d_name)) == ns_tid)
			found = atoi(e->d_name);
	if (d)
		closedir(d);
	return found;
}

static struct name *find(struct threads *t, uint32_t ns_tid)
{
	struct name *n;

	for (n = t->bucket[ns_tid % BUCKETS]; n; n = n->next)
		if (n->ns_tid == ns_tid)
			return n;
	if (t->nr >= MAX_NAMES)
		return NULL;
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	t->nr++;
	n->ns_tid = ns_tid;
	n->next = t->bucket[ns_tid % BUCKETS];
	t->bucket[ns_tid % BUCKETS] = n;
	return n;
}

const char *threads_name(struct threads *t, uint32_t ns_tid, pid_t *tid)
{
	uint64_t now = now_ns();
	struct name *n = ns_tid ? find(t, ns_tid) : NULL;

	*tid = t->same_ns ? (pid_t)ns_tid : 0;
	if (!n)
		return "<...>";
	if (!n->read || now - n->read > FRESH_NS) {
		if (!n->tid)
			n->tid = outer_tid(t, ns_tid);
		/* A thread that is gone keeps the name it had. */
		if (n->tid)
			read_comm(t, n->tid, n->comm);
		n->read = now;
	}
	*tid = n->tid;
	return n->comm[0] ? n->comm : "<...>";
}

/* All that are there: one that ends soon is not asked for its name in time. */
static void read_all(struct threads *t)
{
	struct dirent *e;
	char path[64];
	pid_t tid;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", t->pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		tid = atoi(e->d_name);
		if (tid > 0)
			threads_name(t, t->same_ns ? (uint32_t)tid : inner_tid(t, tid), &tid);
	}
	if (d)
		closedir(d);
}

void threads_set_family(struct threads *t, bool family)
{
	if (t)
		t->family = family;
}

int threads_open(struct threads **ret, pid_t pid)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->pid = pid;
	(*ret)->same_ns = same_namespace(pid);
	read_all(*ret);
	return 0;
}
