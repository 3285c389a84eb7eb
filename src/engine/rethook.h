/* SPDX-License-Identifier: MIT */
/*
 * Return hooks by slot overwrite: the word that holds a call's return address
 * gets the address of the instance's stub.
 *
 *	inst = ukp_rethook_get()	at the entry, may fail: a miss
 *	fill inst->data
 *	ukp_rethook_hook(inst)		or ukp_rethook_put(inst): declined
 *	...				inst->fn(hit, inst->ctx) at the return
 *
 * Several hooks of one frame share the first one's stub and run newest first.
 *
 * From a detour that can do so (plan/detour.h), the stub isn't only put there:
 * the function is called by it, so that the CPU expects the return.
 *
 *	detour	word = copy; jmp *way_in
 *	way in	call *word		the stub is the return address
 *	copy	the function, returns to
 *	stub	call common		runs the actions, puts the return address
 *					back and returns here
 *		ret			to the caller
 *
 * So each call has its return, in this order: the caller's, the way in's,
 * common's.  All else is as with a stub that was put there.
 */
#ifndef UKP_ENGINE_RETHOOK_H
#define UKP_ENGINE_RETHOOK_H

#include "engine/hit.h"

/* All of it is internal to the image that links it. */
#pragma GCC visibility push(hidden)

/*
 * A record for the call whose entry this hit is.  NULL, with the reason: no
 * instance left, or the frame's word can't be used.
 */
struct ukp_instance *ukp_rethook_get(struct ukp_hit *hit, ukp_action_fn fn, uint64_t ctx,
                                     enum ukp_miss *why);
void ukp_rethook_hook(struct ukp_hit *hit, struct ukp_instance *inst);
/*
 * The same in one step, counted in stat before it is hooked; data is its first word.
 * False: a miss, which is counted, too.
 */
bool ukp_rethook_follow(struct ukp_hit *hit, ukp_action_fn fn, uint64_t ctx, uint64_t data,
                        struct ukp_stat *stat);
void ukp_rethook_put(struct ukp_ctl *ctl, struct ukp_instance *inst);

/*
 * At the end of a hit in a detour that can call in place.  Nonzero: it is to do so,
 * by the way in that is in regs->ss.  A stub that was there before the hit has its
 * call already: the hit knows its own, in hit->stub, or the word is what it was before.
 */
int ukp_rethook_call_own(const struct ukp_hit *hit);
int ukp_rethook_call(const struct ukp_ctl *ctl, struct pt_regs *regs, uint64_t before);

/* The same of an address that many bytes behind the first stub, which may be among them. */
uint32_t ukp_rethook_index_near(const struct ukp_ctl *ctl, uint64_t off);
static inline struct ukp_instance *ukp_rethook_instances(const struct ukp_ctl *ctl)
{
	struct ukp_priv *priv = (struct ukp_priv *)ctl->priv;

	return (struct ukp_instance *)((char *)priv + priv->off_instances);
}

static inline struct ukp_objpool *ukp_rethook_pool(const struct ukp_ctl *ctl)
{
	struct ukp_priv *priv = (struct ukp_priv *)ctl->priv;

	return (struct ukp_objpool *)((char *)priv + priv->off_pool);
}

/* At an entry: is the word of a live call neither its stub nor what may stand there for it? */
bool ukp_rethook_is_lost(const struct ukp_hit *hit, const struct ukp_instance *inst);
/* Ends such a call; its index is bound (engine/orphans.h). */
void ukp_rethook_bind(struct ukp_hit *hit, struct ukp_instance *inst);

/* The instance whose stub this is; UINT32_MAX: no stub. */
static inline uint32_t ukp_rethook_index(const struct ukp_ctl *ctl, uint64_t addr)
{
	/* Mostly it is no stub, nor near one: nothing is divided then. */
	if (addr - ctl->stubs >=
	    2ull * UKP_STUB_SIZE * ((uint64_t)ctl->nr_instances + ctl->stub_chunk))
		return UINT32_MAX;
	return ukp_rethook_index_near(ctl, addr - ctl->stubs);
}

/* Whose stub the word at frame is; NULL: nobody's, or that of another frame. */
struct ukp_instance *ukp_rethook_owner(const struct ukp_ctl *ctl, uint64_t frame, uint64_t word);
/*
 * Ends the hit's thread's calls whose frames are in [from, to), counted as
 * unwound.  Those from sp on whose stub is in place get their return addresses
 * back.  With from < sp the dead are ended, too: those below sp, and those whose
 * word is somebody else's by now.
 */
void ukp_rethook_flush(struct ukp_hit *hit, uint64_t from, uint64_t to, uint64_t sp);

/*
 * The call whose entry this hit is, counted in ev's row: fn gets ev at its return, and
 * data as its first word.  Where it isn't followed that is counted, too.
 */
void ukp_event_follow(struct ukp_hit *hit, struct ukp_event *ev, ukp_action_fn fn, uint64_t data);
/* At its return; false: it was none, which is counted. */
bool ukp_event_returned(struct ukp_hit *hit, struct ukp_event *ev, struct ukp_stat *stat);

/*
 * From ukp_return_entry; sets regs->ip to the true return address.  True: by way
 * of the stub's ret.
 */
bool ukp_return(struct pt_regs *regs, uint64_t pushed);
void ukp_return_entry(void);

#pragma GCC visibility pop

#endif
