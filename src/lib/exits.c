/* SPDX-License-Identifier: MIT */
/*
 * How a function's returns are caught: the choice, and exit sites.
 *
 * An exit is a site as any other is, with a list of those whose calls end there.
 * While it is in a list it is armed, also of a disabled probe: calls that were
 * followed are reported.  Exits come before the entry and go after it, so that
 * no followed call is without; what remains of an unregistered probe's calls is
 * forgotten once nobody can be at it any more.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/arch.h"
#include "engine/frames.h"
#include "lib/jump.h"
#include "lib/lib.h"
#include "lib/sets.h"
#include "patch/deny.h"
#include "patch/place.h"
#include "patch/survey.h"
#include "plan/returns.h"

static const char asked[] = "as asked for";
static const char jumps[] = "its entry has the jump form";
static const char inside[] = "its entry is inside the jump of another probe";
static const char others[] = "another probe there asks for slot overwrite";

static int wish(unsigned int flags, uint8_t *want, struct err *err)
{
	switch (flags & UKP_BY_MASK) {
	case 0:
		*want = PLAN_BY_NONE;
		return 0;
	case UKP_BY_EXIT:
		*want = PLAN_BY_EXIT;
		return 0;
	case UKP_BY_CALL:
		*want = PLAN_BY_CALL;
		return 0;
	case UKP_BY_SLOT:
		*want = PLAN_BY_SLOT;
		return 0;
	default:
		return err_set(err, -EINVAL, "more than one mechanism is asked for");
	}
}

/* Why no exit may be at addr, or NULL; good until the next question. */
static const char *refused_at(struct sym_proc *sym, struct survey *survey, uint64_t addr)
{
	static struct err err;
	const char *why = name_denied_here(sym, addr);

	if (why || survey)
		return why ? why : survey_check(survey, addr, NULL);
	why = name_denied(sym, addr);
	if (why)
		return why;
	return place_check(sym, addr, false, NULL, -1, &err) ? err.text : NULL;
}

static int take_exits(struct sym_proc *sym, struct survey *survey, const struct plan_exits *exits,
                      const struct plan_function *fn, uint64_t bias, struct lib_returns *x,
                      struct err *err)
{
	const struct plan_way_out *way = plan_exits_ways(exits, fn);
	const char *why;
	uint32_t i;

	x->exit = calloc(fn->nr_exits + 1, sizeof(*x->exit));
	if (!x->exit)
		return err_set(err, -ENOMEM, "out of memory");
	for (i = 0; i < fn->nr_exits; i++) {
		x->exit[i].addr = way[i].addr + bias;
		x->exit[i].window = way[i].window ? way[i].window + bias : 0;
		/* There will be a breakpoint, for a moment. */
		if (x->exit[i].window && refused_at(sym, survey, x->exit[i].window))
			x->exit[i].window = 0;
		why = refused_at(sym, survey, x->exit[i].addr);
		if (!why)
			continue;
		exits_free(x);
		return err_set(err, -EINVAL, "its exit at +%#lx can't be probed: %s",
		               way[i].addr - fn->start, why);
	}
	x->nr = fn->nr_exits;
	return 0;
}

/* enum plan_window_why of a jump at addr, by the module's file. */
static uint8_t entry_window(struct sym_proc *sym, uint64_t addr)
{
	uint8_t code[PLAN_WINDOW_MAX];
	uint64_t bias = 0;
	struct plan_window_request req = { .targets = sets_targets(addr, &bias),
		                           .code = code,
		                           .avail = sizeof(code) };
	struct plan_window w;

	while (req.avail && sym_original(sym, addr, code, req.avail))
		req.avail--;
	req.addr = addr - bias;
	if (!req.targets || !req.avail)
		return PLAN_WINDOW_UNKNOWN;
	plan_window(&req, &w);
	return w.why;
}

/* By the plan of its module.  must: why the return address has to stay, or NULL. */
static int plan(struct sym_proc *sym, uint64_t addr, uint8_t want, const char *must,
                struct survey *survey, struct lib_returns *x, struct err *err)
{
	uint64_t bias = 0;
	const struct plan_exits *exits = sets_exits(addr, &bias);
	struct plan_return_request req = { .fn = exits ? plan_exits_find(exits, addr - bias) : NULL,
		                           .want = want,
		                           .entry = PLAN_WINDOW_UNKNOWN,
		                           .stays = must != NULL };
	struct plan_return r;

	if (!plan_return(&req, &r)) {
		if (must)
			return err_set(err, -EINVAL, "%s, and exit sites don't serve: %s", must,
			               plan_return_reason(&r));
		return err_set(err, -EINVAL, "%s", plan_return_reason(&r));
	}
	x->by = r.by;
	x->why = plan_return_reason(&r);
	if (r.by != PLAN_BY_EXIT)
		return 0;
	/* It would be entered behind its start. */
	if (req.fn->entry != req.fn->start)
		return err_set(err, -EINVAL, "it jumps to its own start");
	return take_exits(sym, survey, exits, req.fn, bias, x, err);
}

int exits_choose(struct sym_proc *sym, uint64_t addr, unsigned int flags, const char *must,
                 struct survey *survey, struct lib_returns *x, struct err *err)
{
	struct sym_module *m = sym_module_of(sym, addr);
	uint8_t want = PLAN_BY_NONE, window;
	int ret = wish(flags, &want, err);

