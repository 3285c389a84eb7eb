/* SPDX-License-Identifier: MIT */
/*
 * Names of code that a program has made, as it tells perf: /tmp/perf-PID.map, with its
 * own view of /tmp and of its number, has a line "START SIZE NAME" in hexadecimal for
 * each function.  What comes later holds: addresses are used again.
 *
 * The program writes it, or whoever may write to its /tmp: it has to be the program's
 * own, and what it says is a wish for a place, which is checked as any other.
 */
#include "sym/internal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PERFMAP_MAX (64l << 20)

/* The number that the process has for itself; 0: it is gone. */
static pid_t inner_pid(pid_t pid)
{
	char path[64], line[256], *last;
	pid_t inner = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && !inner && fgets(line, sizeof(line), f))
		if (!strncmp(line, "NSpid:", 6)) {
			last = strrchr(line, '\t');
			inner = last ? atoi(last) : 0;
		}
	if (f)
		fclose(f);
	return inner;
}

static FILE *open_map(pid_t pid)
{
	struct stat st, own;
	char path[64];
	FILE *f = NULL;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &own))
		return NULL;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)inner_pid(pid));
	fd = file_open_path(pid, path);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == own.st_uid &&
	    st.st_size <= PERFMAP_MAX)
		f = fdopen(fd, "r");
	if (!f)
		close(fd);
	return f;
}

bool sym_perfmap_line(const char *line, const char *name, uint64_t *addr, uint64_t *size)
{
	uint64_t at, len;
	size_t n;
	int used = 0;

	if (sscanf(line, "%" SCNx64 " %" SCNx64 " %n", &at, &len, &used) != 2 || !used)
		return false;
	line += used;
	n = strcspn(line, "\n");
	if (!len || at + len < at || n != strlen(name) || strncmp(line, name, n) != 0)
		return false;
	*addr = at;
	*size = len;
	return true;
}

bool sym_perfmap(struct sym_proc *p, const char *name, uint64_t *addr, uint64_t *size)
{
	FILE *f = open_map(p->pid);
	char line[1024];
	bool found = false;

	/* The rest of a line that is longer has no two numbers at its start, or another name. */
	while (f && fgets(line, sizeof(line), f))
		found |= sym_perfmap_line(line, name, addr, size);
	if (f)
		fclose(f);
	return found;
}
