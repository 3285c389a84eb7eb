/* SPDX-License-Identifier: MIT */
/*
 * Threads that are inside our code, by their registers and by what their
 * stacks have saved, and the way out for those that can be moved.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "engine/signal.h"
#include "plan/plan.h"
#include "session/leave.h"
#include "session/optimize.h"

/*
 * A stack is looked through to its end where that is so near, as a program's mostly is; in
 * a large mapping it shares, as Go's do, only so far.
 */
#define STACK_WHOLE (8u << 20)
#define STACK_SCAN (1u << 20)
#define STACKS 4 /* of one thread: a handler on an alternate one may interrupt another */
#define TRAP_SCAN (4u << 10) /* of a handler's own frames */

/* The sites from *i on; bounds first, for the area may hold anything. */
const struct ukp_site *leave_next_site(struct leave *l, uint32_t *i)
{
	uint32_t off = l->ctl->sites, mask;
	const struct ukp_site_table *t;

	if (!off || off % 8 || off + sizeof(*t) > l->len)
		return NULL;
	t = (const void *)((const char *)l->area + off);
	mask = __atomic_load_n(&t->mask, __ATOMIC_RELAXED);
	if (mask >= (1u << 26) || off + sizeof(*t) + (mask + 1ull) * 4 > l->len)
		return NULL;
	while (*i <= mask) {
		uint32_t at = __atomic_load_n(&t->site[(*i)++], __ATOMIC_RELAXED);

		if (at && at % 8 == 0 && at + sizeof(struct ukp_site) <= l->len)
			return (const void *)((const char *)l->area + at);
	}
	return NULL;
}

/* A hostile area may link them in a circle, so there are no more than fit into it. */
bool leave_next_detour(struct leave *l, struct detour_walk *w, struct ukp_detour *d)
{
	uint32_t off = w->nr ? w->next : l->ctl->detours;

	if (!off || off % 8 || off + sizeof(*d) > l->len || w->nr++ > l->len / sizeof(*d))
		return false;
	w->off = off;
	memcpy(d, (const char *)l->area + off, sizeof(*d));
	w->next = d->next;
	return true;
}

/* A private copy of what the area has of a detour; what is cut off counts as nothing. */
static bool copy_detour(struct leave *l, uint32_t off, struct detour_copy *c)
{
	uint32_t shape;
	size_t n;

	memset(c, 0, sizeof(*c));
	n = l->len - off < sizeof(c->detour) ? l->len - off : sizeof(c->detour);
	memcpy(&c->detour, (const char *)l->area + off, n);
	shape = c->detour.d.shape;
	if (!shape || shape >= l->len)
		return false;
	n = l->len - shape < sizeof(c->shape) ? l->len - shape : sizeof(c->shape);
	memcpy(&c->shape, (const char *)l->area + shape, n);
	if (c->shape.npc > UKP_SHAPE_PCS)
		c->shape.npc = UKP_SHAPE_PCS;
	return true;
}

/* The detour that has pc. */
static bool find_detour(struct leave *l, uint64_t pc, struct detour_copy *c)
{
	struct detour_walk w = { 0 };
	struct ukp_detour d;

	while (leave_next_detour(l, &w, &d))
		if (pc - d.buf < d.size)
			return copy_detour(l, w.off, c) && pc - c->detour.d.buf < c->detour.d.size;
	return false;
}

static const struct ukp_site *slot_site(struct leave *l, uint64_t pc)
{
	const struct ukp_site *s;
	uint32_t i = 0;

	while ((s = leave_next_site(l, &i)))
		if (pc - s->slot < UKP_SLOT_SIZE)
			return s;
	return NULL;
}

static bool in_slots(struct leave *l, uint64_t pc)
{
	uint32_t i;

	for (i = 0; i < l->ctl->nr_mappings && i < UKP_NR_MAPPINGS; i++)
		if (l->ctl->mapping[i].kind == UKP_MAP_SLOTS &&
		    pc - l->ctl->mapping[i].addr < l->ctl->mapping[i].len)
			return true;
	return false;
}

static bool in_agent(struct leave *l, uint64_t pc)
{
	return (pc >= l->text_start && pc < l->text_end) ||
	       (pc >= l->stubs_start && pc < l->stubs_end);
}

