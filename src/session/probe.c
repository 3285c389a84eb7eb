/* SPDX-License-Identifier: MIT */
/*
 * Probes of a channel: from a line of text to a plan.  Nothing here changes
 * the target; plant.c does.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"
#include "session/deny.h"
#include "session/target.h"

static void probe_free(struct probe *p)
{
	if (!p)
		return;
	lang_free(p->def);
	free(p->name);
	free(p->module);
	free(p->event);
	free(p->fields);
	free(p);
}

void probe_free_all(struct target *t, struct probe *list)
{
	while (list) {
		struct probe *next = list->next_mine;

		probe_free(list);
		list = next;
	}
}

struct probe *probe_find(struct chan *c, uint32_t id)
{
	struct probe *p;

	for (p = c->probes; p; p = p->next_mine)
		if (p->id == id)
			return p;
	return NULL;
}

static int check_map(struct target *t, uint64_t addr, int column, struct err *err)
{
	const struct sym_map *m = sym_map_find(t->sym, addr);

	if (!m || !m->x)
		return err_at(err, -EINVAL, column,
		              "Invalid probed address or symbol: %#" PRIx64
		              " is not executable memory",
		              addr);
	if (!strcmp(m->path, "[vsyscall]") || !m->module)
		return err_at(
			err, -EINVAL, column,
			"Failed to register probe event: %#" PRIx64
			" is in %s, not in a file's code; only code that can be compared with "
			"its file is probed",
			addr, m->path[0] ? m->path : "anonymous memory");
	if (m->w)
		return err_at(err, -EINVAL, column,
		              "Failed to register probe event: %#" PRIx64
		              " is in writable code, which may change under a probe",
		              addr);
	if (m->shared)
		return err_at(err, -EINVAL, column,
		              "Failed to register probe event: %s is mapped shared, a probe would "
		              "change the file",
		              m->path);
	return 0;
}

/* From where a linear decode is sure to be on boundaries. */
static uint64_t decode_start(struct target *t, uint64_t addr, bool *signal)
{
	uint64_t start, end;
	const struct sym_map *m;
	struct sym_symbol s;
	uint64_t off;

	*signal = false;
	if (!sym_bounds(t->sym, addr, &start, &end, signal))
		return start;
	if (sym_resolve(t->sym, addr, &s, &off))
		return s.addr;
	m = sym_map_find(t->sym, addr);
	return m ? m->start : addr;
}

static int check_boundary(struct target *t, uint64_t addr, int column, struct err *err)
{
	enum plan_refusal why;
	uint64_t start;
	uint8_t *code;
	bool signal;
	size_t len;
	int ret;

	start = decode_start(t, addr, &signal);
	if (signal)
		return err_at(err, -EINVAL, column,
		              "Failed to register probe event: signal handlers return through this "
		              "code, unwinders know it by its bytes");
	len = addr - start + UKP_INSN_MAX;
	code = malloc(len);
	if (!code)
		return err_set(err, -ENOMEM, "out of memory");
	while (len > addr - start && sym_original(t->sym, start, code, len))
		len--;
	why = len > addr - start ? plan_boundary(code, len, start, addr) : PLAN_UNDECODABLE;
	free(code);
	ret = plan_errno(why);
	if (why == PLAN_NOT_BOUNDARY)
		return err_at(err, ret, column, "Probe point is not an instruction boundary");
	if (why != PLAN_OK)
		return err_at(err, ret, column, "Failed to register probe event: %s",
		              plan_reason(why));
	return 0;
}

int probe_original(struct target *t, uint64_t addr, uint8_t code[UKP_INSN_MAX], size_t *len)
{
	*len = UKP_INSN_MAX;
	while (*len && sym_original(t->sym, addr, code, *len))
		--*len;
	return *len ? 0 : -EIO;
}

