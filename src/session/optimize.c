/* SPDX-License-Identifier: MIT */
/*
 * Jumps for breakpoints.
 *
 *	   text  cc 57 41 56 ...      a trap goes on in the detour's copy first,
 *	=> text  e9 rel32 ...         then, once nobody is on the short way of
 *	                              the slot, the jump is written
 *
 * The copy leads beyond the whole window, the slot into its middle: that is why
 * the order matters.  All threads stand still for the writing; those inside a
 * window are moved to the copy.
 */
#include "session/optimize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "patch/slots.h"
#include "plan/detour.h"
#include "session/modules.h"
#include "session/sites.h"

static const char inside[] = "another probe is inside the jump's window";

#define MAX_JUMPS 256 /* written in one stop, which stays below a millisecond or so */

struct optimizer {
	struct modules *modules;
	uint32_t shape; /* of the one form that we use, in the control area; 0: not yet */
};

int optimize_open(struct target *t)
{
	const char *off = getenv("UKPROBES_OPTIMIZATION");
	struct optimizer *o;

	if (off && off[0] == '0')
		return 0;
	o = calloc(1, sizeof(*o));
	if (!o || modules_open(&o->modules)) {
		free(o);
		return -ENOMEM;
	}
	t->optimizer = o;
	return 0;
}

void optimize_close(struct target *t)
{
	size_t i;

	for (i = 0; i < t->nr_sites; i++) {
		free(t->sites[i]->detour);
		t->sites[i]->detour = NULL;
	}
	if (t->optimizer)
		modules_close(t->optimizer->modules);
	free(t->optimizer);
	t->optimizer = NULL;
}

int optimize_fd(const struct target *t)
{
	return t->optimizer ? modules_fd(t->optimizer->modules) : -1;
}

/*
 * A probe of our own is among its own: that of sigaction() changes the flow, which
 * detours of this form do not honour.
 */
static bool is_ours(const struct site *s)
{
	const struct probe *p;

	for (p = s->probes; p; p = p->next)
		if (p->kind == PROBE_INTERNAL)
			return true;
	return false;
}

void optimize_kick(struct target *t)
{
	size_t i;

	for (i = 0; t->optimizer && !t->dead && i < t->nr_sites; i++)
		if (t->sites[i]->armed && !is_ours(t->sites[i]) && !t->sites[i]->base)
			modules_want(t->optimizer->modules,
			             sym_module_of(t->sym, t->sites[i]->addr));
}

/* Another probe inside a window keeps it from being one. */
static bool alone(const struct target *t, const struct site *s, unsigned int covered)
{
	unsigned int i;

	for (i = 1; i < covered; i++) {
		const struct site *o = sites_find(t, s->addr + i);

		if (o && (o->armed || o->probes))
			return false;
	}
	return true;
}

static const char *make_window(struct target *t, struct site *s, struct plan_window *w,
                               uint8_t code[PLAN_WINDOW_MAX], size_t *len)
{
	const struct plan_targets *targets;
	struct plan_window_request req = { .code = code };
	uint64_t bias;

	targets = modules_targets(t->optimizer->modules, sym_module_of(t->sym, s->addr), &bias);
	if (!targets)
		return "the module's code could not be followed";
	*len = PLAN_WINDOW_MAX;
	while (*len && sym_original(t->sym, s->addr, code, *len))
		--*len;
	req.targets = targets;
	req.avail = *len;
	req.addr = s->addr - bias;
	if (!plan_window(&req, w))
		return w->why == PLAN_WINDOW_COPY ? plan_reason(w->refusal)
		                                  : plan_window_reason(w->why);
	return NULL;
}

static const char *put_detour(struct target *t, struct site *s, const struct plan_detour *p,
                              struct err *err)
{
	struct ukp_site *shared = target_at(t, s->off);
	size_t size = plan_detour_size(&p->d);
	struct optimizer *o = t->optimizer;
	uint32_t off;

