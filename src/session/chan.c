/* SPDX-License-Identifier: MIT */
/* A client's channel: made, emptied, taken away. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/ring.h"
#include "patch/area.h"
#include "session/budget.h"
#include "session/target.h"

#define SUB_SHIFT 18 /* 256 KiB a sub-buffer */
#define NR_SUBS 16   /* 4 MiB a CPU */
#define MAX_SHARDS 64
#define MUTE_TRIES 20

static void lay_out(struct ukp_chan *c)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	if (cpus < 1)
		cpus = 1;
	c->magic = UKP_CHAN_MAGIC;
	c->version = UKP_CHAN_VERSION;
	c->nr_shards = cpus < MAX_SHARDS ? cpus : MAX_SHARDS;
	c->nr_stats = UKP_CHAN_STATS;
	c->nr_rings = c->nr_shards;
	c->nr_subs = NR_SUBS;
	c->sub_shift = SUB_SHIFT;
	c->off_stats = UKP_CHAN_OFF_STATS;
	c->nr_counters = UKP_CHAN_COUNTERS;
	c->off_counters = area_page_up(c->off_stats + (uint64_t)c->nr_shards * c->nr_stats *
	                                                      sizeof(struct ukp_stat));
	c->off_hists = area_page_up(c->off_counters +
	                            (uint64_t)c->nr_shards * c->nr_counters * sizeof(uint64_t));
	c->off_rings =
		area_page_up(c->off_hists + (uint64_t)UKP_CHAN_HISTS * ukp_chan_hist_shards(c) *
	                                            area_page_up(sizeof(struct ukp_hist)));
	c->ring_stride = ukp_ring_stride(c->nr_subs, c->sub_shift);
	c->size = c->off_rings + c->nr_rings * c->ring_stride;
}

/* Children that are forked from now on have it, and know that they do. */
static void count_chan(struct chan *c)
{
	struct target *t = c->target;
	const uint64_t n = t->chans_mapped + 1;

	if (n >= 1u << (32 - UKP_ACTION_CHANS_SHIFT) ||
	    inject_write(t->inject, t->own.priv + offsetof(struct ukp_priv, chans), &n, sizeof(n)))
		return;
	t->chans_mapped = n;
	c->born = (uint32_t)n;
}

static int map_chan(struct chan *c, struct err *err)
{
	struct target *t = c->target;
	long remote;

	c->fd = target_memfd(t, "ukprobes-chan", c->size, &remote, err);
	if (c->fd < 0)
		return c->fd;
	c->addr = target_map_fd(t, c->size, (int)remote, UKP_MAP_CHAN, c->number, err);
	if (!c->addr)
		return err->code;
	count_chan(c);
	return 0;
}

/* Nothing leads to it yet, so the target runs. */
static int fill_chan(struct chan *c, struct err *err)
{
	const struct ukp_chan *layout = &c->layout;
	uint32_t i;

	c->map = mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
	if (c->map == MAP_FAILED) {
		c->map = NULL;
		return err_set(err, -errno, "cannot map the channel: %s", strerror(errno));
	}
	*c->map = *layout;
	for (i = 0; i < layout->nr_rings; i++)
		ukp_ring_init((struct ukp_ring *)((char *)c->map + layout->off_rings +
		                                  i * layout->ring_stride),
		              layout->nr_subs, layout->sub_shift);
	return 0;
}

/* One stop, with system calls in it. */
static int enter(struct chan *c, struct err *err)
{
	struct target *t = c->target;
	int ret = target_hold(t, err);

	if (ret)
		return ret;
	ret = target_begin(t, err);
	if (!ret) {
		ret = map_chan(c, err);
		target_end(t);
	}
	target_release(t);
	return ret;
}

