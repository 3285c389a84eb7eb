/* SPDX-License-Identifier: MIT */
/*
 * Memory of the control area that comes back.  Who takes something out of use gives it
 * back only when no thread of the target can be on its way there any more; a forked
 * child, which shares the area and isn't looked at, may be still, so nothing is used
 * again while there is one.  What that can't be said of is lost for the agent's life.
 */
#ifndef UKP_SESSION_HEAP_H
#define UKP_SESSION_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAP_UNIT 16
#define HEAP_BINS 256 /* longer pieces don't come back */

struct heap_block {
	uint32_t off, size;
};

struct heap_blocks {
	struct heap_block *v;
	size_t nr, max;
};

struct heap {
	struct {
		uint32_t *v;
		size_t nr, max;
	} bin[HEAP_BINS];
	struct heap_blocks given; /* nobody but children may be there */
	uint64_t looked_at;       /* ms of CLOCK_MONOTONIC: when there were children */
};

struct target;

/* One more of them; off 0: none. */
void heap_add(struct heap_blocks *b, uint32_t off, size_t size);
/* No thread is on its way to any of them.  b is empty then. */
void heap_give(struct target *t, struct heap_blocks *b);
/* One of them that was given, of that size, or 0. */
uint32_t heap_take(struct heap *h, size_t size);
void heap_close(struct heap *h);
/* Is there no child?  Looked at once a second as long as there is one. */
bool heap_no_children(struct target *t);

#endif
