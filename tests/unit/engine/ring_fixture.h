/* SPDX-License-Identifier: MIT */
/* A channel of one ring in shared memory, and checked records in it. */
#ifndef TESTS_RING_FIXTURE_H
#define TESTS_RING_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/mman.h>

#include "engine/ring.h"
#include "wire/check.h"

struct fixture {
	void *mem;
	size_t size;
	struct ukp_ring *ring;
	struct ukp_reader *rd;
};

static void fixture_open(struct fixture *f, uint32_t nr_subs, uint32_t sub_shift)
{
	uint64_t stride = ukp_ring_stride(nr_subs, sub_shift);
	struct ukp_chan *c;

	f->size = 4096 + stride;
	f->mem = mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(f->mem != MAP_FAILED);
	c = f->mem;
	*c = (struct ukp_chan){
		.magic = UKP_CHAN_MAGIC,
		.version = UKP_CHAN_VERSION,
		.nr_shards = 1,
		.nr_rings = 1,
		.nr_subs = nr_subs,
		.sub_shift = sub_shift,
		.off_stats = 4096,
		.off_hists = 4096,
		.off_rings = 4096,
		.ring_stride = stride,
		.size = f->size,
	};
	f->ring = (void *)((char *)f->mem + 4096);
	ukp_ring_init(f->ring, nr_subs, sub_shift);
	f->rd = malloc(sizeof(*f->rd));
	assert_non_null(f->rd);
	assert_int_equal(ukp_reader_init(f->rd, f->mem, f->size), 0);
}

static void fixture_close(struct fixture *f)
{
	munmap(f->mem, f->size);
	free(f->rd);
}

/* Writes record nr of a thread, of a length that depends on both.  0: dropped. */
static int __attribute__((unused)) write_record(struct ukp_ring *r, uint32_t thread, uint64_t nr)
{
	uint32_t words = (uint32_t)(nr * 7 + thread) % 13;
	uint32_t len = (uint32_t)sizeof(struct ukp_rec) + 8 * words;
	uint64_t pos;
	struct ukp_rec *rec = ukp_ring_reserve(r, len, &pos);
	uint64_t *p;

	if (!rec)
		return 0;
	rec->event = (uint16_t)thread;
	rec->cpu = 3;
	rec->tid = thread * 1000;
	rec->tsc = nr;
	p = (uint64_t *)rec->payload;
	for (uint32_t i = 0; i < words; i++)
		p[i] = nr ^ (uint64_t)thread << 56 ^ i;
	ukp_ring_commit(r, rec, pos, len);
	return 1;
}

/* As written, to the last byte; not asserts: it is called millions of times. */
static int __attribute__((unused)) record_ok(const struct ukp_rec_view *v)
{
	uint32_t words = (uint32_t)(v->tsc * 7 + v->event) % 13;
	const uint64_t *p = (const uint64_t *)v->payload;

	if (v->len != 8 * words || v->tid != v->event * 1000u || v->cpu != 3)
		return 0;
	for (uint32_t i = 0; i < words; i++)
		if (p[i] != (v->tsc ^ (uint64_t)v->event << 56 ^ i))
			return 0;
	return 1;
}

#endif
