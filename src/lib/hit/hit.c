/* SPDX-License-Identifier: MIT */
/*
 * The walk over the probes of an address, before and after its instruction.
 *
 * Before, we are in the SIGTRAP handler, whose frame keeps vector state, or in a
 * detour, where ukp_vec_call() keeps it for handlers that may touch it.  After,
 * in the slot's stub, ukp_vec_call() keeps it.  Control flow with a post
 * handler doesn't come back to its slot: it is emulated here, if the memory
 * that it touches is there; if not, the copy in the slot runs and faults as
 * the program expects.
 */
#include "engine/arch.h"
#include "engine/rethook.h"
#include "lib/hit/guard.h"

struct lib_arena *ukp_lib_arenas;
int64_t ukp_lib_errno_off;

static struct kprobe *first(struct lib_site *s)
{
	/* Acquire: a probe is complete before it is linked. */
	return __atomic_load_n(&s->probes, __ATOMIC_ACQUIRE);
}

static struct kprobe *next(struct kprobe *p)
{
	return __atomic_load_n(&p->ukp_next, __ATOMIC_ACQUIRE);
}

static bool enabled(struct kprobe *p)
{
	return !(__atomic_load_n(&p->flags, __ATOMIC_RELAXED) &
	         (KPROBE_FLAG_DISABLED | KPROBE_FLAG_GONE));
}

static bool wants_post(struct kprobe *p)
{
	return p->post_handler && !p->ukp_ret && enabled(p);
}

struct pre {
	struct kprobe *p;
	struct ukp_hit *hit;
	int flow;
};

static void call_pre(void *arg, const void *saved)
{
	struct pre *pre = arg;
	struct kprobe *p = pre->p;

	if (p->ukp_ret)
		ukp_lib_entry(pre->hit, p);
	else if (p->pre_handler)
		pre->flow = p->pre_handler(p, pre->hit->regs);
}

/* May what call_pre() runs touch vector registers? */
static bool wants_vec(const struct kprobe *p)
{
	if (p->flags & UKP_NOVEC)
		return false;
	/* kp is the first member. */
	return p->ukp_ret ? ((const struct kretprobe *)p)->entry_handler != NULL
	                  : p->pre_handler != NULL;
}

static int run_pre(struct lib_site *s, struct ukp_hit *hit, struct guard *g)
{
	struct pre pre = { .hit = hit };

	for (pre.p = first(s); pre.p; pre.p = next(pre.p)) {
		if (!enabled(pre.p))
			continue;
		guard_set_running(g, pre.p);
		if ((hit->flags & UKP_HIT_JUMP) && wants_vec(pre.p))
			ukp_vec_call(call_pre, &pre);
		else
			call_pre(&pre, NULL);
		if (pre.flow)
			return 1;
	}
	return 0;
}

static void run_post(struct lib_site *s, struct pt_regs *regs, struct guard *g)
{
	struct kprobe *p;

	for (p = first(s); p; p = next(p)) {
		if (!wants_post(p))
			continue;
		guard_set_running(g, p);
		p->post_handler(p, regs, 0);
	}
}

/* Whether emulating can't fault. */
static bool memory_is_there(const struct lib_site *s, struct ukp_hit *hit, uint64_t fsbase)
{
	uint64_t addr[2], word;
	unsigned int i, n;

	/* A fault would kill here as it does in the slot. */
	if (hit->flags & UKP_HIT_NOREAD)
		return true;
	n = plan_touches(&s->insn, hit->regs, fsbase, 0, addr);
	for (i = 0; i < n; i++)
		if (ukp_arch_copy(&word, (void *)addr[i], 8))
			return false;
	return true;
}

static int emulate(struct lib_site *s, struct ukp_hit *hit, struct guard *g)
{
	uint64_t fsbase;
	struct kprobe *p;

	/* A jump gives way before a post handler is called; this is a hit from before. */
	if (s->insn.flow == PLAN_FLOW_NONE || (hit->flags & UKP_HIT_JUMP))
		return 0;
	for (p = first(s); p && !wants_post(p); p = next(p))
		;
	if (!p)
		return 0;
	fsbase = s->insn.seg == 'f' ? ukp_arch_thread() : 0;
	if (!memory_is_there(s, hit, fsbase))
		return 0;
	plan_emulate(&s->insn, s->addr, hit->regs, fsbase, 0);
	run_post(s, hit->regs, g);
	return 1;
}

