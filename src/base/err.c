/* SPDX-License-Identifier: MIT */
/* Filling a struct err. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

static int fill(struct err *err, int code, int column, const char *fmt, va_list ap)
{
	if (!err)
		return code;
	err->code = code;
	err->column = column;
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	return code;
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fill(err, code, -1, fmt, ap);
	va_end(ap);
	return code;
}

int err_at(struct err *err, int code, int column, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fill(err, code, column, fmt, ap);
	va_end(ap);
	return code;
}
