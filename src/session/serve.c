/* SPDX-License-Identifier: MIT */
/* Requests of one client, answered by the broker. */
#include "session/exits.h"
#include "session/budget.h"
#include "session/hazard.h"
#include "session/live.h"
#include "session/optimize.h"
#include "session/pending.h"
#include "session/serve.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(struct proto_reply *r, int ret, const struct err *err)
{
	r->ret = ret;
	r->column = err->column;
	snprintf(r->data, sizeof(r->data), "%s", err->text);
	r->len = strlen(r->data) + 1;
	return ret;
}

__attribute__((format(printf, 3, 4))) static int refuse(struct proto_reply *r, int ret,
                                                        const char *fmt, ...)
{
	struct err err = ERR_INIT;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err.text, sizeof(err.text), fmt, ap);
	va_end(ap);
	return fail(r, ret, &err);
}

static int serve_open(struct client *c, const struct proto_request *q, struct proto_reply *r,
                      int *pass_fd)
{
	struct target *t = c->broker->target;
	struct proto_open *o = (struct proto_open *)r->data;
	struct err err = ERR_INIT;
	const char *hazard;
	int ret;

	if (q->arg != PROTO_VERSION)
		return refuse(r, -EPROTO, "the broker of process %d is another version", t->pid);
	if (c->chan)
		return refuse(r, -EBUSY, "open already");
	ret = chan_open(t, &c->chan, &err);
	if (ret)
		return fail(r, ret, &err);
	o->chan_size = c->chan->size;
	o->launched = c->broker->launched;
	o->pid = t->pid;
	hazard = t->no_traps
	                 ? "a thread blocks SIGTRAP: there are jumps alone, where there is room "
	                   "for one, that record registers, and no returns"
	                 : hazard_find(t->sym, t->pid, t->altstack);
	snprintf(o->hazard, sizeof(o->hazard), "%s", hazard ? hazard : "");
	r->len = sizeof(*o);
	*pass_fd = c->chan->fd;
	return 0;
}

static void describe(struct target *t, const struct probe *p, struct proto_event *e)
{
	uint64_t stride = (sizeof(struct ukp_hist) + 4095) & ~4095ull;

	e->id = p->id;
	e->ret = probe_returns(p);
	e->addr = p->addr;
	e->err_kind = p->err_kind;
	snprintf(e->group, sizeof(e->group), "%s", p->def->group);
	snprintf(e->name, sizeof(e->name), "%s", p->def->event);
	snprintf(e->func, sizeof(e->func), "%s", p->name);
	e->nr_places = p->nr_members;
	e->counter = p->counter;
	if (probe_is_many(p))
		snprintf(e->place, sizeof(e->place), "%s%s%s%s",
		         p->def->place.module ? p->def->place.module : "",
		         p->def->place.module ? ":" : "", p->def->place.sym,
		         p->def->many == LANG_INSNS ? "+*" : "");
	else if (p->late)
		probe_place(p, e->place, sizeof(e->place));
	else
		sym_format(t->sym, p->addr, e->place, sizeof(e->place));
	if (probe_counts(p))
		return;
	if (p->kind == PROBE_LATENCY) {
		e->hist_stride = stride;
		e->hist_shards = ukp_chan_hist_shards(&p->chan->layout);
		e->hist_off =
			p->chan->layout.off_hists + (uint64_t)p->hist * e->hist_shards * stride;
		return;
	}
	e->nr_fields = p->def->nr_args;
	memcpy(e->fields, p->fields, e->nr_fields * sizeof(*e->fields));
}