/* pc is in a slot, so there is an arena that has it; NULL: it is in none. */
static struct lib_site *site_of_slot(uint64_t pc)
{
	struct lib_arena *a = __atomic_load_n(&ukp_lib_arenas, __ATOMIC_ACQUIRE);

	while (a && pc - a->addr >= a->len)
		a = a->next;
	return a ? __atomic_load_n(&a->site[(pc - a->addr) / UKP_SLOT_SIZE], __ATOMIC_ACQUIRE)
	         : NULL;
}

/*
 * A handler has chosen where to go on.  Where that is the middle of a jump, or
 * will be at once, the instruction is in the detour.
 */
static uint64_t around_jumps(uint64_t ip)
{
	const struct ukp_detour *d;
	const struct ukp_site *us;
	const struct lib_site *s;
	uint64_t off, to;

	for (off = 1; off < LIB_JUMP_SIZE; off++) {
		us = ukp_site_find(ukp_lib_ctl, ip - off);
		s = us ? site_of_slot(us->slot) : NULL;
		/* Acquire: the detour is complete. */
		d = s ? __atomic_load_n(&s->over, __ATOMIC_ACQUIRE) : NULL;
		to = d && off < d->len ? ukp_detour_park(d, ip) : 0;
		if (to)
			return to;
	}
	return ip;
}

/*
 * The mark first: whoever publishes a detour and finds no mark afterwards knows
 * that this thread will see that detour.
 */
