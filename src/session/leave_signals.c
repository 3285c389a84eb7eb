/* SPDX-License-Identifier: MIT */
/*
 * The way out, signals: dispositions and masks as the program had them, where they
 * are still as we have made them.
 */
#include <string.h>
#include <sys/syscall.h>

#include "engine/signal.h"
#include "session/leave.h"
#include "wire/instance.h"

/* Of the dispositions that are still ours, what the program had: their number. */
static unsigned int old_actions(struct leave *l, const int *sig, struct ukp_sigaction *sa,
                                unsigned int n, struct inject_call *v, uint64_t at)
{
	struct ukp_sigaction old[UKP_NR_SIGNALS];
	unsigned int i, m = 0;

	if (inject_read(l->inject, l->ctl->priv + offsetof(struct ukp_priv, old), old, sizeof(old)))
		return 0;
	for (i = 0; i < n; i++) {
		if (v[i].ret || sa[i].handler < l->text_start || sa[i].handler >= l->text_end)
			continue;
		sa[m] = old[sig[i]];
		v[m] = (struct inject_call){ SYS_rt_sigaction,
			                     { sig[i], at + m * sizeof(*sa), 0, 8 },
			                     0 };
		m++;
	}
	return m;
}

/*
 * The last of them is an ignored SIGTRAP: how many are.  The kernel would forget
 * it at the breakpoint that ends the runner, so it is set without.
 */
static unsigned int ignored_last(struct inject_call *v, struct ukp_sigaction *sa, unsigned int n)
{
	struct ukp_sigaction ignored;
	unsigned int i;

	for (i = 0; i < n && v[i].arg[0] != UKP_SIGTRAP; i++)
		;
	if (i == n || sa[i].handler != UKP_SIG_IGN)
		return 0;
	ignored = sa[i];
	sa[i] = sa[n - 1];
	sa[n - 1] = ignored;
	v[i].arg[0] = v[n - 1].arg[0];
	v[n - 1].arg[0] = UKP_SIGTRAP;
	return 1;
}

/*
 * What is in force for the signals of a set (bit n-1: signal n), by way of memory in the
 * target: how many they are.  0: none, or it can't be asked.
 */
static unsigned int ask(struct leave *l, uint64_t set, uint64_t at, int *sig, struct inject_call *v,
                        struct ukp_sigaction *sa)
{
	unsigned int n = 0;
	int s;

	for (s = 1; s < UKP_NR_SIGNALS && at; s++) {
		if (!(set & 1ull << (s - 1)))
			continue;
		v[n] = (struct inject_call){ SYS_rt_sigaction,
			                     { s, 0, at + n * sizeof(*sa), 8 },
			                     -1 };
		sig[n++] = s;
	}
	if (!n || inject_calls(l->inject, v, n) || inject_read(l->inject, at, sa, n * sizeof(*sa)))
		return 0;
	return n;
}

static void restore_signals(struct leave *l)
{
	struct inject_call v[UKP_NR_SIGNALS];
	struct ukp_sigaction sa[UKP_NR_SIGNALS];
	uint64_t at = l->ctl->taken ? inject_scratch(l->inject, sizeof(sa)) : 0;
	int sig[UKP_NR_SIGNALS];
	unsigned int n, alone;

	n = ask(l, UKP_SIGNALS & l->ctl->taken, at, sig, v, sa);
	if (!n)
		return;
	n = old_actions(l, sig, sa, n, v, at);
	alone = ignored_last(v, sa, n);
	if (!n || inject_write(l->inject, at, sa, n * sizeof(*sa)))
		return;
	if (n > alone)
		inject_calls(l->inject, v, n - alone);
	if (alone) {
		inject_use_runner(l->inject, 0);
		inject_calls(l->inject, v + n - 1, 1);
	}
}

/* Handlers ran with SIGTRAP open; not those that the program has changed since. */
static void close_handlers(struct leave *l)
{
	struct ukp_sigaction old[UKP_NR_SIGNALS], sa[UKP_NR_SIGNALS];
	struct inject_call v[UKP_NR_SIGNALS];
	int sig[UKP_NR_SIGNALS];
	unsigned int i, n, m = 0;
	uint64_t opened, at;

	if (inject_read(l->inject, l->ctl->priv + offsetof(struct ukp_priv, opened), &opened, 8) ||
	    !opened ||
	    inject_read(l->inject, l->ctl->priv + offsetof(struct ukp_priv, old), old, sizeof(old)))
		return;
	at = inject_scratch(l->inject, sizeof(sa));
	n = ask(l, opened & ~UKP_SIGNALS, at, sig, v, sa);
	for (i = 0; i < n; i++) {
		if (v[i].ret || !ukp_is_opened(&sa[i], &old[sig[i]]))
			continue;
		sa[m] = sa[i];
		sa[m].mask |= 1ull << (UKP_SIGTRAP - 1);
		v[m] = (struct inject_call){ SYS_rt_sigaction,
			                     { sig[i], at + m * sizeof(*sa), 0, 8 },
			                     0 };
		m++;
	}
	if (m && !inject_write(l->inject, at, sa, m * sizeof(*sa)))
		inject_calls(l->inject, v, m);
}

