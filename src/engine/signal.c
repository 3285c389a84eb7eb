/* SPDX-License-Identifier: MIT */
/*
 * Signals that arrive at our handlers but are the program's.
 *
 * The program's disposition is kept in ukp_priv.old (its own calls of sigaction
 * are redirected there), so its handler is called from ours, with the mask and
 * the flags that the kernel would have applied.  A default disposition ends
 * the process by that very signal, with the registers of the fault in the core
 * file: the signal is queued again, blocked, and the frame left with the
 * default in force.
 */
#include "engine/signal.h"

#include "engine/arch.h"
#include "engine/hit.h"

enum {
	NR_rt_sigaction = 13,
	NR_rt_sigprocmask = 14,
	NR_getpid = 39,
	NR_rt_sigqueueinfo = 129,
	NR_gettid = 186,
	NR_rt_tgsigqueueinfo = 297,
	HOW_BLOCK = 0
};

enum { SI_TKILL = -6 };

void ukp_regs_from_uc(struct pt_regs *regs, const struct ukp_ucontext *uc)
{
	regs->r15 = uc->r15;
	regs->r14 = uc->r14;
	regs->r13 = uc->r13;
	regs->r12 = uc->r12;
	regs->bp = uc->bp;
	regs->bx = uc->bx;
	regs->r11 = uc->r11;
	regs->r10 = uc->r10;
	regs->r9 = uc->r9;
	regs->r8 = uc->r8;
	regs->ax = uc->ax;
	regs->cx = uc->cx;
	regs->dx = uc->dx;
	regs->si = uc->si;
	regs->di = uc->di;
	regs->orig_ax = -1ul;
	regs->ip = uc->ip;
	regs->cs = uc->cs;
	regs->flags = uc->flags;
	regs->sp = uc->sp;
	regs->ss = uc->ss;
}

void ukp_regs_to_uc(struct ukp_ucontext *uc, const struct pt_regs *regs)
{
	uc->r15 = regs->r15;
	uc->r14 = regs->r14;
	uc->r13 = regs->r13;
	uc->r12 = regs->r12;
	uc->bp = regs->bp;
	uc->bx = regs->bx;
	uc->r11 = regs->r11;
	uc->r10 = regs->r10;
	uc->r9 = regs->r9;
	uc->r8 = regs->r8;
	uc->ax = regs->ax;
	uc->cx = regs->cx;
	uc->dx = regs->dx;
	uc->si = regs->si;
	uc->di = regs->di;
	uc->ip = regs->ip;
	uc->flags = regs->flags;
	uc->sp = regs->sp;
}

/* As it was sent: to this thread, or to the process. */
static void send_again(int sig, struct ukp_siginfo *info, bool thread)
{
	long pid = ukp_arch_syscall(NR_getpid, 0, 0, 0, 0);

	if (thread)
		ukp_arch_syscall(NR_rt_tgsigqueueinfo, pid, ukp_arch_syscall(NR_gettid, 0, 0, 0, 0),
		                 sig, (long)info);
	else
		ukp_arch_syscall(NR_rt_sigqueueinfo, pid, sig, (long)info, 0);
}

/*
 * Sent by somebody to a program that has it blocked, perhaps to wait for it, and open but
 * for us (sigmask.c): it is blocked here from now on, and pending.
 */
static bool keeps(const struct ukp_ctl *ctl, int sig, struct ukp_siginfo *info,
                  struct ukp_ucontext *uc)
{
	uint64_t bit = 1ull << (sig - 1);

	if (info->si_code > 0 || !(ukp_mask_as_set(ctl, uc->sigmask) & bit))
		return false;
	ukp_arch_syscall(NR_rt_sigprocmask, HOW_BLOCK, (long)&bit, 0, 8);
	uc->sigmask |= bit;
	send_again(sig, info, info->si_code == SI_TKILL);
	return true;
}

static int end_by_default(int sig, struct ukp_siginfo *info, struct ukp_ucontext *uc)
{
	struct ukp_sigaction dfl = { 0 };
	uint64_t bit = 1ull << (sig - 1);

	/* To a namespace's init the kernel doesn't deliver them. */
	if (info->si_code <= 0 && ukp_arch_syscall(NR_getpid, 0, 0, 0, 0) == 1)
		return UKP_RESUME_SIGRETURN;
	/* The frame's mask opens the signal; until then it waits, blocked. */
	ukp_arch_syscall(NR_rt_sigprocmask, HOW_BLOCK, (long)&bit, 0, 8);
	ukp_arch_syscall(NR_rt_sigaction, sig, (long)&dfl, 0, 8);
	send_again(sig, info, true);
	uc->sigmask &= ~bit;
	return UKP_RESUME_SIGRETURN;
}

int ukp_signal_chain(struct ukp_ctl *ctl, int sig, struct ukp_siginfo *info,
                     struct ukp_ucontext *uc)
{
	struct ukp_sigaction old = *ukp_old_action(ctl, sig);
	uint64_t block = old.mask;

	if (keeps(ctl, sig, info, uc))
		return UKP_RESUME_SIGRETURN;
	/* A fault can't be ignored: the kernel ends the process, too. */
	if (old.handler == UKP_SIG_IGN && info->si_code <= 0)
		return UKP_RESUME_SIGRETURN;
	if (old.handler == UKP_SIG_DFL || old.handler == UKP_SIG_IGN)
		return end_by_default(sig, info, uc);
	if (!(old.flags & UKP_SA_NODEFER))
		block |= 1ull << (sig - 1);
	/* The handler may hit probes, too. */
	block &= ~(1ull << (UKP_SIGTRAP - 1));
	if (old.flags & UKP_SA_RESETHAND)
		ukp_old_action(ctl, sig)->handler = UKP_SIG_DFL;
	if (block)
		ukp_arch_syscall(NR_rt_sigprocmask, HOW_BLOCK, (long)&block, 0, 8);
	ukp_chain_call(sig, info, uc, old.handler);
	return UKP_RESUME_SIGRETURN;
}
