/* SPDX-License-Identifier: MIT */
/*
 * Functions that check something, call somebody about it and begin again, as Go's
 * do when the stack is to grow:
 *
 *	start	cmp 16(%r14),%rsp
 *		jbe again
 *	entry	...			what an activation passes once
 *	again	...; call morestack; ...; jmp start
 *
 * Proven by the bytes: up to the branch the code is straight, nothing else leads
 * to entry or into the second part, and nothing else jumps to start.
 */
#include "plan/exits_in.h"

#define HEAD_MAX 8

struct runner {
	const struct exits_maker *k;
	const struct plan_region *r;
	const uint8_t *code;
	struct step_memory mem;
};

static bool step_at(struct runner *u, uint64_t at, struct step *s)
{
	return at >= u->r->start && at < u->r->end &&
	       exits_step(u->code + (at - u->r->start), (size_t)(u->r->end - at), at,
	                  u->k->m->fixed, &u->mem, s);
}

static bool is_target(const struct runner *u, uint64_t addr)
{
	return plan_targets_any(u->k->t, addr, addr + 1);
}

/* The branch that ends the head of the function. */
static bool find_branch(struct runner *u, struct step *s)
{
	uint64_t at = u->r->start;

	for (int i = 0; i < HEAD_MAX; i++, at += s->len) {
		if ((i && is_target(u, at)) || !step_at(u, at, s))
			return false;
		if (s->kind == STEP_BRANCH)
			return true;
		if (s->kind != STEP_ON || s->sp != STACK_KEPT)
			return false;
	}
	return false;
}

/* From again on: where its jump to the start is; 0: it isn't like that. */
static uint64_t find_jump(struct runner *u, uint64_t again)
{
	unsigned int calls = 0;
	struct step s;

	for (uint64_t at = again; step_at(u, at, &s); at += s.len) {
		if (at != again && is_target(u, at))
			return 0;
		if (s.kind == STEP_JUMP)
			return calls == 1 && s.target == u->r->start ? at : 0;
		calls += s.kind == STEP_CALL || s.kind == STEP_CALL_AWAY;
		if (s.kind != STEP_ON && s.kind != STEP_CALL && s.kind != STEP_CALL_AWAY)
			return 0;
	}
	return 0;
}

/* Of all of the function, nothing but the branch leads to again, and but the jump to start. */
static bool are_only_ways(struct runner *u, uint64_t branch, uint64_t again, uint64_t jump)
{
	bool goes_on = true;
	struct step s;

	for (uint64_t at = u->r->start; at < u->r->end; at += s.len) {
		if (at == again && goes_on)
			return false;
		if (!step_at(u, at, &s))
			return false;
		if (s.kind == STEP_JUMP || s.kind == STEP_BRANCH) {
			if ((s.target == again && at != branch) ||
			    (s.target == u->r->start && at != jump))
				return false;
		}
		goes_on = s.kind == STEP_ON || s.kind == STEP_BRANCH || s.kind == STEP_CALL ||
		          s.kind == STEP_CALL_AWAY;
	}
	return true;
}

uint64_t exits_behind_check(const struct exits_maker *k, const struct plan_region *r)
{
	struct runner u = { .k = k, .r = r };
	struct step branch;
	uint64_t entry, jump;
	size_t avail;

	u.code = exits_code(k->m, r->start, &avail);
	if (!find_branch(&u, &branch))
		return 0;
	entry = branch.addr + branch.len;
	if (is_target(&u, entry) || branch.target <= entry)
		return 0;
	jump = find_jump(&u, branch.target);
	return jump && are_only_ways(&u, branch.addr, branch.target, jump) ? entry : 0;
}
