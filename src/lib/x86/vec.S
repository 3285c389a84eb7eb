/* SPDX-License-Identifier: MIT */
/*
 * void ukp_vec_call(void (*fn)(void *arg, const void *saved), void *arg): run a C
 * function that may use any register, keeping vector and x87 state, which it finds in
 * saved; fn starts with those in the state that the ABI wants at a function's entry.  The one place in this
 * section, with the resume from a signal frame, that touches them.
 *
 * ukp_vec_kind 0: fxsave; 1: xsave; 2: xsavec.  The latter two leave parts of
 * their header as it was, which xrstor wants to be zero.
 */
	.text
	.globl	ukp_vec_call
	.hidden	ukp_vec_call
	.type	ukp_vec_call, @function

#define HEADER 512		/* the first word: which parts are not in their initial state */
#define MXCSR 0x1f80
#define MXCSR_FLAGS 0x3f	/* what has been raised: no function may rely on these */

ukp_vec_call:
	push	%rbp
	mov	%rsp, %rbp
	push	%rbx
	push	%r12
	mov	%rdi, %rbx
	mov	%rsi, %r12
	mov	ukp_vec_size(%rip), %eax
	sub	%rax, %rsp
	and	$-64, %rsp
	mov	ukp_vec_mask(%rip), %eax
	xor	%edx, %edx
	cmpl	$1, ukp_vec_kind(%rip)
	jb	1f
	mov	%rdx, HEADER(%rsp)
	mov	%rdx, HEADER+8(%rsp)
	mov	%rdx, HEADER+16(%rsp)
	mov	%rdx, HEADER+24(%rsp)
	mov	%rdx, HEADER+32(%rsp)
	mov	%rdx, HEADER+40(%rsp)
	mov	%rdx, HEADER+48(%rsp)
	mov	%rdx, HEADER+56(%rsp)
	je	2f
	xsavec64 (%rsp)
	jmp	3f
1:	fxsave64 (%rsp)
	jmp	6f
2:	xsave64	(%rsp)
3:	testb	$1, HEADER(%rsp)	/* x87 is mostly in its initial state */
	jz	7f
6:	fninit
7:	lea	-8(%rsp), %rsp
	stmxcsr	(%rsp)
	mov	(%rsp), %eax
	and	$~MXCSR_FLAGS, %eax
	cmp	$MXCSR, %eax
	je	8f			/* ldmxcsr here would make xrstor take twice as long */
	movl	$MXCSR, (%rsp)
	ldmxcsr	(%rsp)
8:	lea	8(%rsp), %rsp
	mov	%r12, %rdi
	mov	%rsp, %rsi
	call	*%rbx
	mov	ukp_vec_mask(%rip), %eax
	xor	%edx, %edx
	cmpl	$1, ukp_vec_kind(%rip)
	jb	4f
	xrstor64 (%rsp)
	jmp	5f
4:	fxrstor64 (%rsp)
5:	lea	-16(%rbp), %rsp
	pop	%r12
	pop	%rbx
	pop	%rbp
	ret
	.size	ukp_vec_call, . - ukp_vec_call

	.section .note.GNU-stack, "", @progbits
