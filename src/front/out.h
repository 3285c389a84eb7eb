/* SPDX-License-Identifier: MIT */
/*
 * Output in big blocks to a file descriptor.  Errors stick: after the first
 * one nothing more is written, and err says why.
 */
#ifndef UKP_FRONT_OUT_H
#define UKP_FRONT_OUT_H

#include <stdbool.h>
#include <stddef.h>

#define OUT_BLOCK (128 * 1024) /* write from here on */

struct out {
	int fd;
	int err; /* 0, or the negative errno of the first failed write */
	char *buf;
	size_t len, cap;
};

int out_open(struct out *o, const char *path, bool append); /* NULL: standard output */
int out_close(struct out *o);                               /* flushes; 0 or the sticky error */

/* Room for n more bytes at the returned place; NULL: no memory. */
char *out_room(struct out *o, size_t n);

/*
 * Write what is there.  A signal during the write ends it early with -EINTR
 * when interruptible says so: the rest stays for the next call, so that a
 * reader who stands still can't keep us from detaching.
 */
int out_flush(struct out *o, bool interruptible);

#endif
