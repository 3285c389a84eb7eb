/* SPDX-License-Identifier: MIT */
/*
 * Writing records into a ring (wire/ring.h): the side that runs on a hit.
 *
 *                       concurrent   in a signal handler   killed in the middle
 *   ukp_ring_reserve    any number   yes, nested too       one torn record
 *   ukp_ring_commit     any number   yes, nested too       committed or torn
 *   ukp_ring_init       alone, before the ring is seen by anybody
 *
 * No call waits for anybody: a place is taken by one cmpxchg, and after
 * UKP_RING_TRIES lost races the record is dropped like one that found the ring
 * full.  So attempts = records + lost, to the unit.
 */
#ifndef UKP_ENGINE_RING_H
#define UKP_ENGINE_RING_H

#include <stdint.h>

#include "wire/record.h"
#include "wire/ring.h"

#define UKP_RING_TRIES 64

/*
 * Makes an empty ring of zeroed memory, ukp_ring_stride() bytes long.
 * nr_subs: a power of two; sub_shift: at most 24.
 */
void ukp_ring_init(struct ukp_ring *r, uint32_t nr_subs, uint32_t sub_shift);

/*
 * Takes len bytes: a multiple of 8, header included, at most UKP_REC_MAX and a
 * sub-buffer.  word and seq are filled in, the rest is zero.  NULL: dropped
 * and counted in lost.  What is reserved must be committed, with the same len.
 */
struct ukp_rec *ukp_ring_reserve(struct ukp_ring *r, uint32_t len, uint64_t *pos);

/* Makes the record visible.  It must not be touched afterwards. */
void ukp_ring_commit(struct ukp_ring *r, struct ukp_rec *rec, uint64_t pos, uint32_t len);

#endif
