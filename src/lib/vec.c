/* SPDX-License-Identifier: MIT */
/* How ukp_vec_call() keeps vector state, and how much room that takes. */
#include <cpuid.h>

#include "lib/lib.h"

/* x87, SSE, AVX, the three of AVX-512, APX: what C code may use unasked. */
#define WANTED (0x1u | 0x2 | 0x4 | 0x20 | 0x40 | 0x80 | 1u << 19)
#define LEGACY (512 + 64)

uint32_t ukp_vec_kind, ukp_vec_mask, ukp_vec_size = 512;

static uint32_t xcr0(void)
{
	uint32_t lo, hi;

	__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
	return lo;
}

/* Of the compact form: components one behind the other. */
static uint32_t compact_size(uint32_t mask)
{
	uint32_t a, b, c, d, size = LEGACY;
	int i;

	for (i = 2; i < 32; i++) {
		if (!(mask & 1u << i))
			continue;
		__cpuid_count(0xd, i, a, b, c, d);
		if (c & 2)
			size = (size + 63) & ~63u;
		size += a;
	}
	return size;
}

void vec_init(void)
{
	uint32_t a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 27) || __get_cpuid_max(0, 0) < 0xd)
		return;
	ukp_vec_mask = xcr0() & WANTED;
	__cpuid_count(0xd, 1, a, b, c, d);
	if (a & 2) {
		ukp_vec_size = compact_size(ukp_vec_mask);
		ukp_vec_kind = VEC_XSAVEC;
	} else {
		__cpuid_count(0xd, 0, a, b, c, d);
		ukp_vec_size = b;
		ukp_vec_kind = VEC_XSAVE;
	}
}
