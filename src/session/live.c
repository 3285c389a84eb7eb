/* SPDX-License-Identifier: MIT */
/*
 * The program may change such text at any time, and so:
 *
 * - What stands around a breakpoint is compared before anything is written
 *   (wire/live.h), while all threads stand still: what they write in between would
 *   get our byte.  Each is written alone, one byte.
 * - The engine looks at each hit.  Between hits nobody notices; live_look() does
 *   when a client asks, or something else changes.
 * - There is no jump: a window's five bytes can't be changed and compared at once.
 * - Returns aren't followed.  Where there is no unwind information, return addresses
 *   are what its runtime finds its way by.
 */
#include "session/live.h"

#include <errno.h>
#include <string.h>

#include "session/optimize.h"
#include "session/pending.h"
#include "session/sites.h"
#include "wire/live.h"

static const char rewritten[] = "its program has rewritten or unmapped the code there";

static int read_text(void *arg, uint64_t addr, void *buf, size_t len)
{
	struct target *t = arg;
	uint8_t *bytes = buf;
	int ret = inject_read(t->inject, addr, buf, len);
	size_t i;

	if (!ret)
		optimize_undo(t, addr, bytes, len);
	for (i = 0; i < len && !ret; i++) {
		const struct site *s = bytes[i] == 0xcc ? sites_find(t, addr + i) : NULL;

		if (s && s->armed && !s->jump_only)
			bytes[i] = s->first;
	}
	return ret;
}

struct place_live live_text(struct target *t)
{
	return (struct place_live){ read_text, t };
}

bool live_is_asked(const struct chan *c, uint64_t addr)
{
	const struct place_live live = live_text(c->target);

	return c->any_text && place_is_live(c->target->sym, &live, addr);
}

static bool is_own(const struct target *t, uint64_t addr)
{
	uint32_t i;

	for (i = 0; i < t->own.nr_mappings; i++)
		if (addr - t->own.mapping[i].addr < t->own.mapping[i].len)
			return true;
	return false;
}

int live_check(struct target *t, uint64_t addr, bool ret, int column, struct err *err)
{
	const struct place_live live = live_text(t);
	const struct sym_map *m = sym_map_find(t->sym, addr);
	const char *why = NULL;

	if (t->no_traps)
		why = t->no_traps;
	else if (is_own(t, addr))
		why = "it is of ukprobes itself";
	else if (ret)
		why = "the program may rewrite its code: its returns are not followed";
	else if (m && !m->w && pending_is_filtered(t))
		why = "under a seccomp filter code that the program changes for a moment only "
		      "could not be put right";
	if (why)
		return err_at(err, -EINVAL, column, "Failed to register probe event: %s", why);
	return place_check_live(t->sym, &live, addr, column, err);
}

/* As the breakpoint's surroundings are now. */
static enum ukp_live judge(struct target *t, const struct site *s)
{
	const unsigned int n = ukp_live_bytes(s->addr, s->plan.len);
	uint8_t now[UKP_LIVE_MAX], first;

	if (inject_read(t->inject, s->addr, &first, 1) || read_text(t, s->addr, now, n))
		return UKP_LIVE_GONE;
	now[0] = first;
	return ukp_live_judge(&s->plan, now, n);
}

/* Before a breakpoint is set, by all that a hit is judged by, and to the last byte. */
static bool is_as_planned(struct target *t, const struct site *s)
{
	const unsigned int n = ukp_live_bytes(s->addr, s->plan.len);
	uint8_t now[UKP_LIVE_MAX];

	if (s->armed)
		return judge(t, s) == UKP_LIVE_OURS;
	return !read_text(t, s->addr, now, n) && !memcmp(now, s->plan.orig, n);
}

static void say_rewritten(const struct site *s)
{
	const struct probe *p;

	for (p = s->probes; p; p = p->next)
		if (p->chan)
			chan_say(p->chan, p, "%s", rewritten);
}

int live_arm(struct target *t, struct site *s, struct err *err)
{
	const uint8_t int3 = 0xcc;
	int ret = s->armed ? 0 : target_hold(t, err);

	if (ret || s->armed)
		return ret;
	if (!is_as_planned(t, s))
		ret = err_set(err, -EBUSY, "the code at %#lx has changed, it is not probed",
		              s->addr);
	else if (inject_write(t->inject, s->addr, &int3, 1))
		ret = err_set(err, -EIO, "cannot write code of process %d", t->pid);
	s->armed = !ret;
	target_release(t);
	return ret;
}

/* For who runs into it (engine/live.c): to write there would be a guess. */
static void note_left(struct target *t, const struct site *s, bool left)
{
	struct ukp_site *shared = target_at(t, s->off);
	uint8_t flags = s->plan.flags & ~UKP_SITE_LEFT, now;

	if (left && !inject_read(t->inject, s->addr, &now, 1) && now == 0xcc)
		flags |= UKP_SITE_LEFT;
	__atomic_store_n(&shared->flags, flags, __ATOMIC_RELAXED);
}

void live_disarm(struct target *t, struct site *s)
{
	struct err ignored = ERR_INIT;
	/* Under a debugger, say: a breakpoint that stays is worse. */
	bool held = s->armed && !target_hold(t, &ignored);
	bool ours = s->armed && judge(t, s) != UKP_LIVE_GONE;

	if (s->armed)
		note_left(t, s, !ours);
	if (ours)
		inject_write(t->inject, s->addr, &s->first, 1);
	s->armed = false;
	if (held)
		target_release(t);
}

int live_ready(struct target *t, const struct probe *p, struct err *err)
{
	struct site *s = sites_find(t, p->addr);

	/* Neither it nor what is there now is code that the program may rewrite. */
	if (!s || (!s->live && !p->live) || (s->live && is_as_planned(t, s)))
		return 0;
	if (!s->live && s->armed)
		return err_set(err, -EBUSY,
		               "the code at %#lx was changed under a probe, which has to go first",
		               p->addr);
	if (s->armed)
		say_rewritten(s);
	live_disarm(t, s);
	site_forget(t, s);
	return 0;
}

void live_look(struct target *t)
{
	size_t i;

	for (i = 0; i < t->nr_sites && !t->dead; i++) {
		struct site *s = t->sites[i];

		if (!s->live || !s->armed || s->gone || judge(t, s) == UKP_LIVE_OURS)
			continue;
		say_rewritten(s);
		live_disarm(t, s);
		site_forget(t, s);
	}
}
