/* SPDX-License-Identifier: MIT */
/*
 * From a checked definition to the program that a hit runs, and to the
 * description of its record.  The record is laid out as the kernel does it:
 * fields in order, without padding.
 */
#include "lang/private.h"

#include <stdlib.h>
#include <string.h>

#include "ukprobes/pt_regs.h"

struct entry {
	uint32_t nth[UKP_EDATA_MAX]; /* the N of each word saved at entry */
	unsigned int nr;
	bool nowhere; /* nothing can be looked up */
};

/* Where the ABI passes argument n at the entry of a function. */
static struct ukp_fetch fetch_nth(uint32_t n)
{
	static const uint16_t regs[LANG_REG_ARGS] = {
		offsetof(struct pt_regs, di), offsetof(struct pt_regs, si),
		offsetof(struct pt_regs, dx), offsetof(struct pt_regs, cx),
		offsetof(struct pt_regs, r8), offsetof(struct pt_regs, r9),
	};
	struct ukp_fetch f = { .op = UKP_FETCH_REG };

	if (n <= LANG_REG_ARGS) {
		f.imm = regs[n - 1];
	} else {
		f.op = UKP_FETCH_STACK; /* word 0 is the return address */
		f.imm = n - LANG_REG_ARGS;
	}
	return f;
}

/* Index of the word that holds $argN, each saved once. */
static int entry_index(struct entry *e, uint32_t nth)
{
	unsigned int i;

	for (i = 0; i < e->nr; i++)
		if (e->nth[i] == nth)
			return (int)i;
	if (i == UKP_EDATA_MAX)
		return -E2BIG;
	e->nth[e->nr++] = nth;
	return (int)i;
}

static int collect_entry(const struct lang_def *def, struct entry *e, struct err *err)
{
	e->nr = 0;
	for (unsigned int i = 0; i < def->nr_args; i++) {
		const struct lang_arg *arg = &def->args[i];

		if (def->ret && arg->nth && entry_index(e, arg->nth) < 0)
			return lang_fail(err, -E2BIG, LANG_TOO_MANY_ENTRY, arg->value_column,
			                 "at most %d", UKP_EDATA_MAX);
	}
	return 0;
}

/* At an address or behind a landing pad, only the target says whether it is an entry. */
static int check_entry(const struct lang_def *def, struct sym_proc *proc, struct err *err)
{
	const struct lang_arg *arg = NULL;
	struct sym_symbol func;
	uint64_t addr;
	int ret;

	for (unsigned int i = 0; i < def->nr_args && !arg; i++)
		if (def->args[i].nth)
			arg = &def->args[i];
	if (!arg || def->ret || (def->place.kind == LANG_SYM && !def->place.offset))
		return 0;
	ret = lang_resolve(def, proc, &addr, &func, err);
	if (ret)
		return ret;
	if (!lang_is_entry(proc, &func, addr))
		return lang_fail(err, -EINVAL, LANG_NOFENTRY_ARGS, arg->value_column,
		                 "inside a function use the registers");
	return 0;
}

/* The steps of one argument, with the target's addresses and the field's place in them. */
static int put_arg(const struct lang_def *def, const struct lang_arg *arg, struct sym_proc *proc,
                   struct entry *e, uint16_t offset, struct ukp_fetch *out, struct err *err)
{
	memcpy(out, arg->steps, arg->nr_steps * sizeof(*out));
	out[arg->nr_steps - 1].field = offset;
	if (arg->nth && def->ret)
		out[0].imm = (uint64_t)entry_index(e, arg->nth);
	else if (arg->nth)
		out[0] = fetch_nth(arg->nth);
	else if (arg->sym[0] && !e->nowhere)
		return lang_resolve_data(def, arg, proc, &out[0].imm, err);
	return 0;
}

static size_t count_steps(const struct lang_def *def)
{
	size_t nr = 0;

	for (unsigned int i = 0; i < def->nr_args; i++)
		nr += def->args[i].nr_steps;
	return nr;
}

