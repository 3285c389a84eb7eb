/* SPDX-License-Identifier: MIT */
/*
 * The base form: int3 raised SIGTRAP, the kernel built a frame, we run the
 * site's actions on its registers and go on in the site's slot.
 */
#include "engine/arch.h"
#include "engine/hit.h"
#include "engine/signal.h"

#define SS_AUTODISARM (1u << 31)

bool ukp_faults_are_fatal(const struct ukp_ucontext *uc)
{
	return uc->sigmask & (1ull << (UKP_SIGSEGV - 1) | 1ull << (UKP_SIGBUS - 1));
}

bool ukp_resume_direct(const struct ukp_ctl *ctl, const struct ukp_ucontext *uc)
{
	/* Only sigreturn gives an auto-disarmed alternate stack back. */
	return (ctl->flags & UKP_CTL_DIRECT) && uc->fpstate && !(uc->ss_flags & SS_AUTODISARM);
}

static int resume(const struct ukp_ctl *ctl, const struct ukp_ucontext *uc)
{
	return ukp_resume_direct(ctl, uc) ? UKP_RESUME_DIRECT : UKP_RESUME_SIGRETURN;
}

/* was_read: that the text there can be read is known. */
static int no_site(struct ukp_ctl *ctl, int sig, struct ukp_siginfo *info, struct ukp_ucontext *uc,
                   bool was_read)
{
	uint8_t now;

	/* The probe went away between the trap and us: the instruction is back. */
	if (info->si_code == UKP_SI_KERNEL && (was_read || !ukp_faults_are_fatal(uc)) &&
	    !ukp_arch_copy(&now, (void *)(uc->ip - 1), 1) && now != 0xcc) {
		uc->ip--;
		return resume(ctl, uc);
	}
	return ukp_signal_chain(ctl, sig, info, uc);
}

int ukp_trap(int sig, struct ukp_siginfo *info, struct ukp_ucontext *uc)
{
	struct ukp_ctl *ctl = ukp_engine_ctl();
	struct ukp_site *site = NULL;
	struct pt_regs regs;
	struct ukp_hit hit;
	bool live;

	if (info->si_code == UKP_SI_KERNEL)
		site = ukp_site_find(ctl, uc->ip - 1);
	live = site && (site->flags & UKP_SITE_LIVE);
	if (live)
		site = ukp_live_find(ctl, site->addr, uc);
	if (!site)
		return no_site(ctl, sig, info, uc, live);

	ukp_regs_from_uc(&regs, uc);
	ukp_hit_init(&hit, ctl, site, &regs,
	             (ukp_faults_are_fatal(uc) ? UKP_HIT_NOREAD : 0) |
	                     (ukp_hit_alive(ctl) ? 0 : UKP_HIT_CHILD));
	hit.fpstate = (const void *)uc->fpstate;
	hit.tsc = ukp_arch_clock();
	hit.cpu = ukp_arch_cpu(ctl);
	if (ukp_hit_run(&hit))
		/* Whoever looks at this frame sees that its ip is no trap's any more. */
		__atomic_store_n(&info->si_code, 0, __ATOMIC_RELEASE);
	else if ((hit.flags & UKP_HIT_CHILD) && !(ctl->flags & UKP_CTL_OWN))
		/* A child's copy of slots lacks detours made since, unless all else is a copy, too.
		 */
		regs.ip = site->slot;
	else
		regs.ip = ukp_pick(&site->resume, &site->slot);
	ukp_regs_to_uc(uc, &regs);
	return resume(ctl, uc);
}
