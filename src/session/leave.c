/* SPDX-License-Identifier: MIT */
/*
 * Leaving a target.
 *
 *	1. text: each probed byte is put back from its file
 *	2. returns: each live frame gets its true return address back
 *	3. threads: those in slots are moved to the original code, those in the
 *	   agent run on until they are out
 *	4. copies of stacks: the same for stubs that lie there
 *	5. dispositions, then all mappings
 *
 * Works from the control area alone, so it serves a broker that leaves and a
 * new one that finds what a killed one left.  The area is the target's to
 * write: what comes from it is bounded, and only ever given back to that same
 * target.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "engine/signal.h"
#include "plan/plan.h"
#include "session/leave.h"
#include "wire/instance.h"

#define PATIENCE_MS 3000
#define MAX_UNMAPS 32
#define AT_ONCE 4096u /* instances, 64 bytes each or so */

static bool ctl_sane(const struct ukp_ctl *c, size_t len)
{
	return len >= sizeof(*c) && c->magic == UKP_CTL_MAGIC && c->version == UKP_CTL_VERSION &&
	       c->nr_mappings <= UKP_NR_MAPPINGS && c->size == UKP_CTL_SIZE &&
	       c->next_free <= len && c->stub_chunk < (1u << 30) && c->nr_instances <= (1u << 24);
}

uint32_t leave_instances(struct inject *t, const struct ukp_ctl *c, uint64_t *base)
{
	struct ukp_objpool pool;
	struct ukp_priv *priv = malloc(sizeof(*priv));
	uint32_t n = 0;

	if (priv && c->priv && c->stubs_per_chunk &&
	    !inject_read(t, c->priv, priv, sizeof(*priv)) &&
	    !inject_read(t, c->priv + priv->off_pool, &pool, sizeof(pool))) {
		*base = c->priv + priv->off_instances;
		n = pool.fresh < c->nr_instances ? (uint32_t)pool.fresh : c->nr_instances;
	}
	free(priv);
	return n;
}

static void unhook(struct leave *l)
{
	struct ukp_instance *inst = malloc(AT_ONCE * sizeof(*inst));
	uint32_t n, i, k, part;
	uint64_t base, word;

	n = inst ? leave_instances(l->inject, l->ctl, &base) : 0;
	for (i = 0; i < n; i += part) {
		part = n - i < AT_ONCE ? n - i : AT_ONCE;
		if (inject_read(l->inject, base + (uint64_t)i * sizeof(*inst), inst,
		                part * sizeof(*inst)))
			break;
		for (k = 0; k < part; k++) {
			if (inst[k].state != UKP_INST_LIVE ||
			    inject_read(l->inject, inst[k].frame, &word, 8) ||
			    word != ukp_ctl_stub(l->ctl, i + k))
				continue;
			inject_write(l->inject, inst[k].frame, &inst[k].ret_addr, 8);
		}
	}
	free(inst);
}

/*
 * Slots are known by their beginning: what the list has may not be mapped yet, or not
 * any more and another's by now, when a broker was killed, and in a child, whose
 * parent goes on mapping and unmapping.  One that nothing was written to yet is ours
 * while the list says so.
 */
static bool has_slots(struct leave *l, const struct ukp_mapping *m)
{
	const struct sym_map *map = sym_map_find(l->sym, m->addr);
	uint64_t head[2];

	if (!map || map->end - m->addr < m->len || !map->x || map->w || map->path[0] ||
	    inject_read(l->inject, m->addr, head, sizeof(head)))
		return false;
	return (head[0] == UKP_SLOTS_MAGIC && head[1] == l->ctl->self) ||
	       (m->arg == UKP_SLOTS_TO_COME && !head[0] && !head[1]);
}

/* Channels of an orphan, or a child, go by their name. */
static bool is_listed(struct leave *l, const struct ukp_mapping *m)
{
	if (!m->addr || !m->len)
		return false;
	if (l->ctl == l->area)
		return m->kind == UKP_MAP_SLOTS && has_slots(l, m);
	return m->kind == UKP_MAP_SLOTS || m->kind == UKP_MAP_CHAN;
}

struct unmaps {
	struct leave *l;
	struct inject_call v[MAX_UNMAPS]; /* at once */
	uint32_t nr;
};

static void flush_unmaps(struct unmaps *u)
{
	if (u->nr)
		inject_calls(u->l->inject, u->v, u->nr);
	u->nr = 0;
}

static void unmap(struct unmaps *u, uint64_t addr, uint64_t len)
{
	u->v[u->nr++] = (struct inject_call){ SYS_munmap, { addr, len }, 0 };
	if (u->nr == MAX_UNMAPS)
		flush_unmaps(u);
}

