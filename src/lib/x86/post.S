/* SPDX-License-Identifier: MIT */
/*
 * Behind a straight-line instruction with post handlers: its slot ended in
 *
 *	lea -128(%rsp),%rsp ; call ukp_post_entry
 *
 * Everything is kept in a struct pt_regs on the stack, below the red zone.
 * The way back is iretq from that very structure: it loads ip, flags and sp at
 * once and leaves the red zone alone, which a ret could not.
 *
 *	sp ->	r15 ... di  orig_ax  ip  cs  flags  sp  ss	struct pt_regs
 *	+168	address inside the slot
 *	+176	128 bytes of red zone
 *	+304	sp of the program
 */
#include "engine/x86/frame.inc"

	.text
	.globl	ukp_post_entry
	.hidden	ukp_post_entry
	.type	ukp_post_entry, @function

#define RED_ZONE	128

ukp_post_entry:
	lea	-16(%rsp), %rsp		/* ss, sp: filled in below */
	pushfq
	cld
	lea	-24(%rsp), %rsp		/* cs, ip, orig_ax */
	push_regs
	movq	$-1, REGS_ORIG_AX(%rsp)
	movl	%cs, %eax
	mov	%rax, REGS_CS(%rsp)
	lea	REGS_SIZE+8+RED_ZONE(%rsp), %rax
	mov	%rax, REGS_SP(%rsp)
	movl	%ss, %eax
	mov	%rax, REGS_SS(%rsp)
	mov	%rsp, %rdi
	mov	REGS_SIZE(%rsp), %rsi
	mov	%rsp, %rbx
	and	$-16, %rsp
	call	ukp_lib_post
	mov	%rbx, %rsp
	pop_regs
	lea	8(%rsp), %rsp
	iretq
	.size	ukp_post_entry, . - ukp_post_entry

	.section .note.GNU-stack, "", @progbits
