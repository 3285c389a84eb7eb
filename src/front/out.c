/* SPDX-License-Identifier: MIT */
/* Output in big blocks; see out.h. */
#include "front/out.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int out_open(struct out *o, const char *path, bool append)
{
	memset(o, 0, sizeof(*o));
	o->fd = STDOUT_FILENO;
	if (path)
		o->fd = open(path, O_WRONLY | O_CREAT | (append ? O_APPEND : O_TRUNC) | O_CLOEXEC,
		             0666);
	return o->fd < 0 ? -errno : 0;
}

int out_close(struct out *o)
{
	out_flush(o, false);
	if (o->fd > STDERR_FILENO && close(o->fd) && !o->err)
		o->err = -errno;
	o->fd = -1;
	free(o->buf);
	o->buf = NULL;
	o->len = o->cap = 0;
	return o->err;
}

char *out_room(struct out *o, size_t n)
{
	size_t cap;
	char *buf;

	if (o->cap - o->len >= n)
		return o->buf + o->len;
	cap = o->len + n + 2 * OUT_BLOCK;
	buf = realloc(o->buf, cap);
	if (!buf)
		return NULL;
	o->buf = buf;
	o->cap = cap;
	return buf + o->len;
}

/* 0: try again. */
static int write_failed(struct out *o, bool interruptible)
{
	struct pollfd p = { .fd = o->fd, .events = POLLOUT };

	if (errno == EINTR)
		return interruptible ? -EINTR : 0;
	/* Someone who shares the descriptor made it non-blocking. */
	if (errno == EAGAIN) {
		if (poll(&p, 1, -1) < 0 && errno == EINTR && interruptible)
			return -EINTR;
		return 0;
	}
	o->err = -errno;
	return o->err;
}

int out_flush(struct out *o, bool interruptible)
{
	size_t done = 0;
	ssize_t n;
	int ret = o->err;

	while (!ret && done < o->len) {
		n = write(o->fd, o->buf + done, o->len - done);
		if (n < 0) {
			ret = write_failed(o, interruptible);
			continue;
		}
		done += (size_t)n;
		/* A signal in mid-write is told by a short count only. */
		if (interruptible && done < o->len)
			ret = -EINTR;
	}
	if (o->err)
		done = o->len;
	if (done) {
		memmove(o->buf, o->buf + done, o->len - done);
		o->len -= done;
	}
	return ret;
}