static int serve_add(struct client *c, const struct proto_request *q, struct proto_reply *r)
{
	struct proto_event *e = (struct proto_event *)r->data;
	struct err err = ERR_INIT;
	struct probe *p;
	char *text;
	int ret;

	text = strndup(q->data, q->len);
	if (!text)
		return refuse(r, -ENOMEM, "out of memory");
	c->chan->strict = c->chan->strict || (q->arg & PROTO_STRICT);
	c->chan->any_text = q->arg & PROTO_ANY_TEXT;
	c->chan->follow = c->chan->follow || (q->arg & PROTO_FOLLOW);
	c->chan->leaving = false;
	ret = probe_add(c->chan, text,
	                q->type == PROTO_ADD_LATENCY ? ADD_LATENCY
	                : q->type == PROTO_ADD_COUNT ? ADD_COUNT
	                                             : ADD_EVENT,
	                (enum plan_mechanism)(q->arg >> PROTO_RET_SHIFT & 3), &p, &err);
	free(text);
	if (ret)
		return fail(r, ret, &err);
	memset(e, 0, sizeof(*e));
	describe(c->broker->target, p, e);
	r->len = sizeof(*e) + e->nr_fields * sizeof(*e->fields);
	return 0;
}

static int serve_start(struct client *c, struct proto_reply *r)
{
	struct err err = ERR_INIT;
	int ret;

	target_refresh(c->broker->target, &err);
	chan_warm(c->chan);
	ret = probe_start(c->chan, &err);
	if (ret)
		return fail(r, ret, &err);
	if (c->broker->launched) {
		c->broker->launched = false;
		target_release(c->broker->target);
	}
	r->ret = c->chan->waiting < INT32_MAX ? (int32_t)c->chan->waiting : INT32_MAX;
	return 0;
}

/* The kernel's kprobes/list line, then the form and why it is no better one. */
static int list_line(struct target *t, const struct probe *p, char *buf, size_t len)
{
	char nameless[32];
	struct sym_symbol s = { .name = nameless };
	const char *module = "";
	char form[320] = "";
	uint64_t off = 0;
	bool ret;

	snprintf(nameless, sizeof(nameless), "0x%" PRIx64, p->addr);
	if (sym_resolve(t->sym, p->addr, &s, &off) && !sym_module_is_exe(s.module))
		module = sym_module_name(s.module);
	ret = probe_returns(p);
	if (ret)
		exits_print(p, form + snprintf(form, sizeof(form), " ret="), sizeof(form) - 5);
	return snprintf(buf, len, "%016" PRIx64 "  %c  %s+0x%" PRIx64 "  %s %s%s%s %s\n", p->addr,
	                ret ? 'r' : 'k', s.name, off, module, p->enabled ? "" : "[DISABLED]",
	                optimize_mark(p->site), form, optimize_form(t, p->site));
}

/* False: the reply is full. */
static bool list_probe(struct target *t, const struct probe *p, struct proto_reply *r)
{
	int n = list_line(t, p, r->data + r->len, sizeof(r->data) - r->len);

	if (n < 0 || (size_t)n >= sizeof(r->data) - r->len)
		return false;
	r->len += n;
	r->ret++;
	return true;
}

/* Lines of earlier replies; *i: how many members to pass over. */
static uint32_t pass_over(const struct probe *p, uint32_t line, uint32_t from, size_t *i)
{
	*i = 0;
	/* Where each member has a line, they need not be counted one by one. */
	if (p->planted && p->nr_planted == p->nr_members && from > line)
		*i = from - line < p->nr_members ? from - line : p->nr_members;
	return line + (uint32_t)*i;
}

static int serve_list(struct broker *b, const struct proto_request *q, struct proto_reply *r)
{
	uint32_t line = 0;
	struct chan *c;
	struct probe *p;
	size_t i;

	for (c = b->target->chans; c; c = c->next)
		for (p = c->probes; p; p = p->next_mine) {
			line = pass_over(p, line, q->arg, &i);
			for (; i < p->nr_members; i++)
				if (p->member[i].site && line++ >= q->arg &&
				    !list_probe(b->target, &p->member[i], r))
					return 0;
			if (p->site && line++ >= q->arg && !list_probe(b->target, p, r))
				return 0;
		}
	return 0;
}

/* Also of a dead target: what was counted stays. */
static int serve_places(struct client *c, const struct proto_request *q, struct proto_reply *r)
{
	struct probe *p = probe_find(c->chan, q->arg);
	uint64_t *addr = (uint64_t *)r->data;
	char digits[16];
	size_t i;

	snprintf(digits, sizeof(digits), "%.*s", (int)q->len, q->data);
	for (i = strtoul(digits, NULL, 10); p && i < p->nr_members; i++) {
		if (r->len + sizeof(*addr) > sizeof(r->data))
			break;
		*addr++ = p->member[i].gone ? 0 : p->member[i].addr;
		r->len += sizeof(*addr);
	}
	return 0;
}

