/* SPDX-License-Identifier: MIT */
/*
 * From an address to the certainty that a probe can stand there: text of
 * a file, not denied, an instruction's first byte, with a copy that can run.
 */
#include "patch/place.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "patch/deny.h"
#include "plan/plan.h"
#include "wire/live.h"

const char place_label[] = "it is a static branch, which its program rewrites";

static const char unless_asked[] =
	"; it is probed only if that is asked for, by --any-text or UKP_ANY_TEXT";

static int check_map(struct sym_proc *sym, uint64_t addr, int column, struct err *err)
{
	const struct sym_map *m = sym_map_find(sym, addr);

	if (!m || !m->x)
		return err_at(err, -EINVAL, column,
		              "Invalid probed address or symbol: %#" PRIx64
		              " is not executable memory",
		              addr);
	if (m->shared)
		return err_at(err, -EINVAL, column,
		              "Failed to register probe event: %s is mapped shared, a probe would "
		              "change the file",
		              m->path);
	if (!strcmp(m->path, "[vsyscall]"))
		return err_at(err, -EINVAL, column,
		              "Failed to register probe event: %#" PRIx64
		              " is in [vsyscall], which is the kernel's",
		              addr);
	if (!m->module)
		return err_at(err, -EINVAL, column,
		              "Failed to register probe event: %#" PRIx64
		              " is in %s, not in a file's code, with which it could be compared%s",
		              addr, m->path[0] ? m->path : "anonymous memory", unless_asked);
	if (m->w)
		return err_at(err, -EINVAL, column,
		              "Failed to register probe event: %#" PRIx64
		              " is in writable code, which may change under a probe%s",
		              addr, unless_asked);
	return 0;
}

/* From where a linear decode is sure to be on boundaries. */
static uint64_t decode_start(struct sym_proc *sym, uint64_t addr, bool *signal)
{
	uint64_t start, end;
	const struct sym_map *m;
	struct sym_symbol s;
	uint64_t off;

	*signal = false;
	if (!sym_bounds(sym, addr, &start, &end, signal))
		return start;
	if (sym_resolve(sym, addr, &s, &off))
		return s.addr;
	/* What no file has begins anywhere. */
	m = sym_map_find(sym, addr);
	return m && m->module ? m->start : addr;
}

/* Where bytes are taken from: memory, or the file. */
struct text {
	struct sym_proc *sym;
	const struct place_live *live; /* NULL: the file */
};

static int read_text(const struct text *t, uint64_t addr, void *buf, size_t len)
{
	return t->live ? t->live->read(t->live->arg, addr, buf, len)
	               : sym_original(t->sym, addr, buf, len);
}

/* In the trampoline that handlers return through?  Not all of them have an FDE that says so. */
static bool is_sigreturn(const struct text *t, uint64_t addr)
{
	uint8_t code[PLAN_SIGRETURN_MAX];
	unsigned int back;

	for (back = 0; back < PLAN_SIGRETURN_MAX - 1; back++) {
		size_t len = sizeof(code);
		unsigned int at;

		while (len && read_text(t, addr - back, code, len))
			len--;
		at = plan_sigreturn(code, len);
		if (at && (!back || at == back))
			return true;
	}
	return false;
}

