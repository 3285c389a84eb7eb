/* SPDX-License-Identifier: MIT */
/* Why an instruction keeps the base form, for a user. */
#include "plan/window.h"

const char *plan_window_reason(enum plan_window_why why)
{
	switch (why) {
	case PLAN_WINDOW_OK:
		return "has the jump form";
	case PLAN_WINDOW_UNKNOWN:
		return "in no known function";
	case PLAN_WINDOW_BROKEN:
		return "its function can't be decoded throughout";
	case PLAN_WINDOW_INDIRECT:
		return "an indirect jump in its function may lead into the jump";
	case PLAN_WINDOW_BOUNDARY:
		return "inside an instruction";
	case PLAN_WINDOW_TARGET:
		return "a branch leads into the jump";
	case PLAN_WINDOW_CALL:
		return "a call would return into the jump";
	case PLAN_WINDOW_SHORT:
		return "too near to the end of its function";
	case PLAN_WINDOW_COPY:
		return "an instruction under the jump can't be moved";
	case PLAN_WINDOW_FOREIGN:
		return "memory differs from the file";
	case PLAN_WINDOW_REASONS:
		break;
	}
	return "unknown reason";
}
