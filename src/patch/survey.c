/* SPDX-License-Identifier: MIT */
/* Many places at once; see survey.h.  What is refused is what place.c refuses. */
#include "patch/survey.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "patch/deny.h"
#include "patch/place.h"

#define WINDOW (1u << 20)

struct survey {
	struct sym_proc *sym;
	bool ret;
	const struct sym_map *map; /* of the last address */
	const char *map_why;
	struct sym_module *module; /* that denied is of */
	struct denied *denied;
	/* a piece of a file as it is mapped at base */
	uint8_t *window;
	uint64_t base;
	size_t len;
	/* where the decode of a function has come to */
	uint64_t start, end, at;
	bool signal;
	uint64_t sigreturn; /* the system call of what handlers return through, when come by */
	const char *broken; /* it came no further */
	uint64_t last;      /* the last place that was decoded */
};

int survey_open(struct survey **ret, struct sym_proc *sym, bool ret_probe)
{
	struct survey *s = calloc(1, sizeof(*s));

	*ret = s;
	if (!s)
		return -ENOMEM;
	s->sym = sym;
	s->ret = ret_probe;
	s->window = malloc(WINDOW);
	if (s->window)
		return 0;
	free(s);
	return -ENOMEM;
}

void survey_close(struct survey *s)
{
	if (!s)
		return;
	denied_close(s->denied);
	free(s->window);
	free(s);
}

static const char handlers[] = "signal handlers return through it";

static const char *judge_map(const struct sym_map *m)
{
	if (!m || !m->x)
		return "it is not in executable memory";
	if (!strcmp(m->path, "[vsyscall]") || !m->module)
		return "it is not in a file's code";
	if (m->w)
		return "it is in writable code, which may change under a probe";
	if (m->shared)
		return "its file is mapped shared, a probe would change it";
	return NULL;
}

static const struct sym_map *find_map(struct survey *s, uint64_t addr)
{
	if (!s->map || addr - s->map->start >= s->map->end - s->map->start) {
		s->map = sym_map_find(s->sym, addr);
		s->map_why = judge_map(s->map);
	}
	return s->map;
}

/* Up to the end of the mapping or of the file, whichever comes first. */
static void load_window(struct survey *s, uint64_t addr)
{
	const struct sym_map *m = find_map(s, addr);
	size_t len;

	s->base = addr & ~4095ull;
	s->len = 0;
	if (!m)
		return;
	len = m->end - s->base < WINDOW ? m->end - s->base : WINDOW;
	while (len && sym_original(s->sym, s->base, s->window, len))
		len = len > 4096 ? (len - 1) & ~4095ul : len / 2;
	s->len = len;
}

const uint8_t *survey_code(struct survey *s, uint64_t addr, size_t *avail)
{
	const struct sym_map *m = find_map(s, addr);

	if (addr < s->base || addr >= s->base + s->len ||
	    (addr + UKP_INSN_MAX > s->base + s->len && m && s->base + s->len < m->end))
		load_window(s, addr);
	*avail = 0;
	if (addr < s->base || addr >= s->base + s->len)
		return s->window;
	*avail = s->base + s->len - addr;
	if (*avail > UKP_INSN_MAX)
		*avail = UKP_INSN_MAX;
	return s->window + (addr - s->base);
}

/* From where a linear decode is sure to be on boundaries. */
static void start_walk(struct survey *s, uint64_t addr)
{
	struct sym_symbol sym;
	uint64_t off;

	s->signal = false;
	s->broken = NULL;
	if (sym_bounds(s->sym, addr, &s->start, &s->end, &s->signal)) {
		s->start = sym_resolve(s->sym, addr, &sym, &off) ? sym.addr : s->map->start;
		s->end = addr + 1;
	}
	s->at = s->start;
}

/* One instruction on; the reason against a probe on it. */
static const char *step(struct survey *s)
{
	struct plan_insn insn;
	enum plan_refusal why;
	const uint8_t *code;
	unsigned int call;
	uint64_t at = s->at;
	size_t avail;

	code = survey_code(s, at, &avail);
	if (!avail)
		return s->broken = "its file's bytes cannot be read";
	why = plan_decode(code, avail, at, &insn);
	if (!insn.len)
		return s->broken = plan_reason(why);
	s->at += insn.len;
	call = plan_sigreturn(code, avail);
	if (call)
		s->sigreturn = at + call;
	if (call || at == s->sigreturn)
		return handlers;
	return why ? plan_reason(why) : NULL;
}

static const char *check_boundary(struct survey *s, uint64_t addr)
{
	s->last = addr;
	if (addr < s->at || addr >= s->end || s->broken)
		start_walk(s, addr);
	if (s->signal)
		return handlers;
	while (s->at < addr && !s->broken)
		step(s);
	if (s->broken)
		return s->broken;
	if (s->at != addr)
		return plan_reason(PLAN_NOT_BOUNDARY);
	return step(s);
}

static const char *check_denied(struct survey *s, uint64_t addr, const char **jump_only)
{
	if (s->map->module != s->module || !s->denied) {
		denied_close(s->denied);
		s->module = s->map->module;
		if (denied_open(&s->denied, s->sym, s->module, s->ret))
			return "there is no memory for the list of what is denied";
	}
	return denied_at(s->denied, addr, jump_only);
}

const char *survey_check(struct survey *s, uint64_t addr, const char **jump_only)
{
	const char *why;

	if (jump_only)
		*jump_only = NULL;
	find_map(s, addr);
	if (s->map_why)
		return s->map_why;
	why = sym_label(s->map->module, addr) ? place_label : check_denied(s, addr, jump_only);
	return why ? why : check_boundary(s, addr);
}

int survey_insns(struct survey *s, uint64_t start, uint64_t end, survey_fn fn, void *arg)
{
	const char *why, *jump_only;
	uint64_t addr = start;
	int ret;

	do {
		why = survey_check(s, addr, &jump_only);
		ret = fn(addr, why, jump_only, arg);
		if (ret)
			return ret;
		/* What is denied was not decoded. */
		if (!s->map_why && s->last != addr)
			check_boundary(s, addr);
		if (s->map_why || s->broken || s->at <= addr)
			return 0;
		addr = s->at;
	} while (addr < end);
	return 0;
}
