/* SPDX-License-Identifier: MIT */
/*
 * The least that a jump-form probe pays: functions that already begin with the
 * jump, and the detour as one would write it by hand for each.  It keeps the red
 * zone, flags and 16 registers, calls a C function with DF clear and an aligned
 * stack, and goes on behind the two instructions that the jump covers.  Nothing
 * is looked up, counted or guarded.
 *
 * All functions are copies of one, each in a cache line of its own; the last
 * three are for others to probe.
 */
#include "floor.inc"

	.text

.macro jumps name, detour
	function \name
	.byte	0xe9
	.long	\detour - . - 4
	.byte	0xcc, 0xcc
.L\name:
	rest	\name
.endm

	copy	work_plain
	jumps	work_floor, floor_regs
	jumps	work_floor_vec, floor_vec
	copy	work_entry
	copy	work_novec
	copy	work_vec

.macro save
	lea	-128(%rsp), %rsp
	pushfq
	.irp r, rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
	push	%\r
	.endr
	cld
	mov	%rsp, %rdi
	mov	%rsp, %rbx
.endm

.macro restore
	mov	%rbx, %rsp
	.irp r, r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp
	pop	%\r
	.endr
	lea	8(%rsp), %rsp
	.irp r, rbx, rdx, rcx, rax
	pop	%\r
	.endr
	popfq
	lea	128(%rsp), %rsp
.endm

	.balign	64
floor_regs:
	save
	and	$-16, %rsp
	call	floor_hit
	restore
	covered
	jmp	.Lwork_floor

	.balign	64
floor_vec:
	save
	lea	-4096(%rsp), %rsp	/* FLOOR_VEC_ROOM */
	and	$-64, %rsp
	xor	%edx, %edx
	.irp off, 0, 8, 16, 24, 32, 40, 48, 56
	mov	%rdx, 512+\off(%rsp)
	.endr
	mov	floor_vec_mask(%rip), %eax
	xsavec64 (%rsp)
	call	floor_hit
	mov	floor_vec_mask(%rip), %eax
	xor	%edx, %edx
	xrstor64 (%rsp)
	restore
	covered
	jmp	.Lwork_floor_vec

	.section .note.GNU-stack, "", @progbits
