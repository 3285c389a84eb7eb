/* SPDX-License-Identifier: MIT */
/*
 * A record as a line of the kernel's trace file:
 *
 *	            comm-tid     [cpu] ..... secs.usecs: event: (place) name=value ...
 *
 * On the path of every record, so no printf, and everything that is the same
 * from line to line (event names, field names, symbols) is kept as ready text.
 * The flags are always dots: they tell of the kernel's state (interrupts,
 * preemption), which a process has none of.
 */
#ifndef UKP_FRONT_FORMAT_H
#define UKP_FRONT_FORMAT_H

#include <ukprobes/session.h>

struct format;

/* NULL: no memory.  The session must outlive it. */
struct format *format_new(struct ukp_session *s);
void format_free(struct format *f);

/*
 * No line of this record is longer, the newline included.  0: no memory.
 * Must come before format_line() of the same record.
 */
size_t format_bound(struct format *f, const struct ukp_record *r);

/* Writes one line with its newline; returns the place behind it. */
char *format_line(struct format *f, char *p, const struct ukp_record *r);

/* Symbols may have changed (dlclose, dlopen): look each up again. */
void format_forget(struct format *f);

#endif
