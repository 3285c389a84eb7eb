/* SPDX-License-Identifier: MIT */
/* Registers by name, and kprobes on stderr: what <ukprobes/kprobes.h> has beside probes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/lib.h"

#define REG(name)                                     \
	{                                             \
#name, offsetof(struct pt_regs, name) \
	}

static const struct {
	const char *name;
	unsigned int offset;
} regs[] = {
	REG(r15), REG(r14),     REG(r13), REG(r12), REG(bp),    REG(bx), REG(r11),
	REG(r10), REG(r9),      REG(r8),  REG(ax),  REG(cx),    REG(dx), REG(si),
	REG(di),  REG(orig_ax), REG(ip),  REG(cs),  REG(flags), REG(sp), REG(ss),
};

#define NR_REGS (sizeof(regs) / sizeof(*regs))

int regs_query_register_offset(const char *name)
{
	size_t i;

	for (i = 0; i < NR_REGS; i++)
		if (!strcmp(regs[i].name, name))
			return (int)regs[i].offset;
	return -EINVAL;
}

const char *regs_query_register_name(unsigned int offset)
{
	size_t i;

	for (i = 0; i < NR_REGS; i++)
		if (regs[i].offset == offset)
			return regs[i].name;
	return NULL;
}

void dump_kprobe(struct kprobe *p)
{
	char place[256] = "?";
	struct sym_proc *sym;
	struct err *err = lib_err();

	/* From a handler without the place's name: symbols are under the lock. */
	if (!lib_lock(false, err)) {
		if (!own_sym(&sym, err))
			sym_format(sym, (uint64_t)p->addr, place, sizeof(place));
		lib_unlock();
	}
	fprintf(stderr, "Dump kprobe:\n.symbol_name = %s, .offset = %x, .addr = %s\n",
	        p->symbol_name ? p->symbol_name : "(null)", p->offset, place);
	fprintf(stderr, ".nmissed = %lu, .flags =%s%s%s%s\n", p->nmissed,
	        p->flags & KPROBE_FLAG_GONE ? " [GONE]" : "",
	        p->flags & KPROBE_FLAG_DISABLED ? " [DISABLED]" : "",
	        p->flags & KPROBE_FLAG_OPTIMIZED ? " [OPTIMIZED]" : "",
	        get_kprobe(p->addr) ? "" : ", nothing is registered there");
}
