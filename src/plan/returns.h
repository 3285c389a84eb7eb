/* SPDX-License-Identifier: MIT */
/*
 * Which mechanism catches the returns of a function.
 *
 *	exit sites	a probe at each exit; the stack is left alone
 *	call in place	the entry's detour calls the function's body, so that the
 *			return address is the detour's
 *	slot overwrite	the handler puts a stub's address over the return address
 *
 * Exit sites are taken by themselves where they cost nothing else: all exits
 * known, none of them a tail jump (the value isn't there yet), few, and each
 * with the jump form.  Not where a function jumps to its own start: then its
 * entry is hit more often than its exits.  Where the return address must stay they are the only
 * ones.  Call in place needs the jump form at the entry; slot overwrite works
 * from a breakpoint, but not against a shadow stack.
 *
 * Pure.  A mechanism that can't be right is not chosen, and refused where asked
 * for.
 */
#ifndef UKP_PLAN_RETURNS_H
#define UKP_PLAN_RETURNS_H

#include "plan/exits.h"

enum plan_mechanism {
	PLAN_BY_NONE, /* refused; where asked for: no wish */
	PLAN_BY_EXIT,
	PLAN_BY_CALL,
	PLAN_BY_SLOT,
};

/* "exit", "call", "slot" */
const char *plan_mechanism_name(enum plan_mechanism by);

#define PLAN_EXITS_FEW 8

enum plan_return_why {
	/* why the chosen one */
	PLAN_RETURN_FEW,
	PLAN_RETURN_NEVER,
	PLAN_RETURN_STAYS,
	PLAN_RETURN_TOUCHES,
	PLAN_RETURN_ASKED,
	/* why no better one, or why none */
	PLAN_RETURN_NO_FUNCTION,
	PLAN_RETURN_UNKNOWN,
	PLAN_RETURN_TAILS,
	PLAN_RETURN_LOOPS,
	PLAN_RETURN_MANY,
	PLAN_RETURN_ROOM,
	PLAN_RETURN_ENTRY,
	PLAN_RETURN_SHADOW,
	PLAN_RETURN_REASONS,
};

struct plan_return_request {
	const struct plan_function *fn; /* NULL: no function is known to begin there */
	uint8_t want;                   /* enum plan_mechanism, NONE: the best one */
	uint8_t entry;                  /* enum plan_window_why at fn's entry, or there */
	/*
	 * Nothing may change the return address: the function returns twice or
	 * reads it, or somebody checks or moves it, as Go does.  For the caller to
	 * know; that a function touches its own is known here as well.
	 */
	bool stays;
	bool shadow_stack; /* a thread of the process has one */
};

struct plan_return {
	uint8_t by;    /* enum plan_mechanism */
	uint8_t why;   /* enum plan_return_why */
	uint8_t exits; /* UNKNOWN: enum plan_exits_why */
	uint8_t entry; /* ENTRY: enum plan_window_why */
};

/* True if there is one. */
bool plan_return(const struct plan_return_request *req, struct plan_return *r);
/* In words; for UNKNOWN and ENTRY it is that reason. */
const char *plan_return_reason(const struct plan_return *r);

#endif
