/* SPDX-License-Identifier: MIT */
/* See refs.h. */
#include "session/refs.h"

#include <errno.h>
#include <stdlib.h>

#define STACK_MAX (1u << 20)
#define ALL_MAX (4u << 20) /* read in one stop: a millisecond or so */
#define BELOW 256          /* a call's words below the pointer, and the red zone */
#define DEPTH 4            /* stacks of one thread */

struct refs {
	struct target *t;
	struct ref_range *v;
	size_t n, all;
};

static int by_start(const void *a, const void *b)
{
	const struct ref_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void look_at(struct refs *r, uint64_t word)
{
	size_t low = 0, high = r->n;

	/* Most are far from all of them. */
	if (word < r->v[0].start || word > r->v[r->n - 1].end)
		return;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (r->v[mid].start <= word)
			low = mid + 1;
		else
			high = mid;
	}
	/* The end of one is the start of the next, maybe. */
	while (low-- && r->v[low].end >= word)
		r->v[low].found = true;
}

static int look_at_stack(struct refs *r, uint64_t sp, unsigned int depth);

/* Contexts are where cs and ss of user code are; one of them may be of another stack. */
static int follow(struct refs *r, const uint64_t *w, size_t n, uint64_t sp, uint64_t end,
                  unsigned int depth)
{
	size_t i;
	int ret = 0;

	for (i = 1; i + 2 < n && !ret; i++)
		if ((w[i + 2] & 0xffff) == 0x33 && w[i + 2] >> 48 == 0x2b &&
		    w[i - 1] - sp >= end - sp)
			ret = look_at_stack(r, w[i - 1], depth + 1);
	return ret;
}

static int look_at_words(struct refs *r, uint64_t sp, uint64_t end, unsigned int depth)
{
	const size_t len = (end - sp) & ~7ul;
	uint64_t *w = malloc(len);
	size_t i;
	int ret = 0;

	if (!w || inject_read(r->t->inject, sp, w, len)) {
		free(w);
		return -EIO;
	}
	for (i = 0; i < len / 8; i++)
		look_at(r, w[i]);
	ret = follow(r, w, len / 8, sp, end, depth);
	free(w);
	return ret;
}

static int look_at_stack(struct refs *r, uint64_t sp, unsigned int depth)
{
	const uint64_t end = inject_region_end(r->t->inject, sp);
	int ret;

	/* A thread has one; a context that hasn't is none. */
	if (end <= sp)
		return depth ? 0 : -EAGAIN;
	sp &= ~7ull;
	r->all += end - sp + BELOW;
	if (depth == DEPTH || end - sp > STACK_MAX || r->all > ALL_MAX)
		return -EAGAIN;
	ret = look_at_words(r, sp - BELOW, end, depth);
	/* Nothing is mapped below it, perhaps. */
	return ret == -EIO ? look_at_words(r, sp, end, depth) : ret;
}

int refs_look(struct target *t, struct ref_range *v, size_t n)
{
	struct refs r = { .t = t, .v = v, .n = n };
	size_t i, k;
	int ret = 0;

	if (!n)
		return 0;
	qsort(v, n, sizeof(*v), by_start);
	for (i = 0; i < inject_nr_threads(t->inject) && !ret; i++) {
		const struct user_regs_struct *regs = &inject_thread_at(t->inject, i)->regs;

		for (k = 0; k < sizeof(*regs) / 8; k++)
			look_at(&r, ((const unsigned long long *)regs)[k]);
		ret = look_at_stack(&r, regs->rsp, 0);
	}
	return ret;
}
