/* SPDX-License-Identifier: MIT */
/* A gap between mappings, near a module. */
#include "patch/near.h"

#define REACH ((2ull << 30) - (16ull << 20))
#define LOWEST 0x10000ull /* vm.mmap_min_addr of most systems */
#define HIGHEST 0x7ffffffff000ull
#define GUARD 0x10000ull /* to the neighbours: theirs may grow a little */
#define HEAP_ROOM (1ull << 30)
#define PAGE_MASK 0xfffull

/* From end to end: what a displacement may have to span. */
static uint64_t distance(uint64_t at, uint64_t lo, uint64_t hi, uint64_t len)
{
	uint64_t start = at < lo ? at : lo, end = at + len > hi ? at + len : hi;

	return end - start;
}

/* The place in the gap [from, to) that is nearest to lo..hi; 0: none in reach. */
static uint64_t place(uint64_t from, uint64_t to, uint64_t lo, uint64_t hi, uint64_t len)
{
	uint64_t at;

	if (to < from || to - from < len + 2 * GUARD)
		return 0;
	at = to <= lo ? to - GUARD - len : from + GUARD;
	at = to <= lo ? at & ~PAGE_MASK : (at + PAGE_MASK) & ~PAGE_MASK;
	return distance(at, lo, hi, len) <= REACH ? at : 0;
}

uint64_t near_gap(const struct near_range *used, size_t n, uint64_t lo, uint64_t hi, uint64_t len,
                  uint64_t keep)
{
	uint64_t from = LOWEST, best = 0, best_distance = UINT64_MAX;
	size_t i;

	for (i = 0; i <= n; i++) {
		uint64_t to = i < n ? used[i].start : HIGHEST, at, d;

		if (keep && from == keep)
			from += HEAP_ROOM;
		at = place(from, to, lo, hi, len);
		d = at ? distance(at, lo, hi, len) : UINT64_MAX;
		if (d < best_distance) {
			best = at;
			best_distance = d;
		}
		if (i < n && used[i].end > from)
			from = used[i].end;
		if (from >= HIGHEST)
			break;
	}
	return best;
}
