/* SPDX-License-Identifier: MIT */
/*
 * The conditions of the jump form.
 *
 * Bytes behind an instruction that never goes on, as ret, may be overwritten if
 * they are nops or int3s that nothing leads to; so may such bytes between the
 * function's end and the next one.  Other bytes there are somebody's data.
 */
#include "plan/window.h"
#include "plan/x86/insn.h"

#include <string.h>

static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
static const uint8_t nop5[] = { 0x0f, 0x1f, 0x44, 0x00 }; /* and 0 of gcc, 8 of clang */
static const uint8_t nops[] = { 0x90, 0x90, 0x90, 0x90, 0x90 };

static bool begins(const uint8_t *code, size_t avail, const uint8_t *with, size_t n)
{
	return avail >= n && !memcmp(code, with, n);
}

static bool are_nops(const uint8_t *code, size_t avail)
{
	return (avail >= PLAN_JUMP_SIZE && begins(code, avail, nop5, sizeof(nop5))) ||
	       begins(code, avail, nops, sizeof(nops));
}

int plan_ftrace_offset(const uint8_t *code, size_t avail)
{
	unsigned int skip = begins(code, avail, endbr64, sizeof(endbr64)) ? sizeof(endbr64) : 0;

	return are_nops(code + skip, avail - skip) ? (int)skip : -1;
}

/* Length of a filler instruction, 0: it is none. */
static unsigned int padding(const uint8_t *code, size_t avail, uint64_t addr)
{
	struct x86_insn x;

	if (avail && *code == 0xcc)
		return 1;
	if (x86_decode(code, avail, addr, &x))
		return 0;
	return x.nop ? x.p.len : 0;
}

static bool goes_on(const struct x86_insn *x)
{
	return x->p.flow != PLAN_FLOW_JMP && x->p.flow != PLAN_FLOW_JMP_IND &&
	       x->p.flow != PLAN_FLOW_RET && !x->traps;
}

static bool returns_here(const struct x86_insn *x)
{
	return x->p.flow == PLAN_FLOW_CALL || x->p.flow == PLAN_FLOW_CALL_IND || x->p.is_syscall;
}

/*
 * The instructions from addr to the end of the jump, or to one that doesn't go
 * on.  room: bytes that the function has.
 */
static enum plan_window_why cover(const struct plan_window_request *req, uint64_t room,
                                  struct plan_window *w)
{
	size_t avail = req->avail < room ? req->avail : (size_t)room;

	while (w->len < PLAN_JUMP_SIZE) {
		struct x86_insn x;

		if (w->len >= room)
			return PLAN_WINDOW_SHORT;
		w->refusal = (uint8_t)x86_decode(req->code + w->len, avail - w->len,
		                                 req->addr + w->len, &x);
		if (w->refusal)
			return PLAN_WINDOW_COPY;
		w->insn[w->nr].off = w->len;
		w->insn[w->nr++].len = x.p.len;
		w->len = (uint8_t)(w->len + x.p.len);
		if (w->len >= PLAN_JUMP_SIZE)
			break;
		if (returns_here(&x))
			return PLAN_WINDOW_CALL;
		if (!goes_on(&x))
			return PLAN_WINDOW_SHORT; /* but for padding */
	}
	w->covered = w->len;
	return PLAN_WINDOW_OK;
}

/* Filler behind the last instruction that can run, up to the next function. */
static bool pad(const struct plan_window_request *req, const struct plan_region *r,
                struct plan_window *w)
{
	w->covered = w->len;
	while (w->covered < PLAN_JUMP_SIZE) {
		uint64_t at = req->addr + w->covered;
		unsigned int n = padding(req->code + w->covered, req->avail - w->covered, at);
		const struct plan_region *there = plan_targets_region(req->targets, at);

		if (!n || (there && there != r))
			return false;
		/* Long filler may be more than there is between two functions. */
		for (unsigned int i = 1; i < n; i++) {
			there = plan_targets_region(req->targets, at + i);
			if (there && there != r)
				return false;
		}
		w->covered = (uint8_t)(w->covered + n);
	}
	return true;
}

/* The last instruction that can run doesn't go on behind itself. */
static bool ends_there(const struct plan_window_request *req, const struct plan_window *w)
{
	unsigned int last = w->insn[w->nr - 1].off;
	struct x86_insn x;

	return !x86_decode(req->code + last, req->avail - last, req->addr + last, &x) &&
	       !goes_on(&x);
}

/* At a function's start, or behind the endbr64 there.  Nops elsewhere align loops. */
static bool at_entry(const struct plan_targets *t, const struct plan_region *r, uint64_t addr)
{
	return addr == r->start || addr == r->start + sizeof(endbr64) ||
	       plan_targets_any(t, addr, addr + 1);
}

static enum plan_window_why judge(const struct plan_window_request *req, struct plan_window *w)
{
	const struct plan_region *r = plan_targets_region(req->targets, req->addr);
	enum plan_window_why why;

	if (!r)
		return PLAN_WINDOW_UNKNOWN;
	if (r->flags & PLAN_REGION_BROKEN)
		return PLAN_WINDOW_BROKEN;
	if (!plan_targets_boundary(req->targets, req->addr))
		return PLAN_WINDOW_BOUNDARY;
	why = cover(req, r->end - req->addr, w);
	if (why == PLAN_WINDOW_SHORT && w->nr && ends_there(req, w) && pad(req, r, w))
		why = PLAN_WINDOW_OK;
	if (why)
		return why;
	if (plan_targets_any(req->targets, req->addr + 1, req->addr + PLAN_JUMP_SIZE))
		return PLAN_WINDOW_TARGET;
	if ((r->flags & PLAN_REGION_INDIRECT) && w->insn[0].len < PLAN_JUMP_SIZE)
		return PLAN_WINDOW_INDIRECT;
	if (req->live &&
	    memcmp(req->live, req->code, w->covered < req->avail ? w->covered : req->avail))
		return PLAN_WINDOW_FOREIGN;
	w->ftrace = at_entry(req->targets, r, req->addr) && are_nops(req->code, req->avail);
	return PLAN_WINDOW_OK;
}

bool plan_window_extend(const struct plan_window_request *req, struct plan_window *w)
{
	const struct plan_region *r = plan_targets_region(req->targets, req->addr);
	const uint64_t next = req->addr + w->len;
	const struct plan_region *there = plan_targets_region(req->targets, next);
	unsigned int last;
	struct x86_insn x;

	if (!w->nr || w->nr == UKP_WINDOW_INSNS || w->covered > w->len || w->len >= req->avail)
		return false;
	last = w->insn[w->nr - 1].off;
	if (!r || there != r || !plan_targets_boundary(req->targets, next) ||
	    plan_targets_any(req->targets, next, next + 1) ||
	    x86_decode(req->code + last, req->avail - last, req->addr + last, &x) || !goes_on(&x) ||
	    returns_here(&x) || x86_decode(req->code + w->len, req->avail - w->len, next, &x))
		return false;
	w->insn[w->nr].off = w->len;
	w->insn[w->nr++].len = x.p.len;
	w->len = (uint8_t)(w->len + x.p.len);
	w->covered = w->len;
	return true;
}

bool plan_window(const struct plan_window_request *req, struct plan_window *w)
{
	memset(w, 0, sizeof(*w));
	w->why = (uint8_t)judge(req, w);
	return w->why == PLAN_WINDOW_OK;
}
