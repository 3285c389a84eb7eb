/* SPDX-License-Identifier: MIT */
/*
 * What the engine needs of a CPU.  One implementation in x86/; what is an instruction
 * or two, and needed several times a hit, is in x86/inline.h.
 */
#ifndef UKP_ENGINE_ARCH_H
#define UKP_ENGINE_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All of it is internal to the image that links it. */
#pragma GCC visibility push(hidden)

struct ukp_ctl;

/* The clock of records: the TSC. */
static inline uint64_t ukp_arch_clock(void);
/* The CPU this runs on; a hint that may be stale at once. */
static inline uint32_t ukp_arch_cpu(const struct ukp_ctl *ctl);
static inline uint32_t ukp_arch_cpu_by(bool rdpid); /* whether the CPU has that instruction */

/* Which of n shards a CPU has: mostly there are as many, and a division takes its time. */
static inline uint32_t ukp_shard(uint32_t cpu, uint32_t n)
{
	return cpu < n ? cpu : cpu % n;
}

/*
 * Copy memory that may not be there.  Returns the number of bytes that were
 * not copied.  A fault inside ends in ukp_fault_entry, which sends it to the
 * routine's own failure exit; where our handler can't run (SIGSEGV blocked) it
 * must not be called.
 */
size_t ukp_arch_copy(void *dst, const void *src, size_t len);
/* The byte at dst from old to new, if it is old; false: it can't be written.  Under the same rule.
 */
bool ukp_arch_put(uint8_t *dst, uint8_t old, uint8_t new);
/* Length of the string at src without its NUL, at most max; -1: fault. */
long ukp_arch_strnlen(const char *src, size_t max);
/* The 32-bit word at off from the thread pointer, 0 where there is none. */
uint32_t ukp_arch_thread_word(uint32_t off);

/*
 * What tells threads apart: the word at the thread pointer, which glibc and
 * musl point at itself.  0 where there is none.
 */
uint64_t ukp_arch_thread(void);

/*
 * *at from old to new, as far as this thread's signal handlers can see at once;
 * false: it was something else.
 */
static inline bool ukp_arch_swap(uint64_t *at, uint64_t old, uint64_t new);

/*
 * Vector and x87 registers, which nothing here changes.  One as it is in the CPU,
 * or in the frame of the signal whose handler this is, where the kernel has put it
 * (the CPU's are in their initial state then).  False: it is one of the x87's that
 * holds no value.
 */
bool ukp_arch_fpu(uint32_t reg, const void *fpstate, uint64_t to[2]);
/* The same of what xsave or fxsave has written; in_use: which parts that was. */
bool ukp_arch_fpu_saved(uint32_t reg, const void *area, uint32_t in_use, uint64_t to[2]);

/* Sets a bit; false: it was set.  One instruction: this thread's signal handlers see it whole. */
static inline bool ukp_arch_set_bit(uint32_t *at, unsigned int bit);

/* All bits that are set in any of these, each read at once, in whatever order. */
static inline uint64_t ukp_arch_any8(const uint64_t word[8]);

/* A system call, for paths that are no hits. */
long ukp_arch_syscall(long nr, long a, long b, long c, long d);

#pragma GCC visibility pop

#include "engine/x86/inline.h"

#endif
