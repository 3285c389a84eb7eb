/* SPDX-License-Identifier: MIT */
/* x86-64: registers of a held thread. */
#include "inject/arch.h"

#include <elf.h>
#include <string.h>
#include <sys/syscall.h>

/* The kernel's own codes: they never reach a program, a tracer sees them. */
#define ERESTARTSYS 512
#define ERESTARTNOINTR 513
#define ERESTARTNOHAND 514
#define ERESTART_RESTARTBLOCK 516

#define USER_CS 0x33
#define SYSCALL_LEN 2

const uint8_t arch_syscall_insn[2] = { 0x0f, 0x05 };
const uint16_t arch_elf_machine = EM_X86_64;
const uint8_t arch_trap_insn[] = { 0xcc };

/*
 * Workers of io_uring and vhost are threads of the process without a user
 * mode: their ip and sp are 0.  A thread may also stand in 32-bit code.
 */
bool arch_can_call(const struct user_regs_struct *regs)
{
	return regs->cs == USER_CS && regs->rip && regs->rsp;
}

uint64_t arch_sp(const struct user_regs_struct *regs)
{
	return regs->rsp;
}

uint64_t arch_pc(const struct user_regs_struct *regs)
{
	return regs->rip;
}

bool arch_is_at_call(const struct user_regs_struct *regs, const struct arch_gadget *call)
{
	return call->addr && regs->rip - call->addr <= SYSCALL_LEN;
}

void arch_set_pc(struct user_regs_struct *regs, uint64_t pc)
{
	regs->rip = pc;
}

void arch_set_call(struct user_regs_struct *regs, uint64_t pc, long nr, const long args[6])
{
	regs->rip = pc;
	regs->rax = nr;
	regs->orig_rax = -1;
	regs->rdi = args[0];
	regs->rsi = args[1];
	regs->rdx = args[2];
	regs->r10 = args[3];
	regs->r8 = args[4];
	regs->r9 = args[5];
}

void arch_set_run(struct user_regs_struct *regs, uint64_t code, uint64_t table, size_t n)
{
	regs->rip = code + ARCH_RUN_MANY;
	regs->orig_rax = -1;
	regs->rbx = table;
	regs->r12 = n;
}

void arch_set_sp(struct user_regs_struct *regs, uint64_t sp)
{
	regs->rsp = sp;
	regs->rbp = sp;
}

void arch_set_way_back(struct arch_way_back *w, const struct user_regs_struct *regs)
{
	_Static_assert(offsetof(struct user_regs_struct, fs_base) == sizeof(w->reg), "up to ss");
	memcpy(w->reg, regs, sizeof(w->reg));
}

long arch_runner_result(const struct user_regs_struct *regs)
{
	return regs->rbx;
}

long arch_result(const struct user_regs_struct *regs)
{
	return regs->rax;
}

long arch_syscall_nr(const struct user_regs_struct *regs)
{
	return regs->cs == USER_CS ? (long)regs->orig_rax : -1;
}

bool arch_restarts(const struct user_regs_struct *regs)
{
	if ((long)regs->orig_rax < 0)
		return false;
	switch (-(long)regs->rax) {
	case ERESTARTSYS:
	case ERESTARTNOINTR:
	case ERESTARTNOHAND:
	case ERESTART_RESTARTBLOCK:
		return true;
	}
	return false;
}

void arch_rewind(struct user_regs_struct *regs, bool anew)
{
	if (!arch_restarts(regs))
		return;
	regs->rip -= SYSCALL_LEN;
	regs->rax = -(long)regs->rax == ERESTART_RESTARTBLOCK && !anew ? SYS_restart_syscall
	                                                               : regs->orig_rax;
}

/*
 * Rewinding rip by hand would race with a signal that arrives before the
 * thread runs: its handler would run and the call go on all the same, where
 * the program counts on EINTR (epoll_pwait).  This code makes the kernel
 * decide at the moment of resuming, with the signal in its hand.
 */
void arch_restart_nohand(struct user_regs_struct *regs)
{
	regs->rax = -(long)ERESTARTNOHAND;
}
