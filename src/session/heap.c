/* SPDX-License-Identifier: MIT */
/* See heap.h. */
#include "session/target.h"

#include <stdlib.h>

#include "session/client.h"

#define MANY 64 /* blocks: looking for children reads all of /proc */
#define LOOK_MS 1000

void heap_add(struct heap_blocks *b, uint32_t off, size_t size)
{
	struct heap_block *more;
	size_t max;

	size = (size + HEAP_UNIT - 1) & ~(size_t)(HEAP_UNIT - 1);
	if (!off || !size || size / HEAP_UNIT >= HEAP_BINS)
		return;
	if (b->nr == b->max) {
		max = b->max ? 2 * b->max : 64;
		more = realloc(b->v, max * sizeof(*more));
		if (!more)
			return;
		b->v = more;
		b->max = max;
	}
	b->v[b->nr++] = (struct heap_block){ off, (uint32_t)size };
}

static bool put(struct heap *h, struct heap_block b)
{
	const unsigned int i = b.size / HEAP_UNIT;
	size_t max = h->bin[i].max ? 2 * h->bin[i].max : 16;
	uint32_t *more;

	if (h->bin[i].nr == h->bin[i].max) {
		more = realloc(h->bin[i].v, max * sizeof(*more));
		if (!more)
			return false;
		h->bin[i].v = more;
		h->bin[i].max = max;
	}
	h->bin[i].v[h->bin[i].nr++] = b.off;
	return true;
}

bool heap_no_children(struct target *t)
{
	struct heap *h = &t->heap;
	const uint64_t now = (uint64_t)client_now_ms();

	if (h->looked_at && now < h->looked_at + LOOK_MS)
		return false;
	h->looked_at = family_grows(&t->family, t->pid) ? now : 0;
	return !h->looked_at;
}

void heap_give(struct target *t, struct heap_blocks *b)
{
	struct heap *h = &t->heap;
	size_t i;

	for (i = 0; i < b->nr; i++)
		heap_add(&h->given, b->v[i].off, b->v[i].size);
	free(b->v);
	*b = (struct heap_blocks){ .v = NULL };
	if (h->given.nr < MANY || !heap_no_children(t))
		return;
	while (h->given.nr && put(h, h->given.v[h->given.nr - 1]))
		h->given.nr--;
}

uint32_t heap_take(struct heap *h, size_t size)
{
	const size_t i = size / HEAP_UNIT;

	return i < HEAP_BINS && h->bin[i].nr ? h->bin[i].v[--h->bin[i].nr] : 0;
}

void heap_close(struct heap *h)
{
	size_t i;

	for (i = 0; i < HEAP_BINS; i++)
		free(h->bin[i].v);
	free(h->given.v);
}
