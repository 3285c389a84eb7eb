/* SPDX-License-Identifier: MIT */
/*
 * Where functions with a replaced return address come out.
 *
 *	stub i:   lea -8(%rsp),%rsp	  24 bytes each, so i = (ra - base) / 24
 *		  call common
 *		  ret
 *	common:   jmp *ukp_return_entry	  at the end of each stub file
 *
 * The word that holds the stub stays as it is until the engine has it: a signal
 * handler that unwinds finds it there, and may put the return address back.  All
 * general registers and the flags are kept; the true return address replaces the
 * word and the final ret goes there.  Where the function was called by the stub's
 * way in, it goes to the stub's ret, and that there: this is what the CPU expects,
 * which has seen the call of the way in return to the stub.  Vector registers are
 * not touched by our own actions; with a C handler of a user's, they are saved here.
 *
 *	sp ->	r15 ... di  orig_ax  ip  cs  flags  sp  ss    struct pt_regs
 *		ra	pushed by the stub's call
 *		word	the stub
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
	lea	-16(%rsp), %rsp		/* ss, sp: filled in below */
	pushfq
	cld
	lea	-24(%rsp), %rsp		/* cs, ip, orig_ax: filled in below */
	push_regs
	movq	$-1, REGS_ORIG_AX(%rsp)
	movl	%cs, %eax
	mov	%rax, REGS_CS(%rsp)
	mov	%rsp, %rdi
	lea	184(%rsp), %rax		/* as after the function's ret */
	mov	%rax, REGS_SP(%rsp)
	movl	%ss, %eax
	mov	%rax, REGS_SS(%rsp)
	mov	168(%rsp), %rsi		/* ra */
	mov	%rsp, %rbx
	and	$-16, %rsp
	call	ukp_return
	mov	%rbx, %rsp
	mov	REGS_IP(%rsp), %rcx
	mov	%rcx, 176(%rsp)
	test	%al, %al
	jnz	1f
	leave_regs 56
1:	leave_regs 48			/* by ra */
	.size	ukp_return_entry, . - ukp_return_entry

	.section .note.GNU-stack, "", @progbits