static void unmap_channels(struct unmaps *u)
{
	const struct leave *l = u->l;
	size_t i;

	for (i = 0; l->ctl == l->area && i < sym_nr_maps(l->sym); i++) {
		const struct sym_map *m = sym_map_at(l->sym, i);

		if (!strcmp(m->path, "/memfd:ukprobes-chan"))
			unmap(u, m->start, m->end - m->start);
	}
}

/* The area goes last, and whole: as long as any of it is there, all is, and can be found. */
static void unmap_all(struct leave *l)
{
	uint32_t i, n = l->ctl->nr_mappings;
	struct unmaps u = { .l = l };

	unmap_channels(&u);
	for (i = n < UKP_NR_MAPPINGS ? n : UKP_NR_MAPPINGS; i-- > 0;) {
		struct ukp_mapping m = l->ctl->mapping[i];

		if (is_listed(l, &m))
			unmap(&u, m.addr, m.len);
	}
	flush_unmaps(&u);
	inject_use_runner(l->inject, 0);
	inject_syscall(l->inject, SYS_munmap, l->ctl->self, target_area_size(), 0, 0, 0, 0);
}

static void find_ranges(struct leave *l)
{
	uint32_t i, off;

	for (i = 0; i < l->ctl->nr_mappings && i < UKP_NR_MAPPINGS; i++) {
		const struct ukp_mapping *m = &l->ctl->mapping[i];

		if (m->kind == UKP_MAP_TEXT) {
			l->text_start = m->addr;
			l->text_end = m->addr + m->len;
		} else if (m->kind == UKP_MAP_STUBS) {
			l->stubs_start = m->addr;
			l->stubs_end = m->addr + m->len;
		}
	}
	if (l->text_start &&
	    !inject_read(l->inject, l->text_start + AGENT_OFF_FNS + 4 * AGENT_CHAIN_RETURN, &off,
	                 4))
		l->chain_return = l->text_start + off;
}

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static bool is_trapping(struct leave *l)
{
	size_t i;

	for (i = 0; i < inject_nr_threads(l->inject); i++)
		if (inject_pending(l->inject, i, UKP_SIGTRAP, UKP_SI_KERNEL))
			return true;
	return false;
}

int leave_settle(struct target *t, struct err *err)
{
	const long end = now_ms() + PATIENCE_MS;
	struct leave l = leave_looking(t);
	unsigned int us = 50;
	int ret = 0;

	while (!ret) {
		unhook(&l);
		if ((!leave_busy(&l) && !is_trapping(&l)) || now_ms() > end)
			break;
		ret = inject_breathe(t->inject, us, err);
		us = us < 20000 ? us * 2 : us;
	}
	return ret;
}

/* Let threads walk out of our code; what was moved by then stays moved. */
static int wait_idle(struct leave *l, struct err *err)
{
	long end = now_ms() + PATIENCE_MS;
	unsigned int us = 50;
	int ret;

	for (;;) {
		unhook(l);
		if (!leave_busy(l))
			return 0;
		if (now_ms() > end)
			return err_set(
				err, -EAGAIN,
				"%u threads of process %d are still inside ukprobes' code; "
				"its text is restored, the rest stays until 'ukprobe cure -p "
				"%d'",
				l->stuck, inject_pid(l->inject), inject_pid(l->inject));
		ret = inject_breathe(l->inject, us, err);
		if (ret)
			return ret;
		if (us < 20000)
			us *= 2;
	}
}

/* One that never was filled has no more than its place. */
static bool is_there(struct leave *l)
{
	uint64_t magic;

	return !inject_read(l->inject, l->ctl->self, &magic, sizeof(magic)) &&
	       (magic == UKP_CTL_MAGIC || !l->ctl->priv);
}

int leave_target(struct inject *t, struct sym_proc *sym, const struct ukp_ctl *ctl,
                 const void *area, size_t len, bool rest, struct err *err)
{
	struct leave l = { .inject = t, .sym = sym, .ctl = ctl, .area = area, .len = len };
	int ret;

	if (!ctl_sane(ctl, len))
		return err_set(err, -EBADMSG, "what lies in process %d is no agent of this version",
		               inject_pid(t));
	find_ranges(&l);
	inject_use_runner(t, l.text_start && ctl->runner ? l.text_start + ctl->runner : 0);
	/* Our own probes' text is back already, faster than one by one. */
	if (ctl == area)
		leave_text(&l);
	ret = wait_idle(&l, err);
	if (ret)
		return ret;
	leave_copies(&l);
	/* It may have executed another program while it ran. */
	if (!is_there(&l))
		return 0;
	ret = inject_begin(t, err);
	if (ret)
		return ret;
	leave_signals(&l);
	inject_end(t);
	leave_arguments(&l);
	ret = rest ? inject_breathe(t, 0, err) : 0;
	if (ret)
		return ret;
	if (!is_there(&l))
		return 0;
	/* A thread that came back only now may have mapped something first. */
	ret = ctl == area ? sym_refresh(sym, err) : 0;
	if (!ret)
		ret = inject_begin(t, err);
	if (ret)
		return ret;
	unmap_all(&l);
	inject_end(t);
	return 0;
}

