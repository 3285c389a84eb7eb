/* SPDX-License-Identifier: MIT */
/*
 * The least that following a call takes: a function that begins with a jump, and
 * the detour as one would write it by hand.  It keeps the red zone, flags and what
 * a C function may clobber, has a record made that holds the return address, calls
 * the function in place, and has the record ended.  The others are copies of the
 * function for others to follow.
 */
#include "floor.inc"

	.text

	copy	work_plain
	copy	work_slot
	copy	work_call
	copy	work_exit
	copy	work_kret

	function work_floor
	.byte	0xe9
	.long	detour - . - 4
	.byte	0xcc, 0xcc
.Lrest:
	rest	work_floor

.macro save
	lea	-128(%rsp), %rsp
	push	%rax
	lahf
	seto	%al
	.irp r, rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11
	push	%\r
	.endr
	cld
.endm

.macro restore
	.irp r, r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax
	pop	%\r
	.endr
	add	$127, %al
	sahf
	pop	%rax
	lea	128(%rsp), %rsp
.endm

#define WORD 208	/* above sp, once all is saved */

	.balign	64
detour:
	save
	mov	WORD(%rsp), %rdi
	lea	WORD(%rsp), %rsi
	call	floor_entry
	restore
	lea	8(%rsp), %rsp
	call	1f
	lea	-8(%rsp), %rsp
	save
	lea	WORD(%rsp), %rdi
	call	floor_return		/* the return address, back into the word */
	mov	%rax, WORD(%rsp)
	restore
	ret
1:	covered
	jmp	.Lrest

	.section .note.GNU-stack, "", @progbits
