/* SPDX-License-Identifier: MIT */
/*
 * Signal entries and the way back without rt_sigreturn.
 *
 * The kernel calls a handler with rsp at its return address (the restorer),
 * rdi, rsi, rdx = signal, siginfo, ucontext, DF clear.  Handlers are installed
 * with SA_NODEFER and an empty mask, so the thread's signal mask is as it was
 * and nothing of the frame but registers and vector state has to be put back:
 * xrstor does the latter, iretq takes ip, flags and sp from one place at once,
 * so it works from an alternate stack and with an unusable rsp alike.
 */
	.text

#define UC_R8		40
#define UC_R9		48
#define UC_R10		56
#define UC_R11		64
#define UC_R12		72
#define UC_R13		80
#define UC_R14		88
#define UC_R15		96
#define UC_DI		104
#define UC_SI		112
#define UC_BP		120
#define UC_BX		128
#define UC_DX		136
#define UC_AX		144
#define UC_CX		152
#define UC_SP		160
#define UC_IP		168
#define UC_FLAGS	176
#define UC_CS		184
#define UC_SS		190
#define UC_FPSTATE	224

#define FP_SW_MAGIC	464	/* struct _fpx_sw_bytes in the legacy area */
#define FP_SW_XFEATURES	472
#define FP_XSTATE_MAGIC1 0x46505853

	.macro	signal_entry name, handler
	.globl	\name
	.hidden	\name
	.type	\name, @function
\name:
	push	%rdx
	call	\handler
	pop	%rbx
	test	%eax, %eax
	jz	resume_direct
	ret
	.size	\name, . - \name
	.endm

	signal_entry ukp_trap_entry, ukp_trap
	signal_entry ukp_fault_entry, ukp_fault

	.globl	ukp_restorer
	.hidden	ukp_restorer
	.type	ukp_restorer, @function
ukp_restorer:
	mov	$15, %eax
	syscall
	.size	ukp_restorer, . - ukp_restorer

/*
 * void ukp_chain_call(int sig, siginfo *info, ucontext *uc, handler): the one
 * place where a handler of the program runs on top of us; its return address
 * on a stack tells that the thread still needs this code.
 */
	.globl	ukp_chain_call, ukp_chain_return
	.hidden	ukp_chain_call, ukp_chain_return
	.type	ukp_chain_call, @function
ukp_chain_call:
	sub	$8, %rsp
	call	*%rcx
ukp_chain_return:
	add	$8, %rsp
	ret
	.size	ukp_chain_call, . - ukp_chain_call

/* rbx = ucontext; below it the stack is ours */
	.type	resume_direct, @function
resume_direct:
	mov	UC_FPSTATE(%rbx), %rcx
	cmpl	$FP_XSTATE_MAGIC1, FP_SW_MAGIC(%rcx)
	jne	1f
	mov	FP_SW_XFEATURES(%rcx), %eax
	mov	FP_SW_XFEATURES+4(%rcx), %edx
	xrstor64 (%rcx)
	jmp	2f
1:	fxrstor64 (%rcx)
2:
	movzwl	UC_SS(%rbx), %eax
	push	%rax
	push	UC_SP(%rbx)
	push	UC_FLAGS(%rbx)
	movzwl	UC_CS(%rbx), %eax
	push	%rax
	push	UC_IP(%rbx)
	mov	UC_R8(%rbx), %r8
	mov	UC_R9(%rbx), %r9
	mov	UC_R10(%rbx), %r10
	mov	UC_R11(%rbx), %r11
	mov	UC_R12(%rbx), %r12
	mov	UC_R13(%rbx), %r13
	mov	UC_R14(%rbx), %r14
	mov	UC_R15(%rbx), %r15
	mov	UC_DI(%rbx), %rdi
	mov	UC_SI(%rbx), %rsi
	mov	UC_BP(%rbx), %rbp
	mov	UC_DX(%rbx), %rdx
	mov	UC_AX(%rbx), %rax
	mov	UC_CX(%rbx), %rcx
	mov	UC_BX(%rbx), %rbx
	iretq
	.size	resume_direct, . - resume_direct

	.section .note.GNU-stack, "", @progbits
