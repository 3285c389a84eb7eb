/* SPDX-License-Identifier: MIT */
/*
 * long ukp_clone_call(flags, stack_top, fn, arg, state): clone(), where the child
 * calls fn(arg) on its stack and ends.  state is the word that the kernel clears
 * then (CLONE_CHILD_CLEARTID is among the flags).
 */
	.text
	.globl	ukp_clone_call
	.hidden	ukp_clone_call
	.type	ukp_clone_call, @function

#define NR_clone 56
#define NR_exit 60

ukp_clone_call:
	and	$-16, %rsi
	lea	-16(%rsi), %rsi
	mov	%rdx, (%rsi)		/* fn, arg: on the child's stack */
	mov	%rcx, 8(%rsi)
	mov	%r8, %r10		/* child_tid */
	xor	%edx, %edx
	xor	%r8d, %r8d
	mov	$NR_clone, %eax
	syscall
	test	%rax, %rax
	jz	1f
	ret
1:	xor	%ebp, %ebp
	pop	%rax
	pop	%rdi
	call	*%rax
	xor	%edi, %edi
	mov	$NR_exit, %eax
	syscall
	ud2
	.size	ukp_clone_call, . - ukp_clone_call

	.section .note.GNU-stack, "", @progbits
