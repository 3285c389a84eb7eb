/* SPDX-License-Identifier: MIT */
/* One definition through all that the language does with it. */
#ifndef TESTS_RUN_LINE_H
#define TESTS_RUN_LINE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lang/lang.h"

struct line_result {
	int code;
	struct err err;
	char *shown; /* malloc'ed, NULL on failure */
	struct ukp_event *ev;
	struct lang_field *fields;
	unsigned int nr_fields;
	uint64_t addr;
	struct sym_symbol func;
	size_t text_len; /* of the command with single spaces, 0 on failure */
};

static inline void run_line(struct line_result *r, const char *text)
{
	struct lang_def *def = NULL;

	memset(r, 0, sizeof(*r));
	r->err = (struct err)ERR_INIT;
	r->code = lang_parse(&def, text, &r->err);
	if (!r->code)
		r->code = lang_resolve(def, NULL, &r->addr, &r->func, &r->err);
	if (!r->code)
		r->code = lang_compile(def, NULL, &r->ev, &r->fields, &r->err);
	if (!r->code) {
		r->shown = lang_show(def);
		r->nr_fields = def->nr_args;
	}
	r->text_len = def ? strlen(def->text) : 0;
	lang_free(def);
}

static inline void line_free(struct line_result *r)
{
	free(r->shown);
	free(r->ev);
	free(r->fields);
}

#endif