static bool is_entry(const struct detour_copy *c, uint64_t pc)
{
	unsigned int k;

	for (k = 0; k < c->detour.d.nr && k < UKP_WINDOW_INSNS; k++)
		if (pc - c->detour.d.buf - c->detour.d.insn[k].entry < c->shape.len)
			return true;
	return false;
}

/* On the way from an entry to a stub that calls the function? */
static bool is_call(const struct detour_copy *c, uint64_t pc)
{
	struct ukp_detour_frame frame;

	return ukp_detour_frame(&c->detour.d, &c->shape, pc, 0, &frame) &&
	       (frame.flags & UKP_PC_CALLS);
}

/* In the part of a detour that calls the engine or the function, or counts? */
static bool in_entry(struct leave *l, uint64_t pc)
{
	struct detour_copy c;

	return in_slots(l, pc) && find_detour(l, pc, &c) && (is_entry(&c, pc) || is_call(&c, pc));
}

/*
 * From a detour's copies; a thread in an entry has registers in the frame and
 * walks on.  Only while the window has its own bytes.
 */
static bool from_detour(struct leave *l, uint64_t *pc, uint64_t *sp)
{
	struct ukp_detour_frame frame;
	struct detour_copy c;

	if (!find_detour(l, *pc, &c) || is_entry(&c, *pc) ||
	    !ukp_detour_frame(&c.detour.d, &c.shape, *pc, *sp, &frame) ||
	    (frame.flags & (UKP_PC_MOVED | UKP_PC_CALLS)))
		return false;
	*pc = frame.pc;
	*sp = frame.sp;
	return true;
}

/* To where the thread would be without us; false: it is in the middle of something. */
static bool to_original(struct leave *l, uint64_t *pc, uint64_t *sp)
{
	const struct ukp_site *s = slot_site(l, *pc);
	struct ukp_site copy;
	struct ukp_site_frame frame;

	if (!s)
		return from_detour(l, pc, sp);
	copy = *s;
	if (copy.npc > UKP_SITE_PCS || !ukp_site_frame(&copy, *pc, *sp, &frame) ||
	    (frame.flags & UKP_PC_SAVED))
		return false;
	*pc = frame.pc;
	*sp = frame.sp;
	return true;
}

/* The kernel's signal frame, in words counted from the saved ip. */
#define FRAME_RESTORER (-22)
#define FRAME_FLAGS (-21) /* some bits */
#define FRAME_LINK (-20)  /* 0 */
#define FRAME_STACK (-19) /* the alternate one that its thread has: address and size */
#define FRAME_STACK_SIZE (-17)
#define FRAME_FPSTATE 7 /* lies above, or is NULL */
#define FRAME_SIGNO 17
#define FRAME_CODE 18

#define FPSTATE_MAX (64u << 10)

/* At i the ip of a frame that is whole?  cs and ss of user code are behind it. */
static bool is_frame(const uint64_t *w, size_t i, size_t n, uint64_t sp)
{
	const uint64_t at = (sp & ~7ull) + i * 8;
	long at_ip = (long)i;

	if (!i || i + 2 >= n || (w[i + 2] & 0xffff) != 0x33 || w[i + 2] >> 48 != 0x2b)
		return false;
	if (i < -FRAME_FLAGS || i + FRAME_FPSTATE >= n)
		return true;
	return w[at_ip + FRAME_FLAGS] < 256 && !w[at_ip + FRAME_LINK] &&
	       (!w[i + FRAME_FPSTATE] || w[i + FRAME_FPSTATE] - at < FPSTATE_MAX);
}

/*
 * Where stacks lie side by side, as Go's do, a scan comes to those behind its own,
 * and to what signals once left on their alternate stacks.  A frame lies on one
 * that its thread isn't on: then where that begins, else 0.
 */
static uint64_t other_stack(const uint64_t *w, size_t i, uint64_t sp)
{
	const uint64_t at = (sp & ~7ull) + i * 8;
	uint64_t start, size;

	if (i < -FRAME_STACK)
		return 0;
	start = w[(long)i + FRAME_STACK];
	size = w[(long)i + FRAME_STACK_SIZE];
	return at - start < size && sp - start >= size ? start : 0;
}

/* The words of a stack from sp on, *n of them; NULL: not to be read, or *n is 0 and there are none.
 */
