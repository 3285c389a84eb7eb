/* SPDX-License-Identifier: MIT */
/*
 * What holds for every text: an error has a code, a sentence and a column
 * inside the line; what is accepted fits the wire format, and is shown in a
 * form that means the same.
 */
#ifndef TESTS_CHECK_LINE_H
#define TESTS_CHECK_LINE_H

#include "unit/lang/run_line.h"

/* Each argument is one maker, DEREFs, one store into its own field. */
static inline const char *check_steps(const struct line_result *r)
{
	const struct ukp_event *ev = r->ev;
	unsigned int at = ev->nr_entry, end = at + ev->nr_steps;
	unsigned int offset = ev->flags & UKP_EVENT_RETURN ? 16 : 8;

	offset += (r->nr_fields + 63) / 64 * 8;
	for (unsigned int i = 0; i < ev->nr_entry; i++)
		if (ev->steps[i].op != UKP_FETCH_REG && ev->steps[i].op != UKP_FETCH_STACK)
			return "an entry step that is no word";
	for (unsigned int i = 0; i < r->nr_fields; i++) {
		unsigned int first = at;

		if (at >= end || ev->steps[at].op > UKP_FETCH_COMM)
			return "no value is made";
		for (at++; at < end && ev->steps[at].op == UKP_FETCH_DEREF; at++)
			;
		if (at >= end || ev->steps[at].op < UKP_FETCH_ST_RAW)
			return "the value is not stored";
		if (ev->steps[at].size > 8 && ev->steps[at].op != UKP_FETCH_ST_MEM &&
		    ev->steps[first].op != UKP_FETCH_RETVAL && ev->steps[first].op != UKP_FETCH_FPU)
			return "a value that is not as wide as its field";
		if (ev->steps[first].op == UKP_FETCH_FPU &&
		    (ev->steps[first].imm >= UKP_FPU_REGS || at != first + 1))
			return "no such register, or an address in it";
		if (ev->steps[at].field != offset || r->fields[i].offset != offset)
			return "a field is not where the one before ends";
		offset += r->fields[i].size;
		if (++at - first > UKP_FETCH_MAX)
			return "too many steps";
		if (ev->steps[first].op == UKP_FETCH_EDATA && ev->steps[first].imm >= ev->nr_entry)
			return "a word that was not saved";
	}
	if (at != end || offset != ev->fixed_len || offset > UKP_EVENT_FIXED)
		return "wrong lengths";
	return NULL;
}

static inline const char *check_line(const char *text)
{
	struct line_result r, again;
	const char *bad = NULL;
	struct lang_def *def;
	uint32_t kind;

	if (!lang_parse_latency(&def, &kind, text, NULL))
		lang_free(def);
	run_line(&r, text);
	if (r.code) {
		if (r.code > 0 || r.err.code != r.code || !r.err.text[0])
			bad = "an error without code or sentence";
		else if (r.err.column < 0 || (size_t)r.err.column > strlen(text))
			bad = "a column outside of the line";
		line_free(&r);
		return bad;
	}
	bad = r.shown ? check_steps(&r) : "nothing shown";
	if (!bad) {
		run_line(&again, r.shown);
		if (again.code || strcmp(again.shown, r.shown))
			bad = "what is shown means something else";
		else if (again.ev->nr_steps != r.ev->nr_steps ||
		         memcmp(again.ev->steps, r.ev->steps,
		                (r.ev->nr_entry + r.ev->nr_steps) * sizeof(r.ev->steps[0])))
			bad = "what is shown compiles to something else";
		line_free(&again);
	}
	line_free(&r);
	return bad;
}

#endif
