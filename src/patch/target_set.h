/* SPDX-License-Identifier: MIT */
/*
 * What is computed of a module's code, from what its file says: the facts of
 * src/sym in the planner's words.
 *
 * The target set is for whoever writes jumps.  The exits of functions are for
 * return probes alone and take three to four times as long, so they are made
 * when the first such probe comes, with the target set or later.
 *
 * Any thread may make them, from facts that are its own meanwhile.  Once made,
 * neither ever changes, knows of the other or of the facts, or takes a lock: any
 * number of threads may read it until whoever owns it frees it.
 */
#ifndef UKP_PATCH_TARGET_SET_H
#define UKP_PATCH_TARGET_SET_H

#include "plan/exits.h"
#include "plan/targets.h"
#include "sym/facts.h"

/*
 * Loads the facts, which are freed, and computes; NULL: it can't be done.  Takes
 * seconds for a large library.
 */
struct plan_targets *target_set_make(struct sym_facts *facts);
/*
 * For n addresses alone, a set each in to[], where that can be told without decoding
 * all of the module; NULL where not, and then *whole is made.
 */
void target_set_near(struct sym_facts *facts, const uint64_t *addr, size_t n,
                     struct plan_targets **to, struct plan_targets **whole);
/* The same of the exits.  *targets: the module's target set; where that is NULL, it is made first.
 */
struct plan_exits *target_set_exits(struct sym_facts *facts, struct plan_targets **targets);

/* Loaded facts as a module; it lives as long as they do.  -ENOMEM. */
int target_set_module(struct plan_module *m, struct sym_facts *facts);
void target_set_module_free(struct plan_module *m);
/* Of such a module; NULL: no memory. */
struct plan_exits *target_set_exits_of(const struct plan_module *m, const struct plan_targets *t);

#endif
