/* SPDX-License-Identifier: MIT */
/*
 * What a killed broker has left.  All of it is found by name: memory of its files, and
 * descriptors that it had no time to close.  An area that was not filled by then is
 * one that has nothing planted.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session/leave.h"

#define PATIENCE 100 /* breaths */
#define MAX_FILES 16 /* at once */
#define ENDING_MS 1000

#define CTL "/memfd:ukprobes-ctl"
#define CHAN "/memfd:ukprobes-chan"

bool orphan_is_area(const struct sym_map *m)
{
	return m && !m->offset && !strcmp(m->path, CTL);
}

static const struct sym_map *find_area(struct sym_proc *sym)
{
	size_t i;

	for (i = 0; i < sym_nr_maps(sym); i++)
		if (orphan_is_area(sym_map_at(sym, i)))
			return sym_map_at(sym, i);
	return NULL;
}

static bool is_mapped(struct sym_proc *sym, uint64_t inode)
{
	size_t i;

	for (i = 0; i < sym_nr_maps(sym); i++)
		if (sym_map_at(sym, i)->inode == inode)
			return true;
	return false;
}

/* A channel that is mapped and open is one of which the process itself is a client. */
static bool is_left_open(struct sym_proc *sym, DIR *d, const char *name)
{
	char link[64];
	ssize_t n = readlinkat(dirfd(d), name, link, sizeof(link) - 1);
	struct stat st;

	link[n > 0 ? n : 0] = 0;
	if (!strncmp(link, CTL " ", sizeof(CTL)))
		return true;
	return !strncmp(link, CHAN " ", sizeof(CHAN)) && !fstatat(dirfd(d), name, &st, 0) &&
	       !is_mapped(sym, st.st_ino);
}

static unsigned int find_files(struct sym_proc *sym, pid_t pid, int fd[MAX_FILES])
{
	unsigned int n = 0;
	struct dirent *e;
	char path[64];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	while (d && n < MAX_FILES && (e = readdir(d)))
		if (e->d_name[0] != '.' && is_left_open(sym, d, e->d_name))
			fd[n++] = atoi(e->d_name);
	if (d)
		closedir(d);
	return n;
}

unsigned int orphan_files(struct sym_proc *sym, pid_t pid)
{
	int fd[MAX_FILES];

	return find_files(sym, pid, fd);
}

bool orphan_seen(struct sym_proc *sym, pid_t pid)
{
	return find_area(sym) || orphan_files(sym, pid);
}

/* Its arguments name its process. */
static bool is_broker_of(pid_t broker, pid_t pid)
{
	char path[64], args[4096], text[16], *p = args;
	int fd, i;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", broker);
	snprintf(text, sizeof(text), "%d", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, args, sizeof(args) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	args[n] = 0;
	for (i = 0; p < args + n && i < 4; p += strlen(p) + 1, i++) {
		if (i == 1 && strcmp(p, "broker"))
			return false;
		if (i > 1 && !strcmp(p, text))
			return true;
	}
	return false;
}

/* The broker that the agent says it has, if it lives; 0: none. */
pid_t orphan_broker(struct sym_proc *sym, pid_t pid)
{
	const struct sym_map *m = find_area(sym);
	struct ukp_ctl head = { 0 };
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = m ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return 0;
	if (pread(fd, &head, sizeof(head), (off_t)m->start) != sizeof(head))
		head.magic = 0;
	close(fd);
	return head.magic == UKP_CTL_MAGIC && head.broker > 0 && head.broker != getpid() &&
	                       is_broker_of(head.broker, pid)
	               ? head.broker
	               : 0;
}

int orphan_is_served(struct sym_proc *sym, pid_t pid, struct err *err)
{
	struct stat st = { 0 };
	char path[64];
	pid_t broker;
	int tries;

	/* One that was killed a moment ago lives for as long as it takes to end. */
	for (tries = 0; (broker = orphan_broker(sym, pid)) && tries < ENDING_MS / 10; tries++)
		usleep(10000);
	if (!broker)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d", broker);
	if (!stat(path, &st) && st.st_uid != geteuid())
		return err_set(
			err, -EBUSY,
			"process %d is being probed by user %u (broker %d): end that first, or "
			"work as that user",
			pid, st.st_uid, broker);
	return err_set(
		err, -EBUSY,
		"process %d is being probed by a broker (%d) that isn't found in our /tmp: end "
		"that first",
		pid, broker);
}

/* The used part of an area; a hostile size stays within bounds. */
static int copy_area(struct inject *t, uint64_t addr, struct ukp_ctl **ret, size_t *len)
{
	struct ukp_ctl head, *c;

	if (inject_read(t, addr, &head, sizeof(head)) || !head.magic) {
		*len = (sizeof(*c) + 4095) & ~4095ul;
		c = calloc(1, *len);
		if (!c)
			return -ENOMEM;
		target_lay_out(c, addr);
		c->magic = UKP_CTL_MAGIC;
		*ret = c;
		return 0;
	}
	if (head.magic != UKP_CTL_MAGIC || head.version != UKP_CTL_VERSION || head.self != addr ||
	    head.next_free < sizeof(head) || head.next_free > UKP_CTL_SIZE)
		return -EBADMSG;
	c = malloc(head.next_free);
	if (!c)
		return -ENOMEM;
	*len = head.next_free;
	*ret = c;
	if (!inject_read(t, addr, c, *len))
		return 0;
	free(c);
	return -EBADMSG;
}

static int leave_area(struct inject *t, struct sym_proc *sym, uint64_t addr, bool rest,
                      struct err *err)
{
	struct ukp_ctl *ctl;
	size_t len;
	int ret = copy_area(t, addr, &ctl, &len);

	if (ret == -EBADMSG)
		return err_set(err, ret, "process %d holds an agent that this version cannot read",
		               inject_pid(t));
	if (ret)
		return err_set(err, ret, "out of memory");
	ret = leave_target(t, sym, ctl, ctl, len, rest, err);
	free(ctl);
	return ret;
}

static int close_files(struct inject *t, struct sym_proc *sym, struct err *err)
{
	int fd[MAX_FILES], ret = 0;
	unsigned int i, n = find_files(sym, inject_pid(t), fd);

	if (n)
		ret = inject_begin(t, err);
	if (!n || ret)
		return ret;
	for (i = 0; i < n; i++)
		inject_syscall(t, SYS_close, fd[i], 0, 0, 0, 0, 0);
	inject_end(t);
	return 0;
}

/* One that has still to come back may make something first, or unmap what would be ours then. */
static int await_debts(struct inject *t, struct err *err)
{
	unsigned int tries = 0;
	int ret = 0;

	while (!ret && inject_owes(t) && tries++ < PATIENCE)
		ret = inject_breathe(t, tries * 50, err);
	return ret;
}

int orphan_leave(struct inject *t, struct sym_proc *sym, bool rest, struct err *err)
{
	const struct sym_map *m;
	uint64_t last = 0;
	int ret = rest ? await_debts(t, err) : 0;

	if (!ret)
		ret = sym_refresh(sym, err);
	while (!ret && (m = find_area(sym)) && m->start != last) {
		last = m->start;
		ret = leave_area(t, sym, last, rest, err);
		if (!ret)
			ret = sym_refresh(sym, err);
	}
	return ret ? ret : close_files(t, sym, err);
}
