/* SPDX-License-Identifier: MIT */
/*
 * The ring that carries records: many writers inside the target, one reader
 * outside, no wake-ups.  One ring a CPU.
 *
 * A ring is 2^k sub-buffers of 2^sub_shift bytes.  Positions grow for ever:
 * sub-buffer number n = pos >> sub_shift lies at index n % nr_subs.
 *
 *   writer  cmpxchg head -> the record's place.  Entering sub-buffer n needs
 *           avail[n % nr] == n.   avail > n: quarantined, look at n + 1, at most
 *           a lap; the head moves only to where a record was found room.
 *           avail < n: not read yet: the record is dropped, lost++.
 *           What remains of a left sub-buffer becomes one PAD record (less
 *           than 8 bytes never remain: lengths are multiples of 8).
 *   commit  word := DONE|len (release), then committed[idx] += len.
 *   reader  consumes the numbers n in order and passes by those that it has not
 *           published.  At the end of n, when committed == its size: clears it,
 *           zeroes committed, then avail := n + nr (release).
 *           A record left open (its thread was taken away by longjmp, say) is
 *           passed over after a time and the rest of n is read.
 *           At the end of n with committed short of its size: avail :=
 *           UINT64_MAX makes writers look further until the count is complete.
 *           Then it is cleared and avail := the first number of this index
 *           beyond all that were ever published: the head can't be there yet,
 *           and from the highest one it is within a lap's reach.
 *           Nothing beyond that number is published until it was entered, lest
 *           a writer that saw UINT64_MAX a moment ago step over it.
 *
 * Records that are left open for ever in all sub-buffers but one, each in
 * another, end a ring: a writer leaves the last one only for a free one.  From
 * then on all is counted as lost.
 *
 *   word        written by                read by
 *   head        writers (cmpxchg)         all
 *   lost, seq   writers (locked add)      reader
 *   avail       reader (release)          writers (acquire)
 *   committed   writers (locked add),     reader
 *               reader zeroes it while no writer can be in it
 */
#ifndef UKP_WIRE_RING_H
#define UKP_WIRE_RING_H

#include <stdint.h>

struct ukp_sub {
	uint64_t avail;     /* number that may be entered */
	uint64_t committed; /* bytes */
	uint64_t pad[6];    /* a cache line each */
};

struct ukp_ring {
	uint64_t head;
	uint64_t lost;
	uint32_t seq;
	uint32_t nr_subs;
	uint32_t sub_shift;
	uint32_t off_data; /* from this header to the data */
	uint64_t pad[4];
	struct ukp_sub subs[]; /* nr_subs, then data at off_data */
};

/* Bytes from one ring's header to the next one's. */
static inline uint64_t ukp_ring_stride(uint32_t nr_subs, uint32_t sub_shift)
{
	uint64_t head = sizeof(struct ukp_ring) + nr_subs * sizeof(struct ukp_sub);

	return ((head + 4095) & ~4095ull) + ((uint64_t)nr_subs << sub_shift);
}

#endif
