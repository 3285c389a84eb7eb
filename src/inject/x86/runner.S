/* SPDX-License-Identifier: MIT */
/*
 * Code that makes system calls, for whoever puts it into the target.  It ends with
 * a signal to itself, at which its tracer finds it: one stop for any number of
 * calls.  Position-independent; no stack is used.
 *
 *	arch_runner			one call, as the registers have it
 *	arch_runner + ARCH_RUN_MANY	rbx: struct inject_call, r12: how many
 *
 * The signal is one that does nothing in this program.  So should the tracer be
 * killed meanwhile, the thread goes on behind it, and finds its way back: its mask
 * and its registers lie at the end.
 */
#include "inject/arch.h"

#define REG(n) (arch_runner_data + 8 * (1 + n)) /* of struct user_regs_struct */
#define SIGNAL (arch_runner_data + 8 * 22)
#define SUD(n) (arch_runner_data + 8 * (23 + n))

	.section .rodata, "a", @progbits
	.balign	16
	.globl	arch_runner, arch_runner_back, arch_runner_data, arch_runner_end
	.hidden	arch_runner, arch_runner_back, arch_runner_data, arch_runner_end
arch_runner:
	syscall
	mov	%rax, %rbx
	.byte	0xeb, done - 1f		/* jmp, the short one */
	.if	. - arch_runner - ARCH_RUN_MANY
	.error	"ARCH_RUN_MANY"
	.endif
1:	mov	(%rbx), %rax
	mov	8(%rbx), %rdi
	bt	$32, %rax		/* INJECT_OF_LAST */
	jnc	3f
	mov	-8(%rbx), %rdi
	mov	%eax, %eax
3:	mov	16(%rbx), %rsi
	mov	24(%rbx), %rdx
	mov	32(%rbx), %r10
	mov	40(%rbx), %r8
	mov	48(%rbx), %r9
	syscall
	mov	%rax, 56(%rbx)
	add	$64, %rbx
	dec	%r12
	jnz	1b
done:
	mov	$39, %eax		/* getpid */
	syscall
	mov	%eax, %r12d
	mov	$186, %eax		/* gettid */
	syscall
	mov	%r12d, %edi
	mov	%eax, %esi
	mov	SIGNAL(%rip), %edx
	mov	$234, %eax		/* tgkill */
	syscall
arch_runner_back:
	mov	$14, %eax		/* rt_sigprocmask */
	mov	$2, %edi		/* SIG_SETMASK */
	lea	arch_runner_data(%rip), %rsi
	xor	%edx, %edx
	mov	$8, %r10d
	syscall
	mov	SUD(0)(%rip), %rsi
	test	%esi, %esi
	jz	2f
	mov	$157, %eax		/* prctl */
	mov	$59, %edi		/* PR_SET_SYSCALL_USER_DISPATCH */
	mov	SUD(1)(%rip), %rdx
	mov	SUD(2)(%rip), %r10
	mov	SUD(3)(%rip), %r8
	syscall
2:	mov	REG(19)(%rip), %rsp
	lea	-ARCH_RED_ZONE(%rsp), %rsp
	push	REG(20)(%rip)		/* ss, sp, flags, cs, ip for iretq */
	push	REG(19)(%rip)
	push	REG(18)(%rip)
	push	REG(17)(%rip)
	push	REG(16)(%rip)
	mov	REG(0)(%rip), %r15
	mov	REG(1)(%rip), %r14
	mov	REG(2)(%rip), %r13
	mov	REG(3)(%rip), %r12
	mov	REG(4)(%rip), %rbp
	mov	REG(5)(%rip), %rbx
	mov	REG(6)(%rip), %r11
	mov	REG(7)(%rip), %r10
	mov	REG(8)(%rip), %r9
	mov	REG(9)(%rip), %r8
	mov	REG(10)(%rip), %rax
	mov	REG(11)(%rip), %rcx
	mov	REG(12)(%rip), %rdx
	mov	REG(13)(%rip), %rsi
	mov	REG(14)(%rip), %rdi
	iretq
	.balign	8
arch_runner_data:			/* struct arch_way_back */
	.skip	8 * (1 + 21 + 1 + 4)
arch_runner_end:

	.section .note.GNU-stack, "", @progbits