/* A trial copy: most refusals do not depend on where the slot lies. */
static int check_plan(struct target *t, uint64_t addr, int column, struct err *err)
{
	uint8_t code[UKP_INSN_MAX], now[UKP_INSN_MAX], out[UKP_SLOT_SIZE];
	struct plan_request req = { .code = code, .addr = addr, .slot = addr + (16u << 20) };
	struct ukp_site site = { 0 };
	enum plan_refusal why;
	size_t i;

	if (probe_original(t, addr, code, &req.avail))
		return err_at(err, -EIO, column,
		              "Failed to register probe event: the file's bytes "
		              "at this place cannot be read");
	why = plan_copy(&req, out, &site);
	if (why != PLAN_OK && why != PLAN_OUT_OF_REACH)
		return err_at(err, plan_errno(why), column, "Failed to register probe event: %s",
		              plan_reason(why));
	for (i = 0; i < t->nr_sites; i++)
		if (t->sites[i]->addr == addr)
			return 0;
	if (!inject_read(t->inject, addr, now, site.len) && memcmp(now, code, site.len))
		return err_at(err, -EBUSY, column,
		              "Failed to register probe event: the bytes in memory differ from the "
		              "file's, someone else has changed them");
	return 0;
}

static int check_place(struct target *t, uint64_t addr, bool ret_probe, int column, struct err *err)
{
	const char *why;
	int ret = check_map(t, addr, column, err);

	if (ret)
		return ret;
	why = deny_check(t->sym, addr, ret_probe);
	if (why)
		return err_at(err, -EINVAL, column, "Failed to register probe event: %s", why);
	ret = check_boundary(t, addr, column, err);
	return ret ? ret : check_plan(t, addr, column, err);
}

static int name_probe(struct target *t, struct probe *p)
{
	struct sym_symbol s;
	uint64_t off = 0;

	if (sym_resolve(t->sym, p->addr, &s, &off)) {
		p->name = strdup(s.name);
		p->module = strdup(sym_module_is_exe(s.module) ? "" : sym_module_name(s.module));
	} else {
		p->name = strdup("");
		p->module = strdup("");
	}
	p->name_off = off;
	return p->name && p->module ? 0 : -ENOMEM;
}

static int fill_probe(struct chan *c, struct probe *p, const char *text, bool latency,
                      struct err *err)
{
	struct target *t = c->target;
	struct sym_symbol func;
	int ret;

	ret = latency ? lang_parse_latency(&p->def, &p->err_kind, text, err)
	              : lang_parse(&p->def, text, err);
	if (!ret)
		ret = sym_refresh(t->sym, err);
	if (!ret)
		ret = lang_resolve(p->def, t->sym, &p->addr, &func, err);
	if (ret)
		return ret;
	p->kind = latency ? PROBE_LATENCY : p->def->ret ? PROBE_RETURN : PROBE_ENTRY;
	ret = check_place(t, p->addr, p->kind != PROBE_ENTRY, p->def->place.column, err);
	if (!ret && !latency)
		ret = lang_compile(p->def, t->sym, &p->event, &p->fields, err);
	if (!ret && name_probe(t, p))
		ret = err_set(err, -ENOMEM, "out of memory");
	return ret;
}

int probe_add(struct chan *c, const char *text, bool latency, struct probe **ret_p, struct err *err)
{
	struct probe *p, **tail;
	int ret;

	if (c->next_id >= UKP_CHAN_STATS || (latency && c->next_hist >= UKP_CHAN_HISTS))
		return err_set(err, -ENOSPC, "too many probes in one session");
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(err, -ENOMEM, "out of memory");
	ret = fill_probe(c, p, text, latency, err);
	if (ret) {
		probe_free(p);
		return ret;
	}
	p->chan = c;
	p->id = c->next_id++;
	p->enabled = true;
	if (latency)
		p->hist = c->next_hist++;
	for (tail = &c->probes; *tail; tail = &(*tail)->next_mine)
		;
	*tail = p;
	*ret_p = p;
	return 0;
}

int probe_internal(struct target *t, const char *module, const char *sym, uint32_t agent_fn,
                   struct err *err)
{
	struct sym_symbol s[8];
	size_t n = sym_lookup(t->sym, NULL, sym, s, 8), i;
	struct err ignored = ERR_INIT;
	int ret = 0;

	for (i = 0; i < n && i < 8 && !ret; i++) {
		struct probe *p;

		/* Where it can't be probed we do without: the program runs as before. */
		if (!s[i].func || s[i].ifunc || check_place(t, s[i].addr, false, -1, &ignored))
			continue;
		p = calloc(1, sizeof(*p));
		if (!p)
			return err_set(err, -ENOMEM, "out of memory");
		p->kind = PROBE_INTERNAL;
		p->addr = s[i].addr;
		p->enabled = true;
		p->id = agent_fn;
		p->next_mine = t->internal;
		t->internal = p;
		ret = probe_plant(t, p, err);
	}
	return ret;
}
