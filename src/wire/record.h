/* SPDX-License-Identifier: MIT */
/*
 * One record in a ring.
 *
 *    0        4        8       12      16       24
 *    +--------+--------+-------+-------+--------+----------------------+
 *    | word   | ev cpu |  tid  |  seq  |  tsc   | payload ...      pad |
 *    +--------+--------+-------+-------+--------+----------------------+
 *    ^ 8-aligned, len bytes long (a multiple of 8)
 *
 * word is stored first (OPEN | len), then the rest, then word again
 * (DONE | len, release).  A reserved record whose word was never written is
 * all zeros, for the reader clears what it has consumed: so after a kill the
 * next record is the next word that isn't 0.
 *
 * Payload of a p event:  u64 ip,            fault bits, fields, strings
 *            an r event: u64 func, ret_ip,  fault bits, fields, strings
 * Fault bits: one u64 for every 64 arguments (none without arguments); bit i
 * set: argument i could not be read.  Fields lie where struct ukp_arg says,
 * unaligned.  A string field is a u32: length << 16 | offset from the start of
 * the payload; length counts the terminating NUL.
 */
#ifndef UKP_WIRE_RECORD_H
#define UKP_WIRE_RECORD_H

#include <stdint.h>

struct ukp_rec {
	uint32_t word;
	uint16_t event; /* index of the event in its channel */
	uint16_t cpu;
	uint32_t tid; /* as the target's own pid namespace has it; 0: unknown */
	uint32_t seq; /* one per attempt on this ring, dropped ones included */
	uint64_t tsc;
	unsigned char payload[];
};

#define UKP_REC_LEN(w) ((w)&0x00ffffffu)
#define UKP_REC_STATE(w) ((w)&0xff000000u)
#define UKP_REC_OPEN 0xa5000000u
#define UKP_REC_DONE 0x5a000000u
#define UKP_REC_PAD 0xc3000000u /* to the end of the sub-buffer */

#define UKP_REC_MAX 4096 /* bytes, header included */

#endif
