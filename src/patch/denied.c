/* SPDX-License-Identifier: MIT */
/* What is denied in one module: its names are looked up and its code is looked at once. */
#include <errno.h>
#include <stdlib.h>

#include "patch/deny.h"
#include "patch/inplace.h"

struct range {
	uint64_t start, end;
	uint64_t top; /* greatest end up to this one */
	const char *why;
};

/* By start, once they are all there. */
struct ranges {
	struct range *range;
	size_t nr, room;
};

struct denied {
	struct sym_proc *sym;
	struct sym_module *m;
	bool ret;
	struct sym_module *go; /* its names are looked up one by one; NULL */
	struct sym_module *uv; /* so are those of libuv */
	const char *nameless;  /* against what has no public name; NULL */
	uint64_t nameless_from;
	bool nameless_trap;    /* and that is only against breakpoints */
	const char *all;       /* why nothing can be probed; NULL */
	struct ranges inplace; /* these reasons come first */
	struct ranges by_name;
	struct ranges trap; /* against breakpoints: after all others */
};

static int add_range(void *arg, uint64_t start, uint64_t end, const char *why)
{
	struct ranges *r = arg;

	if (start >= end)
		return 0;
	if (r->nr == r->room) {
		size_t room = r->room ? r->room * 2 : 64;
		struct range *more = realloc(r->range, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		r->range = more;
		r->room = room;
	}
	r->range[r->nr++] = (struct range){ start, end, 0, why };
	return 0;
}

static int add_entry(struct denied *d, struct sym_module *m, const struct deny_entry *e, bool ret)
{
	struct sym_symbol s[4];
	size_t n = deny_symbols(d->sym, m, e, s, 4), i;
	int err = 0;

	if (deny_is_of_returns(e) && !ret)
		return 0;
	for (i = 0; i < n && !err; i++)
		err = add_range(deny_is_of_traps(e) ? &d->trap : &d->by_name,
		                s[i].addr + deny_but_entry(e), s[i].addr + s[i].size, e->why);
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void sort(struct ranges *r)
{
	uint64_t top = 0;
	size_t i;

	if (r->nr)
		qsort(r->range, r->nr, sizeof(*r->range), by_start);
	for (i = 0; i < r->nr; i++) {
		top = r->range[i].end > top ? r->range[i].end : top;
		r->range[i].top = top;
	}
}

static const char *find(const struct ranges *r, uint64_t addr)
{
	size_t low = 0, high = r->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (r->range[mid].start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	while (low-- && r->range[low].top > addr)
		if (addr < r->range[low].end)
			return r->range[low].why;
	return NULL;
}

int denied_open(struct denied **ret_d, struct sym_proc *sym, struct sym_module *m, bool ret)
{
	struct denied *d = calloc(1, sizeof(*d));
	const struct deny_entry *e;
	bool libc;
	int err;

	*ret_d = d;
	if (!d)
		return -ENOMEM;
	d->sym = sym;
	d->m = m;
	d->ret = ret;
	d->all = ret ? deny_module(sym, m) : NULL;
	d->go = sym_module_is_go(m) ? m : NULL;
	d->uv = deny_is_uv(sym, m) ? m : NULL;
	err = inplace_ranges(sym, m, add_range, &d->inplace);
	if (!err && ret && sym_module_start(m))
		err = add_range(&d->inplace, sym_module_start(m), sym_module_start(m) + 1,
		                deny_start);
	libc = deny_is_libc(sym, m);
	d->nameless_from = sym_module_is_exe(m) ? deny_static(sym, m) : libc;
	if (!err && d->nameless_from)
		d->nameless = deny_nameless(sym, m, &d->nameless_trap);
	for (e = deny_list(); e->name && !err; e++)
		if (libc || deny_is_anywhere(e))
			err = add_entry(d, m, e, ret);
	if (err) {
		denied_close(d);
		*ret_d = NULL;
		return err;
	}
	sort(&d->inplace);
	sort(&d->by_name);
	sort(&d->trap);
	return 0;
}

static const char *check(const struct denied *d, uint64_t addr, bool *trap)
{
	const char *why = d->all ? d->all : find(&d->inplace, addr);

	*trap = false;
	if (!why && d->go)
		why = deny_go(d->sym, d->go, addr);
	if (why)
		return why;
	if (d->nameless && deny_is_nameless(d->sym, d->m, d->nameless_from, addr)) {
		*trap = d->nameless_trap;
		return d->nameless;
	}
	why = find(&d->by_name, addr);
	if (why)
		return why;
	*trap = true;
	why = d->uv ? deny_uv(d->sym, d->uv, addr) : NULL;
	return why ? why : find(&d->trap, addr);
}

const char *denied_at(const struct denied *d, uint64_t addr, const char **jump_only)
{
	bool trap;
	const char *why = check(d, addr, &trap);

	return deny_split(why, trap, d->ret, jump_only);
}

void denied_close(struct denied *d)
{
	if (d) {
		free(d->inplace.range);
		free(d->by_name.range);
		free(d->trap.range);
	}
	free(d);
}
