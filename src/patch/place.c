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

const char place_label[] = "it is a static branch, which its program rewrites";

static int check_map(struct sym_proc *sym, uint64_t addr, int column, struct err *err)
{
	const struct sym_map *m = sym_map_find(sym, addr);

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
	m = sym_map_find(sym, addr);
	return m ? m->start : addr;
}

/* In the trampoline that handlers return through?  Not all of them have an FDE that says so. */
static bool is_sigreturn(struct sym_proc *sym, uint64_t addr)
{
	uint8_t code[PLAN_SIGRETURN_MAX];
	unsigned int back;

	for (back = 0; back < PLAN_SIGRETURN_MAX - 1; back++) {
		size_t len = sizeof(code);
		unsigned int at;

		while (len && sym_original(sym, addr - back, code, len))
			len--;
		at = plan_sigreturn(code, len);
		if (at && (!back || at == back))
			return true;
	}
	return false;
}

static int check_boundary(struct sym_proc *sym, uint64_t addr, int column, struct err *err)
{
	enum plan_refusal why;
	uint64_t start;
	uint8_t *code;
	bool signal;
	size_t len;
	int ret;

	start = decode_start(sym, addr, &signal);
	if (signal || is_sigreturn(sym, addr))
		return err_at(err, -EINVAL, column,
		              "Failed to register probe event: signal handlers return through this "
		              "code, unwinders know it by its bytes");
	len = addr - start + UKP_INSN_MAX;
	code = malloc(len);
	if (!code)
		return err_set(err, -ENOMEM, "out of memory");
	while (len > addr - start && sym_original(sym, start, code, len))
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
	ret = check_boundary(sym, addr, column, err);
	return ret ? ret : check_plan(sym, addr, column, err);
}
