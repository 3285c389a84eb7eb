/* SPDX-License-Identifier: MIT */
/*
 * The entry of libc's sigaction(), probed for ourselves: dispositions of the
 * signals that the engine has taken are kept for the program instead of being
 * put in force, and read back as it set them.
 *
 * Handlers of other signals that would run with SIGTRAP blocked do without that, for
 * what they call may be probed; the program reads their masks as it set them.  Others
 * change dispositions past us, so the kernel is asked each time what is in force.
 */
#include "engine/arch.h"
#include "engine/hit.h"
#include "engine/signal.h"

#define TRAP_BIT (1ull << (UKP_SIGTRAP - 1))

enum { NR_rt_sigaction = 13, NR_getpid = 39 };

/* struct sigaction of glibc and musl */
struct libc_sigaction {
	uint64_t handler;
	uint64_t mask[16];
	int32_t flags;
	uint64_t restorer;
};

static void to_libc(struct libc_sigaction *to, const struct ukp_sigaction *from)
{
	unsigned int i;

	to->handler = from->handler;
	to->mask[0] = from->mask;
	for (i = 1; i < 16; i++)
		to->mask[i] = 0;
	to->flags = (int32_t)from->flags; /* with SA_RESTORER, as libc tells it */
	to->restorer = from->restorer;
}

static bool is_opened(const struct ukp_ctl *ctl, int sig, struct ukp_sigaction *now)
{
	return ukp_priv_of(ctl)->opened >> (sig - 1) & 1 &&
	       !ukp_arch_syscall(NR_rt_sigaction, sig, 0, (long)now, 8) &&
	       ukp_is_opened(now, ukp_old_action(ctl, sig));
}

/* What sigaction() would do, but for the bit. */
static int answer(struct pt_regs *regs, struct ukp_sigaction *now)
{
	struct libc_sigaction oact;
	uint64_t ret;

	now->mask |= TRAP_BIT;
	to_libc(&oact, now);
	if (!regs->dx || ukp_arch_copy(&ret, (void *)regs->sp, 8) ||
	    ukp_arch_copy((void *)regs->dx, &oact, sizeof(oact)))
		return 0;
	return ukp_hit_returned(regs, ret);
}

static bool wants_opening(const struct libc_sigaction *act)
{
	return act->handler > UKP_SIG_IGN && act->mask[0] & TRAP_BIT;
}

/* Set as it is in force already, by the program itself: then it is not ours any more. */
static void forget_opened(struct ukp_ctl *ctl, int sig, const struct libc_sigaction *act)
{
	const struct ukp_sigaction *set = ukp_old_action(ctl, sig);

	if (act->handler == set->handler &&
	    (act->mask[0] & ~UKP_SIGNALS_NEVER_BLOCKED) == (set->mask & ~TRAP_BIT))
		__atomic_fetch_and(&ukp_priv_of(ctl)->opened, ~(1ull << (sig - 1)),
		                   __ATOMIC_RELEASE);
}

/*
 * The whole call.  Left to the function, its argument would have to lie somewhere until
 * that reads it, and what it tells as the old one would have to be in force for a moment:
 * a handler that comes then would block SIGTRAP.
 */
static int set_handler(struct ukp_ctl *ctl, int sig, struct pt_regs *regs,
                       const struct libc_sigaction *act, const struct ukp_sigaction *opened)
{
	struct ukp_sigaction *set = ukp_old_action(ctl, sig), now;
	struct ukp_sigaction next = { .handler = act->handler,
		                      .flags = (uint32_t)act->flags | UKP_SA_RESTORER,
		                      .restorer = ctl->restorer,
		                      .mask = act->mask[0] & ~UKP_SIGNALS_NEVER_BLOCKED };
	struct libc_sigaction oact;
	uint64_t ret;

	if (ukp_arch_copy(&ret, (void *)regs->sp, 8))
		return 0;
	/* Said before it is done, for whoever has to put it back. */
	if (wants_opening(act)) {
		set->handler = next.handler;
		set->mask = next.mask;
		__atomic_fetch_or(&ukp_priv_of(ctl)->opened, 1ull << (sig - 1), __ATOMIC_RELEASE);
		next.mask &= ~TRAP_BIT;
	} else {
		forget_opened(ctl, sig, act);
	}
	/* What can't be is for the function to say. */
	if (ukp_arch_syscall(NR_rt_sigaction, sig, (long)&next, (long)&now, 8))
		return 0;
	if (ukp_is_opened(&now, opened))
		now.mask |= TRAP_BIT;
	to_libc(&oact, &now);
	if (regs->dx && ukp_arch_copy((void *)regs->dx, &oact, sizeof(oact)))
		return 0;
	return ukp_hit_returned(regs, ret);
}

static int open_handler(struct ukp_ctl *ctl, int sig, struct pt_regs *regs)
{
	/* As it was set until now; none, if that has not been opened. */
	struct ukp_sigaction now, old = *ukp_old_action(ctl, sig);
	const bool opened = is_opened(ctl, sig, &now);
	struct libc_sigaction act;

	if (!regs->si)
		return opened ? answer(regs, &now) : 0;
	if (ukp_arch_copy(&act, (void *)regs->si, sizeof(act)))
		return 0;
	if (!opened)
		old.handler = UKP_SIG_DFL;
	if (ctl->restorer && (wants_opening(&act) || (opened && regs->dx)))
		return set_handler(ctl, sig, regs, &act, &old);
	forget_opened(ctl, sig, &act);
	return 0;
}

/* A child by vfork() has this memory, and dispositions of its own until it executes. */
static bool is_other_process(const struct ukp_ctl *ctl)
{
	const uint64_t alive = __atomic_load_n(&ukp_priv_of(ctl)->alive, __ATOMIC_RELAXED);

	return alive && alive != (uint64_t)ukp_arch_syscall(NR_getpid, 0, 0, 0, 0);
}

int ukp_sigaction_hit(struct ukp_hit *hit, uint64_t ctx)
{
	struct ukp_ctl *ctl = hit->ctl;
	struct pt_regs *regs = hit->regs;
	uint64_t sig = (uint32_t)regs->di, ret;
	struct libc_sigaction act, oact;
	struct ukp_sigaction *old;
	bool other;

	if (!sig || sig >= UKP_NR_SIGNALS)
		return 0;
	if (!(ctl->taken & 1ull << (sig - 1)))
		return ctl->flags & UKP_CTL_OPENS ? open_handler(ctl, (int)sig, regs) : 0;
	/* But SIGTRAP's: a breakpoint would end it without our handler. */
	other = regs->si && is_other_process(ctl);
	if (other && sig != UKP_SIGTRAP)
		return 0;
	old = ukp_old_action(ctl, (int)sig);
	/*
	 * Arguments that fault are left to the function itself.  Where a fault would
	 * kill, since the caller blocks SIGSEGV, it would so there, too.
	 */
	if (ukp_arch_copy(&ret, (void *)regs->sp, 8))
		return 0;
	if (regs->si && ukp_arch_copy(&act, (void *)regs->si, sizeof(act)))
		return 0;
	to_libc(&oact, old);
	if (regs->dx && ukp_arch_copy((void *)regs->dx, &oact, sizeof(oact)))
		return 0;
	if (regs->si && !other) {
		old->flags = (uint32_t)act.flags | UKP_SA_RESTORER;
		old->mask = act.mask[0];
		old->restorer = ctl->restorer;
		__atomic_store_n(&old->handler, act.handler, __ATOMIC_RELEASE);
	}
	return ukp_hit_returned(regs, ret);
}
