/* SPDX-License-Identifier: MIT */
/*
 * Code that makes system calls, for whoever puts it into the target.  It ends
 * in a breakpoint, at which its tracer finds it: one stop for any number of
 * calls.  Position-independent; no stack is used.
 *
 *	arch_runner			one call, as the registers have it
 *	arch_runner + ARCH_RUN_MANY	rbx: struct inject_call, r12: how many
 */
#include "inject/arch.h"

	.section .rodata, "a", @progbits
	.balign	16
	.globl	arch_runner, arch_runner_end
	.hidden	arch_runner, arch_runner_end
arch_runner:
	syscall
	int3
	.if	. - arch_runner - ARCH_RUN_MANY
	.error	"ARCH_RUN_MANY"
	.endif
1:	mov	(%rbx), %rax
	mov	8(%rbx), %rdi
	mov	16(%rbx), %rsi
	mov	24(%rbx), %rdx
	mov	32(%rbx), %r10
	mov	40(%rbx), %r8
	mov	48(%rbx), %r9
	syscall
	mov	%rax, 56(%rbx)
	add	$64, %rbx
	dec	%r12
	jnz	1b
	int3
arch_runner_end:

	.section .note.GNU-stack, "", @progbits
