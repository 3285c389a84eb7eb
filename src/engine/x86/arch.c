/* SPDX-License-Identifier: MIT */
/* x86-64: clock, CPU number, system calls. */
#include "engine/arch.h"

#include "wire/ctl.h"

uint64_t ukp_arch_clock(void)
{
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}

uint32_t ukp_arch_cpu_by(bool rdpid)
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

uint32_t ukp_arch_cpu(const struct ukp_ctl *ctl)
{
	return ukp_arch_cpu_by(ctl->flags & UKP_CTL_RDPID);
}

bool ukp_arch_swap(uint64_t *at, uint64_t old, uint64_t new)
{
	bool done;

	__asm__ volatile("cmpxchg %3, %1"
	                 : "=@ccz"(done), "+m"(*at), "+a"(old)
	                 : "r"(new)
	                 : "memory");
	return done;
}

long ukp_arch_syscall(long nr, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long ret;

	__asm__ volatile("syscall"
	                 : "=a"(ret)
	                 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
	                 : "rcx", "r11", "memory");
	return ret;
}