	if (inject_write(t->inject, p->d.buf, p->code, p->d.size))
		return "its detour cannot be written";
	if (!o->shape) {
		o->shape = target_alloc(t, sizeof(p->shape));
		if (o->shape)
			memcpy(target_at(t, o->shape), &p->shape, sizeof(p->shape));
	}
	off = target_alloc(t, size);
	s->detour = malloc(size);
	if (!o->shape || !off || !s->detour) {
		free(s->detour);
		s->detour = NULL;
		return "no memory for its detour";
	}
	memcpy(s->detour, &p->d, size);
	memcpy(target_at(t, off), &p->d, size);
	shared->shape = o->shape;
	/* Release: whoever finds the detour finds all of it. */
	__atomic_store_n(&shared->detour, off, __ATOMIC_RELEASE);
	return NULL;
}

static const char *make_detour(struct target *t, struct site *s, struct err *err)
{
	static struct plan_detour out;
	uint8_t code[PLAN_WINDOW_MAX];
	struct plan_window w;
	struct plan_detour_request req = { .code = code, .addr = s->addr, .window = &w };
	enum plan_refusal refusal;
	const char *why;
	size_t len;

	why = make_window(t, s, &w, code, &len);
	if (why)
		return why;
	if (!alone(t, s, w.covered))
		return inside;
	req.buf = slots_get_bytes(t->slots, s->addr, PLAN_DETOUR_MAX / 2, err);
	if (!req.buf)
		return "no address space near it";
	req.engine = t->own.text + agent_offset(AGENT_DETOUR_HIT);
	req.form.saves = PLAN_SAVE_ALL;
	req.probes = 1;
	req.site[0] = t->own.self + s->off;
	refusal = plan_detour(&req, &out);
	if (refusal != PLAN_OK || out.d.size > PLAN_DETOUR_MAX / 2)
		return refusal != PLAN_OK ? plan_reason(refusal) : "its detour is too long";
	return put_detour(t, s, &out, err);
}

static bool wants_jump(struct target *t, struct site *s)
{
	return s->armed && !s->jumped && !s->base && !is_ours(s) &&
	       modules_ready(t->optimizer->modules, sym_module_of(t->sym, s->addr));
}

static void set_resume(struct target *t, struct site *s, uint64_t to)
{
	struct ukp_site *shared = target_at(t, s->off);

	s->resumes = to != 0;
	__atomic_store_n(&shared->resume, to, __ATOMIC_RELEASE);
}

/* All that can be done before the threads have to be in their places. */
static size_t prepare(struct target *t)
{
	struct err err = ERR_INIT;
	size_t i, n = 0;

	for (i = 0; i < t->nr_sites && n < MAX_JUMPS; i++) {
		struct site *s = t->sites[i];

		if (!wants_jump(t, s))
			continue;
		if (!s->detour)
			s->base = make_detour(t, s, &err);
		else if (!alone(t, s, s->detour->len > 5 ? s->detour->len : 5))
			s->base = inside;
		if (s->base)
			continue;
		/* From now on a trap takes the long way, by the copy. */
		set_resume(t, s, s->detour->buf + s->detour->insn[0].copy);
		n++;
	}
	return n;
}

/* Threads inside the window go on in the copy; false: one can't. */
static bool clear_window(struct target *t, const struct site *s)
{
	const struct ukp_detour *d = s->detour;
	size_t i;

	for (i = 0; i < inject_nr_threads(t->inject); i++) {
		struct user_regs_struct regs = inject_thread_at(t->inject, i)->regs;
		uint64_t to = regs.rip - d->addr > d->len ? regs.rip : ukp_detour_park(d, regs.rip);

		if (!to)
			return false;
		if (to == regs.rip)
			continue;
		regs.rip = to;
		if (inject_set_regs(t->inject, i, &regs))
			return false;
	}
	return true;
}

/* Asked before a thread is moved: what lies there may be another library's by now. */
static bool has_breakpoint(struct target *t, const struct site *s)
{
	uint8_t now[5];

	return !inject_read(t->inject, s->addr, now, sizeof(now)) && now[0] == 0xcc &&
	       !memcmp(now + 1, s->detour->orig + 1, 4);
}