static int serve_simple(struct client *c, const struct proto_request *q, struct proto_reply *r)
{
	struct err err = ERR_INIT;
	int ret;

	target_refresh(c->broker->target, &err);
	switch (q->type) {
	case PROTO_REMOVE:
		ret = probe_remove(c->chan, q->arg, &err);
		break;
	case PROTO_ENABLE:
		ret = probe_enable(c->chan, q->arg >> 1, q->arg & 1, &err);
		break;
	case PROTO_STOP:
		ret = chan_stop(c->chan, &err);
		break;
	case PROTO_BUDGET:
		ret = budget_set(c->chan, q->arg / 1e6);
		break;
	default:
		ret = err_set(&err, -EPROTO, "unknown request");
	}
	return ret ? fail(r, ret, &err) : 0;
}

static bool changes_text(uint32_t type)
{
	switch (type) {
	case PROTO_ADD:
	case PROTO_ADD_LATENCY:
	case PROTO_ADD_COUNT:
	case PROTO_START:
	case PROTO_REMOVE:
	case PROTO_ENABLE:
	case PROTO_STOP:
		return true;
	default:
		return false;
	}
}

static int serve(struct client *c, const struct proto_request *q, struct proto_reply *r,
                 int *pass_fd)
{
	struct err err = ERR_INIT;
	int ret;

	*pass_fd = -1;
	r->ret = 0;
	r->column = -1;
	r->len = 0;
	if (q->type == PROTO_LIST)
		return serve_list(c->broker, q, r);
	if (q->type == PROTO_OPEN)
		return serve_open(c, q, r, pass_fd);
	if (!c->chan)
		return refuse(r, -EPROTO, "not open");
	if (q->type == PROTO_PLACES)
		return serve_places(c, q, r);
	if (q->type == PROTO_PENDING || q->type == PROTO_DROPPED) {
		if (q->type == PROTO_DROPPED)
			live_look(c->broker->target);
		if (q->type == PROTO_PENDING)
			pending_print(c->chan, r->data, sizeof(r->data));
		else
			chan_dropped(c->chan, r->data, sizeof(r->data));
		r->len = strlen(r->data) + 1;
		return 0;
	}
	if (c->broker->target->dead)
		return q->type == PROTO_STOP || q->type == PROTO_REMOVE
		               ? 0
		               : refuse(r, -ESRCH, "process %d is gone", c->broker->target->pid);
	/*
	 * Changes start from breakpoints.  Taking probes out goes as far as it
	 * can all the same: their actions are gone at least.
	 */
	c->chan->leaving = c->chan->leaving || q->type == PROTO_STOP;
	ret = changes_text(q->type) ? optimize_off_for(c->broker->target, c->chan, &err) : 0;
	if (ret && q->type != PROTO_STOP && q->type != PROTO_REMOVE)
		return fail(r, ret, &err);
	switch (q->type) {
	case PROTO_ADD:
	case PROTO_ADD_LATENCY:
	case PROTO_ADD_COUNT:
		return serve_add(c, q, r);
	case PROTO_START:
		return serve_start(c, r);
	case PROTO_REFUSED:
		tally_print(&c->chan->refused, r->data, sizeof(r->data));
		r->len = strlen(r->data) + 1;
		return 0;
	default:
		return serve_simple(c, q, r);
	}
}

int serve_request(struct client *c, const struct proto_request *q, struct proto_reply *r,
                  int *pass_fd)
{
	struct broker *b = c->broker;
	int ret = serve(c, q, r, pass_fd);
	uint64_t now;

	if (r->ret >= 0)
		return ret;
	/* Whatever it was that failed: this is why.  0: it has ended, no more. */
	now = proto_program(b->target->pid);
	if (now && now != b->program)
		return refuse(r, -ESRCH, "process %d has executed another program", b->target->pid);
	return ret;
}
