/* SPDX-License-Identifier: MIT */
/*
 * What an attach takes hold of when the agent is there (areas.c): dispositions,
 * masks, and the probes that we plant for ourselves.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent.h"
#include "engine/signal.h"
#include "patch/area.h"
#include "session/leave.h"
#include "session/optimize.h"
#include "session/proto.h"
#include "session/target.h"
#include "wire/instance.h"

#define HOOK_LEN 20   /* five bytes, and what an instruction in them goes on for */
#define OPEN_TRIES 20 /* a quarter of a second */

/* What a full set blocks: not SIGKILL, SIGSTOP and libc's own 32 and 33. */
#define NEAR 4096 /* bytes */
#define ALL_SIGNALS (~(1ull << 8 | 1ull << 18 | 1ull << 31 | 1ull << 32))

/* All signals, as libraries block them in threads of their own. */
static bool is_librarys(const struct target *t, const struct inject_thread *th)
{
	return th->tid != t->pid && (th->sigblk & ALL_SIGNALS) == ALL_SIGNALS;
}

/* Holds it again and again, until no thread is found so. */
static int breathe_while(struct target *t, bool (*found)(struct target *), struct err *err)
{
	unsigned int us = 100, tries;
	int ret = 0;

	for (tries = 0; !ret && tries < OPEN_TRIES && found(t); tries++) {
		ret = inject_breathe(t->inject, us, err);
		if (!ret)
			ret = target_still_ours(t, err);
		us = us < 20000 ? us * 2 : us;
	}
	return ret;
}

static bool is_blocking(struct target *t)
{
	size_t i;

	for (i = 0; i < inject_nr_threads(t->inject); i++) {
		const struct inject_thread *th = inject_thread_at(t->inject, i);

		if ((th->sigblk & 1ull << (UKP_SIGTRAP - 1)) && !is_librarys(t, th))
			return true;
	}
	return false;
}

/*
 * A thread that creates another or spawns a program blocks all signals, for a
 * moment: it is met again after that.  Who blocks it for good gets jumps alone.
 */
int target_await_open(struct target *t, struct err *err)
{
	return breathe_while(t, is_blocking, err);
}

/*
 * A thread that blocks it for good, to wait for it or for all signals, will change its
 * mask again.  Then nothing is opened, and only jumps are planted (jump_only.c).
 */
static bool is_closed(struct target *t)
{
	const uint64_t bit = 1ull << (UKP_SIGTRAP - 1);
	size_t i;

	for (i = 0; i < inject_nr_threads(t->inject); i++) {
		const struct inject_thread *th = inject_thread_at(t->inject, i);

		if (!(th->sigblk & bit) || is_librarys(t, th))
			continue;
		t->no_traps = "a thread of the process blocks SIGTRAP, and a breakpoint kills it";
	}
	return t->no_traps;
}

/*
 * A breakpoint met with SIGTRAP blocked kills.  Threads that a library keeps
 * for itself with all signals blocked (jemalloc's, say) get SIGTRAP opened, and
 * what a read in the jump form may raise, while we are here.
 */
static int open_masks(struct target *t, struct err *err)
{
	size_t i;
	uint32_t k;

	for (i = 0; i < inject_nr_threads(t->inject); i++) {
		uint64_t mask = inject_thread_at(t->inject, i)->sigblk;

		/* One that is like those may be taken for one; later they may be our own. */
		if (!ukp_blocks_most(mask) && (t->taken || !ukp_is_like_most(mask)))
			continue;
		for (k = 0; k < t->own.nr_masks && t->own.mask[k] != mask; k++)
			;
		if (k == UKP_NR_MASKS && !ukp_blocks_most(mask))
			continue;
		if (k == UKP_NR_MASKS)
			return err_set(err, -EOPNOTSUPP,
			               "the threads of process %d that block SIGTRAP have too many "
			               "different masks",
			               t->pid);
		/* Said before it is done, for whoever has to clean up. */
		t->own.mask[k] = mask;
		if (k == t->own.nr_masks)
			t->own.nr_masks++;
		memcpy(t->ctl->mask, t->own.mask, sizeof(t->own.mask));
		t->ctl->nr_masks = t->own.nr_masks;
		if (ukp_blocks_most(mask))
			inject_set_mask(t->inject, i, mask & ~UKP_SIGNALS_OPEN);
	}
	return 0;
}

/* Without our probe on sigaction() the program would see what we have changed. */
static bool is_hooked(const struct target *t)
{
	const struct probe *p;

	for (p = t->internal; p; p = p->next_mine)
		if (p->id == AGENT_SIGACTION_HIT && p->site && p->site->jumped)
			return true;
	return false;
}

