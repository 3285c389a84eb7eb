/* SPDX-License-Identifier: MIT */
/* Windows, their detours, and the five bytes.  See jump.h. */
#include "lib/jump.h"
#include "lib/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/detour.h"

#define BATCH 256
#define AWAY (16u << 20) /* where a detour is planned to learn its size */

/* Of a window, for one set of its instructions (bits) that have probes; CALLS: see wants_calls().
 */
#define CALLS 0x100u

struct lib_detour {
	struct lib_detour *next;
	unsigned int set;
	const struct ukp_detour *d;
};

struct lib_window {
	struct plan_window w;
	/* What it was planned for. */
	const struct plan_targets *targets;
	uint8_t reach;
	uint8_t code[PLAN_WINDOW_LONG];
	struct lib_detour *detours;
};

static unsigned int longest = LIB_JUMP_SIZE;

static const char memory[] = "no memory for its detour";
static const char changed[] = "the code has changed";
static const char inside[] = "what is inside the jump's window can't be covered";

/* The i-th instruction's site, if there is a breakpoint on it. */
static struct lib_site *armed_at(const struct lib_site *s, const struct plan_window *w,
                                 unsigned int i)
{
	struct lib_site *t = site_find(s->addr + w->insn[i].off);

	return t && t->armed ? t : NULL;
}

unsigned int jump_longest(void)
{
	return longest;
}

struct lib_site *jump_over(uint64_t addr)
{
	uint64_t off;

	for (off = 0; off < longest; off++) {
		struct lib_site *s = site_find(addr - off);

		if (s && s->head == s && (off < LIB_JUMP_SIZE || off < s->over->len))
			return s;
	}
	return NULL;
}

/* Bytes of ours from s on; those under the jump of another site are that one's. */
static unsigned int bytes_of_ours(const struct lib_site *s)
{
	if (s->head == s)
		return LIB_JUMP_SIZE;
	return s->armed && (!s->head || s->addr - s->head->addr >= LIB_JUMP_SIZE);
}

int jump_read_text(uint64_t addr, uint8_t *buf, size_t len)
{
	uint64_t at, i, n;
	int ret = own_read(addr, buf, len);

	for (at = addr - LIB_JUMP_SIZE + 1; at < addr + len && !ret; at++) {
		const struct lib_site *s = site_find(at);

		n = s ? bytes_of_ours(s) : 0;
		for (i = 0; i < n; i++)
			if (at + i >= addr && at + i < addr + len)
				buf[at + i - addr] = n > 1 ? s->over->orig[i] : s->site->orig[0];
	}
	return ret;
}

bool jump_text_is(uint64_t addr, const uint8_t *code, size_t len)
{
	uint8_t now[PLAN_WINDOW_LONG];

	return len <= sizeof(now) && !jump_read_text(addr, now, len) && !memcmp(now, code, len);
}

/* As far as the exits that it is to reach, or no further than the jump needs. */
static void extend(const struct plan_window_request *req, struct plan_window *w, unsigned int reach)
{
	struct plan_window far = *w;

	while (far.len < reach)
		if (!plan_window_extend(req, &far))
			return;
	if (!memcmp(req->live, req->code, far.len))
		*w = far;
}

static const char *make_window(struct lib_site *s, const struct plan_targets *targets,
                               uint64_t bias)
{
	uint8_t code[PLAN_WINDOW_LONG], live[PLAN_WINDOW_LONG];
	struct plan_window_request req = { .targets = targets,
		                           .code = code,
		                           .avail = sizeof(code),
		                           .addr = s->addr - bias,
		                           .live = live };
	struct plan_window w;

	while (req.avail && sym_original(own_sym_last(), s->addr, code, req.avail))
		req.avail--;
	if (!req.avail || jump_read_text(s->addr, live, req.avail))
		return changed;
	if (!plan_window(&req, &w))
		return w.why == PLAN_WINDOW_COPY ? plan_reason(w.refusal)
		                                 : plan_window_reason(w.why);
	extend(&req, &w, s->reach);
	s->window = calloc(1, sizeof(*s->window));
	if (!s->window)
		return memory;
	s->window->w = w;
	s->window->targets = targets;
	s->window->reach = s->reach;
	memcpy(s->window->code, code, sizeof(code));
	s->covers = w.len;
	longest = w.len > longest ? w.len : longest;
	return NULL;
}

/* What stands further in: bits of those with probes in *set, or why the jump can't be. */
static const char *look_inside(struct lib_site *s, unsigned int *set)
{
	const struct plan_window *w = &s->window->w;
	unsigned int off, i = 1;
	struct err ignored = ERR_INIT;

	*set = s->armed && !s->anchor;
	/* Static branches change their bytes by themselves. */
	if (labels_reserved(s->addr, s->addr + w->covered - 1))
		return inside;
	for (off = 1; off < w->covered; off++) {
		struct lib_site *t = site_find(s->addr + off);
		bool starts = i < w->nr && w->insn[i].off == off;

		if (!t && ukp_site_find(ukp_lib_ctl, s->addr + off))
			return inside; /* somebody else's: traps are diverted there */
		if (t && t->armed && (!starts || site_wants_post(t)))
			return inside;
		if (t && t->head && t->head != s && jump_take_back(t->head, &ignored))
			return inside;
		if (t && t->armed)
			*set |= 1u << i;
		i += starts;
	}
	return NULL;
}

