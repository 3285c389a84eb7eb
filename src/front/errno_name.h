/* SPDX-License-Identifier: MIT */
/* Error values as people know them. */
#ifndef UKP_FRONT_ERRNO_NAME_H
#define UKP_FRONT_ERRNO_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "ENOMEM" of -12; NULL where the value is no errno that has a name. */
const char *errno_name(int64_t value);

/* "-ENOMEM (-12)", "-1 (or -EPERM)", "-512", for pointers "NULL" of 0.  Returns buf. */
const char *errno_text(char *buf, size_t size, int64_t value, bool pointer);

#endif
