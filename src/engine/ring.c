/* SPDX-License-Identifier: MIT */
/*
 * The writer of a ring.  What it must keep, whatever interrupts or kills it:
 *
 *   - head moves by one cmpxchg from one record boundary to another, and who
 *     moved it owns all that lies between: a record and, where it left a
 *     sub-buffer, the rest of that one, which becomes a PAD record;
 *   - nothing in a record is stored before its word, so a record whose word is
 *     0 is all zeros;
 *   - what one owns is added to committed after the last store to it.  When
 *     committed is a sub-buffer's size, no writer is in it.
 *
 * UKP_STEP() stands before each access to shared memory: the model test stops
 * there.
 */
#include "engine/ring.h"

#ifndef UKP_STEP
#define UKP_STEP() ((void)0)
#endif

#define NOWHERE UINT64_MAX

void ukp_ring_init(struct ukp_ring *r, uint32_t nr_subs, uint32_t sub_shift)
{
	uint64_t data = (uint64_t)nr_subs << sub_shift;

	r->head = 0;
	r->lost = 0;
	r->seq = 0;
	r->nr_subs = nr_subs;
	r->sub_shift = sub_shift;
	r->off_data = (uint32_t)(ukp_ring_stride(nr_subs, sub_shift) - data);
	for (uint32_t i = 0; i < nr_subs; i++) {
		r->subs[i].avail = i;
		r->subs[i].committed = 0;
	}
}

static struct ukp_rec *rec_at(struct ukp_ring *r, uint64_t pos)
{
	uint64_t mask = ((uint64_t)r->nr_subs << r->sub_shift) - 1;

	return (struct ukp_rec *)((unsigned char *)r + r->off_data + (pos & mask));
}

static struct ukp_sub *sub_of(struct ukp_ring *r, uint64_t n)
{
	return &r->subs[n & (r->nr_subs - 1)];
}

/*
 * Where a record of len bytes goes when the head is at head.  Judged by values
 * that may be old, but right as long as head has not moved: then nobody has
 * entered a sub-buffer beyond it, so an avail that says yes still does; and
 * the reader publishes nothing that would make a no wrong (wire/check_ring.c).
 */
static uint64_t find_place(struct ukp_ring *r, uint64_t head, uint32_t len)
{
	uint64_t size = 1ull << r->sub_shift;
	uint64_t off = head & (size - 1);
	uint64_t n = head >> r->sub_shift;

	if (off) {
		if (off + len <= size)
			return head;
		n++;
	}
	/* All quarantined: nowhere, and the head stays. */
	for (uint32_t i = 0; i < r->nr_subs; i++, n++) {
		uint64_t avail;

		UKP_STEP();
		/* Acquire: the reader's clearing happened before. */
		avail = __atomic_load_n(&sub_of(r, n)->avail, __ATOMIC_ACQUIRE);
		if (avail == n)
			return n << r->sub_shift;
		if (avail < n)
			break;
	}
	return NOWHERE;
}

static void add_committed(struct ukp_ring *r, uint64_t pos, uint64_t len)
{
	UKP_STEP();
	/* Release: all stores to these bytes come before. */
	__atomic_fetch_add(&sub_of(r, pos >> r->sub_shift)->committed, len, __ATOMIC_RELEASE);
}

/* The head was at pos and went on to another sub-buffer: what remains is ours. */
static void pad_rest(struct ukp_ring *r, uint64_t pos)
{
	uint64_t size = 1ull << r->sub_shift;
	uint64_t rest = size - (pos & (size - 1));

	if (rest == size)
		return; /* the one before was filled to the end */
	UKP_STEP();
	__atomic_store_n(&rec_at(r, pos)->word, UKP_REC_PAD | (uint32_t)rest, __ATOMIC_RELEASE);
	add_committed(r, pos, rest);
}

static struct ukp_rec *open_record(struct ukp_ring *r, uint64_t pos, uint32_t len, uint32_t seq)
{
	struct ukp_rec *rec = rec_at(r, pos);

	UKP_STEP();
	__atomic_store_n(&rec->word, UKP_REC_OPEN | len, __ATOMIC_RELAXED);
	/* Before all else in the record: the reader steps over zeros. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	UKP_STEP();
	rec->seq = seq;
	return rec;
}

static int length_ok(const struct ukp_ring *r, uint32_t len)
{
	return len >= sizeof(struct ukp_rec) && !(len & 7) && len <= UKP_REC_MAX &&
	       len <= 1ull << r->sub_shift;
}

struct ukp_rec *ukp_ring_reserve(struct ukp_ring *r, uint32_t len, uint64_t *pos)
{
	uint32_t seq;

	UKP_STEP();
	seq = __atomic_fetch_add(&r->seq, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < UKP_RING_TRIES && length_ok(r, len); i++) {
		uint64_t head, place;

		UKP_STEP();
		/* Acquire: an avail that is loaded afterwards isn't older. */
		head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
		place = find_place(r, head, len);
		if (place == NOWHERE)
			break;
		UKP_STEP();
		if (!__atomic_compare_exchange_n(&r->head, &head, place + len, 0, __ATOMIC_ACQ_REL,
		                                 __ATOMIC_RELAXED))
			continue;
		*pos = place;
		if (place != head)
			pad_rest(r, head);
		return open_record(r, place, len, seq);
	}
	UKP_STEP();
	__atomic_fetch_add(&r->lost, 1, __ATOMIC_RELAXED);
	return 0;
}

void ukp_ring_commit(struct ukp_ring *r, struct ukp_rec *rec, uint64_t pos, uint32_t len)
{
	UKP_STEP();
	__atomic_store_n(&rec->word, UKP_REC_DONE | len, __ATOMIC_RELEASE);
	add_committed(r, pos, len);
}
