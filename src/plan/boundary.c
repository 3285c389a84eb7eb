/* SPDX-License-Identifier: MIT */
/*
 * Is an address the start of an instruction?  Decodes linearly from the start
 * of the function, as the kernel does: x86 code can't be read backwards.
 */
#include "plan/plan.h"

enum plan_refusal plan_boundary(const uint8_t *code, size_t size, uint64_t func, uint64_t addr)
{
	uint64_t want = addr - func;
	uint64_t off = 0;

	if (addr < func || want >= size)
		return PLAN_NOT_BOUNDARY;
	while (off < want) {
		struct plan_insn insn;
		enum plan_refusal why;

		/* What can't be probed can be passed over, if its length is known. */
		why = plan_decode(code + off, size - off, func + off, &insn);
		if (why && !insn.len)
			return why;
		off += insn.len;
	}
	return off == want ? PLAN_OK : PLAN_NOT_BOUNDARY;
}
