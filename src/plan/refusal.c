/* SPDX-License-Identifier: MIT */
/* Why an instruction can't be probed: the errno that a caller gets, and words for a user. */
#include "plan/plan.h"

#include <errno.h>

static const struct {
	int code;
	const char *text;
} refusals[PLAN_REFUSALS] = {
	[PLAN_OK] = { 0, "can be probed" },
	[PLAN_UNDECODABLE] = { -EILSEQ, "no instruction that we know" },
	[PLAN_NOT_BOUNDARY] = { -EILSEQ, "inside an instruction" },
	[PLAN_BREAKPOINT] = { -EILSEQ, "a breakpoint or software interrupt already" },
	[PLAN_STACK_SEGMENT] = { -EINVAL, "writes the stack segment, which delays traps" },
	[PLAN_OUT_OF_REACH] = { -ENOSPC, "an address in it can't be reached from its copy" },
	[PLAN_STACK_CALL] = { -EOPNOTSUPP, "a call through the stack that its own push changes" },
	[PLAN_BRANCH_PREFIX] = { -EOPNOTSUPP, "a branch with a prefix that CPUs read differently" },
	[PLAN_FAR] = { -EOPNOTSUPP, "a far branch or a change of privilege" },
	[PLAN_XBEGIN] = { -EOPNOTSUPP, "begins a transaction, which its copy would abort" },
	[PLAN_TOO_LONG] = { -ENOSPC, "its copy is too long" },
};

int plan_errno(enum plan_refusal why)
{
	if ((unsigned int)why >= PLAN_REFUSALS)
		return -EINVAL;
	return refusals[why].code;
}

const char *plan_reason(enum plan_refusal why)
{
	if ((unsigned int)why >= PLAN_REFUSALS)
		return "unknown reason";
	return refusals[why].text;
}
