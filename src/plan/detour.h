/* SPDX-License-Identifier: MIT */
/*
 * The code behind a jump: entries that call the engine, relocated instructions,
 * the way back.  wire/detour.h says what it looks like and how its map is read.
 *
 *	entry	lea -128(%rsp),%rsp
 *		push ...			struct pt_regs from ss down, gaps by lea
 *		mov %rsp,%rdi; mov $site,%rsi
 *		call engine
 *		[test %eax,%eax; js call; jnz tail]
 *		mov flags,%eax; add %cl,%cl; sahf	popfq, where other flags are set
 *		pop ...
 *		lea 128(%rsp),%rsp
 *	tail	pop ...; iretq			takes ip, flags and sp from struct pt_regs
 *	call	... as in the entry, but before pop %rdi:
 *		lea copy(%rip),%rdi; mov %rdi,word	where the return address was
 *		lea ...				to 112 below the word
 *		jmp *-24(%rsp)			regs->ss: the way in of a stub
 *
 * or, where a probe does nothing but count:
 *
 *	entry	lea -192(%rsp),%rsp
 *		push %rdx; push %rcx; push %rax; lahf; seto %al
 *		lock incq counter
 *		add $127,%al; sahf; pop ...; lea 192(%rsp),%rsp
 *
 * The engine's entry is a C function, int (*)(struct pt_regs *, void *site).
 * It is called with DF clear, which it leaves so, sp aligned as it happens to be and no red zone to
 * respect; whatever the form doesn't save it must leave as it is, vector state
 * always.  Zero goes on behind, with the registers that are in the form as it
 * left them; ip and sp are then of no account.  With form.flow, more than zero
 * goes on at regs->ip with regs->sp, wherever they lead.  With form.call, and from
 * the first covered instruction's entry alone, less than zero goes on there by a
 * call, of which the frame's word becomes the return address: see engine/rethook.h.
 */
#ifndef UKP_PLAN_DETOUR_H
#define UKP_PLAN_DETOUR_H

#include "plan/plan.h"
#include "plan/window.h"
#include "wire/detour.h"

/* A word of struct pt_regs as a bit of saves. */
#define PLAN_SAVE(field) (1u << (offsetof(struct pt_regs, field) / 8))
#define PLAN_SAVE_ALL ((1u << UKP_DETOUR_WORDS) - 1)
/* What a C function may clobber. */
#define PLAN_SAVE_CALL                                                                   \
	(PLAN_SAVE(ax) | PLAN_SAVE(cx) | PLAN_SAVE(dx) | PLAN_SAVE(si) | PLAN_SAVE(di) | \
	 PLAN_SAVE(r8) | PLAN_SAVE(r9) | PLAN_SAVE(r10) | PLAN_SAVE(r11) | PLAN_SAVE(flags))

struct plan_form {
	/*
	 * Words that are saved, hold their value in struct pt_regs meanwhile
	 * and are restored from it.  The detour itself adds di, si and flags,
	 * ax with flow or call, and with flow the words that iretq takes.
	 */
	uint32_t saves;
	bool flow; /* nonzero answers are honoured */
	bool near; /* the engine is in reach of a call rel32 */
	bool call; /* so are those below zero; the first covered instruction has a probe */
};

/*
 * What entries of the count form do: if alive is nonzero, and what the word at
 * cell holds too, that is the address of a row of counters: one locked add to
 * one of them, that of this CPU, or without rdpid that of this stack.
 */
struct plan_count {
	uint64_t alive;                  /* address of a 64-bit word */
	uint64_t cell[UKP_WINDOW_INSNS]; /* by covered instruction: address of a 64-bit word */
	uint64_t stride;                 /* bytes from one counter to the next, below 2 GiB */
	uint32_t shards;                 /* how many there are */
	bool rdpid;
};

struct plan_detour_request {
	const uint8_t *code; /* the original bytes at addr, window->covered of them */
	uint64_t addr;       /* where the window is when it runs */
	const struct plan_window *window;
	uint64_t buf;    /* where the detour will be */
	uint64_t engine; /* what its entries call */
	uint64_t entry;  /* with form.call, what the first covered instruction's calls instead */
	struct plan_form form;
	/* Not NULL: entries count by themselves, and nothing of engine and form is looked at. */
	const struct plan_count *count;
	uint8_t probes;                  /* bit i: covered instruction i has a probe */
	uint64_t site[UKP_WINDOW_INSNS]; /* what the engine gets for it */
};

#define PLAN_DETOUR_MAX 1536 /* bytes of generated code, at most */

struct plan_detour {
	uint8_t code[PLAN_DETOUR_MAX]; /* d.size of them */
	struct ukp_detour d;           /* with its map behind it: plan_detour_size() bytes */
	struct ukp_detour_pc pc[UKP_DETOUR_PCS];
	struct ukp_detour_shape shape; /* the form's; the same for all of its detours */
};

_Static_assert(offsetof(struct plan_detour, pc) ==
                       offsetof(struct plan_detour, d) + sizeof(struct ukp_detour),
               "the map is behind the detour");

/* Nothing is to be used of out on a refusal: PLAN_OUT_OF_REACH, PLAN_TOO_LONG, or a copy's. */
enum plan_refusal plan_detour(const struct plan_detour_request *req, struct plan_detour *out);

/* The words that a form really saves: shapes are the same where these and the flags are. */
uint32_t plan_form_saves(const struct plan_form *form);

/* Bytes of a struct ukp_detour with its map. */
static inline size_t plan_detour_size(const struct ukp_detour *d)
{
	return sizeof(*d) + d->npc * sizeof(struct ukp_detour_pc);
}

#endif
