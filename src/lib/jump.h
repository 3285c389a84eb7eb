/* SPDX-License-Identifier: MIT */
/*
 * Jumps over breakpoints in one's own text.  All under the lock.
 *
 *	   text	  cc 57 41 56 ...	resume: traps go on in the detour's copy
 *	=> text	  e9 rel32 ...		over, head: the hit path and we know of it
 *
 * A site with a jump is still armed: in front of the five bytes one thinks the
 * breakpoints.  A window belongs to its first site; armed sites further in have
 * entries of their own in the detour.  For each set of them a detour is made once
 * and kept: nothing that a thread may be in is ever written again.
 *
 * An exit often has no room for a jump behind it.  Then its window begins at a
 * site before it, which may have no probe of its own, and takes along what is
 * between; the bytes behind the first five stay as they are, breakpoints and all.
 */
#ifndef UKP_LIB_JUMP_H
#define UKP_LIB_JUMP_H

#include "lib/lib.h"
#include "plan/targets.h"

/*
 * Everything but the jump itself, which then may be written as soon as nobody
 * is inside; NULL, or why s keeps the base form.  targets: the module's; bias:
 * runtime - link-time address.
 */
const char *jump_prepare(struct lib_site *s, const struct plan_targets *targets, uint64_t bias);
/*
 * Exits (room.c).  A jump from the site from on is to cover that one.
 */
void jump_reach(struct lib_site *from, struct lib_site *exit);
/* Have the jumps that are still to be prepared take s along, if they come near it. */
void jump_make_room(struct lib_site *s);
/*
 * The site at whose place the jump over s is to begin.  NULL: *why it can't be,
 * or else a jump was taken back for it, and s is to be looked at again.
 */
struct lib_site *jump_head(struct lib_site *s, const char **why);
/* Is s under a jump that is there, or prepared? */
bool jump_is_covered(const struct lib_site *s);
/* For all breakpoints in the window of a jump that is not to be. */
void jump_give_up(struct lib_site *head, const char *why);
void jump_for_each(struct lib_site *head, void (*fn)(struct lib_site *s));
unsigned int jump_longest(void); /* no window covers more bytes */
/* After jump_prepare(): has its window more than one instruction, so that threads may be inside? */
bool jump_must_settle(const struct lib_site *s);
/* Forget what was prepared, or put back breakpoints and forget the jump. */
void jump_cancel(struct lib_site *s);
int jump_take_back(struct lib_site *head, struct err *err);
/* False: the jump that s heads is older than a probe that follows calls from there. */
bool jump_fits(const struct lib_site *s);
/* All there are, in few steps. */
int jump_take_back_all(struct err *err);
/* Is what an armed site has written still in memory?  Its library may have come again. */
bool jump_or_trap_is_there(const struct lib_site *s);
/* The code is gone or another one: nothing to put back. */
void jump_forget(struct lib_site *s);
/* Write the jumps of these heads; one that fails keeps the base form, with why set. */
void jump_write(struct lib_site **head, size_t n);
/* The head of the jump that is over addr, or NULL; also where no site is. */
struct lib_site *jump_over(uint64_t addr);
/* Is memory there as code, but for what is ours? */
bool jump_text_is(uint64_t addr, const uint8_t *code, size_t len);
/* Memory as it would be without us. */
int jump_read_text(uint64_t addr, uint8_t *buf, size_t len);
/* Set or clear KPROBE_FLAG_OPTIMIZED in the probes of a site. */
void jump_mark(struct lib_site *s);

#endif
