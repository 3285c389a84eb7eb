/* SPDX-License-Identifier: MIT */
/*
 * Registers of the probed thread, by the kernel's names and in its order
 * (arch/x86/include/asm/ptrace.h).  Don't include <asm/ptrace.h> beside this
 * file: it has another structure of the same name.
 *
 * What handlers see: at a kprobe ip is the probed address + 1, as in the
 * kernel; at a return ip is the address that the function returns to and sp is
 * as after the ret.  orig_ax is -1.
 */
#ifndef UKPROBES_PT_REGS_H
#define UKPROBES_PT_REGS_H

#ifdef __cplusplus
extern "C" {
#endif

struct pt_regs {
	unsigned long r15;
	unsigned long r14;
	unsigned long r13;
	unsigned long r12;
	unsigned long bp;
	unsigned long bx;
	unsigned long r11;
	unsigned long r10;
	unsigned long r9;
	unsigned long r8;
	unsigned long ax;
	unsigned long cx;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long cs;
	unsigned long flags;
	unsigned long sp;
	unsigned long ss;
};

#ifdef __cplusplus
}
#endif

#endif
