/* SPDX-License-Identifier: MIT */
/* Results in vector and x87 registers, for handlers at returns. */
#include "engine/arch.h"
#include "lib/hit/hit.h"
#include "wire/event.h"

#define XSTATE_BV 512
#define ALL 3u

static uint32_t in_use(const void *saved)
{
	return ukp_vec_kind == VEC_FXSAVE ? ALL
	                                  : *(const uint32_t *)((const char *)saved + XSTATE_BV);
}

static bool find(const struct pt_regs *regs, uint32_t reg, uint64_t value[2])
{
	const struct lib_result *r = guard_result(regs);

	if (!r)
		return false;
	/* At a breakpoint the kernel has put them aside: what is kept is its handler's. */
	return r->fpstate ? ukp_arch_fpu(reg, r->fpstate, value)
	                  : ukp_arch_fpu_saved(reg, r->saved, in_use(r->saved), value);
}

static bool get(const struct pt_regs *regs, uint32_t reg, void *to, size_t size)
{
	uint64_t value[2];

	if (!find(regs, reg, value))
		return false;
	__builtin_memcpy(to, value, size);
	return true;
}

bool ukp_return_f32(const struct pt_regs *regs, float *value)
{
	return get(regs, UKP_FPU_XMM0, value, 4);
}

bool ukp_return_f64(const struct pt_regs *regs, double *value)
{
	return get(regs, UKP_FPU_XMM0, value, 8);
}

/* Ten bytes of sixteen, and ukp_fpu_st() has cleared the others. */
bool ukp_return_f80(const struct pt_regs *regs, long double *value)
{
	return get(regs, UKP_FPU_ST0, value, 16);
}

bool ukp_return_xmm(const struct pt_regs *regs, unsigned int n, void *value)
{
	return n < 2 && get(regs, UKP_FPU_XMM0 + n, value, 16);
}
