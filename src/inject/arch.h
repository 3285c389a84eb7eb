/* SPDX-License-Identifier: MIT */
/* What depends on the CPU in holding a thread and calling in it. */
#ifndef UKP_INJECT_ARCH_H
#define UKP_INJECT_ARCH_H

#define ARCH_RUN_MANY 5 /* offset of that entry of the runner */
#define ARCH_RED_ZONE 128

#ifndef __ASSEMBLER__

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

/* The instruction that enters the kernel: its place in buf, or -1. */
long arch_find_syscall(const uint8_t *buf, size_t len);
extern const uint8_t arch_syscall_insn[2];

extern const uint16_t arch_elf_machine; /* EM_... */

/* Can this thread run a 64-bit system call from where it stands? */
bool arch_can_call(const struct user_regs_struct *regs);
uint64_t arch_sp(const struct user_regs_struct *regs);
/* regs become those of a system call at pc, and no call of the kernel's to restart. */
void arch_set_call(struct user_regs_struct *regs, uint64_t pc, long nr, const long args[6]);
long arch_result(const struct user_regs_struct *regs);
void arch_set_pc(struct user_regs_struct *regs, uint64_t pc);
uint64_t arch_pc(const struct user_regs_struct *regs);

/*
 * x86/runner.S: one call ends at ARCH_RUN_ONE_END, many at arch_runner_back, each a
 * byte behind a breakpoint.  All up to arch_runner_data is code.
 */
#define ARCH_RUN_ONE_END 3
extern const uint8_t arch_runner[], arch_runner_back[], arch_runner_data[], arch_runner_end[];

/* What lies at arch_runner_data: what a thread goes on with that nobody follows any more. */
struct arch_way_back {
	uint64_t mask;
	uint64_t reg[21]; /* of struct user_regs_struct */
};
/* A call that the kernel would have restarted is executed again. */
void arch_set_way_back(struct arch_way_back *w, const struct user_regs_struct *regs, uint64_t mask);
/* regs become those of n calls of a table, by the runner that lies at code. */
void arch_set_run(struct user_regs_struct *regs, uint64_t code, uint64_t table, size_t n);

/* Number of the call that the thread was stopped in, -1 if it was in user mode. */
long arch_syscall_nr(const struct user_regs_struct *regs);
/* The kernel will execute the call again on resuming (unless a handler runs first). */
bool arch_restarts(const struct user_regs_struct *regs);
/* Turns a call that was about to return -EINTR into one that restarts without a handler. */
void arch_restart_nohand(struct user_regs_struct *regs);

/* int3: what it is, and how far the PC is past it. */
extern const uint8_t arch_trap_insn[];
#define ARCH_TRAP_LEN 1
#define ARCH_TRAP_ADVANCE 1

#endif
#endif
