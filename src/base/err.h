/* SPDX-License-Identifier: MIT */
/*
 * How hosted code reports a failure: a negative errno as the return value and,
 * where the caller gave one, a sentence for the user with the place in his
 * text.  err_set() returns the code so that a failing path is one line.
 */
#ifndef UKP_BASE_ERR_H
#define UKP_BASE_ERR_H

#include <errno.h>

#define ERR_TEXT 1024

struct err {
	int code;            /* negative errno; 0: none */
	int column;          /* 0-based byte in the text that it is about; -1 */
	char text[ERR_TEXT]; /* what, where and what to do; no newline at the end */
};

#define ERR_INIT          \
	{                 \
		0, -1, "" \
	}

int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int err_at(struct err *err, int code, int column, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
