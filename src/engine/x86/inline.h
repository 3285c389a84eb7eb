/* SPDX-License-Identifier: MIT */
/* What engine/arch.h has inline for x86-64; only it includes this. */
#ifndef UKP_ENGINE_X86_INLINE_H
#define UKP_ENGINE_X86_INLINE_H

#include "wire/ctl.h"

static inline uint64_t ukp_arch_clock(void)
{
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}

static inline uint32_t ukp_arch_cpu_by(bool rdpid)
{
	uint64_t v;

	/*
	 * Linux keeps node << 12 | cpu both in IA32_TSC_AUX, which rdpid reads,
	 * and in the limit of this GDT entry, which serves older CPUs.
	 */
	if (rdpid)
		__asm__ volatile("rdpid %0" : "=r"(v));
	else
		__asm__ volatile("lsl %1, %0" : "=r"(v) : "r"(0x7bul) : "cc");
	return v & 0xfff;
}

static inline uint32_t ukp_arch_cpu(const struct ukp_ctl *ctl)
{
	return ukp_arch_cpu_by(ctl->flags & UKP_CTL_RDPID);
}

static inline bool ukp_arch_swap(uint64_t *at, uint64_t old, uint64_t new)
{
	bool done;

	__asm__ volatile("cmpxchg %3, %1"
	                 : "=@ccz"(done), "+m"(*at), "+a"(old)
	                 : "r"(new)
	                 : "memory");
	return done;
}

static inline bool ukp_arch_set_bit(uint32_t *at, unsigned int bit)
{
	bool was;

	__asm__ volatile("btsl %2, %1" : "=@ccc"(was), "+m"(*at) : "Ir"(bit) : "memory");
	return !was;
}

/* A compiler takes an instruction more for each word that others may write. */
static inline uint64_t ukp_arch_any8(const uint64_t word[8])
{
	uint64_t any;

	__asm__ volatile("mov (%1), %0\n\tor 8(%1), %0\n\tor 16(%1), %0\n\tor 24(%1), %0\n\t"
	                 "or 32(%1), %0\n\tor 40(%1), %0\n\tor 48(%1), %0\n\tor 56(%1), %0"
	                 : "=&r"(any)
	                 : "r"(word), "m"(*(const uint64_t(*)[8])word)
	                 : "cc");
	return any;
}

#endif
