/* SPDX-License-Identifier: MIT */
/* A 32-bit program without a libc: says "ready" and waits. */
	.globl	_start, work
_start:
	mov	$4, %eax
	mov	$1, %ebx
	mov	$text, %ecx
	mov	$6, %edx
	int	$0x80
1:	call	work
	mov	$29, %eax
	int	$0x80
	jmp	1b
work:
	nop
	nop
	ret
	.type	work, @function
	.size	work, . - work
	.section .rodata
text:	.ascii	"ready\n"
	.section .note.GNU-stack, "", @progbits
