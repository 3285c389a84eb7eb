/* SPDX-License-Identifier: MIT */
/*
 * Probes in code that this process may rewrite (UKP_ANY_TEXT).  Memory is the truth;
 * each hit is held against it by the engine, each change by what is here.
 */
#include <errno.h>
#include <string.h>

#include "engine/signal.h"
#include "lib/jump.h"
#include "lib/lib.h"
#include "wire/live.h"

static int read_text(void *arg, uint64_t addr, void *buf, size_t len)
{
	return jump_read_text(addr, buf, len);
}

const struct place_live own_live_text = { read_text, NULL };

static bool is_engine(uint64_t addr)
{
	uint32_t i;

	for (i = 0; ukp_lib_ctl && i < ukp_lib_ctl->nr_mappings; i++)
		if (addr - ukp_lib_ctl->mapping[i].addr < ukp_lib_ctl->mapping[i].len)
			return true;
	return false;
}

bool own_live_is_asked(const struct kprobe *p, struct sym_proc *sym, uint64_t addr)
{
	return (p->flags & UKP_ANY_TEXT) && place_is_live(sym, &own_live_text, addr);
}

int own_live_check(const struct kprobe *p, struct sym_proc *sym, uint64_t addr, struct err *err)
{
	if (is_engine(addr))
		return kprobe_refuse(p, addr, "it is of ukprobes itself", err);
	if (p->ukp_ret)
		return kprobe_refuse(
			p, addr, "the program may rewrite its code: its returns are not followed",
			err);
	return place_check_live(sym, &own_live_text, addr, -1, err);
}

static enum ukp_live judge(const struct lib_site *s)
{
	const unsigned int n = ukp_live_bytes(s->addr, s->site->len);
	uint8_t now[UKP_LIVE_MAX], first;

	if (own_read(s->addr, &first, 1) || jump_read_text(s->addr, now, n))
		return UKP_LIVE_GONE;
	now[0] = first;
	return ukp_live_judge(s->site, now, n);
}

/* Before a breakpoint is set, by all that a hit is judged by, and to the last byte. */
bool own_live_is_current(const struct lib_site *s)
{
	const unsigned int n = ukp_live_bytes(s->addr, s->site->len);
	uint8_t now[UKP_LIVE_MAX];

	if (s->armed)
		return judge(s) == UKP_LIVE_OURS;
	return !jump_read_text(s->addr, now, n) && !memcmp(now, s->site->orig, n);
}

/*
 * In one with the look at what is there, for the program may be writing: where it can,
 * and else nobody does.
 */
static int swap(uint64_t addr, uint8_t old, uint8_t new)
{
	uint8_t now;
	int ret;

	if (ukp_live_put(addr, old, new, true))
		return 0;
	ret = own_read(addr, &now, 1);
	return ret || now != old ? ret : own_write(addr, new);
}

int own_live_arm(struct lib_site *s, struct err *err)
{
	const uint8_t first = s->site->orig[0];
	int ret = own_live_is_current(s) ? swap(s->addr, first, 0xcc) : -EINVAL;

	if (!ret && judge(s) != UKP_LIVE_OURS) {
		swap(s->addr, 0xcc, first);
		ret = -EINVAL;
	}
	if (ret)
		return err_set(err, ret, "the code at %#lx is not what it was: left alone",
		               s->addr);
	s->armed = true;
	return 0;
}

int own_live_disarm(struct lib_site *s)
{
	uint8_t flags = s->site->flags & ~UKP_SITE_LEFT, now;
	int ret = 0;

	if (s->armed && judge(s) != UKP_LIVE_GONE)
		ret = swap(s->addr, 0xcc, s->site->orig[0]);
	else if (s->armed && !own_read(s->addr, &now, 1) && now == 0xcc)
		flags |= UKP_SITE_LEFT;
	if (s->armed)
		__atomic_store_n(&s->site->flags, flags, __ATOMIC_RELAXED);
	s->armed = false;
	return ret;
}

void own_live_forget(struct lib_site *s)
{
	struct kprobe *p;

	own_live_disarm(s);
	for (p = s->probes; p; p = p->ukp_next)
		__atomic_fetch_or(&p->flags, KPROBE_FLAG_GONE, __ATOMIC_RELAXED);
}
