/* SPDX-License-Identifier: MIT */
/* The linked agent as data of the program that injects it. */
	.section .rodata, "a", @progbits
	.balign	16
	.globl	agent_image, agent_image_end
	.hidden	agent_image, agent_image_end
agent_image:
	.incbin	"agent.bin"
agent_image_end:

	.section .note.GNU-stack, "", @progbits
