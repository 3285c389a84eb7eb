/* SPDX-License-Identifier: MIT */
/*
 * Where a new mapping can lie so that rel32 reaches from it to a module and
 * back.  Pure.
 */
#ifndef UKP_PATCH_NEAR_H
#define UKP_PATCH_NEAR_H

#include <stddef.h>
#include <stdint.h>

struct near_range {
	uint64_t start, end;
};

/*
 * used: what is mapped, ascending.  lo..hi: what must be in reach (2 GiB less
 * a margin) of every byte of the new mapping of len bytes.  keep: an address
 * above which room must stay for growth (the heap's end), or 0.  Nearest
 * first, below before above.  0: none.
 */
uint64_t near_gap(const struct near_range *used, size_t n, uint64_t lo, uint64_t hi, uint64_t len,
                  uint64_t keep);

#endif
