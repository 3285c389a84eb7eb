/* SPDX-License-Identifier: MIT */
/*
 * Sites: made once for an address, kept for ever, used again.
 *
 * A site has one action, ours, that walks its probes.  When it first needs post
 * handlers it gets a second slot; the first stays for threads that are in it,
 * and stays in the table behind the new one, for faults there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/jump.h"
#include "lib/lib.h"
#include "patch/area.h"
#include "patch/place.h"
#include "plan/plan.h"

static struct lib_site *all;

static struct lib_site **site_of_slot(uint64_t slot)
{
	struct lib_arena *a;

	for (a = __atomic_load_n(&ukp_lib_arenas, __ATOMIC_ACQUIRE); a; a = a->next)
		if (slot - a->addr < a->len)
			return &a->site[(slot - a->addr) / UKP_SLOT_SIZE];
	return NULL;
}

struct lib_site *site_find(uint64_t addr)
{
	struct ukp_site *us = ukp_lib_ctl ? ukp_site_find(ukp_lib_ctl, addr) : NULL;
	struct lib_site **at = us ? site_of_slot(us->slot) : NULL;

	return at ? __atomic_load_n(at, __ATOMIC_ACQUIRE) : NULL;
}

static struct ukp_site_table *table(void)
{
	return ukp_lib_ctl->sites ? ukp_ctl_at(ukp_lib_ctl, ukp_lib_ctl->sites) : NULL;
}

/* Whether this ukp_site is the one in force for its address; diverted ones always are. */
static bool in_force(uint32_t off)
{
	struct ukp_site *us = ukp_ctl_at(ukp_lib_ctl, off);
	struct lib_site **at = site_of_slot(us->slot);

	return !at || (*at)->site == us;
}

/* Room for one more entry.  Those in force come first in the new table, too. */
static int table_grow(void)
{
	struct ukp_site_table *old = table(), *new;
	uint32_t entries = old ? (old->mask + 1) * 2 : 64, off, i;
	int pass;

	if (old && old->used * 2 < old->mask)
		return 0;
	off = own_alloc(sizeof(*new) + entries * sizeof(uint32_t));
	if (!off)
		return -ENOSPC;
	new = ukp_ctl_at(ukp_lib_ctl, off);
	new->mask = entries - 1;
	new->used = old ? old->used : 0;
	for (pass = 0; pass < 2; pass++)
		for (i = 0; old && i <= old->mask; i++) {
			const struct ukp_site *us = ukp_ctl_at(ukp_lib_ctl, old->site[i]);

			if (old->site[i] && in_force(old->site[i]) == !pass)
				area_table_put(new, new->mask, us->addr, old->site[i]);
		}
	__atomic_store_n(&ukp_lib_ctl->sites, off, __ATOMIC_RELEASE);
	return 0;
}

/* The new one takes the old one's place, which goes behind it. */
static void table_replace(uint32_t old, uint32_t new)
{
	struct ukp_site_table *t = table();
	const struct ukp_site *us = ukp_ctl_at(ukp_lib_ctl, old);
	uint32_t i = ukp_site_hash(us->addr);

	while (t->site[i & t->mask] != old)
		i++;
	area_table_put(t, t->mask, us->addr, old);
	__atomic_store_n(&t->site[i & t->mask], new, __ATOMIC_RELEASE);
}

static uint32_t put_action(ukp_action_fn fn, uint64_t ctx, uint32_t flags)
{
	uint32_t off = own_alloc(sizeof(struct ukp_action));
	struct ukp_action *a;

	if (!off)
		return 0;
	a = ukp_ctl_at(ukp_lib_ctl, off);
	a->fn = (uint64_t)fn;
	a->ctx = ctx;
	a->flags = flags;
	return off;
}

/* The slot's code and its description. */
static int write_slot(struct lib_site *s, bool post, struct ukp_site *us, struct err *err)
{
	uint8_t code[UKP_INSN_MAX], out[UKP_SLOT_SIZE];
	struct plan_request req = { .code = code, .addr = s->addr };
	enum plan_refusal why;
	int ret;

	if (!s->live && place_original(own_sym_last(), s->addr, code, &req.avail))
		return err_set(err, -EINVAL, "cannot read the original code at %#lx", s->addr);
	req.slot = slots_get(own_slots(), s->addr, err);
	if (!req.slot)
		return err->code;
	req.post = post ? (uint64_t)ukp_post_entry : 0;
	why = s->live ? place_copy_live(&own_live_text, &req, out, us) : plan_copy(&req, out, us);
	ret = why ? plan_errno(why) : own_fill(req.slot, out, sizeof(out));
	if (ret) {
		slots_put(own_slots(), req.slot);
		return err_set(err, ret, "no copy of the instruction at %#lx: %s", s->addr,
		               why ? plan_reason(why) : strerror(-ret));
	}
	us->flags |= s->live ? UKP_SITE_LIVE : 0;
	plan_decode(us->orig, us->len, s->addr, &s->insn);
	__atomic_store_n(site_of_slot(req.slot), s, __ATOMIC_RELEASE);
	return 0;
}

