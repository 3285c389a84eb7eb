/* SPDX-License-Identifier: MIT */
/*
 * x86-64: a call that nobody ends finds its way back over its stack.
 *
 *	syscall ; ... ; ret		the end of any function that makes a call
 *	mov $15,%eax ; syscall		what signal handlers return through
 *
 * The return address of the former is the latter, and above it lies what the
 * kernel has on a stack behind a signal handler: registers, mask, vector state.
 * Where the latter is not to be found, it is put together: a pop of rax, and the
 * former again.
 *
 *				a mark
 *	sp of the call ->	what the end of that function takes off
 *				sigreturn, or: pop, 15, call
 *				ucontext
 *				xsave area
 */
#include "inject/arch.h"

#include <cpuid.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

#define BELOW ARCH_BACK_BELOW /* what a function's end may find below its frame pointer */
#define UP_MAX 256

#define UC_FP_XSTATE 1 /* struct ucontext: uc_flags */
#define UC_SIGCONTEXT_SS 2
#define UC_STRICT_RESTORE_SS 4
#define NO_STACK (1 << 16) /* an ss_flags that sigaltstack() refuses: it stays what it is */
#define UC_SIZE (offsetof(ucontext_t, uc_sigmask) + 8)

#define FP_LEGACY 512
#define FP_SW 464 /* struct _fpx_sw_bytes */
#define FP_MAGIC1 0x46505853u
#define FP_MAGIC2 0x46505845u
#define XSAVE_HEAD (FP_LEGACY + 64)

/*
 * Behind a syscall instruction: its length up to the return, if nothing happens on
 * the way but that the stack is taken down and registers are cleared; 0: else.
 * *up: where the return address is, from an sp that is the frame pointer's, too.
 */
static size_t tail(const uint8_t *p, size_t len, int *up)
{
	size_t i = sizeof(arch_syscall_insn);
	bool framed = true;
	int sp = 0;

	for (; i + 4 <= len && i < ARCH_GADGET_MAX; i++) {
		const uint8_t *q = p + i;

		if (q[0] == 0xc3) { /* ret */
			*up = sp;
			return sp >= -BELOW && sp <= UP_MAX ? i + 1 : 0;
		}
		if (q[0] >= 0x58 && q[0] <= 0x5f && q[0] != 0x5c) { /* pop */
			framed &= q[0] != 0x5d;
			sp += 8;
		} else if (q[0] == 0x41 && q[1] >= 0x58 && q[1] <= 0x5f) { /* pop r8.. */
			sp += 8;
			i++;
		} else if (q[0] == 0x48 && q[1] == 0x83 && q[2] == 0xc4) { /* add $n,%rsp */
			sp += (int8_t)q[3];
			i += 3;
		} else if (q[0] == 0xc9 && framed) { /* leave */
			sp = 8;
			framed = false;
		} else if (q[0] == 0x48 && q[1] == 0x8d && q[2] == 0x65 && framed) {
			sp = (int8_t)q[3]; /* lea n(%rbp),%rsp */
			i += 3;
		} else if (q[0] == 0x31 && q[1] >= 0xc0 && (q[1] & 7) != 4 && (q[1] & 7) != 5) {
			i++; /* xor %reg,%reg */
		} else if (q[0] == 0x45 && q[1] == 0x31 && q[2] >= 0xc0) {
			i += 2;
		} else {
			return 0;
		}
		if (sp < -BELOW || sp > UP_MAX)
			return 0;
	}
	return 0;
}

static void found(struct arch_gadget *g, enum arch_gadget_kind kind, const uint8_t *p, size_t len,
                  uint64_t addr)
{
	g->kind = kind;
	g->addr = addr;
	g->len = len;
	memcpy(g->code, p, len);
}

void arch_find_call(struct arch_gadget *g, const uint8_t *buf, size_t len, uint64_t addr)
{
	const uint8_t *p = buf, *end = buf + len;
	size_t n;
	int up;

	for (; (p = memmem(p, end - p, arch_syscall_insn, sizeof(arch_syscall_insn))); p++) {
		n = tail(p, end - p, &up);
		if (n) {
			found(g, GADGET_CALL, p, n, addr + (p - buf));
			g->up = up;
			return;
		}
		if (!g->kind)
			found(g, GADGET_SYSCALL, p, sizeof(arch_syscall_insn), addr + (p - buf));
	}
}

