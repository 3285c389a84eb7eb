/* SPDX-License-Identifier: MIT */
/* The part of <ukprobes/rethook.h> that runs on hits. */
#ifndef UKP_LIB_HIT_RETHOOK_H
#define UKP_LIB_HIT_RETHOOK_H

#include "lib/hit/hit.h"
#include "ukprobes/rethook.h"

#pragma GCC visibility push(hidden)

struct rethook_node *node_get(struct rethook *rh);
void node_put(struct rethook_node *node);
int node_hook(struct rethook_node *node, struct pt_regs *regs);

/* Of one that is stopped: gives up its own reference and those of the nodes in its pool. */
void rethook_drain(struct rethook *rh);
/* Those whose last reference is gone, for who may free them. */
struct rethook *rethook_take_dead(void);

#pragma GCC visibility pop

#endif