/* A ukp_site for s in force, the first or another one. */
static int add_variant(struct lib_site *s, bool post, struct err *err)
{
	struct ukp_site us = { 0 }, *shared;
	uint32_t off;
	int ret;

	if (table_grow())
		return err_set(err, -ENOSPC, "the control area is full");
	ret = write_slot(s, post, &us, err);
	if (ret)
		return ret;
	off = own_alloc(sizeof(us));
	if (!off)
		return err_set(err, -ENOSPC, "the control area is full");
	us.action = s->action;
	shared = ukp_ctl_at(ukp_lib_ctl, off);
	memcpy(shared, &us, sizeof(us));
	table()->used++;
	if (s->site)
		table_replace((uint32_t)((char *)s->site - (char *)ukp_lib_ctl), off);
	else
		area_table_put(table(), table()->mask, s->addr, off);
	s->site = shared;
	return 0;
}

static int new_site(uint64_t addr, bool post, bool live, struct lib_site **ret_s, struct err *err)
{
	struct lib_site *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	s->addr = addr;
	s->live = live;
	s->action = put_action(ukp_lib_hit, (uint64_t)s, 0);
	ret = s->action ? add_variant(s, post, err)
	                : err_set(err, -ENOSPC, "the control area is full");
	if (ret) {
		free(s);
		return ret;
	}
	s->next = all;
	all = s;
	*ret_s = s;
	return 0;
}

struct lib_site *site_first(void)
{
	return all;
}

void site_set_resume(uint64_t addr, uint64_t to)
{
	struct ukp_site_table *t = table();
	uint32_t i = ukp_site_hash(addr), n;

	/* Whoever has trapped may have found any of the address. */
	for (n = 0; n <= t->mask && t->site[(i + n) & t->mask]; n++) {
		struct ukp_site *us = ukp_ctl_at(ukp_lib_ctl, t->site[(i + n) & t->mask]);

		if (us->addr == addr && site_of_slot(us->slot))
			__atomic_store_n(&us->resume, to, __ATOMIC_RELEASE);
	}
}

int site_add_detour(struct lib_site *s, const struct ukp_detour *d, uint32_t off)
{
	struct ukp_site *us = s->site;
	uint64_t at;
	uint32_t more;

	for (at = d->buf; at < d->buf + d->size; at += UKP_SLOT_SIZE)
		__atomic_store_n(site_of_slot(at), s, __ATOMIC_RELEASE);
	if (us->detour) {
		/* Faults find it in an entry of its own, behind the one in force. */
		more = table_grow() ? 0 : own_alloc(sizeof(*us));
		if (!more)
			return -ENOSPC;
		us = ukp_ctl_at(ukp_lib_ctl, more);
		memcpy(us, s->site, sizeof(*us));
		us->detour = 0;
		table()->used++;
		area_table_put(table(), table()->mask, us->addr, more);
	}
	us->shape = d->shape;
	/* Release: whoever finds the detour finds all of it. */
	__atomic_store_n(&us->detour, off, __ATOMIC_RELEASE);
	return 0;
}

/* A site of no probe: its slot is wherever the trap goes on. */
int site_divert(uint64_t addr, uint64_t to)
{
	struct ukp_site *us = ukp_site_find(ukp_lib_ctl, addr);
	uint32_t off;

	if (us) {
		/* A probe's site knows better. */
		if (site_of_slot(us->slot))
			return -EBUSY;
		__atomic_store_n(&us->slot, to, __ATOMIC_RELEASE);
		return 0;
	}
	if (table_grow())
		return -ENOSPC;
	off = own_alloc(sizeof(*us));
	if (!off)
		return -ENOSPC;
	us = ukp_ctl_at(ukp_lib_ctl, off);
	us->addr = addr;
	us->slot = to;
	table()->used++;
	area_table_put(table(), table()->mask, addr, off);
	return 0;
}

