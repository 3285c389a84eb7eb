/* SPDX-License-Identifier: MIT */
/*
 * One run of trace or latency: the target, what ends the run, and the exit
 * status.  One at a time in a process, for it owns the signals.
 *
 *	run_open -> definitions -> run_start -> watch while !run_over
 *	         -> run_stop -> what is left -> run_close
 *
 * run_abandon() in place of the rest when something was refused: nothing is
 * planted then, and a launched command never gets to its first instruction.
 */
#ifndef UKP_FRONT_RUN_H
#define UKP_FRONT_RUN_H

#include <ukprobes/session.h>

#include "front/options.h"

struct run {
	struct ukp_session *s;
	const struct options *o;
	bool launched;
	uint64_t started;  /* CLOCK_MONOTONIC, ns */
	uint64_t deadline; /* 0: none */
	bool gone;         /* the target has ended */
	bool another;      /* or is another program now, which is to be followed */
	uint64_t asked;    /* when it was asked what was too hot; 0: no budget */
};

/* Each prints the reason when it fails, and returns a negative errno. */
int run_open(struct run *r, const struct options *o);
int run_start(struct run *r, const struct options *o);
int run_stop(struct run *r);

int run_abandon(struct run *r); /* exit status */
/* Waits for a launched command.  status is our own; returns the exit status. */
int run_close(struct run *r, int status);

uint64_t run_now(void);
bool run_over(const struct run *r);
/* The session says that the target is no more. */
void run_gone(struct run *r);
int run_timeout(const struct run *r, int max_ms);

/* Of the first nr probes, those that were never hit, in one line on stderr with what may be why. */
void run_hint(const struct run *r, unsigned int nr);

/* Says what was taken out for its cost; not at each call. */
void run_dropped(struct run *r);

/* What options say of a session. */
void run_set(struct ukp_session *s, const struct options *o);
/* The exit status of a command that waitpid() has said this of; status is our own. */
int run_status(int wait, int status);

/* How many signals have asked us to end. */
int run_signals(void);

#endif
