/* SPDX-License-Identifier: MIT */
/* Where the jumps over exits go. */
#include "plan/exits_in.h"

/* A window at addr that has the instruction at through, or goes as far as it can. */
static bool window_at(const struct exits_maker *k, uint64_t addr, uint64_t through,
                      struct plan_window *w)
{
	struct plan_window_request req = { .targets = k->t, .addr = addr };

	*w = (struct plan_window){ .why = PLAN_WINDOW_UNKNOWN };
	req.code = exits_code(k->m, addr, &req.avail);
	if (req.code && req.avail > PLAN_WINDOW_LONG)
		req.avail = PLAN_WINDOW_LONG;
	if (!req.code || !plan_window(&req, w))
		return false;
	while (addr + w->len <= through && plan_window_extend(&req, w))
		;
	return true;
}

static bool has_insn(const struct plan_window *w, uint64_t off)
{
	for (unsigned int i = 0; i < w->nr; i++)
		if (w->insn[i].off == off)
			return true;
	return false;
}

/*
 * A jump over a return needs the instructions before it, or filler behind it:
 * the nearest window that has the instruction.  The bytes of the entry's window,
 * [start, taken), have a jump already, which may have this instruction as well.
 */
static void find_window(const struct exits_maker *k, struct plan_way_out *way, uint64_t start,
                        uint64_t taken)
{
	unsigned int back = 0;

	for (uint64_t at = way->addr; back < UKP_WINDOW_INSNS && way->addr - at < PLAN_WINDOW_LONG;
	     at--) {
		struct plan_window w;
		bool fits;

		if (!plan_targets_boundary(k->t, at))
			continue;
		back++;
		fits = window_at(k, at, way->addr, &w) &&
		       (at >= taken || at == start || at + w.covered <= start);
		if (at == way->addr)
			way->no_room = w.why ? w.why : PLAN_WINDOW_SHORT;
		if (fits && has_insn(&w, way->addr - at)) {
			way->window = at;
			way->no_room = PLAN_WINDOW_OK;
			return;
		}
		if (plan_targets_any(k->t, at, at + 1))
			return;
	}
}

uint32_t exits_room(const struct exits_maker *k, uint64_t start, struct plan_way_out *way,
                    uint32_t n)
{
	struct plan_window entry;
	const uint64_t taken = window_at(k, start, start, &entry) ? start + entry.covered : start;
	uint32_t none = 0;

	for (uint32_t i = 0; i < n; i++) {
		find_window(k, &way[i], start, taken);
		none += !way[i].window;
	}
	return none;
}
