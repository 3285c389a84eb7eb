/* SPDX-License-Identifier: MIT */
/*
 * Faults: our own guarded reads, the program's instructions in slots, and the
 * program's own.
 *
 * A slot's fault is reported at the original address, by the PC map: a handler
 * of the program that looks at or changes the saved ip must see its own code.
 */
#include "engine/arch.h"
#include "engine/hit.h"
#include "engine/signal.h"
#include "wire/detour.h"

/* Where the instruction is that a handler means when it returns to the original. */
struct again {
	uint64_t pc, sp;
};

static bool in_slots(const struct ukp_ctl *ctl, uint64_t pc)
{
	uint32_t i;

	for (i = 0; i < ctl->nr_mappings && i < UKP_NR_MAPPINGS; i++) {
		const struct ukp_mapping *m = &ctl->mapping[i];

		if (m->kind == UKP_MAP_SLOTS && pc - m->addr < m->len)
			return true;
	}
	return false;
}

/*
 * The site whose slot or detour has pc.  They carry no link back; a fault is
 * rare enough to look through the table.
 */
static const struct ukp_site *site_of(const struct ukp_ctl *ctl, uint64_t pc, bool *in_detour)
{
	uint32_t i, off = __atomic_load_n(&ctl->sites, __ATOMIC_ACQUIRE);
	const struct ukp_site_table *t = ukp_ctl_at(ctl, off);

	for (i = 0; off && i <= t->mask; i++) {
		uint32_t at = __atomic_load_n(&t->site[i], __ATOMIC_ACQUIRE), detour;
		const struct ukp_site *s = ukp_ctl_at(ctl, at);
		const struct ukp_detour *d;

		if (!at)
			continue;
		*in_detour = false;
		if (pc - s->slot < s->slot_len)
			return s;
		detour = __atomic_load_n(&s->detour, __ATOMIC_ACQUIRE);
		d = ukp_ctl_at(ctl, detour);
		*in_detour = true;
		if (detour && pc - d->buf < d->size)
			return s;
	}
	return NULL;
}

static uint64_t *register_of(struct ukp_ucontext *uc, unsigned int n)
{
	switch (n) {
	case 0:
		return &uc->ax;
	case 1:
		return &uc->cx;
	case 2:
		return &uc->dx;
	case 3:
		return &uc->bx;
	case 6:
		return &uc->si;
	default:
		return &uc->di;
	}
}

/*
 * A slot's copy may have borrowed a register.  Then it can't be tried again in
 * the middle, but from the slot's start, with the register that the program's
 * handler leaves.
 */
static void from_slot(const struct ukp_site *s, struct ukp_ucontext *uc, struct again *again)
{
	struct ukp_site_frame frame;

	if (!ukp_site_frame(s, uc->ip, uc->sp, &frame))
		return;
	if (frame.flags & UKP_PC_SAVED)
		ukp_arch_copy(register_of(uc, frame.reg), (void *)uc->sp, 8);
	uc->ip = frame.pc;
	uc->sp = frame.sp;
	if (frame.flags & UKP_PC_SAVED && frame.flags & UKP_PC_BEFORE)
		*again = (struct again){ s->slot, frame.sp };
}

/* Only copies can fault; an entry's pushes do so as the program's would. */
static void from_detour(const struct ukp_ctl *ctl, const struct ukp_site *s,
                        struct ukp_ucontext *uc)
{
	struct ukp_detour_frame frame;

	if (!ukp_detour_frame(ukp_ctl_at(ctl, s->detour), ukp_ctl_at(ctl, s->shape), uc->ip, uc->sp,
	                      &frame))
		return;
	uc->ip = frame.pc;
	uc->sp = frame.sp;
}

static struct again to_original(const struct ukp_ctl *ctl, struct ukp_ucontext *uc)
{
	struct again again = { uc->ip, uc->sp };
	bool in_detour;
	const struct ukp_site *s = site_of(ctl, uc->ip, &in_detour);

	if (s && in_detour)
		from_detour(ctl, s, uc);
	else if (s)
		from_slot(s, uc, &again);
	return again;
}

int ukp_fault(int sig, struct ukp_siginfo *info, struct ukp_ucontext *uc)
{
	struct ukp_ctl *ctl = ukp_engine_ctl();
	uint64_t orig_pc, orig_sp;
	struct again again;
	int how;

	if (info->si_code > 0 && uc->ip >= (uint64_t)ukp_guard_start &&
	    uc->ip < (uint64_t)ukp_guard_end) {
		uc->ip = (uint64_t)ukp_guard_fail;
		return ukp_resume_direct(ctl, uc) ? UKP_RESUME_DIRECT : UKP_RESUME_SIGRETURN;
	}
	if (!in_slots(ctl, uc->ip))
		return ukp_signal_chain(ctl, sig, info, uc);

	again = to_original(ctl, uc);
	orig_pc = uc->ip;
	orig_sp = uc->sp;
	how = ukp_signal_chain(ctl, sig, info, uc);
	/* "Try again" is meant for the instruction, not for its probe. */
	if (uc->ip == orig_pc && uc->sp == orig_sp &&
	    ukp_old_action(ctl, sig)->handler != UKP_SIG_DFL) {
		uc->ip = again.pc;
		uc->sp = again.sp;
	}
	return how;
}
