/* SPDX-License-Identifier: MIT */
/*
 * Running code on the real CPU and looking at each instruction boundary: with
 * the trap flag set every instruction ends in a signal, whose frame has the
 * thread's state just as any other signal there would have it.
 *
 * step_run() is cpu_run() with a look at each step.  The look may change the
 * frame.  Instructions that save flags see the trap flag; both sides of a
 * comparison are to be stepped.
 */
#ifndef TESTS_PLAN_STEPPING_H
#define TESTS_PLAN_STEPPING_H

#include "unit/plan/windows.h"

#define TF 0x100UL
#define FLAGS 0x240cd5UL /* what a program can tell, the trap flag apart */

static void (*volatile step_look)(greg_t *r);

static const uint8_t step_order[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
	                                REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
	                                REG_R12, REG_R13, REG_R14, REG_R15 };

static inline struct cpu step_state(const greg_t *r)
{
	struct cpu c = { .flags = (uint64_t)r[REG_EFL] & FLAGS, .pc = (uint64_t)r[REG_RIP] };

	for (int i = 0; i < 16; i++)
		c.gpr[i] = (uint64_t)r[step_order[i]];
	return c;
}

static inline void step_set(greg_t *r, const struct cpu *c)
{
	for (int i = 0; i < 16; i++)
		r[step_order[i]] = (greg_t)c->gpr[i];
	r[REG_RIP] = (greg_t)c->pc;
	r[REG_EFL] = (greg_t)(c->flags | 0x202 | TF);
}

static void step_on_signal(int signo, siginfo_t *si, void *context)
{
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;

	if (signo != SIGTRAP || si->si_code != TRAP_TRACE || !cpu_outcome) {
		cpu_on_signal(signo, si, context);
		return;
	}
	/* Still on the way in? */
	if ((uint64_t)r[REG_RIP] - (uint64_t)(uintptr_t)cpu_enter >=
	    (uint64_t)(uintptr_t)cpu_leave - (uint64_t)(uintptr_t)cpu_enter)
		step_look(r);
}

static inline void step_take_signals(void)
{
	struct sigaction sa = { .sa_sigaction = step_on_signal,
		                .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };

	cpu_take_signals();
	sigaction(SIGTRAP, &sa, NULL);
}

/* As trial_execute(), from start() on. */
static inline void step_run(struct trial *t, uint64_t pc, struct outcome *o, void (*start)(void),
                            void (*look)(greg_t *r))
{
	struct cpu cpu = t->cpu;

	step_look = look;
	cpu.pc = pc;
	cpu.flags |= TF;
	for (int i = 0; i < 3; i++) {
		trial_load(t);
		start();
		cpu_run(&cpu, &t->x, o);
		if (o->signo != SIGILL || *(uint8_t *)o->cpu.pc != 0xcc)
			break;
		tally.again++;
	}
	o->cpu.flags &= FLAGS;
}

#endif
