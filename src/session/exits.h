/* SPDX-License-Identifier: MIT */
/*
 * Return probes by exit sites.
 *
 * A return probe begins as a breakpoint at the entry and a slot.  Meanwhile the
 * exits of its module's functions are found, and where they are the better
 * choice, they are covered with jumps (windows.h).  When all of a function's
 * are in, its calls get records by their frames:
 *
 *	                    entry            exits
 *	planted             int3, slot       as in the file
 *	their jumps are in  jump, frames     jump
 *	all jumps go back   int3, slot       int3, if calls that began by frames
 *	                                     may be on their way
 *
 * So nobody waits for the exits at an attach, and no breakpoint stands at an
 * exit in the usual course: a function may return with all signals blocked,
 * though it was entered with them open.
 *
 * A firm one has exit sites from its first hit on, with breakpoints until jumps
 * come: where the return address must stay as it is, or where the user asks
 * for it.
 */
#ifndef UKP_SESSION_EXITS_H
#define UKP_SESSION_EXITS_H

#include "session/target.h"

/*
 * What is to be known of a return probe before it is planted; p->addr may move
 * to where a call passes once.  stays: why the return address must stay, or
 * NULL.  Returns NULL, or why there can be no such probe.  May take as long as
 * finding the exits of all functions of the module.
 */
const char *exits_decide(struct target *t, struct probe *p, const char *stays);

/* Before a firm one's entry: its exit sites, with breakpoints. */
int exits_plant_firm(struct target *t, struct probe *p, struct err *err);
/* After its entry was taken out. */
void exits_unplant(struct target *t, struct probe *p);

/* For the optimizer: have the modules of all return probes their exits made. */
void exits_want(struct target *t);
/* Is there a probe whose exits are known by now, but not planted? */
bool exits_wait(struct target *t);
/* Plant them; nobody is led there yet. */
void exits_plant(struct target *t);
/* Calls of probes whose exits all have jumps get records. */
void exits_on(struct target *t);
/* They get slots again, before jumps go back. */
void exits_off(struct target *t);

/* Does a jump belong there, with or without a breakpoint? */
bool site_wants_jump(const struct site *s);
/* Is an exit there that calls with records may yet come to? */
bool site_drains(const struct site *s);

/* "slot (why)", "call (why)" or "exit (why)" */
int exits_print(const struct probe *p, char *buf, size_t len);

#endif
