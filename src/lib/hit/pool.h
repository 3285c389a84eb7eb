/* SPDX-License-Identifier: MIT */
/* The part of <ukprobes/objpool.h> that runs on hits. */
#ifndef UKP_LIB_HIT_POOL_H
#define UKP_LIB_HIT_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "ukprobes/objpool.h"

#pragma GCC visibility push(hidden)

/* objpool_head.flags: the CPU's number is had by rdpid. */
enum { POOL_RDPID = 1 };

void *pool_pop(struct objpool_head *p);
/* False: no object of the pool. */
bool pool_push(struct objpool_head *p, void *obj);
/* Gives up n references; true: they were the last. */
bool pool_put(struct objpool_head *p, unsigned int n);

#pragma GCC visibility pop

#endif
