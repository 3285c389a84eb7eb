/* SPDX-License-Identifier: MIT */
/* Drafts; making.c makes windows of them. */
#include "session/cover.h"

#include <stdlib.h>
#include <string.h>

#include "patch/deny.h"

#define PIECE (64u << 10)

int cover_open(struct cover *c, struct modules *m)
{
	c->modules = m;
	c->code = malloc(PIECE);
	c->chunk = malloc(COVER_CHUNK);
	c->stays = stays_open();
	if (c->code && c->chunk && c->stays)
		return 0;
	cover_close(c);
	return -ENOMEM;
}

void cover_close(struct cover *c)
{
	free(c->code);
	free(c->chunk);
	stays_close(c->stays);
	free(c->shape);
	free(c->shape_off);
	free(c->rest);
}

/* Go no further than its targets are known. */
static void keep_to_range(struct cover *c)
{
	uint64_t from, to;

	plan_targets_range(c->targets, &from, &to);
	/* For all addresses: it is for no other module. */
	if (to == UINT64_MAX)
		return;
	c->start = from + c->bias;
	c->end = to + c->bias;
}

bool cover_module(struct target *t, struct cover *c, uint64_t addr)
{
	const struct sym_map *m;

	if (addr - c->start < c->end - c->start)
		return c->ready;
	m = sym_map_find(t->sym, addr);
	c->code_len = 0;
	c->targets = NULL;
	c->ready = modules_ready(c->modules, m ? m->module : NULL, addr);
	/* That of another place in it may be there. */
	c->start = c->map_start = c->ready ? m->start : addr;
	c->end = c->map_end = c->ready ? m->end : addr;
	c->why = c->ready ? deny_jumps(m->module) : NULL;
	if (c->ready && !c->why && !stays_module(c->stays, t->sym, m->module))
		c->targets = modules_targets(c->modules, m->module, addr, &c->bias);
	if (c->targets)
		keep_to_range(c);
	return c->ready;
}

/* Up to n of the file's bytes. */
static size_t read_code(struct target *t, struct cover *c, uint64_t addr, uint8_t *to, size_t n)
{
	size_t len;

	if (addr + n > c->end)
		n = c->end - addr;
	if (!c->code_len || addr < c->code_at || addr + n > c->code_at + c->code_len) {
		c->code_at = addr & ~63ull;
		if (c->code_at < c->start)
			c->code_at = c->start;
		len = c->end - c->code_at < PIECE ? c->end - c->code_at : PIECE;
		while (len && sym_original(t->sym, c->code_at, c->code, len))
			len = len > 4096 ? (len - 1) & ~4095ul : len / 2;
		c->code_len = len;
	}
	if (addr - c->code_at >= c->code_len)
		return 0;
	if (n > c->code_at + c->code_len - addr)
		n = c->code_at + c->code_len - addr;
	memcpy(to, c->code + (addr - c->code_at), n);
	return n;
}

static struct plan_window_request request(const struct cover *c, const struct draft *f)
{
	return (struct plan_window_request){
		.targets = c->targets, .code = f->code, .avail = f->avail, .addr = f->addr - c->bias
	};
}

/* Are these the nops of a function's entry?  Elsewhere one aligns what is jumped to. */
static bool at_entry(struct target *t, struct cover *c, const struct draft *f)
{
	const struct plan_region *r = plan_targets_region(c->targets, f->addr - c->bias);
	uint8_t code[2 * UKP_INSN_MAX];
	uint64_t start;
	int off;

	if (!r)
		return false;
	start = r->start + c->bias;
	off = plan_ftrace_offset(code, read_code(t, c, start, code, sizeof(code)));
	return off >= 0 && f->addr == start + (unsigned int)off;
}

const char *cover_at(struct target *t, struct cover *c, uint64_t addr, struct draft *f)
{
	struct plan_window_request req;

	if (!c->targets)
		return c->why ? c->why : "the module's code could not be followed";
	f->addr = f->text = addr;
	f->avail = read_code(t, c, addr, f->code, sizeof(f->code));
	req = request(c, f);
	if (plan_window(&req, &f->w)) {
		f->w.ftrace = f->w.ftrace && at_entry(t, c, f);
		return stays_why(c->stays, addr, addr + f->w.covered);
	}
	return f->w.why == PLAN_WINDOW_COPY ? plan_reason(f->w.refusal)
	                                    : plan_window_reason(f->w.why);
}