static uint64_t *read_stack(struct inject *t, uint64_t sp, size_t *n)
{
	const uint64_t from = sp & ~7ull, end = inject_region_end(t, sp);
	uint64_t *w;

	*n = 0;
	if (end <= sp)
		return NULL;
	*n = (end - from <= STACK_WHOLE ? end - from : STACK_SCAN) / 8;
	w = malloc(*n * 8);
	if (w && inject_read(t, from, w, *n * 8)) {
		free(w);
		return NULL;
	}
	return w;
}

/* A frame's stack pointer, where that is of none of the n words from sp on; else 0. */
static uint64_t interrupted(const uint64_t *w, size_t i, size_t n, uint64_t sp)
{
	const uint64_t saved = w[i - 1];

	return saved - (sp & ~7ull) >= n * 8 ? saved : 0;
}

/*
 * Saved contexts on a stack: an ip with cs and ss of user code behind it.  In
 * a slot: rewritten.  In the agent: its thread will come back to it.
 */
static bool stack_needs_us(struct leave *l, uint64_t sp, unsigned int *stacks)
{
	uint64_t *w, ctx[2], other, chained = 0;
	bool needs = false;
	size_t n, i;

	/* Of all of them together: what a stack has is the target's to write. */
	w = *stacks && (*stacks)-- ? read_stack(l->inject, sp, &n) : NULL;
	if (!w)
		return false;
	for (i = 0; i < n && !needs; i++) {
		if (w[i] == l->chain_return)
			chained = (sp & ~7ull) + i * 8;
		/* The cheap questions first: all threads wait for the answer. */
		if (!is_frame(w, i, n, sp))
			continue;
		other = other_stack(w, i, sp);
		if (other) {
			chained = chained >= other ? 0 : chained;
			continue;
		}
		other = interrupted(w, i, n, sp);
		needs = other && stack_needs_us(l, other, stacks);
		if (!in_agent(l, w[i]) && !in_slots(l, w[i]))
			continue;
		ctx[0] = w[i - 1];
		ctx[1] = w[i];
		if (l->stay)
			needs |= in_agent(l, w[i]) || in_entry(l, w[i]);
		else if (in_agent(l, w[i]) || !to_original(l, &ctx[1], &ctx[0]))
			needs = true;
		else
			inject_write(l->inject, (sp & ~7ull) + (i - 1) * 8, ctx, sizeof(ctx));
	}
	free(w);
	return needs || chained;
}

/*
 * A trap that is raised but not delivered needs our handler, too: without it, it
 * kills.  Where we stay it has not entered the engine yet, and will find there what
 * has been published until then.
 */
bool leave_inside(struct leave *l, size_t i)
{
	struct user_regs_struct regs = inject_thread_at(l->inject, i)->regs;
	uint64_t pc = regs.rip, sp = regs.rsp;
	unsigned int stacks = STACKS;

	if (!l->stay && in_slots(l, pc) && to_original(l, &pc, &sp)) {
		regs.rip = pc;
		regs.rsp = sp;
		inject_set_regs(l->inject, i, &regs);
	}
	return in_agent(l, pc) || (l->stay ? in_entry(l, pc) : in_slots(l, pc)) ||
	       stack_needs_us(l, sp, &stacks) ||
	       (!l->stay && inject_pending(l->inject, i, UKP_SIGTRAP, UKP_SI_KERNEL));
}

bool leave_busy(struct leave *l)
{
	size_t i;

	l->stuck = 0;
	for (i = 0; i < inject_nr_threads(l->inject); i++)
		l->stuck += leave_inside(l, i);
	return l->stuck;
}

static bool is_trap(const uint64_t *w, size_t i, size_t n)
{
	return i + FRAME_CODE < n && (uint32_t)w[i + FRAME_SIGNO] == UKP_SIGTRAP &&
	       (uint32_t)w[i + FRAME_CODE] == UKP_SI_KERNEL;
}

/*
 * A breakpoint of ours that is being handled: the engine says where that goes
 * on, and since jumps are on their way that is beyond their windows.
 */
static bool is_our_trap(const struct target *t, const uint64_t *w, size_t i, size_t n)
{
	return i >= -FRAME_RESTORER &&
	       w[i + FRAME_RESTORER] == t->own.text + agent_offset(AGENT_RESTORER) &&
	       is_trap(w, i, n);
}

