/* SPDX-License-Identifier: MIT */
/* Error values as people know them; see errno_name.h. */
#include "front/errno_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_ERRNO 4095

const char *errno_name(int64_t value)
{
	if (value >= 0 || value < -MAX_ERRNO)
		return NULL;
	return strerrorname_np((int)-value);
}

const char *errno_text(char *buf, size_t size, int64_t value, bool pointer)
{
	const char *name = errno_name(value);

	/* -EPERM, but also the failure of all that leave the reason in errno */
	if (value == -1)
		snprintf(buf, size, "-1 (or -EPERM)");
	else if (name)
		snprintf(buf, size, "-%s (%" PRId64 ")", name, value);
	else if (pointer && !value)
		snprintf(buf, size, "NULL");
	else
		snprintf(buf, size, "%" PRId64, value);
	return buf;
}
