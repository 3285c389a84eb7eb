/* SPDX-License-Identifier: MIT */
/*
 * A library under single-stepping: each activation of its functions is followed
 * by the stack pointer, and the way in which it ends is held against the plan.
 *
 * The stepper is in the same process: a SIGTRAP handler after each instruction,
 * which runs unstepped itself and calls nothing but the decoder.
 *
 *	frame	where an activation's return address lies: sp at its entry
 *	known	its function's exits are planned completely
 *
 * Of a known one, each instruction of its body is followed by
 *	one of its body				and was no unconditional exit,
 *	or what it calls,
 *	or what it leaves to: then it was an exit, and sp was the frame
 * An activation that ends without an instruction of its own (sp rises above the
 * frame in other code) was dropped by longjmp or an exception.
 */
#ifndef TESTS_PLAN_LEAVING_H
#define TESTS_PLAN_LEAVING_H

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <ucontext.h>

#include "plan/plan.h"
#include "unit/plan/exits_of.h"

#define STEP_TF 0x100
#define STEP_DEPTH 4096

struct activation {
	const struct plan_function *fn;
	uint64_t frame;
};

struct stepping {
	struct exits_of e;
	uint64_t bias, start, end;          /* of the text, as linked */
	const struct plan_function **entry; /* by address - start */
	struct plan_insn *insn;             /* the same; len 0: not decoded yet */
	const struct plan_way_out *forget;  /* pretend that this is no exit */
	uint8_t *known_at;                  /* the same: in the body of a known function */

	struct activation act[STEP_DEPTH];
	size_t depth;
	uint64_t pc, sp; /* before the last instruction; link-time */
	uint64_t limit;

	uint64_t steps, inside, entries, known, rets, tails, dropped, dropped_unknown;
	uint8_t *seen;   /* exits executed, by index of all ways */
	const char *bad; /* the first thing that wasn't as planned */
	uint64_t bad_at, bad_fn, violations;
};

static struct stepping sg;

static inline void step_bad(const struct activation *a, const char *what)
{
	if (!sg.violations++) {
		sg.bad = what;
		sg.bad_at = sg.pc;
		sg.bad_fn = a->fn->start;
	}
}

static inline bool step_in_text(uint64_t pc)
{
	return pc - sg.start < sg.end - sg.start;
}

static inline bool step_in_body(const struct plan_function *fn, uint64_t pc)
{
	const struct plan_range *r = plan_exits_body(sg.e.x, fn);

	for (uint32_t i = 0; i < fn->nr_ranges; i++)
		if (pc >= r[i].start && pc < r[i].end)
			return true;
	return false;
}

static inline const struct plan_way_out *step_way(const struct plan_function *fn, uint64_t pc)
{
	const struct plan_way_out *w = plan_exits_ways(sg.e.x, fn);

	for (uint32_t i = 0; i < fn->nr_exits; i++)
		if (w[i].addr == pc && &w[i] != sg.forget)
			return &w[i];
	return NULL;
}

static inline const struct plan_insn *step_decode(uint64_t pc)
{
	struct plan_insn *i = &sg.insn[pc - sg.start];

	if (!i->len)
		plan_decode((const uint8_t *)(pc + sg.bias), 15, pc, i);
	return i;
}

static inline bool step_is_call(uint8_t flow)
{
	return flow == PLAN_FLOW_CALL || flow == PLAN_FLOW_CALL_IND;
}

static inline void step_left(struct activation *a, const struct plan_way_out *w, uint64_t pc,
                             uint64_t sp)
{
	const bool ret = w->kind == PLAN_WAY_RET;

	if (sg.sp != a->frame)
		step_bad(a, "an exit with another stack depth");
	if (ret && sp != a->frame + 8 + w->pops)
		step_bad(a, "a return that doesn't pop the frame");
	if (w->kind == PLAN_WAY_TAIL && pc != w->target)
		step_bad(a, "a tail jump to elsewhere");
	sg.seen[a->fn->first + (uint32_t)(w - plan_exits_ways(sg.e.x, a->fn))] = 1;
	sg.rets += ret;
	sg.tails += !ret;
	sg.depth--;
}

/* The last instruction was one of a known function's activation. */
static inline void step_own(struct activation *a, uint64_t pc, uint64_t sp)
{
	const struct plan_insn *insn = step_decode(sg.pc);
	const struct plan_way_out *w = step_way(a->fn, sg.pc);
	const bool inside = step_in_body(a->fn, pc);

	if (step_is_call(insn->flow)) {
		if (sp != sg.sp - 8)
			step_bad(a, "a call that pushes something else");
		return;
	}
	if (w && !(w->conditional && pc == sg.pc + insn->len)) {
		step_left(a, w, pc, sp);
		return;
	}
	if (insn->flow == PLAN_FLOW_RET)
		step_bad(a, "a return that isn't planned");
	else if (!inside)
		step_bad(a, "left by an instruction that isn't planned");
	if (insn->flow == PLAN_FLOW_RET || !inside)
		sg.depth--;
}

