/* SPDX-License-Identifier: MIT */
/*
 * With --follow a run goes on in the program that its process has executed: as a run of
 * its own, of the definitions that are found there.
 *
 *	run_close -> again_note     the process lives on as another program
 *	again                       is there one, and what of it can be probed?
 *	run_start -> again_settle   the next run has its own session
 */
#ifndef UKP_FRONT_AGAIN_H
#define UKP_FRONT_AGAIN_H

#include "front/run.h"

/* launched: it is a command of ours, whose status is still to come. */
void again_note(const struct run *r, bool launched);
/* o is what the next run is to do, of what the last one was to do. */
bool again(const struct command *c, struct options *o);
void again_settle(void);
/* The process if it is a command of ours, or 0. */
pid_t again_child(void);
/* Waits for such a command.  The exit status, as run_close() has it. */
int again_status(int status);

#endif
