/* SPDX-License-Identifier: MIT */
/* uint64_t ukp_pick(const uint64_t *resume, const uint64_t *slot): see signal.h. */
	.text
	.globl	ukp_pick, ukp_pick_start, ukp_pick_end
	.hidden	ukp_pick, ukp_pick_start, ukp_pick_end
	.type	ukp_pick, @function

ukp_pick_start:
ukp_pick:
	mov	(%rdi), %rax
	test	%rax, %rax
	jnz	1f
	mov	(%rsi), %rax
1:	ret
	.size	ukp_pick, . - ukp_pick
ukp_pick_end:

	.section .note.GNU-stack, "", @progbits
