/* SPDX-License-Identifier: MIT */
/*
 * Where functions with a replaced return address come out.
 *
 *	stub i:   call common		  16 bytes each, so i = (ra - base) / 16
 *		  ret
 *	common:   jmp *ukp_return_entry	  at the end of each stub file
 *
 * The stub's call pushed stub + 5 exactly over the word that had held the
 * stub, so sp here is as it was at the function's entry.  All general
 * registers and the flags are kept; the true return address replaces the
 * pushed word and the final ret goes there.  Where the function was called by
 * the stub's way in, it goes to the stub's ret, and that there: this is what
 * the CPU expects, which has seen the call of the way in return to the stub.
 * Vector registers are not touched
 * by our own actions; with a C handler of a user's, they are saved here.
 *
 *	sp ->	r15 ... di  orig_ax  ip  cs  flags  sp  ss    struct pt_regs
 *		ra   <- the word, pushed by the stub's call
 */
#include "engine/x86/frame.inc"

	.text
/*
 * All registers back, and a return by the word that is so many bytes above di.
 * popfq takes as long as all else together: it is for flags that sahf doesn't have.
 */
	.macro leave_regs up
	mov	REGS_FLAGS(%rsp), %eax
	test	$0x244500, %eax		/* TF, DF, NT, AC, ID */
	jnz	2f
	mov	%eax, %ecx
	mov	%al, %ah
	shr	$4, %ecx		/* OF is bit 7 of it */
	and	$0x80, %cl
	add	%cl, %cl		/* overflows if that is set */
	sahf
	pop_regs
	lea	\up(%rsp), %rsp
	ret
2:	pop_regs
	lea	24(%rsp), %rsp
	popfq
	lea	\up-32(%rsp), %rsp
	ret
	.endm

	.globl	ukp_return_entry
	.hidden	ukp_return_entry
	.type	ukp_return_entry, @function

ukp_return_entry:
	lea	-24(%rsp), %rsp		/* a pad word, ss, sp: filled in below */
	pushfq
	cld
	lea	-24(%rsp), %rsp		/* cs, ip, orig_ax: filled in below */
	push_regs
	/* 22 words in all: struct pt_regs has 21, the pad word is above it */
	movq	$-1, REGS_ORIG_AX(%rsp)
	movl	%cs, %eax
	mov	%rax, REGS_CS(%rsp)
	mov	%rsp, %rdi
	lea	184(%rsp), %rax		/* as after the function's ret */
	mov	%rax, REGS_SP(%rsp)
	movl	%ss, %eax
	mov	%rax, REGS_SS(%rsp)
	mov	176(%rsp), %rsi		/* the stub's call: stub + 5 */
	mov	%rsp, %rbx
	and	$-16, %rsp
	call	ukp_return
	mov	%rbx, %rsp
	mov	REGS_IP(%rsp), %rcx
	test	%al, %al
	jnz	1f
	mov	%rcx, 176(%rsp)
	leave_regs 56
1:	mov	176(%rsp), %rax		/* stub + 5 goes into the pad word */
	mov	%rcx, 176(%rsp)
	mov	%rax, 168(%rsp)
	leave_regs 48
	.size	ukp_return_entry, . - ukp_return_entry

	.section .note.GNU-stack, "", @progbits