void arch_find_back(struct arch_gadget *g, const uint8_t *buf, size_t len, uint64_t addr)
{
	static const uint8_t code[2][9] = {
		{ 0x48, 0xc7, 0xc0, SYS_rt_sigreturn, 0, 0, 0, 0x0f, 0x05 }, /* libcs */
		{ 0xb8, SYS_rt_sigreturn, 0, 0, 0, 0x0f, 0x05 },
	};
	static const uint8_t pop[] = { 0x58, 0xc3 };
	const size_t size[2] = { 9, 7 };
	const uint8_t *p;
	int i;

	for (i = 0; i < 2; i++) {
		p = memmem(buf, len, code[i], size[i]);
		if (p) {
			found(g, GADGET_SIGRETURN, p, size[i], addr + (p - buf));
			return;
		}
	}
	p = g->kind ? NULL : memmem(buf, len, pop, sizeof(pop));
	if (p)
		found(g, GADGET_POP, p, sizeof(pop), addr + (p - buf));
}

static uint64_t word_at(const void *p, size_t off)
{
	uint64_t w;

	memcpy(&w, (const uint8_t *)p + off, sizeof(w));
	return w;
}

/* Up to the last component that is in use. */
static size_t xstate_used(const void *xstate, size_t len)
{
	uint64_t in_use = len >= XSAVE_HEAD ? word_at(xstate, FP_LEGACY) : 0;
	size_t used = len >= XSAVE_HEAD ? XSAVE_HEAD : FP_LEGACY;
	uint32_t size, offset, c, d;
	unsigned int i;

	for (i = 2; i < 63; i++)
		if ((in_use >> i & 1) && __get_cpuid_count(0xd, i, &size, &offset, &c, &d) &&
		    offset + size > used)
			used = offset + size;
	return used;
}

/* Between the return address and the frame of sigreturn. */
static size_t popped(const struct arch_gadget *back)
{
	return back->kind == GADGET_POP ? 16 : 0;
}

size_t arch_back_size(const struct arch_gadget *call, const struct arch_gadget *back,
                      const void *xstate, size_t xlen)
{
	return BELOW + call->up + popped(back) + 8 + UC_SIZE + 64 + xstate_used(xstate, xlen) + 8;
}

static void put_xstate(uint8_t *to, const void *xstate, size_t len, size_t used)
{
	uint32_t sw[4] = { 0 }, magic2 = FP_MAGIC2;
	uint64_t features;

	memcpy(to, xstate, used < len ? used : len);
	memset(to + FP_SW, 0, FP_LEGACY - FP_SW);
	if (used < XSAVE_HEAD)
		return;
	sw[0] = FP_MAGIC1;
	sw[1] = used + sizeof(magic2);
	features = word_at(xstate, FP_LEGACY) | 3;
	memcpy(sw + 2, &features, sizeof(features));
	memcpy(to + FP_SW, sw, sizeof(sw));
	memcpy(to + FP_SW + sizeof(sw), &(uint32_t){ used }, 4);
	memcpy(to + used, &magic2, sizeof(magic2));
}

static void put_regs(greg_t *g, const struct user_regs_struct *r)
{
	g[REG_R8] = r->r8;
	g[REG_R9] = r->r9;
	g[REG_R10] = r->r10;
	g[REG_R11] = r->r11;
	g[REG_R12] = r->r12;
	g[REG_R13] = r->r13;
	g[REG_R14] = r->r14;
	g[REG_R15] = r->r15;
	g[REG_RDI] = r->rdi;
	g[REG_RSI] = r->rsi;
	g[REG_RBP] = r->rbp;
	g[REG_RBX] = r->rbx;
	g[REG_RDX] = r->rdx;
	g[REG_RAX] = r->rax;
	g[REG_RCX] = r->rcx;
	g[REG_RSP] = r->rsp;
	g[REG_RIP] = r->rip;
	g[REG_EFL] = r->eflags;
	g[REG_CSGSFS] = (greg_t)(r->cs | r->ss << 48);
}

uint64_t arch_back(uint8_t *buf, uint64_t at, const struct arch_gadget *call,
                   const struct arch_gadget *back, const struct user_regs_struct *regs,
                   uint64_t mask, const void *xstate, size_t xlen)
{
	size_t used = xstate_used(xstate, xlen);
	uint64_t sp = at + BELOW, ret = sp + call->up, frame = ret + popped(back);
	uint64_t fp = (frame + 8 + UC_SIZE + 63) & ~63ull;
	uint64_t word[3] = { back->addr, SYS_rt_sigreturn, call->addr };
	uint64_t mark[2] = { ARCH_BACK_MARK, sp };
	ucontext_t uc;

	memset(&uc, 0, sizeof(uc));
	uc.uc_flags = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS;
	uc.uc_stack.ss_flags = NO_STACK;
	put_regs(uc.uc_mcontext.gregs, regs);
	uc.uc_mcontext.fpregs = (fpregset_t)fp;
	memcpy(&uc.uc_sigmask, &mask, sizeof(mask));
	memcpy(buf, mark, sizeof(mark));
	memcpy(buf + (ret - at), word, popped(back) + 8);
	memcpy(buf + (frame + 8 - at), &uc, UC_SIZE);
	put_xstate(buf + (fp - at), xstate, xlen, used);
	return sp;
}
