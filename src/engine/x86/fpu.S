/* SPDX-License-Identifier: MIT */
/*
 * Vector and x87 registers as they are, without a change to any of them: a plain
 * store of one, and fxsave, which waits for no exception, raises none and leaves
 * all as it was.  (fstp takes the value off, and fld brings other flags.)
 */
	.text
	.globl	ukp_arch_xmm, ukp_arch_st
	.hidden	ukp_arch_xmm, ukp_arch_st
	.type	ukp_arch_xmm, @function
	.type	ukp_arch_st, @function

/* void ukp_arch_xmm(uint64_t to[2], uint32_t n): n is below 16 */
ukp_arch_xmm:
	mov	%esi, %esi
	lea	1f(%rip), %rax
	lea	(%rax, %rsi, 8), %rax
	jmp	*%rax
	.balign	8
1:
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movups	%xmm\n, (%rdi)
	ret
	.balign	8, 0xcc
	.endr
	.size	ukp_arch_xmm, . - ukp_arch_xmm

/*
 * bool ukp_arch_st(uint64_t to[2], uint32_t n): the area has to be aligned, and
 * the stack is as it happens to be.
 */
ukp_arch_st:
	push	%rbp
	mov	%rsp, %rbp
	sub	$512, %rsp
	and	$-16, %rsp
	fxsave64 (%rsp)
	mov	%rdi, %rdx
	mov	%rsp, %rdi
	call	ukp_fpu_st
	leave
	ret
	.size	ukp_arch_st, . - ukp_arch_st

	.section .note.GNU-stack, "", @progbits
