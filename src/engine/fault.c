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

bool ukp_in_slots(const struct ukp_ctl *ctl, uint64_t pc)
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
 * What is at pc: a detour, or the slot of a site.  They carry no link back; a
 * fault is rare enough to look through all of them.
 */
struct place {
	const struct ukp_site *slot;
	const struct ukp_detour *detour;
	const struct ukp_detour_shape *shape;
};

/* The detours, newest first; NULL: the next one of it. */
static const struct ukp_detour *next_detour(const struct ukp_ctl *ctl, const struct ukp_detour *d)
{
	/* Acquire: a detour is complete before it is linked, and nothing of it changes. */
	uint32_t off = d ? d->next : __atomic_load_n(&ctl->detours, __ATOMIC_ACQUIRE);

	return off ? ukp_ctl_at(ctl, off) : NULL;
}

static bool in_site(const struct ukp_ctl *ctl, const struct ukp_site *s, uint64_t pc,
                    struct place *p)
{
	uint32_t off = __atomic_load_n(&s->detour, __ATOMIC_ACQUIRE);
	const struct ukp_detour *d = ukp_ctl_at(ctl, off);

	if (pc - s->slot < s->slot_len) {
		p->slot = s;
		return true;
	}
	if (!off || pc - d->buf >= d->size)
		return false;
	p->detour = d;
	p->shape = ukp_ctl_at(ctl, s->shape);
	return true;
}

static struct place place_of(const struct ukp_ctl *ctl, uint64_t pc)
{
	uint32_t i, off = __atomic_load_n(&ctl->sites, __ATOMIC_ACQUIRE);
	const struct ukp_site_table *t = ukp_ctl_at(ctl, off);
	struct place p = { NULL, NULL, NULL };

	while ((p.detour = next_detour(ctl, p.detour)))
		if (pc - p.detour->buf < p.detour->size) {
			p.shape = ukp_ctl_at(ctl, p.detour->shape);
			return p;
		}
	for (i = 0; off && i <= t->mask; i++) {
		uint32_t at = __atomic_load_n(&t->site[i], __ATOMIC_ACQUIRE);

		if (at && in_site(ctl, ukp_ctl_at(ctl, at), pc, &p))
			break;
	}
	return p;
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

static struct again to_original(const struct ukp_ctl *ctl, struct ukp_ucontext *uc)
{
	struct again again = { uc->ip, uc->sp };
	struct place p = place_of(ctl, uc->ip);
	struct ukp_detour_frame frame;

	if (p.slot)
		from_slot(p.slot, uc, &again);
	/* Only copies can fault; an entry's pushes do so as the program's would. */
	if (p.detour && ukp_detour_frame(p.detour, p.shape, uc->ip, uc->sp, &frame)) {
		uc->ip = frame.pc;
		uc->sp = frame.sp;
	}
	return again;
}

/*
 * A handler that goes on behind the faulting instruction, or at a label that
 * only it knows, may mean bytes that a jump has taken.
 */
static void around_jumps(const struct ukp_ctl *ctl, struct ukp_ucontext *uc)
{
	const struct ukp_detour *d = NULL;
	uint8_t now[sizeof(d->jump)];
	unsigned int i;
	uint64_t to;

	while ((d = next_detour(ctl, d))) {
		if (uc->ip - d->addr - 1 >= sizeof(d->jump) - 1 ||
		    ukp_arch_copy(now, (void *)d->addr, sizeof(now)))
			continue;
		for (i = 0; i < sizeof(now) && now[i] == d->jump[i]; i++)
			;
		to = ukp_detour_park(d, uc->ip);
		if (i == sizeof(now) && to) {
			uc->ip = to;
			return;
		}
	}
}

int ukp_fault(int sig, struct ukp_siginfo *info, struct ukp_ucontext *uc)
{
	struct ukp_ctl *ctl = ukp_engine_ctl();
	uint64_t orig_pc, orig_sp;
	bool ours, handled;
	struct again again;
	int how;

	if (info->si_code > 0 && uc->ip >= (uint64_t)ukp_guard_start &&
	    uc->ip < (uint64_t)ukp_guard_end) {
		uc->ip = (uint64_t)ukp_guard_fail;
		return ukp_resume_direct(ctl, uc) ? UKP_RESUME_DIRECT : UKP_RESUME_SIGRETURN;
	}
	ours = ukp_in_slots(ctl, uc->ip);
	if (ours)
		again = to_original(ctl, uc);
	orig_pc = uc->ip;
	orig_sp = uc->sp;
	handled = ukp_old_action(ctl, sig)->handler > UKP_SIG_IGN;
	how = ukp_signal_chain(ctl, sig, info, uc);
	if (!handled)
		return how; /* to its end, with its own registers */
	/* "Try again" is meant for the instruction, not for its probe. */
	if (uc->ip != orig_pc || uc->sp != orig_sp) {
		around_jumps(ctl, uc);
	} else if (ours) {
		uc->ip = again.pc;
		uc->sp = again.sp;
	}
	return how;
}
