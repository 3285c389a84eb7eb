/* SPDX-License-Identifier: MIT */
/* The steps of poke.h, each for all places before the next. */
#include "patch/poke.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct poking {
	const struct poke_ops *ops;
	void *arg;
	struct poke *v;
	size_t n;
};

static bool changes_tail(const struct poke *p)
{
	return p->len > 1 && memcmp(p->from + 1, p->to + 1, p->len - 1u);
}

static int write_head(const struct poking *k, const struct poke *p, uint8_t head)
{
	return k->ops->write(k->arg, p->addr, &head, 1);
}

static int prepare(const struct poking *k, struct poke *p)
{
	uint8_t now[POKE_MAX];
	int ret;

	if (!p->len || p->len > POKE_MAX)
		return -EINVAL;
	ret = k->ops->read(k->arg, p->addr, now, p->len);
	if (!ret && memcmp(now, p->from, p->len))
		ret = -EINVAL;
	if (!ret && p->trap_to)
		ret = k->ops->divert(k->arg, p->addr, p->trap_to);
	return ret;
}

static int step_close(const struct poking *k, struct poke *p)
{
	if (!changes_tail(p) || p->from[0] == POKE_INT3)
		return 0;
	return write_head(k, p, POKE_INT3) ?: 1;
}

/* The head is an int3, or there is no tail to write. */
static int step_tail(const struct poking *k, struct poke *p)
{
	int ret;

	if (!changes_tail(p))
		return 0;
	ret = k->ops->write(k->arg, p->addr + 1, p->to + 1, p->len - 1u);
	if (!ret)
		return 1;
	/* Part of it may be written: nobody may run that. */
	if (!k->ops->write(k->arg, p->addr + 1, p->from + 1, p->len - 1u) && !k->ops->sync(k->arg))
		write_head(k, p, p->from[0]);
	return ret;
}

static int step_open(const struct poking *k, struct poke *p)
{
	uint8_t now = changes_tail(p) ? POKE_INT3 : p->from[0];

	return now == p->to[0] ? 0 : write_head(k, p, p->to[0]) ?: 1;
}

/* One step of all; a sync if it changed anything. */
static int each(const struct poking *k, int (*step)(const struct poking *k, struct poke *p))
{
	bool changed = false;
	size_t i;

	for (i = 0; i < k->n; i++) {
		int ret = k->v[i].error ? 0 : step(k, &k->v[i]);

		if (ret < 0)
			k->v[i].error = ret;
		changed |= ret > 0;
	}
	return changed ? k->ops->sync(k->arg) : 0;
}

/* Cores can't be made to forget: what has not been opened yet goes back. */
static void give_up(const struct poking *k, int error)
{
	size_t i;

	for (i = 0; i < k->n; i++) {
		struct poke *p = &k->v[i];

		if (!p->error && changes_tail(p) && p->from[0] != POKE_INT3)
			write_head(k, p, p->from[0]);
		if (!p->error)
			p->error = error;
	}
}

int poke_text(const struct poke_ops *ops, void *arg, struct poke *v, size_t n)
{
	struct poking k = { .ops = ops, .arg = arg, .v = v, .n = n };
	size_t i;
	int ret;

	for (i = 0; i < n; i++)
		v[i].error = prepare(&k, &v[i]);
	ret = each(&k, step_close);
	if (ret) {
		give_up(&k, ret);
		return ret;
	}
	ret = each(&k, step_tail);
	ret = ret ? ret : each(&k, step_open);
	for (i = 0; i < n; i++) {
		/* An int3 that stays for want of a sync is safe: nobody enters. */
		if (ret && !v[i].error)
			v[i].error = ret;
	}
	for (i = 0; i < n && !ret; i++)
		ret = v[i].error;
	return ret;
}
