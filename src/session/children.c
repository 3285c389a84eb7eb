/* SPDX-License-Identifier: MIT */
/* See children.h. */
#include "session/children.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "session/proto.h"
#include "session/target.h"

/* Those that are forked while we look at the others. */
#define ROUNDS 20
#define BORN 10 /* seconds: the area is no older when it is looked for */

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec;
}

void family_find(struct family *f, struct sym_proc *sym, uint64_t ctl)
{
	const struct sym_map *m;
	size_t i;

	*f = (struct family){ .start = 0, .born = now() - BORN };
	for (i = 0; i < sym_nr_maps(sym); i++) {
		m = sym_map_at(sym, i);
		if (orphan_is_area(m) && (!ctl || m->start == ctl))
			*f = (struct family){ m->start, m->end, m->inode, now() - BORN };
	}
}

/*
 * One look at a file, for there may be thousands of processes.  Another area may lie
 * at the same place: where addresses aren't random, that of another target does.
 */
static int look(const struct family *f, pid_t pid)
{
	char path[96];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, f->start,
	         f->end);
	return lstat(path, &st) ? -errno : 0;
}

static bool may_have_it(const struct family *f, pid_t pid)
{
	return !look(f, pid);
}

static bool has_it(const struct family *f, struct sym_proc *sym)
{
	const struct sym_map *m = sym_map_find(sym, f->start);

	return orphan_is_area(m) && m->inode == f->inode;
}

/* One that can't be looked at may be. */
static bool is_member(const struct family *f, pid_t pid)
{
	struct sym_proc *sym = NULL;
	struct err ignored = ERR_INIT;
	bool is;

	if (!may_have_it(f, pid))
		return false;
	is = sym_open(&sym, pid, &ignored) || has_it(f, sym);
	sym_close(sym);
	return is;
}

static int cure_held(struct inject *t, struct sym_proc *sym, const struct family *f,
                     struct err *err)
{
	int ret = sym_refresh(sym, err);

	if (ret)
		return ret;
	if (!has_it(f, sym))
		return 0;
	return orphan_leave(t, sym, true, err);
}

static int cure_one(const struct family *f, pid_t pid, struct err *err)
{
	struct inject *t = NULL;
	struct sym_proc *sym = NULL;
	int ret = inject_open(&t, pid, err);

	if (!ret)
		ret = sym_open(&sym, pid, err);
	if (!ret)
		ret = inject_seize(t, err);
	if (!ret)
		ret = cure_held(t, sym, f, err);
	if (t)
		inject_close(t);
	sym_close(sym);
	return ret;
}

/* One that has ended meanwhile, or executed another program, has nothing of ours. */
static int cure(const struct family *f, pid_t pid, struct err *err)
{
	struct err why = ERR_INIT;
	int ret = cure_one(f, pid, &why);

	if (!ret || ret == -ESRCH || !is_member(f, pid))
		return 0;
	return err_set(err, ret,
	               "child %d, forked meanwhile, keeps its probes, which do nothing, until "
	               "'ukprobe cure -p %d': %.128s",
	               pid, pid, why.text);
}

int family_cure(const struct family *f, struct err *err)
{
	int ret = 0, rounds = 0;
	struct dirent *e;
	bool found;
	pid_t pid;
	DIR *d;

	do {
		found = false;
		ret = 0;
		d = f->start ? opendir("/proc") : NULL;
		while (d && (e = readdir(d))) {
			pid = isdigit((unsigned char)e->d_name[0]) ? atoi(e->d_name) : 0;
			if (pid <= 0 || !is_member(f, pid))
				continue;
			found = true;
			if (cure(f, pid, err))
				ret = err->code;
		}
		if (d)
			closedir(d);
	} while (found && !ret && ++rounds < ROUNDS);
	return ret;
}

static bool may_be_one(const struct family *f, pid_t pid)
{
	const int ret = look(f, pid);

	if (ret != -EACCES && ret != -EPERM)
		return !ret;
	return proto_start_time(pid) / (uint64_t)sysconf(_SC_CLK_TCK) >= f->born;
}

bool family_grows(const struct family *f, pid_t target)
{
	unsigned int rounds = 2;
	bool found = !f->start;
	struct dirent *e;
	pid_t pid;
	DIR *d;

	while (!found && rounds--) {
		d = opendir("/proc");
		found = !d;
		while (!found && (e = readdir(d))) {
			pid = isdigit((unsigned char)e->d_name[0]) ? atoi(e->d_name) : 0;
			found = pid > 0 && pid != target && may_be_one(f, pid);
		}
		if (d)
			closedir(d);
	}
	return found;
}
