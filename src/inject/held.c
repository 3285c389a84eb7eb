/* SPDX-License-Identifier: MIT */
/* The threads of a held process: what they are, and changing where they go on. */
#include "inject/internal.h"

#include <sys/ptrace.h>
#include <unistd.h>

#define PENDING_MAX 8

#ifndef PTRACE_SETSIGMASK
#define PTRACE_SETSIGMASK 0x420b
#endif

uint64_t inject_stop_us(const struct inject *t)
{
	return t->stopped_for;
}

uint64_t inject_longest_us(struct inject *t)
{
	uint64_t us = t->longest;

	t->longest = 0;
	return us;
}

bool inject_held(const struct inject *t)
{
	return t->held;
}

size_t inject_nr_threads(const struct inject *t)
{
	return t->held ? t->nr_held : 0;
}

struct inject_thread *inject_thread_at(struct inject *t, size_t i)
{
	return &t->threads[i].pub;
}

int inject_set_regs(struct inject *t, size_t i, const struct user_regs_struct *regs)
{
	struct thread *th = &t->threads[i];

	if (!t->held || i >= t->nr || th->state != THREAD_STOPPED)
		return -EINVAL;
	if (t->remote.active && t->remote.worker == i) {
		if (arch_pc(regs) != arch_pc(&t->remote.saved))
			t->remote.abort = 0;
		t->remote.saved = *regs; /* put in place by inject_end() */
		back_update(t);
	} else if (ptrace(PTRACE_SETREGS, th->pub.tid, 0, regs))
		return -errno;
	th->pub.regs = *regs;
	return 0;
}

int inject_set_mask(struct inject *t, size_t i, uint64_t mask)
{
	struct thread *th = &t->threads[i];

	if (!t->held || i >= t->nr || th->state != THREAD_STOPPED)
		return -EINVAL;
	if (t->remote.active && t->remote.worker == i) {
		t->remote.sigblk = mask; /* put in place by inject_end() */
		back_update(t);
	} else if (ptrace(PTRACE_SETSIGMASK, th->pub.tid, sizeof(mask), &mask))
		return -errno;
	th->pub.sigblk = mask;
	return 0;
}

/* Let go entirely: signals, stops and other tracers meet a free process meanwhile. */
int inject_breathe(struct inject *t, unsigned int us, struct err *err)
{
	inject_release(t);
	usleep(us);
	return inject_seize(t, err);
}

/*
 * Of the thread's own queue, where faults and breakpoints go.  An event stop
 * comes before the delivery of what is pending, so a thread can be held between
 * its int3 and the handler of that.
 */
bool inject_pending(const struct inject *t, size_t i, int sig, int code)
{
	struct __ptrace_peeksiginfo_args args = { .nr = PENDING_MAX };
	siginfo_t si[PENDING_MAX];
	long n, k;

	if (i >= t->nr)
		return false;
	n = ptrace(PTRACE_PEEKSIGINFO, t->threads[i].pub.tid, &args, si);
	for (k = 0; k < n; k++)
		if (si[k].si_signo == sig && si[k].si_code == code)
			return true;
	return false;
}