struct leave leave_looking(struct target *t)
{
	struct leave l = { .inject = t->inject,
		           .sym = t->sym,
		           .ctl = &t->own,
		           .area = t->ctl,
		           .len = t->own.next_free,
		           .stay = true };

	find_ranges(&l);
	return l;
}

static bool is_of(const struct target *t, const struct chan *c, const struct ukp_instance *inst,
                  const struct probe **of)
{
	const struct probe *p;

	for (p = c->probes; p; p = p->next_mine)
		if (p->ctx_off && inst->ctx == t->own.self + p->ctx_off)
			break;
	*of = p;
	return p && !p->site && !p->planted;
}

static void count_unreturned(const struct chan *c, const struct probe *p)
{
	__atomic_fetch_add(&((struct ukp_stat *)((char *)c->map + UKP_CHAN_OFF_STATS))[p->id]
	                            .miss[UKP_MISS_UNRETURNED],
	                   1, __ATOMIC_RELAXED);
}

static void mute_one(struct target *t, const struct chan *c, const struct probe *p, uint64_t at)
{
	uint64_t mute = t->own.text + agent_offset(AGENT_MUTE_RETURN);

	inject_write(t->inject, at + offsetof(struct ukp_instance, fn), &mute, 8);
	count_unreturned(c, p);
}

/*
 * A record that nobody can come for any more goes at once.  One that has an owner
 * is looked at again: its call returns, or an entry has found it dead.
 */
static bool mute_record(struct target *t, const struct chan *c, uint64_t word_at, uint64_t word,
                        uint64_t record_at)
{
	const uint64_t free_word = UKP_FRAME_FREE;
	struct ukp_instance inst;
	const struct probe *p;

	if (!word || inject_read(t->inject, record_at, &inst, sizeof(inst)) ||
	    !is_of(t, c, &inst, &p))
		return false;
	if ((word & 0xff) != UKP_FRAME_LIVE)
		return true;
	if (!inject_write(t->inject, word_at, &free_word, sizeof(free_word)))
		count_unreturned(c, p);
	return false;
}

/* The same of records by frame: how many have owners. */
static unsigned int mute_frames(struct target *t, const struct chan *c)
{
	struct ukp_frames_bucket *some = malloc(UKP_FRAMES_NEAR * sizeof(*some));
	struct ukp_frames laid_out, now;
	const uint64_t table = target_frames(t, &laid_out);
	unsigned int owned = 0;
	uint64_t nr, i, k;

	/* Mostly the first ones have had room for all. */
	nr = inject_read(t->inject, table, &now, sizeof(now)) || now.spilled ? laid_out.mask + 1ull
	                                                                     : laid_out.near + 1ull;
	for (i = 0; some && i < nr; i += UKP_FRAMES_NEAR) {
		const uint64_t words = table + sizeof(now) + i * sizeof(*some);

		if (inject_read(t->inject, words, some, UKP_FRAMES_NEAR * sizeof(*some)))
			break;
		for (k = 0; k < UKP_FRAMES_NEAR * UKP_FRAMES_WORDS; k++)
			owned += mute_record(t, c, words + k * 8,
			                     some[k / UKP_FRAMES_WORDS].word[k % UKP_FRAMES_WORDS],
			                     table + laid_out.off_records +
			                             (i * UKP_FRAMES_WORDS + k) *
			                                     sizeof(struct ukp_instance));
	}
	free(some);
	return owned;
}

unsigned int leave_mute(struct target *t, const struct chan *c, bool all)
{
	uint64_t mute = t->own.text + agent_offset(AGENT_MUTE_RETURN), base;
	struct ukp_instance *some = malloc(AT_ONCE * sizeof(*some));
	unsigned int running = 0;
	const struct probe *p;
	uint32_t n, i, k, part;

	n = some ? leave_instances(t->inject, &t->own, &base) : 0;
	for (i = 0; i < n; i += part) {
		uint64_t at = base + (uint64_t)i * sizeof(*some);

		part = n - i < AT_ONCE ? n - i : AT_ONCE;
		if (inject_read(t->inject, at, some, part * sizeof(*some)))
			break;
		for (k = 0; k < part; k++) {
			if (some[k].state == UKP_INST_FREE || some[k].fn == mute ||
			    !is_of(t, c, &some[k], &p))
				continue;
			running += some[k].flags & UKP_INST_RETURNING ? 1 : 0;
			if (all || !(some[k].flags & UKP_INST_RETURNING))
				mute_one(t, c, p, at + k * sizeof(*some));
		}
	}
	free(some);
	return running + (t->frames ? mute_frames(t, c) : 0);
}