/* Does the thread run the handler of a breakpoint of ours, which ends by itself? */
bool leave_in_trap(struct target *t, size_t i)
{
	const struct user_regs_struct *regs = &inject_thread_at(t->inject, i)->regs;
	struct leave l = leave_looking(t);
	const uint64_t sp = regs->rsp & ~7ull;
	uint64_t w[TRAP_SCAN / 8];
	size_t k;

	if (!in_agent(&l, regs->rip) || inject_read(t->inject, sp, w, sizeof(w)))
		return false;
	for (k = 0; k < TRAP_SCAN / 8; k++)
		if (is_our_trap(t, w, k, TRAP_SCAN / 8) && is_frame(w, k, TRAP_SCAN / 8, sp))
			return true;
	return false;
}

struct contexts {
	uint64_t *ip;
	size_t n, max;
};

static int add_context(struct contexts *c, uint64_t ip)
{
	size_t max = c->max ? c->max * 2 : 256;
	uint64_t *more;

	if (c->n == c->max) {
		more = realloc(c->ip, max * sizeof(*more));
		if (!more)
			return -ENOMEM;
		c->ip = more;
		c->max = max;
	}
	c->ip[c->n++] = ip;
	return 0;
}

/*
 * Where a context leads: to itself and, from a slot or a detour, to what is
 * behind the instructions that were copied there.
 */
static int add_paths(struct target *t, struct contexts *c, uint64_t ip)
{
	struct leave l = { .ctl = &t->own };
	int ret = add_context(c, ip);
	uint64_t to;
	size_t i;

	if (ret || !in_slots(&l, ip))
		return ret;
	if (optimize_leads(t, ip, &to))
		return add_context(c, to);
	for (i = 0; i < t->nr_sites && !ret; i++)
		if (ip - t->sites[i]->plan.slot < UKP_SLOT_SIZE)
			ret = add_context(c, t->sites[i]->addr + t->sites[i]->plan.len);
	return ret;
}

/*
 * A breakpoint's frame, with where that went on, stays below the stack, and is part
 * of what a deeper call has not written to: for as long as that lasts it would keep
 * every jump near it away.  One that isn't whole any more is over.
 */
static bool is_left_over(const struct target *t, const uint64_t *w, size_t i, size_t n, uint64_t sp)
{
	struct leave l = { .ctl = &t->own };

	return !is_frame(w, i, n, sp) && (is_trap(w, i, n) || in_slots(&l, w[i]));
}

static int stack_contexts(struct target *t, uint64_t sp, struct contexts *c, unsigned int *stacks)
{
	uint64_t *w, other;
	size_t n, i;
	int ret = 0;

	if (!*stacks)
		return 0;
	(*stacks)--;
	w = read_stack(t->inject, sp, &n);
	if (!w)
		return n ? -EIO : 0;
	for (i = 0; i + 2 < n && !ret; i++) {
		/* Also what a handler has copied: to be wrong here costs a jump, no more. */
		if ((w[i + 2] & 0xffff) != 0x33 || w[i + 2] >> 48 != 0x2b || other_stack(w, i, sp))
			continue;
		other = is_frame(w, i, n, sp) ? interrupted(w, i, n, sp) : 0;
		if (other)
			ret = stack_contexts(t, other, c, stacks);
		if (!ret && !is_our_trap(t, w, i, n) && !is_left_over(t, w, i, n, sp))
			ret = add_paths(t, c, w[i]);
	}
	free(w);
	return ret;
}

int leave_contexts(struct target *t, uint64_t **ip, size_t *nr)
{
	struct contexts c = { 0 };
	size_t i;
	int ret = 0;

	for (i = 0; i < inject_nr_threads(t->inject) && !ret; i++) {
		const struct user_regs_struct *regs = &inject_thread_at(t->inject, i)->regs;
		unsigned int stacks = STACKS;

		ret = stack_contexts(t, regs->rsp, &c, &stacks);
		/* A thread's own place is one that it can be moved from. */
		if (!ret)
			ret = add_paths(t, &c, regs->rip);
		if (!ret && c.n && c.ip[c.n - 1] == regs->rip)
			c.n--;
	}
	if (ret)
		free(c.ip);
	*ip = ret ? NULL : c.ip;
	*nr = ret ? 0 : c.n;
	return ret;
}
