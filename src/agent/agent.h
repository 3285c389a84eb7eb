/* SPDX-License-Identifier: MIT */
/*
 * The agent: the engine as one position-independent image, read-only and
 * executable in the target.  Its head:
 *
 *	0	magic
 *	8	address of the control area, filled in before it is written
 *	16	offset of each function of enum agent_fn, 32 bits each
 */
#ifndef UKP_AGENT_AGENT_H
#define UKP_AGENT_AGENT_H

#define AGENT_MAGIC 0x746e656761706b75 /* "ukpagent" */
#define AGENT_OFF_CTL 8
#define AGENT_OFF_FNS 16

#ifndef __ASSEMBLER__

#include <stddef.h>
#include <stdint.h>

enum agent_fn {
	AGENT_TRAP_ENTRY,
	AGENT_FAULT_ENTRY,
	AGENT_RESTORER,
	AGENT_RETURN_ENTRY,
	AGENT_EVENT_HIT,
	AGENT_EVENT_ENTRY,
	AGENT_LATENCY_ENTRY,
	AGENT_SIGACTION_HIT,
	AGENT_UNWIND_HIT,
	AGENT_MUTE_RETURN,
	AGENT_DETOUR_HIT,
	AGENT_CHAIN_RETURN, /* no function: where a program's handler returns to in us */
	AGENT_COUNT_HIT,
	AGENT_COUNT_ENTRY,
	AGENT_EXIT_HIT,
	AGENT_DETOUR_ENTRY,
	AGENT_LOADER_HIT,
	AGENT_SIGMASK_HIT,
	AGENT_NR_FNS,
};

extern const unsigned char agent_image[], agent_image_end[];

static inline size_t agent_size(void)
{
	return agent_image_end - agent_image;
}

/* Offset of a function from the image's start. */
static inline uint32_t agent_offset(enum agent_fn fn)
{
	return ((const uint32_t *)(agent_image + AGENT_OFF_FNS))[fn];
}

#endif
#endif
