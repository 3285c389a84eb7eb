/* SPDX-License-Identifier: MIT */
/*
 * An event's program: what a hit fetches and where it goes in the record.
 * Compiled by lang, checked by nobody in the target (only the broker writes
 * it), run by engine/event.
 *
 * Each argument is a run of steps: one that makes a value, any number of
 * DEREF, one that stores.  A read that faults sets the argument's fault bit
 * and leaves its field zero.
 */
#ifndef UKP_WIRE_EVENT_H
#define UKP_WIRE_EVENT_H

#include <stdint.h>

enum ukp_fetch_op {
	UKP_FETCH_END = 0,
	/* make a value */
	UKP_FETCH_REG,      /* imm = byte offset in struct pt_regs */
	UKP_FETCH_STACKP,   /* the stack pointer */
	UKP_FETCH_STACK,    /* imm = n: the n-th word of the stack */
	UKP_FETCH_RETVAL,   /* 16 bytes: rax, then rdx */
	UKP_FETCH_DURATION, /* TSC ticks since entry; the reader makes ns of it */
	UKP_FETCH_IMM,      /* imm; @SYM and @ADDR too, before a DEREF or ST_MEM */
	UKP_FETCH_EDATA,    /* imm = index of a word saved at entry */
	UKP_FETCH_FPU,      /* imm = enum ukp_fpu_reg; its value is as wide as it is */
	UKP_FETCH_COMM,     /* nothing: the reader prints the thread's name */
	/* go through memory: value = *(u64 *)(value + off) */
	UKP_FETCH_DEREF,
	/* store at field offset arg */
	UKP_FETCH_ST_RAW,    /* the low size bytes of value; more than 8 of those that have them */
	UKP_FETCH_ST_MEM,    /* size bytes from memory at value + off */
	UKP_FETCH_ST_STRING, /* NUL-terminated string at value + off */
	UKP_FETCH_ST_NONE,   /* after COMM */
};

enum ukp_fpu_reg { UKP_FPU_XMM0, UKP_FPU_ST0 = 16 }; /* xmm0 to xmm15, st(0) to st(7) */
#define UKP_FPU_REGS 24
#define UKP_VALUE_MAX 16 /* bytes a value, strings aside */

struct ukp_fetch {
	uint8_t op;
	uint8_t size;
	uint16_t field; /* offset in the payload, ST_* */
	int32_t off;    /* DEREF, ST_MEM, ST_STRING */
	uint64_t imm;
};

#define UKP_EVENT_ARGS 128   /* MAX_TRACE_ARGS */
#define UKP_FETCH_MAX 16     /* steps an argument, FETCH_INSN_MAX */
#define UKP_STRING_MAX 1024  /* bytes a string, NUL included */
#define UKP_EDATA_MAX 16     /* words saved at entry */
#define UKP_EVENT_FIXED 3072 /* bytes of payload before strings */

enum { UKP_EVENT_RETURN = 1 };

/*
 * Lies in the control area.  Followed by nr_entry steps that each end in a
 * word of entry data (only REG and STACK, in order, one step a word), then by
 * the nr_steps of all arguments, each argument closed by its ST_*.
 */
struct ukp_event {
	uint64_t chan;  /* address of the channel in the target */
	uint32_t id;    /* index in the channel: record id and stat row */
	uint16_t flags; /* UKP_EVENT_* */
	uint16_t enabled;
	uint16_t fixed_len; /* payload bytes before strings */
	uint16_t nr_args;
	uint16_t nr_entry;
	uint16_t nr_steps;
	uint32_t nr_strings; /* string arguments */
	uint32_t maxactive;  /* returns: 0 = the arena's limit */
	uint64_t active;     /* live instances when maxactive is set (locked) */
	uint64_t reserved[2];
	struct ukp_fetch steps[];
};

#endif