	*x = (struct lib_returns){ .want = want, .by = PLAN_BY_SLOT, .why = asked };
	if (ret)
		return ret;
	if (must && (want == PLAN_BY_SLOT || want == PLAN_BY_CALL || !m || deny_module(sym, m)))
		return err_set(err, -EINVAL, "%s", must);
	if (must || want == PLAN_BY_EXIT)
		return plan(sym, addr, want, must, survey, x, err);
	if (want == PLAN_BY_CALL && (window = entry_window(sym, addr)))
		return err_set(err, -EINVAL, "%s",
		               plan_window_reason((enum plan_window_why)window));
	return 0;
}

void exits_free(struct lib_returns *x)
{
	free(x->exit);
	x->exit = NULL;
	x->nr = 0;
}

/* --- sites ------------------------------------------------------------------------- */

/* Behind those that were hooked later: fprobes' before kprobes', older ones before newer. */
static struct lib_exit **place_for(struct lib_site *s, bool fprobe)
{
	struct lib_exit **q = &s->exits;

	while (*q && (fprobe || !(*q)->fprobe))
		q = &(*q)->next;
	return q;
}

static void unlink_one(struct lib_exit *x)
{
	struct err ignored = ERR_INIT;
	struct lib_exit **q;

	if (!x->site)
		return;
	for (q = &x->site->exits; *q != x; q = &(*q)->next)
		;
	/* A thread that is at x still finds its way to the next. */
	__atomic_store_n(q, x->next, __ATOMIC_RELEASE);
	site_update(x->site, &ignored);
	x->site = NULL;
}

void exits_unlink(struct lib_returns *x)
{
	uint32_t i;

	for (i = 0; i < x->nr; i++)
		unlink_one(&x->exit[i]);
}

static int link_one(struct lib_exit *x, uint64_t ctx, bool fprobe, struct err *err)
{
	struct lib_site *s, *from = NULL;
	struct lib_exit **q;
	int ret = site_get(x->addr, false, &s, err);

	if (ret)
		return ret;
	if (!s->armed && !jump_text_is(x->addr, s->site->orig, s->site->len))
		return err_set(err, -EINVAL, "the bytes at %#lx differ from the file's", x->addr);
	/* Without that the exit keeps its breakpoint. */
	if (x->window && x->window != x->addr && !site_get(x->window, false, &from, err))
		jump_reach(from, s);
	q = place_for(s, fprobe);
	x->ctx = ctx;
	x->fprobe = fprobe;
	x->site = s;
	x->next = *q;
	__atomic_store_n(q, x, __ATOMIC_RELEASE);
	ret = site_update(s, err);
	if (ret)
		unlink_one(x);
	return ret;
}

int exits_link(struct lib_returns *x, uint64_t ctx, bool fprobe, struct err *err)
{
	struct err why;
	uint32_t i;
	int ret = x->by == PLAN_BY_EXIT ? own_frames(err) : 0;

	for (i = 0; i < x->nr && !ret; i++)
		ret = link_one(&x->exit[i], ctx, fprobe, err);
	if (!ret)
		return 0;
	why = *err;
	exits_unlink(x);
	*err = why;
	return ret;
}

static int describe_exits(const struct lib_returns *x, char *buf, size_t len)
{
	const char *why = NULL;
	uint32_t i, n = 0;

	for (i = 0; i < x->nr; i++) {
		if (x->exit[i].site->head)
			continue;
		n++;
		why = opt_why(x->exit[i].site);
	}
	if (!n)
		snprintf(buf, len, "%s", x->why);
	else
		snprintf(buf, len, "%s; %u of %u exits by a breakpoint: %s", x->why, n, x->nr, why);
	return UKP_BY_EXIT;
}

int exits_describe(const struct lib_site *s, const struct lib_returns *x, char *buf, size_t len)
{
	const char *why = opt_why(s);

	if (x->by == PLAN_BY_EXIT)
		return describe_exits(x, buf, len);
	if (!why && s->head != s)
		why = inside;
	if (!why && s->slots)
		why = others;
	if (x->want == PLAN_BY_SLOT || (!why && x->want))
		snprintf(buf, len, "%s", asked);
	else
		snprintf(buf, len, "%s", why ? why : jumps);
	return why || x->want == PLAN_BY_SLOT ? UKP_BY_SLOT : UKP_BY_CALL;
}

/* --- records ------------------------------------------------------------------------- */

struct which {
	uint64_t ctx, low, high;
};

static bool is_meant(const struct ukp_instance *inst, void *arg)
{
	const struct which *w = arg;
	const uint64_t frame = __atomic_load_n(&inst->frame, __ATOMIC_RELAXED);

	if (w->ctx)
		return __atomic_load_n(&inst->key, __ATOMIC_RELAXED) == w->ctx;
	return frame >= w->low && frame < w->high;
}

static void drop(struct which *w)
{
	struct pt_regs regs = { 0 };
	struct ukp_hit hit = { .ctl = ukp_lib_ctl, .regs = &regs };

	if (!hit.ctl || !((struct ukp_priv *)hit.ctl->priv)->off_frames)
		return;
	hit.cpu = ukp_arch_cpu(hit.ctl);
	ukp_frames_drop(&hit, 0, UINT64_MAX, is_meant, w);
}

void exits_forget(uint64_t ctx)
{
	drop(&(struct which){ .ctx = ctx });
}

void exits_flush(uint64_t low, uint64_t high)
{
	drop(&(struct which){ .low = low, .high = high });
}
