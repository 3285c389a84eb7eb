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
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent.h"
#include "engine/signal.h"
#include "patch/area.h"
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

		if (!ukp_blocks_most(mask))
			continue;
		for (k = 0; k < t->own.nr_masks && t->own.mask[k] != mask; k++)
			;
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
		inject_set_mask(t->inject, i, mask & ~UKP_SIGNALS_OPEN);
	}
	return 0;
}

/* The signals that are ours, in their order. */
static unsigned int our_signals(int sig[UKP_NR_SIGNALS])
{
	unsigned int n = 0;
	int i;

	for (i = 1; i < UKP_NR_SIGNALS; i++)
		if (UKP_SIGNALS & 1ull << (i - 1))
			sig[n++] = i;
	return n;
}

static void our_action(const struct target *t, int sig, struct ukp_sigaction *sa)
{
	sa->flags = area_signal_flags(sig, sa);
	sa->handler = t->own.text +
	              agent_offset(sig == UKP_SIGTRAP ? AGENT_TRAP_ENTRY : AGENT_FAULT_ENTRY);
	sa->restorer = t->own.text + agent_offset(AGENT_RESTORER);
	sa->mask = 0;
}

/*
 * What they were goes to where the agent and whoever cleans up find it.  A SIGTRAP
 * that is no probe's goes on to the program, whether it handles or ignores it.
 */
static int keep_actions(struct target *t, const int *sig, const struct ukp_sigaction *was,
                        unsigned int n, struct err *err)
{
	struct ukp_sigaction old[UKP_NR_SIGNALS];
	uint64_t at = t->own.priv + offsetof(struct ukp_priv, old);
	unsigned int i;

	_Static_assert(sizeof(old) == sizeof(((struct ukp_priv *)0)->old), "one for each signal");
	memset(old, 0, sizeof(old));
	for (i = 0; i < n; i++)
		old[sig[i]] = was[i];
	return inject_write(t->inject, at, old, sizeof(old))
	               ? err_set(err, -EIO, "cannot write to process %d", t->pid)
	               : 0;
}