static void move(struct pt_regs *regs)
{
	__atomic_store_n(&regs->orig_ax, LIB_MOVED, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	regs->ip = around_jumps(regs->ip);
}

static void missed(struct lib_site *s, struct ukp_hit *hit)
{
	struct kprobe *p;

	for (p = first(s); p; p = next(p)) {
		ukp_count(&p->nmissed);
		if (p->ukp_ret)
			calls_missed(hit, &p->ukp_ret->how, (uint64_t)p->ukp_ret);
	}
}

/* What comes between an instruction's pre handlers and itself; false: the guard is off. */
static bool run_exits(struct lib_site *s, struct ukp_hit *hit, struct guard *g)
{
	if (!__atomic_load_n(&s->exits, __ATOMIC_RELAXED))
		return true;
	guard_off(g);
	ukp_lib_exits(hit, s);
	return guard_on(g) == GUARD_ON;
}

int ukp_lib_hit(struct ukp_hit *hit, uint64_t ctx)
{
	struct lib_site *s = (struct lib_site *)ctx;
	struct guard g;
	int flow;

	if (__atomic_load_n(&s->fprobes, __ATOMIC_RELAXED) && !guard_is_quiet())
		ukp_lib_fprobes(hit, s);
	if (!first(s)) {
		if (__atomic_load_n(&s->exits, __ATOMIC_RELAXED))
			ukp_lib_exits(hit, s);
		return 0;
	}
	switch (guard_on(&g)) {
	case GUARD_NESTED:
		missed(s, hit);
		/* What keeps kprobes from recursion is no matter of fprobes. */
		if (__atomic_load_n(&s->exits, __ATOMIC_RELAXED))
			ukp_lib_exits(hit, s);
		return 0;
	case GUARD_FULL:
		ukp_count(&hit->site->nmissed);
		return 0;
	case GUARD_QUIET:
		return 0;
	case GUARD_ON:
		break;
	}
	flow = run_pre(s, hit, &g);
	if (!flow && !run_exits(s, hit, &g))
		return 0;
	if (!flow)
		flow = emulate(s, hit, &g);
	if (flow)
		move(hit->regs);
	guard_off(&g);
	return flow;
}

struct post {
	struct lib_site *site;
	struct pt_regs *regs;
	struct guard *guard;
};

static void call_post(void *arg, const void *saved)
{
	struct post *post = arg;

	run_post(post->site, post->regs, post->guard);
}

void ukp_lib_post(struct pt_regs *regs, uint64_t ra)
{
	struct lib_site *s = site_of_slot(ra);
	struct guard g;
	struct post post = { .site = s, .regs = regs, .guard = &g };
	struct kprobe *p;
	bool novec = true;

	regs->ip = s->addr + s->insn.len;
	/* Nested: the hit before the instruction has counted it. */
	if (!ukp_hit_alive(ukp_engine_ctl()) || guard_on(&g) != GUARD_ON)
		return;
	for (p = first(s); p; p = next(p))
		if (wants_post(p))
			novec = novec && (p->flags & UKP_NOVEC);
	if (novec)
		call_post(&post, NULL);
	else
		ukp_vec_call(call_post, &post);
	move(regs);
	guard_off(&g);
}

void hit_cpu(struct ukp_hit *hit)
{
	hit->cpu = ukp_arch_cpu(hit->ctl);
}

/* The same for a jump, one probe at a time; what needs a struct ukp_hit makes one. */
static __attribute__((noinline)) int pre_in_jump(struct kprobe *p, struct pt_regs *regs,
                                                 struct ukp_site *site)
{
	struct ukp_hit hit;
	struct pre pre = { p, &hit, 0 };

	ukp_hit_init(&hit, ukp_lib_ctl, site, regs, UKP_HIT_JUMP);
	if (wants_vec(p))
		ukp_vec_call(call_pre, &pre);
	else
		call_pre(&pre, NULL);
	return pre.flow;
}

/* In the guard's slot 0 of b. */
static int run_in_jump(struct lib_site *s, struct pt_regs *regs, struct guard_bucket *b,
                       struct ukp_site *site)
{
	struct kprobe *p;
	int flow = 0;

	for (p = first(s); p && !flow; p = next(p)) {
		if (!enabled(p))
			continue;
		b->running[0] = p;
		if (p->ukp_ret || !(p->flags & UKP_NOVEC))
			flow = pre_in_jump(p, regs, site);
		else if (p->pre_handler)
			flow = p->pre_handler(p, regs);
	}
	return flow;
}

static __attribute__((noinline)) int jump_hit_slowly(struct pt_regs *regs, struct ukp_site *site)
{
	struct ukp_ctl *ctl = ukp_lib_ctl;
	struct ukp_hit hit;

	ukp_hit_init(&hit, ctl, site, regs, UKP_HIT_JUMP);
	if (!ukp_hit_alive(ctl))
		hit.flags |= UKP_HIT_CHILD;
	return ukp_hit_run(&hit);
}

/*
 * ukp_lib_hit() in as few instructions as it takes: kprobes alone, and the
 * guard's first slot free.
 */
__attribute__((force_align_arg_pointer)) int ukp_lib_jump_hit(struct pt_regs *regs,
                                                              struct ukp_site *site)
{
	const struct ukp_ctl *ctl = ukp_lib_ctl;
	/* Acquire: an action is complete before it is linked. */
	const struct ukp_action *a =
		ukp_ctl_at(ctl, __atomic_load_n(&site->action, __ATOMIC_ACQUIRE));
	struct lib_site *s = (struct lib_site *)a->ctx;
	struct guard_bucket *b;
	uint64_t thread;
	int flow, *error, saved;

	/* Behind it is what we have there for ourselves. */
	if (!ukp_hit_alive(ctl) || __atomic_load_n(&a->next, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&s->fprobes, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&s->exits, __ATOMIC_RELAXED))
		return jump_hit_slowly(regs, site);
	thread = ukp_arch_thread();
	b = guard_on_home(thread);
	if (!b)
		return jump_hit_slowly(regs, site);
	error = (int *)(thread + ukp_lib_errno_off);
	saved = *error;
	flow = run_in_jump(s, regs, b, site);
	if (flow)
		move(regs);
	*error = saved;
	guard_leave(b, 0);
	return flow;
}

int ukp_lib_jump_entry(struct pt_regs *regs, struct ukp_site *site)
{
	const struct ukp_action *a = ukp_ctl_at(ukp_lib_ctl, site->action);
	const struct lib_site *s = (const struct lib_site *)a->ctx;
	uint64_t before;
	bool no_stack = ukp_arch_copy(&before, (void *)regs->sp, 8);

	if (ukp_lib_jump_hit(regs, site))
		return 1;
	if (no_stack || __atomic_load_n(&s->slots, __ATOMIC_RELAXED))
		return 0;
	return ukp_rethook_call(ukp_lib_ctl, regs, before);
}
