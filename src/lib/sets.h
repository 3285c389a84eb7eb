/* SPDX-License-Identifier: MIT */
/*
 * Target sets of this process's modules, each made once when it is first asked
 * for.  A module that went and came again elsewhere is another one.
 */
#ifndef UKP_LIB_SETS_H
#define UKP_LIB_SETS_H

#include "plan/exits.h"
#include "plan/targets.h"

struct sets_work;

/* The set of the module that has addr; NULL: none could be made, or not yet.  Under the lock. */
const struct plan_targets *sets_find(uint64_t addr, uint64_t *bias);

/* The same, made if need be, which takes as long as reading all of the module's code. */
const struct plan_targets *sets_targets(uint64_t addr, uint64_t *bias);

/*
 * The exits of the functions of addr's module, which are made if need be: that
 * takes as long as reading all of its code, some times.  NULL: none can be made.
 * Under the lock.
 */
const struct plan_exits *sets_exits(uint64_t addr, uint64_t *bias);

/*
 * Making a set: begin and end under the lock, work, which takes as long as reading
 * all of the module's code, without.  NULL: addr's module has its set.
 */
struct sets_work *sets_begin(uint64_t addr);
void sets_work(struct sets_work *w);
void sets_end(struct sets_work *w);

#endif