static bool plan(struct plan_detour_request *req, struct plan_detour *out)
{
	req->form.near = true;
	if (plan_detour(req, out) == PLAN_OK)
		return true;
	req->form.near = false;
	return plan_detour(req, out) == PLAN_OK;
}

/* One shape for each way to call the engine. */
static uint32_t put_shape(const struct ukp_detour_shape *shape)
{
	static uint32_t shapes[4];
	uint32_t *off = &shapes[!!(shape->flags & UKP_DETOUR_NEAR) +
	                        2 * !!(shape->flags & UKP_DETOUR_CALL)];

	if (!*off) {
		*off = own_alloc(sizeof(*shape));
		if (*off)
			memcpy(ukp_ctl_at(ukp_lib_ctl, *off), shape, sizeof(*shape));
	}
	return *off;
}

static const struct ukp_detour *put_detour(struct lib_site *s, const struct plan_detour *p)
{
	uint32_t shape = put_shape(&p->shape);
	uint32_t off = shape ? own_alloc(plan_detour_size(&p->d)) : 0;
	struct ukp_detour *d;

	if (!off || own_fill(p->d.buf, p->code, p->d.size))
		return NULL;
	d = ukp_ctl_at(ukp_lib_ctl, off);
	memcpy(d, &p->d, plan_detour_size(&p->d));
	d->shape = shape;
	return site_add_detour(s, d, off) ? NULL : d;
}

static const struct ukp_detour *make_detour(struct lib_site *s, unsigned int set)
{
	static struct plan_detour out; /* under the lock */
	const struct plan_window *w = &s->window->w;
	struct plan_detour_request req = {
		.code = s->window->code,
		.addr = s->addr,
		.window = w,
		.engine = (uint64_t)ukp_lib_jump_hit,
		.entry = (uint64_t)ukp_lib_jump_entry,
		.form = { .saves = PLAN_SAVE_ALL, .flow = true, .call = set & CALLS },
		.probes = (uint8_t)set,
		.buf = s->addr + AWAY
	};
	struct err err = ERR_INIT;
	unsigned int i;

	for (i = 0; i < w->nr; i++)
		if (req.probes >> i & 1)
			req.site[i] = (uint64_t)site_find(s->addr + w->insn[i].off)->site;
	if (!plan(&req, &out))
		return NULL;
	req.buf = slots_get_bytes(own_slots(), s->addr, out.d.size, &err);
	/* It might have been nearer to the engine there: then it is longer here. */
	if (!req.buf || plan_detour(&req, &out) != PLAN_OK)
		return NULL;
	return put_detour(s, &out);
}

static const struct ukp_detour *detour_for(struct lib_site *s, unsigned int set)
{
	struct lib_detour *d = s->window->detours;

	while (d && d->set != set)
		d = d->next;
	if (d)
		return d->d;
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->set = set;
	d->d = make_detour(s, set);
	if (!d->d) {
		free(d);
		return NULL;
	}
	d->next = s->window->detours;
	s->window->detours = d;
	return d->d;
}

/* Traps go on in the copies, if threads may be inside; the hit path knows where that is. */
static void publish(struct lib_site *s, const struct ukp_detour *d)
{
	const struct plan_window *w = &s->window->w;
	unsigned int i;

	for (i = 0; i < w->nr; i++)
		site_set_resume(s->addr + w->insn[i].off, d ? d->buf + d->insn[i].copy : 0);
	__atomic_store_n(&s->over, d, __ATOMIC_RELEASE);
}

/* Calls are followed from the entry of a function, which heads its window. */
static bool wants_calls(const struct lib_site *s)
{
	return s->followers && !s->slots;
}

bool jump_fits(const struct lib_site *s)
{
	const struct lib_detour *d = s->head == s ? s->window->detours : NULL;

	while (d && d->d != s->over)
		d = d->next;
	return !d || d->set & CALLS || !wants_calls(s);
}

const char *jump_prepare(struct lib_site *s, const struct plan_targets *targets, uint64_t bias)
{
	const struct lib_window *old = s->window;
	struct err ignored = ERR_INIT;
	const struct ukp_detour *d;
	const char *why = NULL;
	unsigned int set;

	/* One that is not for this code any more is kept: a thread may be in its detours. */
	if (!old || old->targets != targets || old->reach < s->reach ||
	    !jump_text_is(s->addr, old->code, old->w.len))
		why = make_window(s, targets, bias);
	if (!why)
		why = look_inside(s, &set);
	if (why)
		return why;
	if (set & 1 && wants_calls(s))
		set |= CALLS;
	d = detour_for(s, set);
	if (!d || site_anchor(s, true, &ignored))
		return memory;
	publish(s, d);
	return NULL;
}

