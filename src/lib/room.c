/* SPDX-License-Identifier: MIT */
/*
 * Where jumps over exits begin, among those of other sites.  Of windows that
 * overlap the lower one wins, and takes along what the other was for.
 */
#include "lib/jump.h"

/* A window that needs no more than the jump has at most so many bytes. */
#define SHORT_WINDOW (LIB_JUMP_SIZE - 1 + UKP_INSN_MAX)

static const char taken[] = "the jump of a place before it takes its room";
static const char has_post[] = "a post handler needs the breakpoint";

bool jump_is_covered(const struct lib_site *s)
{
	uint64_t k;

	for (k = 1; k < jump_longest(); k++) {
		const struct lib_site *t = site_find(s->addr - k);

		if (t && t->over && k < t->over->len)
			return true;
	}
	return false;
}

static void reach(struct lib_site *from, const struct lib_site *exit)
{
	const uint64_t bytes = exit->addr + exit->insn.len - from->addr;

	if (bytes > from->reach && bytes <= PLAN_WINDOW_LONG)
		from->reach = (uint8_t)bytes;
}

void jump_reach(struct lib_site *from, struct lib_site *exit)
{
	exit->from = from->addr;
	from->tries = 0;
	reach(from, exit);
}

void jump_make_room(struct lib_site *s)
{
	uint64_t at;

	for (at = s->from - SHORT_WINDOW; s->from && at < s->addr; at++) {
		struct lib_site *t = site_find(at);

		if (t && t->armed && !t->head)
			reach(t, s);
	}
}

/* The lowest of the jumps, there or prepared, that have something of [from, to). */
static struct lib_site *in_the_way(uint64_t from, uint64_t to)
{
	uint64_t at;

	for (at = from - jump_longest(); at < to; at++) {
		struct lib_site *t = site_find(at);

		if (t && t->over && (at + t->over->len > from || at + LIB_JUMP_SIZE > from))
			return t;
	}
	return NULL;
}

struct lib_site *jump_head(struct lib_site *s, const char **why)
{
	struct lib_site *from = s->from ? site_find(s->from) : NULL, *other;
	struct err ignored = ERR_INIT;
	uint8_t before;

	*why = NULL;
	if (!from)
		return s;
	other = in_the_way(from->addr, s->addr + s->insn.len);
	if (!other) {
		*why = site_wants_post(from) ? has_post : NULL;
		return *why ? NULL : from;
	}
	before = other->reach;
	reach(other, s);
	if (other->head != other || other->reach == before || jump_take_back(other, &ignored))
		*why = taken;
	return NULL;
}

/* The sites that have a breakpoint in the window of a jump, one after the other. */
static struct lib_site *next_in(const struct lib_site *head, struct lib_site *last)
{
	uint64_t at;

	for (at = last ? last->addr + 1 : head->addr; at < head->addr + head->covers; at++) {
		struct lib_site *t = site_find(at);

		if (t && t->armed)
			return t;
	}
	return NULL;
}

void jump_give_up(struct lib_site *head, const char *why)
{
	struct lib_site *t = NULL;

	while ((t = next_in(head, t)))
		t->why = why;
}

void jump_for_each(struct lib_site *head, void (*fn)(struct lib_site *s))
{
	struct lib_site *t = NULL;

	while ((t = next_in(head, t)))
		fn(t);
}
