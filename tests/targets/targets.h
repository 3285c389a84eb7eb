/* SPDX-License-Identifier: MIT */
/*
 * Programs to attach to.  Each is one C file in tests/targets, compiled when a
 * test first asks, in the ways that matter for an attach.
 */
#ifndef UKP_TESTS_TARGETS_H
#define UKP_TESTS_TARGETS_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TARGETS_DIR "tests/targets"

static char target_dir[64];

static inline void target_cleanup(void)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "rm -rf %s", target_dir);
	if (system(cmd))
		fprintf(stderr, "can't remove %s\n", target_dir);
}

/*
 * Path of NAME.c compiled by "compiler flags", in a static buffer; NULL if
 * that can't be (no musl-gcc, no 32-bit libc).
 */
static inline const char *target_build(const char *name, const char *compiler, const char *flags)
{
	static char path[PATH_MAX];
	char cmd[3 * PATH_MAX];

	if (!target_dir[0]) {
		strcpy(target_dir, "/tmp/ukp-targets-XXXXXX");
		if (!mkdtemp(target_dir))
			return NULL;
		chmod(target_dir, 0755);
		atexit(target_cleanup);
	}
	snprintf(path, sizeof(path), "%s/%s%s", target_dir, name, flags);
	for (char *p = path + strlen(target_dir) + 1; *p; p++)
		if (*p == ' ' || *p == '/')
			*p = '_';
	snprintf(cmd, sizeof(cmd), "%s -O1 -pthread -o %s %s/%s.c %s 2>%s/log", compiler, path,
	         TARGETS_DIR, name, flags, target_dir);
	return system(cmd) ? NULL : path;
}

/* Does this kernel run it?  Many have no 32-bit programs. */
static inline int target_runs(const char *path)
{
	char cmd[PATH_MAX + 32];
	int st;

	snprintf(cmd, sizeof(cmd), "%s </dev/null >/dev/null 2>&1", path);
	st = system(cmd);
	return WIFEXITED(st) && WEXITSTATUS(st) != 126 && WEXITSTATUS(st) != 127;
}

#endif