/* Where the last instruction stayed within the activation that is on top now. */
static inline bool step_stayed(const struct activation *a, uint64_t pc, uint64_t sp)
{
	if (!step_in_text(sg.pc) || step_is_call(step_decode(sg.pc)->flow))
		return false;
	if (a->fn->why) /* its body isn't known: a jump to its start is a loop */
		return a->fn == sg.entry[pc - sg.start] && a->frame == sp;
	return step_in_body(a->fn, sg.pc) && step_in_body(a->fn, pc);
}

static inline void step_enter(uint64_t pc, uint64_t sp)
{
	const struct activation *a = sg.depth ? &sg.act[sg.depth - 1] : NULL;
	const struct plan_function *fn;

	if (!step_in_text(pc) || (a && step_stayed(a, pc, sp)))
		return;
	fn = sg.entry[pc - sg.start];
	if (!fn) {
		if (a && sg.known_at[pc - sg.start] && !step_in_body(a->fn, pc))
			step_bad(a, "a known function was entered behind its start");
		return;
	}
	if (sg.depth == STEP_DEPTH) {
		step_bad(a, "too deep");
		return;
	}
	sg.act[sg.depth++] = (struct activation){ fn, sp };
	sg.entries++;
	sg.known += fn->why == PLAN_EXITS_OK;
}

static inline void step_one(uint64_t pc, uint64_t sp)
{
	struct activation *a = sg.depth ? &sg.act[sg.depth - 1] : NULL;

	if (a && !a->fn->why && step_in_body(a->fn, sg.pc))
		step_own(a, pc, sp);
	while (sg.depth && sp > sg.act[sg.depth - 1].frame) {
		sg.depth--;
		if (!sg.act[sg.depth].fn->why)
			sg.dropped++;
		else if (!step_in_text(sg.pc) || step_decode(sg.pc)->flow != PLAN_FLOW_RET)
			sg.dropped_unknown++;
	}
	step_enter(pc, sp);
}

static void step_trap(int sig, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	const uint64_t pc = (uint64_t)g[REG_RIP] - sg.bias, sp = (uint64_t)g[REG_RSP];

	sg.steps++;
	sg.inside += step_in_text(pc);
	/* An allocator with checks may take a multiple of what it takes elsewhere. */
	if (sg.inside >= sg.limit || sg.steps / 16 >= sg.limit)
		g[REG_EFL] &= ~(greg_t)STEP_TF;
	step_one(pc, sp);
	sg.pc = pc;
	sg.sp = sp;
}

static inline void step_flag(bool on)
{
	uint64_t flags;

	__asm__ volatile("pushfq; pop %0" : "=r"(flags) : : "memory");
	flags = on ? flags | STEP_TF : flags & ~(uint64_t)STEP_TF;
	__asm__ volatile("push %0; popfq" : : "r"(flags) : "memory", "cc");
}

/* The library, already mapped in this process, and its plan. */
static inline bool step_load(const char *path, void *handle)
{
	struct link_map *map;
	size_t n, size, ways = 0;
	const struct plan_function *fn;

	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || !exits_of(&sg.e, path))
		return false;
	sg.bias = map->l_addr;
	sg.start = sg.e.m.code[0].addr;
	sg.end = sg.e.m.code[sg.e.m.nr_code - 1].addr + sg.e.m.code[sg.e.m.nr_code - 1].size;
	size = (size_t)(sg.end - sg.start);
	sg.entry = calloc(size, sizeof(*sg.entry));
	sg.insn = calloc(size, sizeof(*sg.insn));
	sg.known_at = calloc(size, 1);
	if (!sg.entry || !sg.insn || !sg.known_at)
		return false;
	fn = plan_exits_all(sg.e.x, &n);
	for (size_t i = 0; i < n; i++) {
		const struct plan_range *r = plan_exits_body(sg.e.x, &fn[i]);

		sg.entry[fn[i].start - sg.start] = &fn[i];
		for (uint32_t k = 0; !fn[i].why && k < fn[i].nr_ranges; k++)
			memset(sg.known_at + (r[k].start - sg.start), 1, r[k].end - r[k].start);
		ways = fn[i].first + fn[i].nr_exits;
	}
	sg.seen = calloc(ways + 1, 1);
	return sg.seen;
}

static inline void step_run(void (*work)(void *), void *arg, uint64_t limit)
{
	struct sigaction sa = { .sa_sigaction = step_trap, .sa_flags = SA_SIGINFO };

	sg.limit = limit;
	sigaction(SIGTRAP, &sa, NULL);
	step_flag(true);
	work(arg);
	step_flag(false);
}

#endif
