/* SPDX-License-Identifier: MIT */
/*
 * The way back of a thread that makes calls for us, should we be killed meanwhile.
 *
 * In the runner it is code, which finds behind itself what to put back.  Without it
 * the thread has nothing but its stack: there lies a frame as of a signal handler,
 * and the call returns into the kernel's sigreturn (x86/gadget.c).  It is not used
 * as long as we live.
 */
#include "inject/internal.h"
#include "inject/arch.h"

#include <stdlib.h>

/* By hand what the kernel does with a thread that it lets go on from a stop. */
static struct user_regs_struct goes_on_with(const struct remote *r, bool anew)
{
	struct user_regs_struct regs = r->saved;

	arch_rewind(&regs, anew);
	if (r->abort)
		arch_set_pc(&regs, r->abort);
	return regs;
}

static void update_runner(struct inject *t)
{
	struct remote *r = &t->remote;
	struct user_regs_struct regs = goes_on_with(r, false);
	struct arch_way_back w = { .mask = r->sigblk, .signal = r->signal };

	arch_set_way_back(&w, &regs);
	if (r->sud.mode) {
		w.sud[0] = r->sud.mode;
		w.sud[1] = r->sud.offset;
		w.sud[2] = r->sud.len;
		w.sud[3] = r->sud.selector;
	}
	if (inject_write(t, t->runner + (arch_runner_data - arch_runner), &w, sizeof(w)))
		r->runs = false;
}

/* Sigreturn lets no sleep go on: one that is interrupted begins anew. */
static uint64_t write_frame(struct inject *t)
{
	struct remote *r = &t->remote;
	struct user_regs_struct regs = goes_on_with(r, true);
	uint8_t *buf = calloc(1, r->back_len);
	uint64_t sp = 0;

	if (buf) {
		sp = arch_back(buf, r->back, &t->gadget.call, &t->gadget.back, &regs, r->sigblk,
		               r->xstate, r->xstate_len);
		if (inject_write(t, r->back, buf, r->back_len))
			sp = 0;
	}
	free(buf);
	return sp;
}

void back_update(struct inject *t)
{
	if (t->remote.runs)
		update_runner(t);
	if (t->remote.back_len)
		write_frame(t);
}

bool inject_owes(struct inject *t)
{
	size_t i;

	for (i = 0; i < inject_nr_threads(t); i++) {
		const struct user_regs_struct *regs = &t->threads[i].pub.regs;
		uint64_t mark[2], sp = arch_sp(regs);

		if (arch_is_at_call(regs, &t->gadget.call) &&
		    !inject_read(t, sp - ARCH_BACK_BELOW, mark, sizeof(mark)) &&
		    mark[0] == ARCH_BACK_MARK && mark[1] == sp)
			return true;
	}
	return false;
}

uint64_t back_on_stack(struct inject *t)
{
	struct remote *r = &t->remote;

	if (t->gadget.call.kind != GADGET_CALL || !t->gadget.back.kind)
		return 0;
	if (!r->back_len || r->back != r->low) {
		size_t len =
			arch_back_size(&t->gadget.call, &t->gadget.back, r->xstate, r->xstate_len);

		r->back = scratch_on_stack(t, len);
		r->back_len = r->back ? len : 0;
	}
	return r->back_len ? write_frame(t) : 0;
}