bool jump_must_settle(const struct lib_site *s)
{
	return s->window->w.nr > 1;
}

void jump_cancel(struct lib_site *s)
{
	struct err ignored = ERR_INIT;

	publish(s, NULL);
	site_anchor(s, false, &ignored);
}

/* The window's bytes with its breakpoints, and with its jump. */
static void both_forms(const struct lib_site *s, uint8_t traps[LIB_JUMP_SIZE],
                       uint8_t jump[LIB_JUMP_SIZE])
{
	const struct plan_window *w = &s->window->w;
	unsigned int i;

	memcpy(traps, s->over->orig, LIB_JUMP_SIZE);
	memcpy(jump, s->over->jump, LIB_JUMP_SIZE);
	/* What lies behind the jump keeps its breakpoints. */
	for (i = 0; i < w->nr && w->insn[i].off < LIB_JUMP_SIZE; i++)
		if (armed_at(s, w, i))
			traps[w->insn[i].off] = POKE_INT3;
}

void jump_mark(struct lib_site *s)
{
	struct kprobe *p;

	for (p = s->probes; p; p = p->ukp_next)
		if (s->head)
			__atomic_fetch_or(&p->flags, KPROBE_FLAG_OPTIMIZED, __ATOMIC_RELAXED);
		else
			__atomic_fetch_and(&p->flags, ~KPROBE_FLAG_OPTIMIZED, __ATOMIC_RELAXED);
}

/* Who stands under the jump knows its head, or no more. */
static void set_head(struct lib_site *s, struct lib_site *head)
{
	const struct plan_window *w = &s->window->w;
	unsigned int i;

	for (i = 0; i < w->nr; i++) {
		struct lib_site *t = site_find(s->addr + w->insn[i].off);

		if (!t || (head && !t->armed && t != head))
			continue;
		t->head = head;
		t->why = NULL;
		jump_mark(t);
	}
}

void jump_write(struct lib_site **head, size_t n)
{
	struct poke *v = calloc(n, sizeof(*v));
	size_t i;

	for (i = 0; i < n && v; i++) {
		v[i].addr = head[i]->addr;
		v[i].len = LIB_JUMP_SIZE;
		both_forms(head[i], v[i].from, v[i].to);
	}
	if (v)
		own_poke(v, n);
	for (i = 0; i < n; i++) {
		if (v && !v[i].error) {
			set_head(head[i], head[i]);
			continue;
		}
		jump_cancel(head[i]);
		jump_give_up(head[i], v && v[i].error == -EINVAL ? changed : memory);
	}
	free(v);
}

static void poke_back(const struct lib_site *s, struct poke *v)
{
	v->addr = s->addr;
	v->len = LIB_JUMP_SIZE;
	v->trap_to = 0;
	both_forms(s, v->to, v->from);
}

/* After that poke.  -EINVAL, -EIO: what is there isn't ours any more, or nothing is. */
static int taken_back(struct lib_site *s, int ret, struct err *err)
{
	if (ret && ret != -EINVAL && ret != -EIO)
		return err_set(err, ret, "cannot write text through /proc/self/mem: %s",
		               strerror(-ret));
	set_head(s, NULL);
	jump_cancel(s);
	opt_queue_window(s, s->window->w.len);
	return 0;
}

int jump_take_back(struct lib_site *s, struct err *err)
{
	struct poke v;

	poke_back(s, &v);
	own_poke(&v, 1);
	return taken_back(s, v.error, err);
}

int jump_take_back_all(struct err *err)
{
	struct lib_site *s = site_first(), *head[BATCH];
	struct poke v[BATCH];
	int ret = 0, one;
	size_t i, n;

	while (s && !ret) {
		for (n = 0; s && n < BATCH; s = s->next) {
			if (s->head != s)
				continue;
			poke_back(s, &v[n]);
			head[n++] = s;
		}
		own_poke(v, n);
		for (i = 0; i < n; i++) {
			one = taken_back(head[i], v[i].error, err);
			ret = ret ? ret : one;
		}
	}
	return ret;
}

bool jump_or_trap_is_there(const struct lib_site *s)
{
	const struct lib_site *at = s->head ? s->head : s;
	uint8_t now[LIB_JUMP_SIZE];

	if (s->head)
		return !own_read(at->addr, now, sizeof(now)) &&
		       !memcmp(now, at->over->jump, sizeof(now));
	return !own_read(at->addr, now, 1) && now[0] == POKE_INT3;
}

void jump_forget(struct lib_site *s)
{
	struct lib_site *head = jump_over(s->addr);

	if (head) {
		set_head(head, NULL);
		publish(head, NULL);
		head->armed = head->armed && !head->anchor;
		head->anchor = false;
	}
	s->window = NULL;
	s->covers = 0;
}