static bool covers(const struct draft *f, uint64_t addr)
{
	unsigned int i;

	for (i = 0; i < f->w.nr; i++)
		if (f->addr + f->w.insn[i].off == addr)
			return true;
	return false;
}

bool cover_entered(const struct cover *c, uint64_t addr, unsigned int back)
{
	return !c->targets ||
	       plan_targets_any(c->targets, addr - back + 1 - c->bias, addr + 1 - c->bias);
}

bool cover_back(struct target *t, struct cover *c, uint64_t addr, unsigned int back,
                struct draft *f)
{
	if (addr - back < c->start || !c->targets ||
	    !plan_targets_boundary(c->targets, addr - back - c->bias) ||
	    cover_at(t, c, addr - back, f))
		return false;
	while (f->addr + f->w.len <= addr && cover_extend(c, f))
		;
	return covers(f, addr);
}

bool cover_extend(const struct cover *c, struct draft *f)
{
	struct plan_window_request req = request(c, f);
	struct plan_window longer = f->w;

	if (!plan_window_extend(&req, &longer) ||
	    stays_why(c->stays, f->addr + f->w.len, f->addr + longer.len))
		return false;
	f->w = longer;
	return true;
}

bool cover_ftrace(struct target *t, struct cover *c, struct site *s, struct draft *f)
{
	const uint64_t link = s->addr - c->bias;
	const struct plan_region *r;
	int off;

	if (!c->targets)
		return false;
	r = plan_targets_region(c->targets, link);
	f->avail = read_code(t, c, s->addr, f->code, sizeof(f->code));
	off = plan_ftrace_offset(f->code, f->avail);
	/* What jumps behind the endbr64 would be counted, too. */
	if (off <= 0 || !r || r->start != link ||
	    plan_targets_any(c->targets, link + 1, link + (unsigned int)off + 1) ||
	    cover_at(t, c, s->addr + (unsigned int)off, f) || !f->w.ftrace)
		return false;
	f->text = s->addr;
	memset(f->site, 0, sizeof(f->site));
	f->site[0] = s;
	f->probes = 1;
	return true;
}

/* The registers that the steps read, as words of struct pt_regs. */
static uint32_t read_by(const struct ukp_fetch *s, unsigned int n)
{
	uint32_t saves = 0;

	for (; n; n--, s++)
		if (s->op == UKP_FETCH_REG)
			saves |= s->imm / 8 < UKP_DETOUR_WORDS ? 1u << s->imm / 8 : PLAN_SAVE_ALL;
		else if (s->op == UKP_FETCH_STACKP || s->op == UKP_FETCH_STACK)
			saves |= PLAN_SAVE(sp);
	return saves;
}

/* What the engine's actions look at, beside what it clobbers as any C function. */
static uint32_t reads(const struct probe *p)
{
	const struct ukp_event *ev = p->head ? p->head->event : p->event;

	switch (p->kind) {
	case PROBE_COUNT:
		return 0;
	case PROBE_LATENCY:
	case PROBE_COUNT_RETURN:
		return PLAN_SAVE(sp);
	case PROBE_RETURN:
		return PLAN_SAVE(sp) | read_by(ev->steps, ev->nr_entry);
	case PROBE_ENTRY:
		return read_by(ev->steps, ev->nr_entry + ev->nr_steps);
	case PROBE_EXIT:
		ev = p->of->head ? p->of->head->event : p->of->event;
		return PLAN_SAVE(sp) | (ev ? read_by(ev->steps + ev->nr_entry, ev->nr_steps) : 0);
	default:
		return PLAN_SAVE_ALL;
	}
}

bool cover_form(struct target *t, struct draft *f)
{
	const struct probe *p;
	unsigned int i;

	f->count = true;
	f->call = f->flow = false;
	f->saves = PLAN_SAVE_CALL;
	for (i = 0; i < UKP_WINDOW_INSNS; i++) {
		if (!(f->probes >> i & 1))
			continue;
		for (p = f->site[i]->probes; p; p = p->next) {
			f->saves |= reads(p);
			f->call |= i == 0 && probe_follows(p);
			f->flow |= p->kind == PROBE_INTERNAL;
			/* That form looks no further than whether it is in a child. */
			if (p->kind != PROBE_COUNT || p->chan->follow || !p->enabled || p->next ||
			    p != f->site[i]->probes)
				f->count = false;
		}
	}
	if (f->count)
		f->saves = 0;
	return f->text == f->addr || !(f->saves & PLAN_SAVE(ip));
}