static void chan_free(struct chan *c)
{
	struct chan **p;

	for (p = &c->target->chans; *p; p = &(*p)->next)
		if (*p == c) {
			*p = c->next;
			break;
		}
	budget_free(c);
	free(c->loose.v);
	probe_free_all(c->target, c->probes);
	if (c->map)
		munmap(c->map, c->size);
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

void chan_say(struct chan *c, const struct probe *p, const char *fmt, ...)
{
	const size_t room = sizeof(c->dropped) - c->dropped_used;
	char *at = c->dropped + c->dropped_used, place[384], why[256];
	va_list ap;
	int n;

	if (p->member)
		snprintf(place, sizeof(place), "%s", p->def->text);
	else
		sym_format(c->target->sym, p->addr, place, sizeof(place));
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	n = snprintf(at, room, "%s: %s\n", place, why);
	/* A line that doesn't fit is left away; that it is out 'ukprobe list' says. */
	if (n > 0 && (size_t)n < room)
		c->dropped_used += n;
	c->dropped[c->dropped_used] = 0;
}

int chan_dropped(struct chan *c, char *buf, size_t len)
{
	int n = snprintf(buf, len, "%s", c->dropped);

	c->dropped[0] = c->dropped_used = 0;
	return n;
}

int chan_open(struct target *t, struct chan **ret_c, struct err *err)
{
	struct chan *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return err_set(err, -ENOMEM, "out of memory");
	lay_out(&c->layout);
	c->target = t;
	c->fd = -1;
	c->size = c->layout.size;
	c->number = t->next_chan++;
	ret = enter(c, err);
	/* Should this fail, its memory there goes with the agent. */
	if (!ret)
		ret = fill_chan(c, err);
	if (ret) {
		chan_free(c);
		return ret;
	}
	c->next = t->chans;
	t->chans = c;
	*ret_c = c;
	return 0;
}

/*
 * Calls that are still on their way give no record any more.  First all that
 * were inside when its probes were unlinked have left; then those that return
 * right now finish, for they count themselves.  -EAGAIN: one of these has not.
 */
int chan_mute(struct chan *c, struct err *err)
{
	struct target *t = c->target;
	struct grace g = { 0 };
	unsigned int us = 50, tries;
	int settled = grace_settle(t, &g, err), ret = 0;

	grace_start(&g);
	if (settled && settled != -EAGAIN)
		return settled;
	/* One that a program's handler has left by longjmp() will not count itself any more. */
	for (tries = 0; leave_mute(t, c, tries == MUTE_TRIES); tries++) {
		if (tries == MUTE_TRIES)
			return -EAGAIN;
		ret = inject_breathe(t->inject, us, err);
		if (!ret)
			ret = target_still_ours(t, err);
		if (ret)
			return ret;
		us = us < 20000 ? us * 2 : us;
	}
	return settled;
}

static void unmap_chan(struct chan *c)
{
	struct err ignored = ERR_INIT;
	struct target *t = c->target;

	if (target_begin(t, &ignored))
		return;
	target_unmap(t, c->addr);
	target_end(t);
}

/* All that were on their way to what its probes had there have left, and no call will come back. */
static void give_back(struct chan *c)
{
	const struct probe *p;

	for (p = c->probes; p; p = p->next_mine)
		probe_blocks(p, &c->loose);
	heap_give(c->target, &c->loose);
}

/* Its probes out, and its memory, if nobody uses that any more: else it goes with the agent. */
static int stop(struct chan *c, bool unmap, struct err *err)
{
	struct target *t = c->target;
	struct probe *p;
	int ret;

	/* One byte each, for which nobody has to stand still, or could be made to. */
	bulk_stop(c, NULL);
	for (p = c->probes; p; p = p->next_mine)
		probe_unplant(p);
	ret = t->dead ? -ESRCH : target_hold(t, err);
	if (ret)
		return ret == -ESRCH ? 0 : ret;
	ret = chan_mute(c, err);
	if (!ret && unmap)
		unmap_chan(c);
	target_release(t);
	if (!ret && unmap)
		give_back(c);
	return ret == -ESRCH || ret == -EAGAIN ? 0 : ret;
}

int chan_stop(struct chan *c, struct err *err)
{
	return stop(c, false, err);
}

int chan_close(struct chan *c, struct err *err)
{
	int ret = stop(c, true, err);

	chan_free(c);
	return ret;
}
