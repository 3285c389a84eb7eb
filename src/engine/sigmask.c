/* SPDX-License-Identifier: MIT */
/*
 * The entries of libc's pthread_sigmask() and sigprocmask(), probed for ourselves: a
 * thread that blocks most of the signals, for a while and for good reasons (libuv,
 * python and many libraries do), doesn't mean those that our breakpoints raise.  These
 * stay open, or the next breakpoint would end the program.
 *
 * The system call is left to the function, which gets another set: what comes
 * open may be delivered in it, and a handler may leave it for good.
 */
#include "engine/arch.h"
#include "engine/hit.h"
#include "engine/signal.h"

enum { NR_rt_sigprocmask = 14 };
enum { LIBC_SIG_BLOCK, LIBC_SIG_UNBLOCK, LIBC_SIG_SETMASK };

/*
 * Which of the kept ones it is; UKP_NR_SET_MASKS: there are too many others.  They stay:
 * a thread may be about to use one, and who leaves gives it back to those that have it
 * still, but for ours.
 */
static unsigned int keep(struct ukp_priv *priv, uint64_t mask)
{
	unsigned int i;

	for (i = 0; i < UKP_NR_SET_MASKS; i++) {
		uint64_t there = __atomic_load_n(&priv->mask[i], __ATOMIC_RELAXED);

		if (!there && __atomic_compare_exchange_n(&priv->mask[i], &there, mask, false,
		                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return i;
		if (there == mask)
			return i;
	}
	return i;
}

uint64_t ukp_mask_as_set(const struct ukp_ctl *ctl, uint64_t now)
{
	uint64_t all = ~0ull;
	bool any = ukp_masks_meet(ukp_priv_of(ctl)->mask, UKP_NR_SET_MASKS, now, &all);

	any |= ukp_masks_meet(ctl->mask, UKP_NR_MASKS, now, &all);
	return any ? all | now : now;
}

/* Nothing comes open by being asked for, so that may be answered here. */
static int answer(struct ukp_hit *hit)
{
	struct pt_regs *regs = hit->regs;
	uint64_t now, ret;

	if (!regs->dx || ukp_arch_copy(&ret, (void *)regs->sp, 8) ||
	    ukp_arch_syscall(NR_rt_sigprocmask, LIBC_SIG_BLOCK, 0, (long)&now, 8))
		return 0;
	now = ukp_mask_as_set(hit->ctl, now);
	if (ukp_arch_copy((void *)regs->dx, &now, 8))
		return 0;
	return ukp_hit_returned(regs, ret);
}

/*
 * The old mask that comes with a change, as the program has set it: it will be set again.
 * It is said before the call, whose own answer nobody reads then.
 */
static void tell_old(struct ukp_hit *hit)
{
	struct ukp_priv *priv = ukp_priv_of(hit->ctl);
	struct pt_regs *regs = hit->regs;
	uint64_t now, old;

	if (!regs->dx || regs->dx == regs->si || regs->dx == (uint64_t)&priv->unread ||
	    ukp_arch_syscall(NR_rt_sigprocmask, LIBC_SIG_BLOCK, 0, (long)&now, 8))
		return;
	old = ukp_mask_as_set(hit->ctl, now);
	if (old != now && !ukp_arch_copy((void *)regs->dx, &old, 8))
		regs->dx = (uint64_t)&priv->unread;
}

/* Opened by the program itself: it is to stay so when the rest is closed again. */
static void unblocked(struct ukp_hit *hit, uint64_t set)
{
	uint64_t now, mask;

	if (!(set & UKP_SIGNALS_OPEN) ||
	    ukp_arch_syscall(NR_rt_sigprocmask, LIBC_SIG_BLOCK, 0, (long)&now, 8))
		return;
	mask = ukp_mask_as_set(hit->ctl, now);
	if (mask != now && ukp_is_like_most(mask & ~set))
		keep(ukp_priv_of(hit->ctl), mask & ~set);
}

/* The set that the call gets, and what is to be remembered of it. */
static void change(struct ukp_hit *hit)
{
	struct ukp_priv *priv = ukp_priv_of(hit->ctl);
	struct pt_regs *regs = hit->regs;
	const int how = (int)regs->di;
	uint64_t mask;
	unsigned int i;

	/* sigprocmask() goes on by pthread_sigmask(), with what we have put there. */
	if (regs->si - (uint64_t)priv->set < sizeof(priv->set) ||
	    ukp_arch_copy(&mask, (void *)regs->si, sizeof(mask)))
		return;
	if (how == LIBC_SIG_UNBLOCK)
		unblocked(hit, mask);
	if ((how != LIBC_SIG_BLOCK && how != LIBC_SIG_SETMASK) || !ukp_is_like_most(mask))
		return;
	mask &= ~UKP_SIGNALS_NEVER_BLOCKED;
	i = keep(priv, mask);
	if (i == UKP_NR_SET_MASKS || !ukp_blocks_most(mask))
		return;
	/* By each that comes, and the same. */
	__atomic_store_n(&priv->set[i][0], mask & ~UKP_SIGNALS_OPEN, __ATOMIC_RELAXED);
	regs->si = (uint64_t)priv->set[i];
}

int ukp_sigmask_hit(struct ukp_hit *hit, uint64_t ctx)
{
	bool any = ukp_priv_of(hit->ctl)->mask[0] || hit->ctl->nr_masks;

	if (!(hit->ctl->flags & UKP_CTL_OPENS))
		return 0;
	if (!hit->regs->si)
		return any ? answer(hit) : 0;
	change(hit);
	if (any)
		tell_old(hit);
	return 0;
}