/* That code is gone: nobody traps there any more, and what comes there is another's. */
void site_undivert(uint64_t addr)
{
	struct ukp_site *us = ukp_site_find(ukp_lib_ctl, addr);

	if (us && !site_of_slot(us->slot))
		__atomic_store_n(&us->addr, 0, __ATOMIC_RELEASE);
}

/* The module may have been unloaded and another one be there. */
static bool same_code(const struct lib_site *s)
{
	uint8_t code[UKP_INSN_MAX];
	size_t len;

	if (s->live || (s->site->flags & UKP_SITE_LIVE))
		return s->live && (s->site->flags & UKP_SITE_LIVE) && own_live_is_current(s);
	len = place_length(own_sym_last(), s->addr, code);

	return len == s->site->len && !memcmp(code, s->site->orig, len);
}

static bool serves(const struct lib_site *s, bool post)
{
	return !post || s->insn.flow != PLAN_FLOW_NONE || (s->site->flags & UKP_SITE_POST);
}

/* What is planned anew is what is there, or what the file has. */
static int set_live(struct lib_site *s, bool live, struct err *err)
{
	if (s->live && !own_live_is_current(s))
		own_live_forget(s);
	if (s->live == live)
		return 0;
	if (s->armed)
		return err_set(err, -EBUSY, "%#lx has a probe of the code as it was", s->addr);
	s->live = live;
	return 0;
}

static int get(uint64_t addr, bool post, bool live, struct lib_site **ret, struct err *err)
{
	struct lib_site *s = site_find(addr);
	int r = s ? set_live(s, live, err) : 0;

	if (r)
		return r;
	if (s && s->armed && !jump_or_trap_is_there(s)) {
		jump_forget(s);
		s->armed = false;
	}
	if (!s)
		r = new_site(addr, post, live, &s, err);
	else if (!same_code(s)) {
		jump_forget(s);
		s->armed = false;
		r = add_variant(s, post, err);
	} else if (!serves(s, post)) {
		r = add_variant(s, true, err);
	}
	if (!r && post && s->insn.flow != PLAN_FLOW_NONE && s->insn.seg == 'g')
		r = err_set(err, -EOPNOTSUPP, "a branch through gs can't have post handlers");
	*ret = s;
	return r;
}

int site_get(uint64_t addr, bool post, struct lib_site **ret, struct err *err)
{
	return get(addr, post, false, ret, err);
}

int site_get_live(uint64_t addr, bool post, struct lib_site **ret, struct err *err)
{
	return get(addr, post, true, ret, err);
}

bool site_has(const struct lib_site *s, const struct kprobe *p)
{
	const struct kprobe *q;

	for (q = s->probes; q && q != p; q = q->ukp_next)
		;
	return q != NULL;
}

bool site_is_wanted(const struct lib_site *s)
{
	const struct ukp_action *a = ukp_ctl_at(ukp_lib_ctl, s->action);
	const struct kprobe *p;

	for (p = s->probes; p; p = p->ukp_next)
		if (!(p->flags & (KPROBE_FLAG_DISABLED | KPROBE_FLAG_GONE)))
			return true;
	return s->fprobes || s->exits || a->next != 0;
}

bool site_wants_post(const struct lib_site *s)
{
	const struct kprobe *p;

	for (p = s->probes; p; p = p->ukp_next)
		if (p->post_handler && !p->ukp_ret &&
		    !(p->flags & (KPROBE_FLAG_DISABLED | KPROBE_FLAG_GONE)))
			return true;
	return false;
}

static int set_breakpoint(struct lib_site *s, bool want, struct err *err)
{
	unsigned char now, int3 = 0xcc, first = s->site->orig[0];
	int ret;

	if (s->live)
		return want ? own_live_arm(s, err) : own_live_disarm(s);
	ret = own_read(s->addr, &now, 1);
	/* It went with its module, or somebody wrote over it. */
	if (!want && (ret || now != int3))
		s->armed = false;
	if (ret || now != (want ? first : int3))
		return err_set(err, ret ? ret : -EINVAL,
		               "the code at %#lx is not what it was: left alone", s->addr);
	ret = own_write(s->addr, want ? int3 : first);
	if (ret)
		return err_set(err, ret, "cannot write text through /proc/self/mem: %s",
		               strerror(-ret));
	s->armed = want;
	return 0;
}

