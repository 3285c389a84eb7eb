/* SPDX-License-Identifier: MIT */
/* deny.c's list for one module: its names are looked up once. */
#include <errno.h>
#include <stdlib.h>

#include "patch/deny.h"

struct range {
	uint64_t start, end;
	uint64_t top; /* greatest end up to this one */
	const char *why;
};

struct denied {
	struct sym_proc *sym;
	bool nameless;       /* refuse what has no public name */
	const char *all;     /* why nothing can be probed; NULL */
	struct range *range; /* by start */
	size_t nr, room;
};

static int add_range(struct denied *d, uint64_t start, uint64_t end, const char *why)
{
	if (start >= end)
		return 0;
	if (d->nr == d->room) {
		size_t room = d->room ? d->room * 2 : 64;
		struct range *more = realloc(d->range, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		d->range = more;
		d->room = room;
	}
	d->range[d->nr++] = (struct range){ start, end, 0, why };
	return 0;
}

static int add_entry(struct denied *d, struct sym_module *m, const struct deny_entry *e, bool ret)
{
	struct sym_symbol s[4];
	size_t n = sym_lookup(d->sym, m, e->name, s, 4), i;
	int err = 0;

	if (e->kind == DENY_RETURN && !ret)
		return 0;
	for (i = 0; i < n && i < 4 && !err; i++)
		err = add_range(d, s[i].addr + (e->kind == DENY_BODY), s[i].addr + s[i].size,
		                e->why);
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int denied_open(struct denied **ret_d, struct sym_proc *sym, struct sym_module *m, bool ret)
{
	struct denied *d = calloc(1, sizeof(*d));
	const struct deny_entry *e;
	uint64_t top = 0;
	size_t i;
	int err = 0;

	*ret_d = d;
	if (!d)
		return -ENOMEM;
	d->sym = sym;
	d->all = ret ? deny_module(sym, m) : NULL;
	if (!deny_is_libc(sym, m))
		return 0;
	d->nameless = !sym_module_is_exe(m);
	for (e = deny_list(); e->name && !err; e++)
		err = add_entry(d, m, e, ret);
	if (err) {
		denied_close(d);
		*ret_d = NULL;
		return err;
	}
	if (d->nr)
		qsort(d->range, d->nr, sizeof(*d->range), by_start);
	for (i = 0; i < d->nr; i++) {
		top = d->range[i].end > top ? d->range[i].end : top;
		d->range[i].top = top;
	}
	return 0;
}

const char *denied_at(const struct denied *d, uint64_t addr)
{
	size_t low = 0, high = d->nr;
	struct sym_symbol s;
	uint64_t off;

	if (d->all)
		return d->all;
	if (d->nameless && (!sym_resolve(d->sym, addr, &s, &off) || !s.global))
		return deny_nameless;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (d->range[mid].start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	while (low-- && d->range[low].top > addr)
		if (addr < d->range[low].end)
			return d->range[low].why;
	return NULL;
}

void denied_close(struct denied *d)
{
	if (d)
		free(d->range);
	free(d);
}
