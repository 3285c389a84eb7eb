/* SPDX-License-Identifier: MIT */
/*
 * int ukp_lib_detour(struct pt_regs *regs, struct ukp_site *site): a detour calls
 * with sp as the program had it; handlers want it aligned.
 */
	.text
	.globl	ukp_lib_detour
	.hidden	ukp_lib_detour
	.type	ukp_lib_detour, @function

ukp_lib_detour:
	push	%rbx
	mov	%rsp, %rbx
	and	$-16, %rsp
	call	ukp_lib_jump_hit
	mov	%rbx, %rsp
	pop	%rbx
	ret
	.size	ukp_lib_detour, . - ukp_lib_detour

	.section .note.GNU-stack, "", @progbits
