/* SPDX-License-Identifier: MIT */
/*
 * The target set of a module, from what its file says: the facts of src/sym in
 * the planner's words.
 */
#ifndef UKP_PATCH_TARGET_SET_H
#define UKP_PATCH_TARGET_SET_H

#include "plan/targets.h"
#include "sym/facts.h"

/*
 * Loads the facts, which are freed, and computes; NULL: it can't be done.  Takes
 * seconds for a large library; any thread may do it.
 */
struct plan_targets *target_set_make(struct sym_facts *facts);

#endif
