/* SPDX-License-Identifier: MIT */
/*
 * One vector or x87 register, of the CPU or of a signal frame.
 *
 * The frame has what xsave writes, behind whose first 512 bytes (those of fxsave) a
 * word says which parts are in use: what isn't is in its initial state, whatever
 * its bytes say.  Before xsave those 512 were all.
 */
#include "engine/x86/fpu.h"

#include "engine/arch.h"
#include "wire/event.h"

#define SW_MAGIC 464 /* struct _fpx_sw_bytes of the kernel */
#define XSTATE_MAGIC1 0x46505853u
#define XSTATE_BV 512
#define BV_X87 1u
#define BV_SSE 2u

#define AREA_SW 2 /* the x87's status word, with the top of its stack in bits 11 to 13 */
#define AREA_TAGS 4
#define AREA_ST 32
#define AREA_XMM 160
#define AREA_REG 16
#define NR_ST 8

static void take(uint64_t to[2], const void *from)
{
	to[0] = ((const uint64_t *)from)[0];
	to[1] = ((const uint64_t *)from)[1];
}

/* A tag stands by the number of a register, a value by its depth. */
bool ukp_fpu_st(const void *area, uint32_t n, uint64_t to[2])
{
	const unsigned char *p = area;
	uint32_t top = *(const uint16_t *)(p + AREA_SW) >> 11;

	if (!(p[AREA_TAGS] >> (top + n) % NR_ST & 1))
		return false;
	take(to, p + AREA_ST + (uint64_t)n * AREA_REG);
	to[1] &= 0xffff;
	return true;
}

static uint32_t in_use(const unsigned char *area)
{
	if (*(const uint32_t *)(area + SW_MAGIC) != XSTATE_MAGIC1)
		return BV_X87 | BV_SSE;
	return *(const uint32_t *)(area + XSTATE_BV);
}

bool ukp_arch_fpu_saved(uint32_t reg, const void *area, uint32_t in_use, uint64_t to[2])
{
	if (reg >= UKP_FPU_ST0)
		return reg < UKP_FPU_REGS && (in_use & BV_X87) &&
		       ukp_fpu_st(area, reg - UKP_FPU_ST0, to);
	if (in_use & BV_SSE)
		take(to, (const unsigned char *)area + AREA_XMM + (uint64_t)reg * AREA_REG);
	else
		to[0] = to[1] = 0;
	return true;
}

bool ukp_fpu_frame(uint32_t reg, const void *area, uint64_t to[2])
{
	return ukp_arch_fpu_saved(reg, area, in_use(area), to);
}

bool ukp_arch_fpu(uint32_t reg, const void *fpstate, uint64_t to[2])
{
	if (reg >= UKP_FPU_REGS)
		return false;
	if (fpstate)
		return ukp_fpu_frame(reg, fpstate, to);
	if (reg >= UKP_FPU_ST0)
		return ukp_arch_st(to, reg - UKP_FPU_ST0);
	ukp_arch_xmm(to, reg);
	return true;
}
