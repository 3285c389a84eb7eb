/* SPDX-License-Identifier: MIT */
/*
 * The entry of libc's sigaction(), probed for ourselves: dispositions of the
 * signals that the engine has taken are kept for the program instead of being
 * put in force, and read back as it set them.
 */
#include "engine/arch.h"
#include "engine/hit.h"
#include "engine/signal.h"

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

int ukp_sigaction_hit(struct ukp_hit *hit, uint64_t ctx)
{
	struct ukp_ctl *ctl = hit->ctl;
	struct pt_regs *regs = hit->regs;
	uint64_t sig = (uint32_t)regs->di, ret;
	struct libc_sigaction act, oact;
	struct ukp_sigaction *old;

	if (!sig || sig >= UKP_NR_SIGNALS || !(ctl->taken & 1ull << (sig - 1)))
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
	if (regs->si) {
		old->flags = (uint32_t)act.flags | UKP_SA_RESTORER;
		old->mask = act.mask[0];
		old->restorer = ctl->restorer;
		__atomic_store_n(&old->handler, act.handler, __ATOMIC_RELEASE);
	}
	regs->ax = 0;
	regs->ip = ret;
	regs->sp += 8;
	return 1;
}
