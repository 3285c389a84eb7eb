/* SPDX-License-Identifier: MIT */
/*
 * Processes that share the target's memory without being its threads
 * (CLONE_VM).  A stop does not stop them; and one that has dispositions of its
 * own, made before ours were there, would be killed by a breakpoint.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session/target.h"

#define LOOKS 100 /* a second, for children that are about to call exec */
#define LOOK_US 10000

static bool same(pid_t a, pid_t b, int what)
{
	return !syscall(SYS_kcmp, a, b, what, 0, 0);
}

/* Another process with this memory; own: with dispositions of its own. 0: none. */
static pid_t find_other(const struct target *t, bool own)
{
	/* A leader that has ended has no memory, as kernel threads have none. */
	pid_t tid = inject_live_tid(t->inject), pid, found = 0;
	DIR *dir = tid ? opendir("/proc") : NULL;
	struct dirent *e;

	while (dir && !found && (e = readdir(dir))) {
		pid = atoi(e->d_name);
		if (pid > 0 && pid != t->pid && same(pid, tid, KCMP_VM) &&
		    !(own && same(pid, tid, KCMP_SIGHAND)))
			found = pid;
	}
	if (dir)
		closedir(dir);
	return found;
}

bool target_shares_memory(const struct target *t)
{
	return find_other(t, false);
}

int target_check_shared(struct target *t, struct err *err)
{
	unsigned int looks;
	pid_t other = 0;

	for (looks = 0; looks < LOOKS && (other = find_other(t, true)); looks++)
		usleep(LOOK_US);
	if (!other)
		return 0;
	return err_set(err, -EOPNOTSUPP,
	               "process %d shares its memory with process %d (CLONE_VM), which a probe "
	               "would kill: it handles signals for itself",
	               t->pid, other);
}
