/* SPDX-License-Identifier: MIT */
/* Sockets between clients and brokers, and where they lie. */
#include "session/proto.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Ours alone: a folder that someone else could have prepared is refused. */
static int own_folder(char *buf, size_t len)
{
	struct stat st;

	snprintf(buf, len, "/tmp/ukprobes-%u", (unsigned int)geteuid());
	if (mkdir(buf, 0700) && errno != EEXIST)
		return -errno;
	if (lstat(buf, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		return -EPERM;
	return 0;
}

void proto_sweep(void)
{
	unsigned long long start;
	char dir[64];
	struct dirent *e;
	DIR *d;
	int pid;

	d = own_folder(dir, sizeof(dir)) ? NULL : opendir(dir);
	while (d && (e = readdir(d)))
		if (sscanf(e->d_name, "%d-%llu.", &pid, &start) == 2 &&
		    proto_start_time(pid) != start)
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
}

int proto_path(pid_t pid, uint64_t start_time, const char *suffix, char *buf, size_t len)
{
	char dir[64];
	int ret = own_folder(dir, sizeof(dir));

	if (ret)
		return ret;
	if ((size_t)snprintf(buf, len, "%s/%d-%llu.%s", dir, pid, (unsigned long long)start_time,
	                     suffix) >= len)
		return -ENAMETOOLONG;
	return 0;
}

uint64_t proto_status(pid_t pid, const char *name, int base)
{
	const size_t len = strlen(name);
	char path[64], line[512];
	uint64_t v = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, len) && line[len] == ':') {
			v = strtoull(line + len + 1, NULL, base);
			break;
		}
	if (f)
		fclose(f);
	return v;
}

#define PROGRAM_TRIES 3000 /* ms */
#define PF_KTHREAD 0x00200000

uint64_t proto_start_time(pid_t pid)
{
	unsigned long long start = 0;
	char path[64], buf[1024], *p;
	ssize_t n;
	int fd, i;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	buf[n] = 0;
	/* The name may hold spaces and brackets: count from its end. */
	p = strrchr(buf, ')');
	for (i = 2; p && i < 22; i++)
		p = strchr(p + 1, ' ');
	/* The first processes of all started at tick 0, which is not "gone". */
	return p && sscanf(p, " %llu", &start) == 1 ? start + 1 : 0;
}

static uint64_t hash_of_auxv(pid_t pid)
{
	uint64_t h = 14695981039346656037ull;
	unsigned char buf[1024];
	char path[64];
	ssize_t n, i;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES ? 1 : 0; /* not ours to see, now and later */
	n = read(fd, buf, sizeof(buf));
	close(fd);
	for (i = 0; i < n; i++)
		h = (h ^ buf[i]) * 1099511628211ull;
	/* Its end alone: it is not filled yet. */
	return n > 16 ? h : 0;
}

/* No zombie, no kernel thread. */
static bool has_program(pid_t pid)
{
	char path[64], buf[512], *p, state = 'Z';
	unsigned long flags = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	buf[n > 0 ? n : 0] = 0;
	p = strrchr(buf, ')');
	return p && sscanf(p + 1, " %c %*d %*d %*d %*d %*d %lu", &state, &flags) == 2 &&
	       state != 'Z' && state != 'X' && !(flags & PF_KTHREAD);
}

/* In the middle of an execve there is nothing to be read, on a busy machine for long. */
uint64_t proto_program(pid_t pid)
{
	uint64_t h = hash_of_auxv(pid);
	int tries;

	for (tries = 0; !h && tries < PROGRAM_TRIES && has_program(pid); tries++) {
		usleep(1000);
		h = hash_of_auxv(pid);
	}
	return h;
}

int proto_send(int fd, const void *msg, size_t len, int pass_fd)
{
	struct iovec iov = { (void *)msg, len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	union {
		struct cmsghdr head;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	ssize_t n;

	if (pass_fd >= 0) {
		mh.msg_control = control.buf;
		mh.msg_controllen = sizeof(control.buf);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &pass_fd, sizeof(int));
	}
	do {
		n = sendmsg(fd, &mh, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

ssize_t proto_recv(int fd, void *msg, size_t len, int *got_fd)
{
	struct iovec iov = { msg, len };
	union {
		struct cmsghdr head;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr mh = { .msg_iov = &iov,
		             .msg_iovlen = 1,
		             .msg_control = control.buf,
		             /* One: in the padding there is room for another. */
		             .msg_controllen = CMSG_LEN(sizeof(int)) };
	struct cmsghdr *c;
	ssize_t n;
	int passed = -1;

	do {
		n = recvmsg(fd, &mh, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	for (c = CMSG_FIRSTHDR(&mh); c; c = CMSG_NXTHDR(&mh, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
		    c->cmsg_len >= CMSG_LEN(sizeof(int)))
			memcpy(&passed, CMSG_DATA(c), sizeof(int));
	if (got_fd)
		*got_fd = passed;
	else if (passed >= 0)
		close(passed);
	if (!n)
		return -EPIPE;
	return n;
}
