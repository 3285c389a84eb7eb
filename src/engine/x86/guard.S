/* SPDX-License-Identifier: MIT */
/*
 * Reads, and one write, that may fault.  Every instruction between ukp_guard_start and
 * ukp_guard_end that touches foreign memory leaves the stack as it was at
 * entry, so the fault handler can send any of them to ukp_guard_fail, which
 * returns what is left in rcx: bytes not copied, a marker, or false.
 */
	.text
	.globl	ukp_arch_copy, ukp_arch_strnlen, ukp_arch_thread_word, ukp_arch_thread
	.globl	ukp_arch_put
	.globl	ukp_guard_start, ukp_guard_end, ukp_guard_fail
	.hidden	ukp_arch_copy, ukp_arch_strnlen, ukp_arch_thread_word, ukp_arch_thread
	.hidden	ukp_arch_put
	.hidden	ukp_guard_start, ukp_guard_end, ukp_guard_fail
	.type	ukp_arch_copy, @function
	.type	ukp_arch_strnlen, @function
	.type	ukp_arch_thread_word, @function
	.type	ukp_arch_thread, @function
	.type	ukp_arch_put, @function

ukp_guard_start:

/* size_t ukp_arch_copy(void *dst, const void *src, size_t len) */
ukp_arch_copy:
	mov	%rdx, %rcx
	cmp	$8, %rcx
	jne	1f
	mov	(%rsi), %rax
	mov	%rax, (%rdi)
	xor	%eax, %eax
	ret
1:	rep movsb
	mov	%rcx, %rax
	ret

/* bool ukp_arch_put(uint8_t *dst, uint8_t old, uint8_t new) */
ukp_arch_put:
	xor	%ecx, %ecx
	mov	%esi, %eax
	lock cmpxchg %dl, (%rdi)
	mov	$1, %eax
	ret

/* long ukp_arch_strnlen(const char *src, size_t max) */
ukp_arch_strnlen:
	mov	$-1, %rcx
	xor	%eax, %eax
2:	cmp	%rsi, %rax
	jae	3f
	cmpb	$0, (%rdi, %rax)
	je	3f
	inc	%rax
	jmp	2b
3:	ret

/* uint32_t ukp_arch_thread_word(uint32_t off) */
ukp_arch_thread_word:
	xor	%ecx, %ecx
	mov	%edi, %edi
	mov	%fs:(%rdi), %eax
	ret

/* uint64_t ukp_arch_thread(void) */
ukp_arch_thread:
	xor	%ecx, %ecx
	mov	%fs:0, %rax
	ret

ukp_guard_end:
ukp_guard_fail:
	mov	%rcx, %rax
	ret

	.section .note.GNU-stack, "", @progbits