int site_anchor(struct lib_site *s, bool on, struct err *err)
{
	int ret;

	if (on ? s->armed : !s->anchor)
		return 0;
	ret = site_is_wanted(s) ? 0 : set_breakpoint(s, on, err);
	s->anchor = on && !ret;
	return ret;
}

/* Jumps that this one is under give way to breakpoints first, and may come again. */
int site_update(struct lib_site *s, struct err *err)
{
	struct lib_site *head = jump_over(s->addr);
	bool want = site_is_wanted(s);
	int ret = 0;

	if (head && (want != s->armed || site_wants_post(s) || s->anchor || !jump_fits(s)))
		ret = jump_take_back(head, err);
	if (!ret && want != s->armed)
		ret = set_breakpoint(s, want, err);
	if (ret)
		return ret;
	jump_mark(s);
	opt_queue(s);
	return 0;
}

void site_count_followers(struct lib_site *s, const struct lib_returns *how, int by)
{
	if (how)
		__atomic_store_n(&s->followers, s->followers + (uint32_t)by, __ATOMIC_RELAXED);
	if (how && how->want == PLAN_BY_SLOT)
		__atomic_store_n(&s->slots, s->slots + (uint32_t)by, __ATOMIC_RELAXED);
}

int site_link(struct lib_site *s, struct kprobe *p, struct err *err)
{
	int ret;

	site_count_followers(s, p->ukp_ret ? &p->ukp_ret->how : NULL, 1);
	p->ukp_next = s->probes;
	__atomic_store_n(&s->probes, p, __ATOMIC_RELEASE);
	ret = site_update(s, err);
	if (ret)
		site_unlink(s, p);
	return ret;
}

void site_unlink(struct lib_site *s, struct kprobe *p)
{
	struct err ignored = ERR_INIT;
	struct kprobe **q;

	for (q = &s->probes; *q != p; q = &(*q)->ukp_next)
		;
	/* A thread that is at p still finds its way to the next. */
	__atomic_store_n(q, p->ukp_next, __ATOMIC_RELEASE);
	site_count_followers(s, p->ukp_ret ? &p->ukp_ret->how : NULL, -1);
	__atomic_fetch_and(&p->flags, ~KPROBE_FLAG_OPTIMIZED, __ATOMIC_RELAXED);
	site_update(s, &ignored);
}

static int plant_internal(uint64_t addr, ukp_action_fn fn, struct err *err)
{
	struct ukp_action *a;
	struct lib_site *s;
	uint32_t off;
	int ret = site_get(addr, false, &s, err);

	if (ret)
		return ret;
	a = ukp_ctl_at(ukp_lib_ctl, s->action);
	if (a->next)
		return 0;
	off = put_action(fn, 0, UKP_ACTION_ALWAYS);
	if (!off)
		return err_set(err, -ENOSPC, "the control area is full");
	/* Hits may be on their way through it: it is complete. */
	__atomic_store_n(&a->next, off, __ATOMIC_RELEASE);
	return site_update(s, err);
}

int site_plant_internal(struct err *err)
{
	static const struct {
		const char *name;
		ukp_action_fn fn;
	} wants[] = {
		{ "sigaction", ukp_sigaction_hit },
		{ "_Unwind_RaiseException", ukp_unwind_hit },
		{ "_Unwind_ForcedUnwind", ukp_unwind_hit },
		{ "_Unwind_Resume_or_Rethrow", ukp_unwind_hit },
		{ "_Unwind_Backtrace", ukp_unwind_hit },
		/* Who walks by a libunwind itself: nongnu's, LLVM's. */
		{ "_ULx86_64_init_local", ukp_unwind_hit },
		{ "_ULx86_64_init_local2", ukp_unwind_hit },
		{ "unw_init_local", ukp_unwind_hit },
	};
	struct sym_proc *sym = own_sym_last();
	struct sym_symbol s[8];
	struct err ignored = ERR_INIT;
	size_t i, j, n;
	int ret = 0;

	for (i = 0; i < sizeof(wants) / sizeof(*wants); i++) {
		n = sym_lookup(sym, NULL, wants[i].name, s, 8);
		for (j = 0; j < n && j < 8 && !ret; j++)
			/* Where it can't be probed we do without: the program runs as before. */
			if (s[j].func && !s[j].ifunc &&
			    !place_check(sym, s[j].addr, false, NULL, -1, &ignored))
				ret = plant_internal(s[j].addr, wants[i].fn, err);
	}
	return ret;
}
