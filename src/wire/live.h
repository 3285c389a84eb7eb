/* SPDX-License-Identifier: MIT */
/*
 * Sites in text that no file has: the program may rewrite it, or unmap it and have
 * something else there.  So before a hit counts, and before the byte is put back,
 * what stands around it is held against what was found when it was planted.
 *
 *	planted     cc 89 e5 48 83 ec 20 ...    orig  55 89 e5 48 83 ec 20 ...
 *	rewritten   55 41 57 ...                the breakpoint is gone
 *	patched     cc 11 22 48 83 ec 20 ...    it stands, and its copy is not right
 *	another's   cc cc cc cc 0f 1f 40 ...    a breakpoint, and not ours
 */
#ifndef UKP_WIRE_LIVE_H
#define UKP_WIRE_LIVE_H

#include "wire/site.h"

#define UKP_LIVE_MAX (UKP_INSN_MAX + 1)
#define UKP_LIVE_PAGE 4096u

/* The better one is the smaller. */
enum ukp_live {
	UKP_LIVE_OURS,    /* all as it was planted */
	UKP_LIVE_PATCHED, /* our breakpoint, but the rest of the instruction is another */
	UKP_LIVE_GONE,    /* whatever it is, it is not ours */
};

/* So many bytes of addr's surroundings say whose they are: none of the next page alone. */
static inline unsigned int ukp_live_bytes(uint64_t addr, unsigned int len)
{
	uint64_t page = UKP_LIVE_PAGE - addr % UKP_LIVE_PAGE;

	if (page >= UKP_LIVE_MAX)
		return UKP_LIVE_MAX;
	return page > len ? (unsigned int)page : len;
}

/*
 * now: that many bytes, with what the other breakpoints of ours in them stand for.
 * Half of the bytes behind ours may be others: a program patches an operand, or the
 * next instruction, while code that has come to the place of other code is all new.
 */
static inline enum ukp_live ukp_live_judge(const struct ukp_site *s, const uint8_t *now,
                                           unsigned int n)
{
	unsigned int same = 0, patched = 0, i;

	if (!n || n > UKP_LIVE_MAX || now[0] != 0xcc)
		return UKP_LIVE_GONE;
	for (i = 1; i < n; i++) {
		same += now[i] == s->orig[i];
		patched += i < s->len && now[i] != s->orig[i];
	}
	if (2 * same + 1 < n - 1)
		return UKP_LIVE_GONE;
	return patched ? UKP_LIVE_PATCHED : UKP_LIVE_OURS;
}

#endif
