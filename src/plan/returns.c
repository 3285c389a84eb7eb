/* SPDX-License-Identifier: MIT */
/* The choice among the three mechanisms, and why. */
#include "plan/returns.h"

const char *plan_mechanism_name(enum plan_mechanism by)
{
	switch (by) {
	case PLAN_BY_EXIT:
		return "exit";
	case PLAN_BY_CALL:
		return "call";
	case PLAN_BY_SLOT:
		return "slot";
	case PLAN_BY_NONE:
		break;
	}
	return "none";
}

const char *plan_return_reason(const struct plan_return *r)
{
	switch ((enum plan_return_why)r->why) {
	case PLAN_RETURN_FEW:
		return "all exits are known, and few";
	case PLAN_RETURN_NEVER:
		return "it never comes back";
	case PLAN_RETURN_STAYS:
		return "its return address must stay as it is";
	case PLAN_RETURN_TOUCHES:
		return "it looks at its own return address";
	case PLAN_RETURN_ASKED:
		return "as asked for";
	case PLAN_RETURN_NO_FUNCTION:
		return "no function is known to begin there";
	case PLAN_RETURN_UNKNOWN:
		return plan_exits_reason((enum plan_exits_why)r->exits);
	case PLAN_RETURN_TAILS:
		return "it leaves by a jump to another function";
	case PLAN_RETURN_LOOPS:
		return "it jumps to its own start";
	case PLAN_RETURN_MANY:
		return "it has many exits";
	case PLAN_RETURN_ROOM:
		return "one of its exits has no room for a jump";
	case PLAN_RETURN_ENTRY:
		return plan_window_reason((enum plan_window_why)r->entry);
	case PLAN_RETURN_SHADOW:
		return "the process has a shadow stack";
	case PLAN_RETURN_REASONS:
		break;
	}
	return "unknown reason";
}

static bool choose(struct plan_return *r, enum plan_mechanism by, enum plan_return_why why)
{
	r->by = (uint8_t)by;
	r->why = (uint8_t)why;
	return by != PLAN_BY_NONE;
}

/* Exit sites would be right.  If not, r->why. */
static bool exits_serve(const struct plan_function *fn, struct plan_return *r)
{
	if (!fn)
		return choose(r, PLAN_BY_NONE, PLAN_RETURN_NO_FUNCTION);
	if (fn->why == PLAN_EXITS_NONE)
		return true;
	r->exits = fn->why;
	if (fn->why)
		return choose(r, PLAN_BY_NONE, PLAN_RETURN_UNKNOWN);
	if (fn->nr_tails)
		return choose(r, PLAN_BY_NONE, PLAN_RETURN_TAILS);
	if (fn->flags & PLAN_FN_LOOPS)
		return choose(r, PLAN_BY_NONE, PLAN_RETURN_LOOPS);
	return true;
}

/* They would be the best as well.  If not, r->why. */
static bool exits_best(const struct plan_function *fn, struct plan_return *r)
{
	if (!exits_serve(fn, r))
		return false;
	if (fn->nr_exits > PLAN_EXITS_FEW)
		return choose(r, PLAN_BY_NONE, PLAN_RETURN_MANY);
	if (fn->nr_no_room)
		return choose(r, PLAN_BY_NONE, PLAN_RETURN_ROOM);
	return true;
}

/* Why the return address must stay; ASKED: it needn't. */
static enum plan_return_why must_stay(const struct plan_return_request *req)
{
	if (req->stays)
		return PLAN_RETURN_STAYS;
	return req->fn && req->fn->flags & PLAN_FN_TOUCHES ? PLAN_RETURN_TOUCHES
	                                                   : PLAN_RETURN_ASKED;
}

static bool as_wanted(const struct plan_return_request *req, struct plan_return *r)
{
	const enum plan_return_why stay = must_stay(req);

	if (req->want == PLAN_BY_EXIT)
		return exits_serve(req->fn, r) && choose(r, PLAN_BY_EXIT, PLAN_RETURN_ASKED);
	if (stay != PLAN_RETURN_ASKED)
		return choose(r, PLAN_BY_NONE, stay);
	if (req->want == PLAN_BY_CALL && req->entry)
		return choose(r, PLAN_BY_NONE, PLAN_RETURN_ENTRY);
	if (req->want == PLAN_BY_SLOT && req->shadow_stack)
		return choose(r, PLAN_BY_NONE, PLAN_RETURN_SHADOW);
	return choose(r, (enum plan_mechanism)req->want, PLAN_RETURN_ASKED);
}

bool plan_return(const struct plan_return_request *req, struct plan_return *r)
{
	const enum plan_return_why stay = must_stay(req);

	*r = (struct plan_return){ .entry = req->entry };
	if (req->want)
		return as_wanted(req, r);
	if (exits_best(req->fn, r))
		return choose(r, PLAN_BY_EXIT, req->fn->why ? PLAN_RETURN_NEVER : PLAN_RETURN_FEW);
	/* From here on r->why says what speaks against exit sites. */
	if (stay != PLAN_RETURN_ASKED)
		return exits_serve(req->fn, r) && choose(r, PLAN_BY_EXIT, stay);
	if (req->entry == PLAN_WINDOW_OK)
		return choose(r, PLAN_BY_CALL, (enum plan_return_why)r->why);
	if (!req->shadow_stack)
		return choose(r, PLAN_BY_SLOT, PLAN_RETURN_ENTRY);
	return exits_serve(req->fn, r) && choose(r, PLAN_BY_EXIT, PLAN_RETURN_SHADOW);
}