static int take_signals(struct target *t, struct err *err)
{
	struct inject_call v[UKP_NR_SIGNALS] = { 0 };
	struct ukp_sigaction sa[UKP_NR_SIGNALS];
	int sig[UKP_NR_SIGNALS], ret = 0;
	unsigned int i, n = our_signals(sig);
	uint64_t at = inject_scratch(t->inject, n * sizeof(*sa));

	for (i = 0; i < n; i++)
		v[i] = (struct inject_call){ SYS_rt_sigaction,
			                     { sig[i], 0, at + i * sizeof(*sa), 8 },
			                     0 };
	ret = at ? inject_calls(t->inject, v, n) : -ENOMEM;
	for (i = 0; i < n && !ret; i++)
		ret = (int)v[i].ret;
	if (ret || inject_read(t->inject, at, sa, n * sizeof(*sa)))
		return err_set(err, ret ? ret : -EIO, "cannot read the signals of process %d",
		               t->pid);
	ret = keep_actions(t, sig, sa, n, err);
	if (ret)
		return ret;
	for (i = 0; i < n; i++) {
		our_action(t, sig[i], &sa[i]);
		v[i] = (struct inject_call){ SYS_rt_sigaction,
			                     { sig[i], at + i * sizeof(*sa), 0, 8 },
			                     0 };
		/* Said before it is done: who cleans up compares before undoing. */
		t->own.taken |= 1ull << (sig[i] - 1);
	}
	t->ctl->taken = t->own.taken;
	ret = inject_write(t->inject, at, sa, n * sizeof(*sa));
	if (!ret)
		ret = inject_calls(t->inject, v, n);
	for (i = 0; i < n && !ret; i++)
		ret = (int)v[i].ret;
	return ret ? err_set(err, ret, "cannot handle signals in process %d: %s", t->pid,
	                     strerror(-ret))
	           : 0;
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

/* What the kernel says of these signals, into *sa and to at in the target; false: nothing. */
static bool ask_actions(struct target *t, const int *sig, unsigned int n, uint64_t at,
                        struct ukp_sigaction *sa)
{
	struct inject_call v[UKP_NR_SIGNALS];
	unsigned int i;

	for (i = 0; i < n; i++)
		v[i] = (struct inject_call){ SYS_rt_sigaction,
			                     { sig[i], 0, at + i * sizeof(*sa), 8 },
			                     -1 };
	if (!n || !at || inject_calls(t->inject, v, n))
		return false;
	for (i = 0; i < n; i++)
		if (v[i].ret)
			return false;
	return !inject_read(t->inject, at, sa, n * sizeof(*sa));
}

/* Said before it is done: who cleans up compares before undoing. */
static bool say_opened(struct target *t, int sig, const struct ukp_sigaction *was, uint64_t *opened)
{
	const uint64_t priv = t->own.priv;

	*opened |= 1ull << (sig - 1);
	return !inject_write(t->inject, priv + offsetof(struct ukp_priv, old) + sig * sizeof(*was),
	                     was, sizeof(*was)) &&
	       !inject_write(t->inject, priv + offsetof(struct ukp_priv, opened), opened,
	                     sizeof(*opened));
}

/*
 * Handlers that run with SIGTRAP blocked, mostly with all signals: in what they call a
 * breakpoint would kill.  Where it can't be opened it is as it was.
 */
static void open_handlers(struct target *t)
{
	const uint64_t bit = 1ull << (UKP_SIGTRAP - 1);
	struct inject_call v[UKP_NR_SIGNALS];
	struct ukp_sigaction sa[UKP_NR_SIGNALS];
	int sig[UKP_NR_SIGNALS];
	unsigned int i, n = 0, m = 0;
	uint64_t at, opened = 0;

	for (i = 1; i < UKP_NR_SIGNALS; i++)
		if (t->caught & ~t->own.taken & 1ull << (i - 1))
			sig[n++] = (int)i;
	at = n ? inject_scratch(t->inject, n * sizeof(*sa)) : 0;
	if (!ask_actions(t, sig, n, at, sa))
		return;
	for (i = 0; i < n; i++) {
		if (sa[i].handler <= UKP_SIG_IGN || !(sa[i].mask & bit))
			continue;
		if (!say_opened(t, sig[i], &sa[i], &opened))
			return;
		sa[m] = sa[i];
		sa[m].mask &= ~bit;
		v[m] = (struct inject_call){ SYS_rt_sigaction,
			                     { sig[i], at + m * sizeof(*sa), 0, 8 },
			                     0 };
		m++;
	}
	if (m && !inject_write(t->inject, at, sa, m * sizeof(*sa)))
		inject_calls(t->inject, v, m);
}

/* Of which signals there is a handler, by /proc: so only these have to be asked for. */
static uint64_t find_caught(pid_t pid)
{
	char path[64], line[256];
	uint64_t caught = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "SigCgt: %" SCNx64, &caught) == 1)
			break;
	if (f)
		fclose(f);
	return caught;
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

/* Has a thread come into a function before our jump did, and may be about to make its call? */
static bool is_setting(struct target *t)
{
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
	}
	return false;
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
	/* In only while definitions wait (pending.c). */
	for (p = t->internal; p; p = p->next_mine)
		p->enabled = p->id != AGENT_LOADER_HIT;
	t->own.restorer = inject_restorer(t->inject);
	t->caught = find_caught(t->pid);
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
	int ret = target_begin(t, err);

	if (ret)
		return ret;
	ret = take_signals(t, err);
	if (!ret && !t->no_traps)
		ret = open_masks(t, err);
	if (!ret && !t->no_traps && is_hooked(t)) {
		t->own.flags |= UKP_CTL_OPENS;
		t->ctl->flags = t->own.flags;
		open_handlers(t);
	}
	target_end(t);
	if (!ret)
		arm_internal(t, false);
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
		ret = breathe_while(t, is_setting, err);
	if (!ret && !t->taken)
		ret = take(t, err);
	else if (!ret && !t->no_traps)
		ret = open_masks(t, err);
	target_release(t);
	return ret;
}