/*
 * Where libc keeps a thread's id, counted from its thread pointer: the one
 * place that holds it in every thread.  Unknown (0) where there is none.
 */
static uint32_t find_tid_offset(struct target *t)
{
	enum { WORDS = 512 };
	static const uint32_t known[] = { 0x2d0, 0x30 };
	bool fits[WORDS], any = false;
	uint32_t word[WORDS];
	size_t i, w;

	memset(fits, true, sizeof(fits));
	for (i = 0; i < inject_nr_threads(t->inject) && i < 64; i++) {
		struct inject_thread *th = inject_thread_at(t->inject, i);

		if (!th->regs.fs_base ||
		    inject_read(t->inject, th->regs.fs_base, word, sizeof(word)))
			continue;
		any = true;
		for (w = 0; w < WORDS; w++)
			fits[w] = fits[w] && word[w] == (uint32_t)th->ns_tid;
	}
	if (!any)
		return 0;
	for (i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (fits[known[i] / 4])
			return known[i];
	for (w = 1; w < WORDS; w++)
		if (fits[w])
			return w * 4;
	return 0;
}

const char *target_has_hook(const struct target *t, uint64_t addr)
{
	const struct probe *p;

	for (p = t->internal; p; p = p->next_mine)
		if (p->jump_only && p->enabled && addr - p->addr < HOOK_LEN)
			return "ukprobes has a probe of its own there, by which the program "
			       "lives";
	return NULL;
}

/*
 * Is it in the function that has a hook of ours?  sigaction() goes on in another one,
 * which lies beside it and has no name; of who sleeps there, that is not asked.
 */
static bool is_in(const struct target *t, const struct probe *p, const struct inject_thread *th,
                  uint64_t pc)
{
	struct sym_symbol s;
	uint64_t off;

	if (p->id == AGENT_SIGACTION_HIT && (long)th->regs.orig_rax < 0 &&
	    pc - p->addr + NEAR < 2 * NEAR)
		return true;
	return p->jump_only && sym_resolve(t->sym, pc, &s, &off) && p->addr == pc - off;
}

/*
 * Has a thread come into a function before our jump did, and may be about to make its call?
 * The same of one that our hook has let pass, and that isn't out of it yet.
 */
static bool is_setting(struct target *t)
{
	struct leave l = leave_looking(t);
	const struct probe *p;
	size_t i;

	for (i = 0; i < inject_nr_threads(t->inject); i++) {
		const struct inject_thread *th = inject_thread_at(t->inject, i);
		uint64_t pc = th->regs.rip, to;

		/* One that stood where the jump came is behind our probe, in the jump's copy. */
		if (optimize_leads(t, pc, &to))
			pc = to;
		for (p = t->internal; p; p = p->next_mine)
			if (is_in(t, p, th, pc))
				return true;
		if (!t->taken && leave_inside(&l, i))
			return true;
	}
	return false;
}

/* Both at once: what it waits for is over in one stop. */
static bool is_unready(struct target *t)
{
	return is_blocking(t) || is_setting(t);
}

/*
 * What an agent takes of a limited address space the program can't have: as much must be
 * left as it has now, and some more.
 */
static int check_limit(struct target *t, int which, const char *name, const char *used,
                       uint64_t takes, struct err *err)
{
	const uint64_t now = proto_status(t->pid, used, 10) << 10, some = 256ull << 20;
	const uint64_t wants = now + takes + (now > some ? now : some);
	struct rlimit limit;

	if (prlimit(t->pid, which, NULL, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    limit.rlim_cur >= wants)
		return 0;
	return err_set(
		err, -ENOMEM,
		"process %d may have %llu MiB of address space (RLIMIT_%s), has %llu, and an "
		"agent takes %llu: its own allocations would fail; 'prlimit --pid %d "
		"--%s=%llu' is enough",
		t->pid, (unsigned long long)limit.rlim_cur >> 20, name,
		(unsigned long long)now >> 20, (unsigned long long)takes >> 20, t->pid,
		which == RLIMIT_AS ? "as" : "data", (unsigned long long)wants);
}

static int check_limits(struct target *t, struct err *err)
{
	int ret = check_limit(t, RLIMIT_AS, "AS", "VmSize", target_area_size(), err);

	return ret ? ret : check_limit(t, RLIMIT_DATA, "DATA", "VmData", target_priv_size(), err);
}

/* Is there locked memory?  Who has asked for what is to come has had some since, mostly. */
static bool locks_memory(pid_t pid)
{
	return proto_status(pid, "VmLck", 10);
}

/*
 * Symbols are read and functions decoded before the threads stand still: that
 * takes longer than all that is done then.
 */
int target_prepare(struct target *t, struct err *err)
{
	static const char *const unwinder[] = {
		"_Unwind_RaiseException", "_Unwind_ForcedUnwind", "_Unwind_Resume_or_Rethrow",
		"_Unwind_Backtrace",
		/* who walks by a libunwind itself: nongnu's, LLVM's */
		"_ULx86_64_init_local", "_ULx86_64_init_local2", "unw_init_local",
		/* libc's, which load the unwinder only then */
		"backtrace", "pthread_exit"
	};
	struct probe *p;
	size_t i;
	int ret;

	ret = check_limits(t, err);
	if (!ret)
		ret = target_image(t, err);
	t->own.version = UKP_CTL_VERSION;
	t->own.size = UKP_CTL_SIZE;
	t->own.flags = area_cpu_flags();
	t->own.broker = getpid();
	t->own.start_time = proto_start_time(t->pid);
	if (!ret)
		ret = probe_internal(t, "sigaction", AGENT_SIGACTION_HIT, err);
	if (!ret)
		ret = probe_internal(t, "pthread_sigmask", AGENT_SIGMASK_HIT, err);
	if (!ret)
		ret = probe_internal(t, "sigprocmask", AGENT_SIGMASK_HIT, err);
	/* Libraries change their handlers while they block all signals, as libuv does. */
	for (p = t->internal; p; p = p->next_mine)
		p->jump_only = "it may be called with all signals blocked";
	for (i = 0; !ret && i < sizeof(unwinder) / sizeof(*unwinder); i++)
		ret = probe_internal(t, unwinder[i], AGENT_UNWIND_HIT, err);
	if (!ret)
		ret = probe_internal(t, "_dl_debug_state", AGENT_LOADER_HIT, err);
	/* The loader's is in only while definitions wait (pending.c), the unwinders' with returns.
	 */
	for (p = t->internal; p; p = p->next_mine)
		p->enabled = p->id != AGENT_LOADER_HIT && p->id != AGENT_UNWIND_HIT;
	t->own.restorer = inject_restorer(t->inject);
	t->locks = locks_memory(t->pid);
	return ret;
}

/* Those that are breakpoints: what they are for we do without. */
static void keep_traps_out(struct target *t)
{
	struct probe *p;

	for (p = t->internal; p; p = p->next_mine) {
		if (!p->site || p->jump_only)
			continue;
		p->enabled = false;
		p->site->jump_only = t->no_traps;
		p->site->plan.flags |= UKP_SITE_JUMP_ONLY;
		((struct ukp_site *)target_at(t, p->site->off))->flags |= UKP_SITE_JUMP_ONLY;
	}
}

/* What was changed by someone since, we do without. */
static void arm_internal(struct target *t, bool jump_only)
{
	struct err ignored = ERR_INIT;
	struct probe *p;

	for (p = t->internal; p; p = p->next_mine)
		if (p->site && p->enabled && !p->site->jump_only != jump_only)
			probe_arm(t, p, &ignored);
}

int target_settle(struct target *t, struct err *err)
{
	t->own.tid_off = find_tid_offset(t);
	t->ctl->tid_off = t->own.tid_off;
	if (is_closed(t))
		keep_traps_out(t);
	arm_internal(t, true);
	(void)err;
	return 0;
}

static int take(struct target *t, struct err *err)
{
	int ret;

	/* The attach may be long ago. */
	if (!t->no_traps && is_closed(t))
		return err_set(err, -EAGAIN,
		               "a thread of process %d has blocked SIGTRAP just now: try again",
		               t->pid);
	ret = target_begin(t, err);
	if (ret)
		return ret;
	/* What may be refused comes first. */
	if (!t->no_traps)
		ret = open_masks(t, err);
	if (!ret)
		ret = target_take_signals(t, err);
	if (!ret && !t->no_traps && is_hooked(t)) {
		t->own.flags |= UKP_CTL_OPENS;
		t->ctl->flags = t->own.flags;
		target_open_handlers(t);
	}
	target_end(t);
	t->taken = !ret;
	return ret;
}

int target_take(struct target *t, struct err *err)
{
	int ret = target_hold(t, err);

	if (ret)
		return ret;
	/* One that is launched can't run on, and is not in there. */
	if (t->holds == 1)
		ret = breathe_while(t, t->taken || t->no_traps ? is_setting : is_unready, err);
	if (!ret && !t->taken)
		ret = take(t, err);
	else if (!ret && !t->no_traps)
		ret = open_masks(t, err);
	/* Some may be wanted only now. */
	if (!ret)
		arm_internal(t, false);
	target_release(t);
	return ret;
}
