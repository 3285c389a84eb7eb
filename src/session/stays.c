/* SPDX-License-Identifier: MIT */
/*
 * Probes are refused in code that must run in its place; a window would take it
 * along for a probe beside it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "patch/inplace.h"
#include "session/cover.h"

struct stays {
	char *id;
	uint64_t bias;
	struct {
		uint64_t start, end;
		const char *why;
	} * range;
	size_t nr, room;
};

struct stays *stays_open(void)
{
	return calloc(1, sizeof(struct stays));
}

void stays_close(struct stays *s)
{
	if (!s)
		return;
	free(s->id);
	free(s->range);
	free(s);
}

static int add(void *arg, uint64_t start, uint64_t end, const char *why)
{
	struct stays *s = arg;
	size_t room = s->room ? s->room * 2 : 64;
	void *more;

	if (s->nr == s->room) {
		more = realloc(s->range, room * sizeof(*s->range));
		if (!more)
			return -ENOMEM;
		s->range = more;
		s->room = room;
	}
	s->range[s->nr].start = start;
	s->range[s->nr].end = end;
	s->range[s->nr++].why = why;
	return 0;
}

int stays_module(struct stays *s, struct sym_proc *sym, struct sym_module *m)
{
	const char *id = modules_id(m);
	int ret;

	/* All of its code was looked at for that. */
	if (s->id && !strcmp(s->id, id) && s->bias == sym_module_bias(m))
		return 0;
	free(s->id);
	s->id = NULL;
	s->nr = 0;
	ret = inplace_ranges(sym, m, add, s);
	if (ret)
		return ret;
	s->id = strdup(id);
	s->bias = sym_module_bias(m);
	return s->id ? 0 : -ENOMEM;
}

const char *stays_why(const struct stays *s, uint64_t start, uint64_t end)
{
	size_t i;

	for (i = 0; i < s->nr; i++)
		if (s->range[i].start < end && start < s->range[i].end)
			return s->range[i].why;
	return NULL;
}
