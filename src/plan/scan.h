/* SPDX-License-Identifier: MIT */
/* Between the target set and the CPU's way of finding targets. */
#ifndef UKP_PLAN_SCAN_H
#define UKP_PLAN_SCAN_H

#include "plan/targets.h"

/* One of the module's pieces of text, a bit for each byte. */
struct targets_text {
	uint64_t start, end;
	uint64_t *target, *boundary;
};

struct plan_targets {
	struct targets_text *text;
	size_t nr_text;
	struct plan_region *region;
	size_t nr_regions;
	struct plan_exit *exit;
	size_t nr_exits, room_exits;
	bool failed;       /* no memory */
	uint64_t from, to; /* what it is for */
	uint64_t tables;   /* entries of switch tables that may still be read */
};

/* A set with its regions, in which nothing is decoded yet: 0, -ENOMEM, -EINVAL. */
int targets_begin(struct plan_targets **ret, const struct plan_module *m);
/* The index of addr's region; SIZE_MAX: it is in none. */
size_t targets_region(const struct plan_targets *t, uint64_t addr);

/* To be called while the set is made. */
bool targets_in_text(const struct plan_targets *t, uint64_t addr);
void targets_add(struct plan_targets *t, uint64_t addr);
void targets_add_boundary(struct plan_targets *t, uint64_t addr);
void targets_add_exit(struct plan_targets *t, const struct plan_exit *e);

/* The bounds that begin at addr, and the ones around it that begin last; NULL: none. */
const struct plan_bounds *bounds_at(const struct plan_module *m, uint64_t addr);
const struct plan_bounds *bounds_around(const struct plan_module *m, uint64_t addr);

/*
 * Add what the code in [r->start, r->end) may jump to, its boundaries and
 * exits, and set r->flags.
 */
struct scan;
struct scan *scan_new(struct plan_targets *t, const struct plan_module *m);
void scan_free(struct scan *s);
void scan_region(struct scan *s, struct plan_region *r, const uint8_t *code);
/* Code in no function: targets alone, going on behind what isn't code. */
void scan_gap(struct scan *s, uint64_t start, uint64_t end, const uint8_t *code);

#endif
