/* SPDX-License-Identifier: MIT */
/*
 * The kernel's signal frame on x86-64, and our entries for signals.
 */
#ifndef UKP_ENGINE_SIGNAL_H
#define UKP_ENGINE_SIGNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "ukprobes/pt_regs.h"
#include "wire/ctl.h"
#include "wire/instance.h"

/* All of it is internal to the image that links it. */
#pragma GCC visibility push(hidden)

/* arch/x86/include/uapi/asm/{ucontext,sigcontext}.h */
struct ukp_ucontext {
	uint64_t uc_flags;
	uint64_t uc_link;
	uint64_t ss_sp;
	uint32_t ss_flags;
	uint32_t ss_pad;
	uint64_t ss_size;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t di, si, bp, bx, dx, ax, cx, sp, ip, flags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2;
	uint64_t fpstate;
	uint64_t reserved[8];
	uint64_t sigmask;
};

struct ukp_siginfo {
	int32_t si_signo;
	int32_t si_errno;
	int32_t si_code;
	int32_t pad[29];
};

#define UKP_SI_KERNEL 0x80

enum { UKP_SIGILL = 4, UKP_SIGTRAP = 5, UKP_SIGBUS = 7, UKP_SIGFPE = 8, UKP_SIGSEGV = 11 };

/* The signals that the engine takes. */
#define UKP_SIGNALS                                                                        \
	(1ull << (UKP_SIGILL - 1) | 1ull << (UKP_SIGTRAP - 1) | 1ull << (UKP_SIGBUS - 1) | \
	 1ull << (UKP_SIGFPE - 1) | 1ull << (UKP_SIGSEGV - 1))

/* Blocked, these end a thread that hits a probe: the trap, and faults of the engine's reads. */
#define UKP_SIGNALS_OPEN \
	(1ull << (UKP_SIGTRAP - 1) | 1ull << (UKP_SIGBUS - 1) | 1ull << (UKP_SIGSEGV - 1))

/* SIGKILL, SIGSTOP: the kernel leaves them out of a mask. */
#define UKP_SIGNALS_NEVER_BLOCKED (1ull << 8 | 1ull << 18)

#define UKP_SIG_DFL 0
#define UKP_SIG_IGN 1

#define UKP_SA_SIGINFO 0x00000004ull
#define UKP_SA_RESTORER 0x04000000ull
#define UKP_SA_ONSTACK 0x08000000ull
#define UKP_SA_RESTART 0x10000000ull
#define UKP_SA_NODEFER 0x40000000ull
#define UKP_SA_RESETHAND 0x80000000ull

/*
 * Handlers as the kernel calls them, in assembly: they call the C function of
 * the same stem and resume, by iretq when it returned UKP_RESUME_DIRECT, by
 * rt_sigreturn otherwise.
 */
enum { UKP_RESUME_DIRECT, UKP_RESUME_SIGRETURN };

void ukp_trap_entry(int sig, struct ukp_siginfo *info, struct ukp_ucontext *uc);
void ukp_fault_entry(int sig, struct ukp_siginfo *info, struct ukp_ucontext *uc);
void ukp_restorer(void);
void ukp_chain_call(int sig, struct ukp_siginfo *info, struct ukp_ucontext *uc, uint64_t handler);

int ukp_trap(int sig, struct ukp_siginfo *info, struct ukp_ucontext *uc);
int ukp_fault(int sig, struct ukp_siginfo *info, struct ukp_ucontext *uc);

void ukp_regs_from_uc(struct pt_regs *regs, const struct ukp_ucontext *uc);
void ukp_regs_to_uc(struct ukp_ucontext *uc, const struct pt_regs *regs);

/* Would a fault of ours end the process, as this thread blocks its signal? */
bool ukp_faults_are_fatal(const struct ukp_ucontext *uc);

/*
 * At a trap in text that its program may rewrite: the site that it is a hit of.  NULL:
 * the text that is there now is to run, or to have the trap (live.c).
 */
struct ukp_site *ukp_live_find(const struct ukp_ctl *ctl, uint64_t addr,
                               const struct ukp_ucontext *uc);

/*
 * A byte of such text from old to new, at once, if it is old; false: the page can't be
 * written.  fatal: this thread may block the signals by which that is seen.
 */
bool ukp_live_put(uint64_t addr, uint8_t old_byte, uint8_t new_byte, bool fatal);

/* Whether this frame may be left without rt_sigreturn. */
bool ukp_resume_direct(const struct ukp_ctl *ctl, const struct ukp_ucontext *uc);

/* Of a handler whose mask we took SIGTRAP from: is it in force still? */
static inline bool ukp_is_opened(const struct ukp_sigaction *now, const struct ukp_sigaction *set)
{
	return now->handler > UKP_SIG_IGN && now->handler == set->handler &&
	       now->mask == (set->mask & ~(1ull << (UKP_SIGTRAP - 1))) && now->mask != set->mask;
}

static inline bool ukp_are_most(uint64_t mask)
{
	unsigned int n;

	for (n = 0; mask; n++)
		mask &= mask - 1;
	return n >= 24;
}

/* A mask with those open that we open in such masks: one of them may be taken for it. */
static inline bool ukp_is_like_most(uint64_t mask)
{
	return ukp_are_most(mask | UKP_SIGNALS_OPEN);
}

/* Whoever blocks fewer signals, and SIGTRAP among these, means it. */
static inline bool ukp_blocks_most(uint64_t mask)
{
	return mask & 1ull << (UKP_SIGTRAP - 1) && ukp_are_most(mask);
}

/*
 * In *all, what all of those have in common that now may stand for; true: there are any.
 * They are masks as the program set them, also such as we had nothing to open in: which
 * of them it was can't be told, and a signal that is left open does less harm than one
 * that is closed and shouldn't be.
 */
static inline bool ukp_masks_meet(const uint64_t *v, uint32_t n, uint64_t now, uint64_t *all)
{
	bool any = false;
	uint32_t i;

	for (i = 0; i < n; i++) {
		uint64_t mask = __atomic_load_n(&v[i], __ATOMIC_RELAXED);

		if (!mask || (mask ^ now) & ~UKP_SIGNALS_OPEN)
			continue;
		*all &= mask;
		any = true;
	}
	return any;
}

/* A thread's mask as the program has set it, if we have opened that, here or at the attach. */
uint64_t ukp_mask_as_set(const struct ukp_ctl *ctl, uint64_t now);

/* Give a signal that isn't ours to the program, as if it had come straight. */
int ukp_signal_chain(struct ukp_ctl *ctl, int sig, struct ukp_siginfo *info,
                     struct ukp_ucontext *uc);

/*
 * Where a trap goes on: *resume, or *slot where that is 0.  Whoever finds a thread
 * between these bounds can't know what it will be.
 */
uint64_t ukp_pick(const uint64_t *resume, const uint64_t *slot);
extern const char ukp_pick_start[], ukp_pick_end[];

/* Bounds of the guarded copies and where a fault in them goes on. */
extern const char ukp_guard_start[], ukp_guard_end[], ukp_guard_fail[];

#pragma GCC visibility pop

#endif