/*
 * Close signals again where a thread still has a mask that we opened, or has it from
 * such a thread; one that changed its mask since has what it wants.
 */
static void restore_masks(struct leave *l)
{
	const uint32_t n = l->ctl->nr_masks < UKP_NR_MASKS ? l->ctl->nr_masks : UKP_NR_MASKS;
	uint64_t set[UKP_NR_SET_MASKS];
	size_t i;

	if (inject_read(l->inject, l->ctl->priv + offsetof(struct ukp_priv, mask), set,
	                sizeof(set)))
		memset(set, 0, sizeof(set));
	for (i = 0; i < inject_nr_threads(l->inject); i++) {
		const uint64_t now = inject_thread_at(l->inject, i)->sigblk;
		uint64_t all = ~0ull;
		bool any = ukp_masks_meet(l->ctl->mask, n, now, &all);

		any |= ukp_masks_meet(set, UKP_NR_SET_MASKS, now, &all);
		if (any && (all | now) != now)
			inject_set_mask(l->inject, i, all | now);
	}
}

/* What hooks put in the place of the program's arguments, beside what these were. */
struct arguments {
	uint64_t mask[UKP_NR_SET_MASKS], set[UKP_NR_SET_MASKS][16];
};

#define MASKS offsetof(struct ukp_priv, mask)
#define SETS offsetof(struct ukp_priv, set)
#define UNREAD offsetof(struct ukp_priv, unread)
#define SET_SIZE sizeof(((struct arguments *)0)->set[0]) /* libc's sigset_t */

/* The general registers but for rip and rsp. */
static unsigned long long *nth(struct user_regs_struct *r, unsigned int k)
{
	unsigned long long *const v[] = { &r->rsi, &r->rdi, &r->rdx, &r->rcx, &r->rax,
		                          &r->rbx, &r->rbp, &r->r8,  &r->r9,  &r->r10,
		                          &r->r11, &r->r12, &r->r13, &r->r14, &r->r15 };

	return k < sizeof(v) / sizeof(v[0]) ? v[k] : NULL;
}

/*
 * A thread that has left a hook and not yet made its system call: its arguments are in
 * memory that goes.  It gets what it had, below its red zone, where nothing but a signal
 * in these few instructions could come upon it.
 */
static void restore_arguments(struct leave *l, struct arguments *v, size_t i)
{
	struct user_regs_struct regs = inject_thread_at(l->inject, i)->regs;
	const uint64_t to = (regs.rsp - 128 - SET_SIZE) & ~15ull;
	uint64_t off, n = UKP_NR_SET_MASKS;
	unsigned long long *r;
	bool old = false;
	unsigned int k;

	for (k = 0; (r = nth(&regs, k)); k++) {
		off = *r - (l->ctl->priv + SETS);
		if (*r == l->ctl->priv + UNREAD) {
			*r = to - sizeof(uint64_t);
			old = true;
			continue;
		}
		if (off >= sizeof(v->set) || (n < UKP_NR_SET_MASKS && off / SET_SIZE != n))
			continue;
		n = off / SET_SIZE;
		*r = to + off % SET_SIZE;
	}
	if (n < UKP_NR_SET_MASKS) {
		v->set[n][0] = v->mask[n];
		if (inject_write(l->inject, to, v->set[n], SET_SIZE))
			return;
	}
	if (old || n < UKP_NR_SET_MASKS)
		inject_set_regs(l->inject, i, &regs);
}

void leave_arguments(struct leave *l)
{
	struct arguments v;
	size_t i;

	_Static_assert(SETS - MASKS == offsetof(struct arguments, set), "one behind the other");
	if (!inject_read(l->inject, l->ctl->priv + MASKS, &v, sizeof(v)))
		for (i = 0; i < inject_nr_threads(l->inject); i++)
			restore_arguments(l, &v, i);
}

void leave_signals(struct leave *l)
{
	close_handlers(l);
	restore_signals(l);
	restore_masks(l);
}
