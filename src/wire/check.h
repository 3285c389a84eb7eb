/* SPDX-License-Identifier: MIT */
/*
 * The one place that turns bytes of a channel (wire/chan.h) into typed values.
 *
 * The channel is mapped by the target too, which may write anything anywhere
 * at any moment.  So: the geometry is checked once and kept in a private copy;
 * a record is copied, then looked at; what the reader must remember, it
 * remembers itself.  Whatever the bytes say, no call reads or writes outside
 * the mapping, and none does more work than one walk through a ring.  (That the
 * mapping doesn't shrink under the reader is the caller's to see to: F_SEAL_SHRINK.)
 *
 *                        another thread on          the target
 *                        the same reader
 *   ukp_reader_*         must not run               anything
 *   ukp_stat_sum,        may run                    anything; a sum is made of
 *   ukp_counter_sum,                                values of different moments
 *   ukp_hist_read,
 *   ukp_hist_count
 */
#ifndef UKP_WIRE_CHECK_H
#define UKP_WIRE_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "wire/chan.h"
#include "wire/hist.h"
#include "wire/record.h"
#include "wire/ring.h"

#ifndef UKP_READER_RINGS
#define UKP_READER_RINGS 256 /* rings, and shards, that a channel may have */
#endif
#define UKP_READER_SUBS 64
#define UKP_READER_SHIFT_MIN 6
#define UKP_READER_SHIFT_MAX 24

/* A checked private copy of a record. */
struct ukp_rec_view {
	uint64_t tsc;
	uint32_t tid;
	uint32_t seq;
	uint16_t event;
	uint16_t cpu;
	uint32_t len;                 /* of the payload, padding included */
	const unsigned char *payload; /* 8-aligned */
};

enum ukp_read {
	UKP_READ_NONE, /* nothing more for now; from a dead target: at all */
	UKP_READ_RECORD,
	UKP_READ_BLOCKED, /* the next record is open */
};

struct ukp_ring_counts {
	uint64_t attempts; /* to write a record */
	uint64_t seen;     /* records handed out */
	uint64_t lost;     /* dropped by the writer, and counted by it */
	uint64_t missing;  /* attempts - seen - lost.  While the target lives: not read
	                    * yet, or being written.  Dead, and the ring read to its
	                    * end: torn records, one a thread at most (and one for
	                    * each signal handler that was writing above it). */
	uint64_t passed;   /* places passed over: an open record; a run of zeros: of
	                    * records without a word, or the rest of a sub-buffer */
	uint64_t bad;      /* places that no writer of ours would have left so */
};

/* One ring's private state. */
struct ukp_ring_reader {
	struct ukp_ring *ring; /* the header in shared memory */
	unsigned char *data;
	uint64_t sub;         /* number of the sub-buffer being read */
	uint32_t off;         /* in it */
	uint32_t last_seq;    /* ring->seq when last looked at */
	uint64_t head;        /* ring->head when last looked at */
	uint64_t newest;      /* highest number ever published */
	uint64_t held;        /* bit i: index i is to be published when hold ends */
	uint32_t quarantined; /* how many sub-buffers are */
	uint8_t hold;         /* until newest is entered: publish nothing beyond it */
	uint8_t have;         /* view holds a record that wasn't consumed */
	uint8_t blocked;
	uint8_t pass; /* the place that blocks is to be passed over */
	uint64_t attempts, seen, passed, bad;
	uint64_t avail[UKP_READER_SUBS]; /* as published */
	struct ukp_rec_view view;
	uint64_t buf[UKP_REC_MAX / 8];
};

/*
 * Large (4.6 KiB a ring, for UKP_READER_RINGS): allocate it, zeroed or not;
 * pages of rings that the channel hasn't got are never touched.
 */
struct ukp_reader {
	unsigned char *mem;
	struct ukp_chan geo; /* checked */
	uint8_t dead;        /* the target: nobody writes any more */
	struct ukp_ring_reader rings[UKP_READER_RINGS];
};

/*
 * Checks the channel in size bytes at mem (page-aligned, mapped for writing)
 * and starts reading at the beginning of each ring.  -EINVAL: not a channel
 * that this reader can read.
 */
int ukp_reader_init(struct ukp_reader *rd, void *mem, size_t size);

/* The target is gone, surely: from now on open records are passed over at once. */
void ukp_reader_set_dead(struct ukp_reader *rd);

/*
 * The next record of a ring.  *out lives until the next call for that ring.
 * Peek leaves it to be the next one again (to merge rings by tsc: peek all,
 * take the least); next consumes it.  A ring that isn't there has nothing.
 */
enum ukp_read ukp_reader_peek(struct ukp_reader *rd, uint32_t ring,
                              const struct ukp_rec_view **out);
enum ukp_read ukp_reader_next(struct ukp_reader *rd, uint32_t ring,
                              const struct ukp_rec_view **out);

/*
 * Where a ring is blocked: *pos is one place's for ever.  False: it wasn't at
 * the last call.  A caller notes pos and time; when pos is still the same
 * after its patience, it calls expire, and the next call passes that place
 * over if it is still open.
 */
int ukp_reader_blocked(const struct ukp_reader *rd, uint32_t ring, uint64_t *pos);
void ukp_reader_expire(struct ukp_reader *rd, uint32_t ring);

/* Call it at least once in 2^32 attempts. */
void ukp_reader_counts(struct ukp_reader *rd, uint32_t ring, struct ukp_ring_counts *out);

/*
 * More than that no counter of a shard can have come to: it takes years at one a
 * nanosecond.  Who finds more finds something else than our writers', and the
 * three calls below return -EBADMSG.
 */
#define UKP_COUNT_MAX (1ull << 56)

/* A row of counters, summed over the shards.  -EINVAL: no such row. */
int ukp_stat_sum(const struct ukp_reader *rd, uint32_t row, struct ukp_stat *out);

/* The counter of a place, summed over the shards.  -EINVAL: no such counter. */
int ukp_counter_sum(const struct ukp_reader *rd, uint32_t i, uint64_t *out);

/*
 * A histogram at offset off of the channel, summed over its shards, equal error
 * values merged.  -EINVAL: not inside the channel.  After it: min is all ones
 * when there is no value; err[] is packed and every entry has claimed == 2.
 */
int ukp_hist_read(const struct ukp_reader *rd, uint64_t off, uint64_t stride, uint32_t shards,
                  struct ukp_hist *out);
/* How many values it has. */
int ukp_hist_count(const struct ukp_reader *rd, uint64_t off, uint64_t stride, uint32_t shards,
                   uint64_t *count);

#endif