/* ip, or func and ret_ip; then a word of fault bits for every 64 arguments. */
static size_t head_len(const struct lang_def *def)
{
	return (def->ret ? 2 : 1) * sizeof(uint64_t) + (def->nr_args + 63) / 64 * sizeof(uint64_t);
}

static int fill(const struct lang_def *def, struct sym_proc *proc, struct entry *e,
                struct ukp_event *ev, struct lang_field *fields, struct err *err)
{
	struct ukp_fetch *out = ev->steps;
	size_t offset = head_len(def);

	for (unsigned int i = 0; i < e->nr; i++)
		*out++ = fetch_nth(e->nth[i]);
	for (unsigned int i = 0; i < def->nr_args; i++) {
		const struct lang_arg *arg = &def->args[i];
		int ret;

		if (offset + arg->size > UKP_EVENT_FIXED)
			return lang_fail(err, -E2BIG, LANG_EVENT_TOO_BIG, arg->column, NULL);
		ret = put_arg(def, arg, proc, e, (uint16_t)offset, out, err);
		if (ret)
			return ret;
		strcpy(fields[i].name, arg->name);
		fields[i].type = arg->type;
		fields[i].size = arg->size;
		fields[i].offset = (uint16_t)offset;
		ev->nr_strings += arg->type == LANG_STRING;
		offset += arg->size;
		out += arg->nr_steps;
	}
	ev->flags = def->ret ? UKP_EVENT_RETURN : 0;
	ev->fixed_len = (uint16_t)offset;
	ev->nr_args = (uint16_t)def->nr_args;
	ev->nr_entry = (uint16_t)e->nr;
	ev->nr_steps = (uint16_t)count_steps(def);
	ev->maxactive = def->maxactive;
	return 0;
}

static bool step_reads_memory(const struct ukp_fetch *s)
{
	return s->op == UKP_FETCH_STACK || s->op == UKP_FETCH_DEREF || s->op == UKP_FETCH_ST_MEM ||
	       s->op == UKP_FETCH_ST_STRING;
}

bool lang_reads_memory(const struct lang_def *def)
{
	for (unsigned int i = 0; i < def->nr_args; i++) {
		const struct lang_arg *arg = &def->args[i];

		/* Of the others the caller has put them on the stack. */
		if (arg->nth > LANG_REG_ARGS)
			return true;
		for (unsigned int k = 0; k < arg->nr_steps; k++)
			if (step_reads_memory(&arg->steps[k]))
				return true;
	}
	return false;
}

static int compile(const struct lang_def *def, struct sym_proc *proc, bool nowhere,
                   struct ukp_event **ev, struct lang_field **fields, struct err *err)
{
	struct entry e;
	int ret;

	*ev = NULL;
	*fields = NULL;
	ret = collect_entry(def, &e, err);
	e.nowhere = nowhere;
	if (!ret && !nowhere)
		ret = check_entry(def, proc, err);
	if (ret)
		return ret;
	*ev = calloc(1, sizeof(**ev) + (e.nr + count_steps(def)) * sizeof(struct ukp_fetch));
	*fields = calloc(def->nr_args + 1, sizeof(**fields));
	if (!*ev || !*fields)
		ret = err_set(err, -ENOMEM, "out of memory");
	else
		ret = fill(def, proc, &e, *ev, *fields, err);
	if (ret) {
		free(*ev);
		free(*fields);
		*ev = NULL;
		*fields = NULL;
	}
	return ret;
}

int lang_compile(const struct lang_def *def, struct sym_proc *proc, struct ukp_event **ev,
                 struct lang_field **fields, struct err *err)
{
	return compile(def, proc, false, ev, fields, err);
}

int lang_fields(const struct lang_def *def, struct lang_field **fields, struct err *err)
{
	struct ukp_event *ev;
	int ret = compile(def, NULL, true, &ev, fields, err);

	free(ev);
	return ret;
}