static int check_boundary(const struct text *t, uint64_t addr, int column, struct err *err)
{
	enum plan_refusal why;
	uint64_t start;
	uint8_t *code;
	bool signal;
	size_t len;
	int ret;

	start = decode_start(t->sym, addr, &signal);
	if (signal || is_sigreturn(t, addr))
		return err_at(err, -EINVAL, column,
		              "Failed to register probe event: signal handlers return through this "
		              "code, unwinders know it by its bytes");
	len = addr - start + UKP_INSN_MAX;
	code = malloc(len);
	if (!code)
		return err_set(err, -ENOMEM, "out of memory");
	while (len > addr - start && read_text(t, start, code, len))
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

int place_original(struct sym_proc *sym, uint64_t addr, uint8_t code[UKP_INSN_MAX], size_t *len)
{
	*len = UKP_INSN_MAX;
	while (*len && sym_original(sym, addr, code, *len))
		--*len;
	return *len ? 0 : -EIO;
}

/* A trial copy: most refusals do not depend on where the slot lies. */
static int check_plan(struct sym_proc *sym, uint64_t addr, int column, struct err *err)
{
	uint8_t code[UKP_INSN_MAX], out[UKP_SLOT_SIZE];
	struct plan_request req = { .code = code, .addr = addr, .slot = addr + (16u << 20) };
	struct ukp_site site = { 0 };
	enum plan_refusal why;

	if (place_original(sym, addr, code, &req.avail))
		return err_at(err, -EIO, column,
		              "Failed to register probe event: the file's bytes "
		              "at this place cannot be read");
	why = plan_copy(&req, out, &site);
	if (why != PLAN_OK && why != PLAN_OUT_OF_REACH)
		return err_at(err, plan_errno(why), column, "Failed to register probe event: %s",
		              plan_reason(why));
	return 0;
}

size_t place_length(struct sym_proc *sym, uint64_t addr, uint8_t code[UKP_INSN_MAX])
{
	struct plan_insn insn;
	size_t avail;

	if (place_original(sym, addr, code, &avail) || plan_decode(code, avail, addr, &insn))
		return 0;
	return insn.len;
}

int place_check(struct sym_proc *sym, uint64_t addr, bool ret_probe, const char **jump_only,
                int column, struct err *err)
{
	const char *why;
	int ret = check_map(sym, addr, column, err);

	if (jump_only)
		*jump_only = NULL;
	if (ret)
		return ret;
	why = sym_label(sym_module_of(sym, addr), addr) ? place_label : NULL;
	if (!why)
		why = deny_check(sym, addr, ret_probe, jump_only);
	if (why)
		return err_at(err, -EINVAL, column, "Failed to register probe event: %s", why);
	ret = check_boundary(&(struct text){ sym, NULL }, addr, column, err);
	return ret ? ret : check_plan(sym, addr, column, err);
}

/* Kernel text, and what shows a file that a change would be written to. */
static const char *live_refusal(const struct sym_map *m)
{
	static const char *const kernels[] = { "[vsyscall]", "[vdso]", "[uprobes]" };
	size_t i;

	if (!m || !m->x)
		return "it is not in executable memory";
	for (i = 0; i < sizeof(kernels) / sizeof(*kernels); i++)
		if (!strcmp(m->path, kernels[i]))
			return "it is the kernel's";
	if (!strncmp(m->path, "/memfd:ukprobes", 15))
		return "it is of ukprobes itself";
	if (m->shared)
		return "it is mapped shared, a probe would be in all that have it";
	return m->r ? NULL : "it cannot be read";
}

bool place_is_live(struct sym_proc *sym, const struct place_live *live, uint64_t addr)
{
	const struct sym_map *m = sym_map_find(sym, addr);
	uint8_t file[UKP_INSN_MAX], now[UKP_INSN_MAX];
	size_t len;

	if (live_refusal(m))
		return false;
	if (!m->module || m->w)
		return true;
	return !place_original(sym, addr, file, &len) && !live->read(live->arg, addr, now, len) &&
	       memcmp(now, file, len) != 0;
}

static unsigned int read_live(const struct place_live *live, uint64_t addr,
                              uint8_t code[UKP_LIVE_MAX])
{
	unsigned int n = UKP_LIVE_MAX;

	memset(code, 0, UKP_LIVE_MAX);
	while (n && live->read(live->arg, addr, code, n))
		n--;
	return n;
}

enum plan_refusal place_copy_live(const struct place_live *live, const struct plan_request *req,
                                  uint8_t *out, struct ukp_site *site)
{
	uint8_t code[UKP_LIVE_MAX];
	unsigned int n = read_live(live, req->addr, code);
	struct plan_request r = *req;
	enum plan_refusal why;

	r.code = code;
	r.avail = n < UKP_INSN_MAX ? n : UKP_INSN_MAX;
	why = plan_copy(&r, out, site);
	if (!why)
		memcpy(site->orig, code, sizeof(site->orig));
	return why;
}

int place_check_live(struct sym_proc *sym, const struct place_live *live, uint64_t addr, int column,
                     struct err *err)
{
	const char *why = live_refusal(sym_map_find(sym, addr));
	struct plan_request req = { .addr = addr, .slot = addr + (16u << 20) };
	struct ukp_site site = { 0 };
	uint8_t out[UKP_SLOT_SIZE];
	enum plan_refusal refusal;
	int ret;

	if (!why && sym_module_of(sym, addr))
		why = sym_label(sym_module_of(sym, addr), addr)
		              ? place_label
		              : deny_check(sym, addr, false, NULL);
	if (why)
		return err_at(err, -EINVAL, column, "Failed to register probe event: %s", why);
	ret = check_boundary(&(struct text){ sym, live }, addr, column, err);
	if (ret)
		return ret;
	refusal = place_copy_live(live, &req, out, &site);
	if (refusal != PLAN_OK && refusal != PLAN_OUT_OF_REACH)
		return err_at(err, plan_errno(refusal), column,
		              "Failed to register probe event: %s", plan_reason(refusal));
	return 0;
}
