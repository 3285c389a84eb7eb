/* SPDX-License-Identifier: MIT */
/*
 * The reader of a ring (wire/ring.h has the protocol).
 *
 * Of the shared header only head, lost, seq and committed are read, and only
 * as hints about how far to go: places come from the private sub, off and
 * avail[].  A hostile head makes the reader look at sub-buffers that hold
 * nothing, a hostile committed makes it clear one too early; neither leads it
 * out of the ring.
 *
 * UKP_STEP() stands before each access to shared memory: the model test stops
 * there.
 */
#include "wire/check.h"

#ifndef UKP_STEP
#define UKP_STEP() ((void)0)
#endif

#define RESCANS 16

/* What scan() says beside enum ukp_read: the sub-buffer is done with. */
#define READ_END 100

static uint64_t load(const uint64_t *p)
{
	UKP_STEP();
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static uint32_t index_of(const struct ukp_reader *rd, uint64_t sub)
{
	return (uint32_t)sub & (rd->geo.nr_subs - 1);
}

static uint32_t sub_size(const struct ukp_reader *rd)
{
	return 1u << rd->geo.sub_shift;
}

static unsigned char *sub_data(const struct ukp_reader *rd, const struct ukp_ring_reader *rr,
                               uint32_t index)
{
	return rr->data + ((uint64_t)index << rd->geo.sub_shift);
}

static uint32_t word_at(const unsigned char *p)
{
	UKP_STEP();
	return __atomic_load_n((const uint32_t *)p, __ATOMIC_ACQUIRE);
}

static void publish(struct ukp_ring_reader *rr, uint32_t index, uint64_t avail)
{
	rr->avail[index] = avail;
	if (avail != UINT64_MAX && avail > rr->newest)
		rr->newest = avail;
	UKP_STEP();
	/* Release: who enters finds zeros. */
	__atomic_store_n(&rr->ring->subs[index].avail, avail, __ATOMIC_RELEASE);
}

/* All that was reserved in it is committed: nobody writes there any more. */
static int complete(const struct ukp_reader *rd, const struct ukp_ring_reader *rr, uint32_t index)
{
	return load(&rr->ring->subs[index].committed) == sub_size(rd);
}

static void clear(const struct ukp_reader *rd, struct ukp_ring_reader *rr, uint32_t index)
{
	uint64_t *p = (uint64_t *)sub_data(rd, rr, index);

	UKP_STEP();
	for (uint32_t i = 0; i < sub_size(rd) / 8; i++)
		p[i] = 0;
	UKP_STEP();
	__atomic_store_n(&rr->ring->subs[index].committed, 0, __ATOMIC_RELEASE);
}

/*
 * A quarantined sub-buffer comes back under x, a number that is beyond all
 * published ones.  A writer that looked at its avail just before may still
 * step over x, once a number beyond x is published, and nobody would ever fill
 * it.  So no such number is published until head shows that x was entered:
 * then that writer's cmpxchg fails.  It costs no room, for nobody could get
 * beyond x before.
 */
static void publish_again(const struct ukp_reader *rd, struct ukp_ring_reader *rr, uint32_t index)
{
	uint64_t x = rr->newest + 1;

	x += index_of(rd, index - x);
	publish(rr, index, x);
	rr->hold = 1;
}

static void publish_next(const struct ukp_reader *rd, struct ukp_ring_reader *rr, uint32_t index)
{
	uint64_t next = rr->avail[index] + rd->geo.nr_subs;

	if (rr->hold && next > rr->newest) {
		rr->held |= 1ull << index;
	} else {
		rr->held &= ~(1ull << index);
		publish(rr, index, next);
	}
}

/* What was held back, and quarantined sub-buffers whose last writer has finished. */
static void publish_late(const struct ukp_reader *rd, struct ukp_ring_reader *rr)
{
	/* Nothing was published since: x is the newest. */
	if (rr->hold && load(&rr->ring->head) > rr->newest << rd->geo.sub_shift)
		rr->hold = 0;
	for (uint32_t i = 0; rr->held && !rr->hold && i < rd->geo.nr_subs; i++)
		if (rr->held >> i & 1)
			publish_next(rd, rr, i);
	for (uint32_t i = 0; rr->quarantined && !rr->hold && i < rd->geo.nr_subs; i++) {
		if (rr->avail[i] != UINT64_MAX || !complete(rd, rr, i))
			continue;
		clear(rd, rr, i);
		rr->quarantined--;
		publish_again(rd, rr, i);
	}
}

/*
 * Go to the next sub-buffer that is published: no writer enters any other.  If
 * all are quarantined, wait before where the first one may come back.
 */
static void seek(const struct ukp_reader *rd, struct ukp_ring_reader *rr, uint64_t from)
{
	uint64_t sub = UINT64_MAX;

	for (uint32_t i = 0; i < rd->geo.nr_subs; i++)
		if (rr->avail[i] >= from && rr->avail[i] < sub)
			sub = rr->avail[i];
	rr->sub = sub == UINT64_MAX ? rr->newest + 1 : sub;
	rr->off = 0;
}

static void leave_sub(const struct ukp_reader *rd, struct ukp_ring_reader *rr)
{
	uint32_t index = index_of(rd, rr->sub);

	if (complete(rd, rr, index)) {
		clear(rd, rr, index);
		publish_next(rd, rr, index);
	} else {
		rr->quarantined++;
		publish(rr, index, UINT64_MAX);
	}
	seek(rd, rr, rr->sub + 1);
}

/* How much of the sub-buffer being read is reserved.  READ_END: all, and the head went on. */
static uint32_t limit(const struct ukp_reader *rd, struct ukp_ring_reader *rr, int *end)
{
	uint64_t pos = (rr->sub << rd->geo.sub_shift) + rr->off;

	if (rr->head <= pos)
		rr->head = load(&rr->ring->head);
	*end = rr->head >> rd->geo.sub_shift > rr->sub;
	if (*end)
		return sub_size(rd);
	if (rr->head >> rd->geo.sub_shift < rr->sub)
		return 0;
	return (uint32_t)rr->head & (sub_size(rd) - 1) & ~7u;
}

static uint32_t first_nonzero(const unsigned char *data, uint32_t from, uint32_t to)
{
	while (from < to && !word_at(data + from))
		from += 8;
	return from;
}

/*
 * Step over a run of zeros.  A writer that was late may be filling a record in
 * there at this moment, and what was found may be its payload; but it stored
 * its word before, so a second look from the start sees that.
 */
static int pass_zeros(struct ukp_ring_reader *rr, const unsigned char *data, uint32_t to)
{
	uint32_t end = first_nonzero(data, rr->off, to);

	for (int i = 0; i < RESCANS; i++) {
		uint32_t again = first_nonzero(data, rr->off, end);

		if (again == end) {
			rr->passed += end != rr->off;
			rr->off = end;
			return 1;
		}
		end = again;
	}
	return 0;
}

/* A copy that nobody else can change; the word is the one that was judged. */
static void take(struct ukp_ring_reader *rr, const unsigned char *from, uint32_t word)
{
	const uint64_t *src = (const uint64_t *)from;
	struct ukp_rec *rec = (struct ukp_rec *)rr->buf;
	uint32_t len = UKP_REC_LEN(word);

	UKP_STEP();
	for (uint32_t i = 0; i < len / 8; i++)
		rr->buf[i] = __atomic_load_n(src + i, __ATOMIC_RELAXED);
	rr->view.tsc = rec->tsc;
	rr->view.tid = rec->tid;
	rr->view.seq = rec->seq;
	rr->view.event = rec->event;
	rr->view.cpu = rec->cpu;
	rr->view.len = len - (uint32_t)sizeof(*rec);
	rr->view.payload = rec->payload;
	rr->have = 1;
	rr->seen++;
}

static int length_ok(uint32_t word, uint32_t room, uint32_t to_end)
{
	uint32_t len = UKP_REC_LEN(word);

	switch (UKP_REC_STATE(word)) {
	case UKP_REC_PAD:
		return len == to_end;
	case UKP_REC_OPEN:
	case UKP_REC_DONE:
		return len >= sizeof(struct ukp_rec) && len <= UKP_REC_MAX && !(len & 7) &&
		       len <= room;
	}
	return 0;
}

/*
 * One place at off, to < end of what is reserved.  Returns a record, BLOCKED,
 * or NONE: it was stepped over.
 */
static int one_place(const struct ukp_reader *rd, struct ukp_ring_reader *rr,
                     const unsigned char *data, uint32_t to)
{
	uint32_t word = word_at(data + rr->off);
	uint32_t state = UKP_REC_STATE(word);
	int patient = !rr->pass && !rd->dead;

	if (!word && patient)
		return UKP_READ_BLOCKED;
	if (!word && pass_zeros(rr, data, to)) {
		rr->pass = 0;
		return UKP_READ_NONE;
	}
	if (!word && !rd->dead)
		return UKP_READ_BLOCKED;
	if (!length_ok(word, to - rr->off, sub_size(rd) - rr->off)) {
		/* No telling where the next one is. */
		rr->bad++;
		rr->off = to;
		rr->pass = 0;
		return UKP_READ_NONE;
	}
	if (state == UKP_REC_OPEN && patient)
		return UKP_READ_BLOCKED;
	rr->pass = 0;
	if (state == UKP_REC_DONE)
		take(rr, data + rr->off, word);
	else if (state == UKP_REC_OPEN)
		rr->passed++;
	rr->off += UKP_REC_LEN(word);
	return state == UKP_REC_DONE ? UKP_READ_RECORD : UKP_READ_NONE;
}

/* The sub-buffer being read, from off.  Each turn moves off forward. */
static int scan(const struct ukp_reader *rd, struct ukp_ring_reader *rr)
{
	uint32_t index = index_of(rd, rr->sub);
	const unsigned char *data = sub_data(rd, rr, index);

	if (rr->avail[index] != rr->sub)
		return UKP_READ_NONE;
	for (;;) {
		int end, ret;
		uint32_t to = limit(rd, rr, &end);

		if (rr->off >= to)
			return end ? READ_END : UKP_READ_NONE;
		ret = one_place(rd, rr, data, to);
		if (ret != UKP_READ_NONE)
			return ret;
	}
}

enum ukp_read ukp_reader_peek(struct ukp_reader *rd, uint32_t ring, const struct ukp_rec_view **out)
{
	struct ukp_ring_reader *rr;
	int ret = UKP_READ_NONE;

	if (ring >= rd->geo.nr_rings)
		return UKP_READ_NONE;
	rr = &rd->rings[ring];
	*out = &rr->view;
	if (rr->have)
		return UKP_READ_RECORD;
	publish_late(rd, rr);
	if (rr->avail[index_of(rd, rr->sub)] != rr->sub)
		seek(rd, rr, rr->sub);
	/* One more than can be full: a hostile head must not keep us here. */
	for (uint32_t i = 0; i <= rd->geo.nr_subs; i++) {
		ret = scan(rd, rr);
		if (ret != READ_END)
			break;
		leave_sub(rd, rr);
	}
	rr->blocked = ret == UKP_READ_BLOCKED;
	return ret == READ_END ? UKP_READ_NONE : (enum ukp_read)ret;
}

enum ukp_read ukp_reader_next(struct ukp_reader *rd, uint32_t ring, const struct ukp_rec_view **out)
{
	enum ukp_read ret = ukp_reader_peek(rd, ring, out);

	if (ret == UKP_READ_RECORD)
		rd->rings[ring].have = 0;
	return ret;
}

int ukp_reader_blocked(const struct ukp_reader *rd, uint32_t ring, uint64_t *pos)
{
	const struct ukp_ring_reader *rr;

	if (ring >= rd->geo.nr_rings || !rd->rings[ring].blocked)
		return 0;
	rr = &rd->rings[ring];
	*pos = (rr->sub << rd->geo.sub_shift) + rr->off;
	return 1;
}

void ukp_reader_expire(struct ukp_reader *rd, uint32_t ring)
{
	if (ring < rd->geo.nr_rings && rd->rings[ring].blocked)
		rd->rings[ring].pass = 1;
}

void ukp_reader_set_dead(struct ukp_reader *rd)
{
	rd->dead = 1;
}

void ukp_reader_counts(struct ukp_reader *rd, uint32_t ring, struct ukp_ring_counts *out)
{
	static const struct ukp_ring_counts none;
	struct ukp_ring_reader *rr;
	uint32_t seq;

	*out = none;
	if (ring >= rd->geo.nr_rings)
		return;
	rr = &rd->rings[ring];
	UKP_STEP();
	seq = __atomic_load_n(&rr->ring->seq, __ATOMIC_RELAXED);
	rr->attempts += (uint32_t)(seq - rr->last_seq);
	rr->last_seq = seq;
	out->attempts = rr->attempts;
	out->seen = rr->seen - rr->have;
	out->lost = load(&rr->ring->lost);
	out->missing = out->attempts - out->seen - out->lost;
	out->passed = rr->passed;
	out->bad = rr->bad;
}