/* The tail first: the head makes it an instruction. */
static bool write_jump(struct target *t, struct site *s)
{
	const struct ukp_detour *d = s->detour;

	if (inject_write(t->inject, s->addr + 1, d->jump + 1, 4) ||
	    inject_write(t->inject, s->addr, d->jump, 1))
		return false;
	s->jumped = true;
	return true;
}

static bool leads_inside(const struct site *s, const uint64_t *ip, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (ip[i] > s->addr && ip[i] - s->addr < s->detour->len)
			return true;
	return false;
}

static bool write_jumps(struct target *t)
{
	uint64_t *ip;
	bool again = false;
	size_t i, n, done = 0;

	if (leave_contexts(t, &ip, &n))
		return true;
	for (i = 0; i < t->nr_sites && done < MAX_JUMPS; i++) {
		struct site *s = t->sites[i];

		/* Only those whose traps take the long way since before the threads were settled.
		 */
		if (!wants_jump(t, s) || !s->detour || !s->resumes)
			continue;
		done++;
		/* Contexts on stacks may lead into the window, later is better then. */
		if (!has_breakpoint(t, s))
			s->base = "the code has changed";
		else if (leads_inside(s, ip, n) || !clear_window(t, s))
			again = true;
		else if (!write_jump(t, s))
			s->base = "the code has changed";
	}
	free(ip);
	return again;
}

enum optimize_left optimize_on(struct target *t)
{
	struct err err = ERR_INIT;
	bool again = false;
	size_t n;
	int ret;

	if (!t->optimizer || t->dead)
		return OPTIMIZE_DONE;
	n = prepare(t);
	if (!n)
		return OPTIMIZE_DONE;
	if (target_hold(t, &err))
		return t->dead ? OPTIMIZE_DONE : OPTIMIZE_LATER;
	ret = chan_settle(t, &err);
	if (!ret)
		again = write_jumps(t);
	target_release(t);
	if (again || ret == -EAGAIN)
		return OPTIMIZE_LATER;
	return n == MAX_JUMPS ? OPTIMIZE_MORE : OPTIMIZE_DONE;
}

/* Only what is still ours is put back; a jump that could not be written over stays one. */
static int take_back(struct target *t, struct site *s, struct err *err)
{
	uint8_t now[5], bytes[5];
	int ret = 0;

	if (!inject_read(t->inject, s->addr, now, sizeof(now)) &&
	    !memcmp(now, s->detour->jump, sizeof(now))) {
		memcpy(bytes, s->detour->orig, sizeof(bytes));
		bytes[0] = 0xcc;
		ret = inject_write(t->inject, s->addr, bytes, sizeof(bytes));
	}
	s->jumped = ret != 0;
	return ret ? err_set(err, ret, "cannot write code of process %d: %s", t->pid,
	                     strerror(-ret))
	           : 0;
}

int optimize_off(struct target *t, struct err *err)
{
	size_t i = 0, n;
	int ret;

	while (t->optimizer && !t->dead) {
		while (i < t->nr_sites && !t->sites[i]->jumped)
			i++;
		if (i == t->nr_sites)
			break;
		ret = target_hold(t, err);
		if (ret)
			return ret == -ESRCH ? 0 : ret;
		for (n = 0; i < t->nr_sites && n < MAX_JUMPS && !ret; i++)
			if (t->sites[i]->jumped) {
				ret = take_back(t, t->sites[i], err);
				n++;
			}
		target_release(t);
		if (ret)
			return ret;
	}
	/* The copy leads past what may be planted next inside the window. */
	for (i = 0; t->optimizer && i < t->nr_sites; i++) {
		if (t->sites[i]->resumes)
			set_resume(t, t->sites[i], 0);
		/* The one inside may be the next to go. */
		if (t->sites[i]->base == inside)
			t->sites[i]->base = NULL;
	}
	return 0;
}

const char *optimize_form(const struct target *t, const struct site *s)
{
	static char text[256];

	if (s->jumped)
		return "jump";
	snprintf(text, sizeof(text), "int3: %s",
	         s->base        ? s->base
	         : is_ours(s)   ? "ukprobes has a probe of its own there"
	         : t->optimizer ? "the jump is on its way"
	                        : "optimization is off");
	return text;
}
