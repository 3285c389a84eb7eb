/* SPDX-License-Identifier: MIT */
/* What depends on the CPU in holding a thread and calling in it. */
#ifndef UKP_INJECT_ARCH_H
#define UKP_INJECT_ARCH_H

#define ARCH_RUN_MANY 7 /* offset of that entry of the runner */
#define ARCH_RED_ZONE 128

#ifndef __ASSEMBLER__

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

extern const uint8_t arch_syscall_insn[2]; /* the instruction that enters the kernel */

/* Code of the target's that calls are made with; x86/gadget.c. */
#define ARCH_GADGET_MAX 32
enum arch_gadget_kind {
	GADGET_NONE,
	GADGET_SYSCALL,   /* that instruction, and no more */
	GADGET_CALL,      /* it, and behind it a return */
	GADGET_POP,       /* the number of a call from the stack, and a return */
	GADGET_SIGRETURN, /* what signal handlers return through */
};
struct arch_gadget {
	enum arch_gadget_kind kind;
	uint64_t addr;
	uint8_t code[ARCH_GADGET_MAX]; /* as it was found */
	size_t len;
	int up; /* where it has its return address, from sp */
};
/* The best in buf, which lies at addr; g stays as it is where there is none better. */
void arch_find_call(struct arch_gadget *g, const uint8_t *buf, size_t len, uint64_t addr);
void arch_find_back(struct arch_gadget *g, const uint8_t *buf, size_t len, uint64_t addr);
/*
 * What has to lie at `at` for a call that nobody ends to come back by it to regs, mask
 * and vector state.  Returns sp (and frame pointer) of the call.
 */
size_t arch_back_size(const struct arch_gadget *call, const struct arch_gadget *back,
                      const void *xstate, size_t xlen);
#define ARCH_BACK_BELOW 64 /* so far below that sp lies a mark, by which it is known */
#define ARCH_BACK_MARK 0x6b636162706b75ull
uint64_t arch_back(uint8_t *buf, uint64_t at, const struct arch_gadget *call,
                   const struct arch_gadget *back, const struct user_regs_struct *regs,
                   uint64_t mask, const void *xstate, size_t xlen);

extern const uint16_t arch_elf_machine; /* EM_... */

/* Can this thread run a 64-bit system call from where it stands? */
bool arch_can_call(const struct user_regs_struct *regs);
uint64_t arch_sp(const struct user_regs_struct *regs);
/* regs become those of a system call at pc, and no call of the kernel's to restart. */
void arch_set_call(struct user_regs_struct *regs, uint64_t pc, long nr, const long args[6]);
/* The same, with a stack pointer (and frame pointer) of its own. */
void arch_set_sp(struct user_regs_struct *regs, uint64_t sp);
long arch_result(const struct user_regs_struct *regs);
void arch_set_pc(struct user_regs_struct *regs, uint64_t pc);
uint64_t arch_pc(const struct user_regs_struct *regs);
/* Is it about to make that call, or has it just made it? */
bool arch_is_at_call(const struct user_regs_struct *regs, const struct arch_gadget *call);

/*
 * x86/runner.S: the thread is done where it has sent itself a signal, with its
 * program counter at arch_runner_back.  All up to arch_runner_data is code.
 */
extern const uint8_t arch_runner[], arch_runner_back[], arch_runner_data[], arch_runner_end[];
long arch_runner_result(const struct user_regs_struct *regs); /* of a single call */

/* What lies at arch_runner_data: what a thread goes on with that nobody follows any more. */
struct arch_way_back {
	uint64_t mask;
	uint64_t reg[21]; /* of struct user_regs_struct */
	uint64_t signal;  /* by which it says that it is done */
	uint64_t sud[4]; /* mode, offset, length, selector of its system calls' dispatch; 0: none */
};
void arch_set_way_back(struct arch_way_back *w, const struct user_regs_struct *regs);
/* regs become those of n calls of a table, by the runner that lies at code. */
void arch_set_run(struct user_regs_struct *regs, uint64_t code, uint64_t table, size_t n);

/* Number of the call that the thread was stopped in, -1 if it was in user mode. */
long arch_syscall_nr(const struct user_regs_struct *regs);
/* The kernel will execute the call again on resuming (unless a handler runs first). */
bool arch_restarts(const struct user_regs_struct *regs);
/*
 * By hand: the instruction is executed again.  anew: from its beginning, not by the
 * call with which the kernel continues one that sleeps for a time.
 */
void arch_rewind(struct user_regs_struct *regs, bool anew);
/* Turns a call that was about to return -EINTR into one that restarts without a handler. */
void arch_restart_nohand(struct user_regs_struct *regs);

/* int3: what it is, and how far the PC is past it. */
extern const uint8_t arch_trap_insn[];
#define ARCH_TRAP_LEN 1
#define ARCH_TRAP_ADVANCE 1

#endif
#endif
