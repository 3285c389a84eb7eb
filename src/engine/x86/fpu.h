/* SPDX-License-Identifier: MIT */
/* Between fpu.c and fpu.S; ukp_arch_fpu() is what others call. */
#ifndef UKP_ENGINE_X86_FPU_H
#define UKP_ENGINE_X86_FPU_H

#include <stdbool.h>
#include <stdint.h>

/* All of it is internal to the image that links it. */
#pragma GCC visibility push(hidden)

/* As the CPU has it: xmm(n), st(n); false: that is empty. */
void ukp_arch_xmm(uint64_t to[2], uint32_t n);
bool ukp_arch_st(uint64_t to[2], uint32_t n);

/* st(n) of what fxsave has written. */
bool ukp_fpu_st(const void *area, uint32_t n, uint64_t to[2]);
/* enum ukp_fpu_reg of a signal frame. */
bool ukp_fpu_frame(uint32_t reg, const void *area, uint64_t to[2]);

#pragma GCC visibility pop

#endif
