/* SPDX-License-Identifier: MIT */
/* The image's head, first in the link: see agent/agent.h. */
#include "agent/agent.h"

	.section .head, "ax", @progbits
head:
	.quad	AGENT_MAGIC
	.globl	ukp_engine_ctl_word
	.hidden	ukp_engine_ctl_word
ukp_engine_ctl_word:
	.quad	0
	.long	ukp_trap_entry - head
	.long	ukp_fault_entry - head
	.long	ukp_restorer - head
	.long	ukp_return_entry - head
	.long	ukp_event_hit - head
	.long	ukp_event_entry - head
	.long	ukp_latency_entry - head
	.long	ukp_sigaction_hit - head
	.long	ukp_unwind_hit - head
	.long	ukp_mute_return - head
	.long	ukp_detour_hit - head
	.long	ukp_chain_return - head
	.long	ukp_count_hit - head
	.long	ukp_count_entry - head
	.long	ukp_exit_hit - head
	.long	ukp_detour_entry - head
	.long	ukp_loader_hit - head
	.long	ukp_sigmask_hit - head

	.section .note.GNU-stack, "", @progbits
