/* SPDX-License-Identifier: MIT */
/*
 * A session without a target, for the tests of src/front: what it is asked to
 * do is noted here, what it hands out is set here.
 */
#ifndef TESTS_FAKE_SESSION_H
#define TESTS_FAKE_SESSION_H

#include <ukprobes/session.h>

struct fake {
	/* set by a test */
	uint64_t records; /* how many there are to read */
	bool gone;        /* the target is gone when they are read */
	bool burst;       /* all at once; else one every read */
	int stop_error;   /* of ukp_session_stop() */
	int open_error;
	const char *refused; /* of ukp_session_refused() */
	const char *pending, *dropped;
	unsigned int waiting;
	struct ukp_counts counts;
	const char *damage, *hazard;
	const uint64_t *sample; /* latencies, ns, sorted */
	uint64_t nr_samples;
	struct ukp_latency_info latency;
	const struct ukp_place_hits *place;
	unsigned int nr_places;
	int about_error; /* of ukp_list() and so on */
	const char *about_why;
	void (*on_read)(void); /* called by every ukp_session_read() */
	/* noted by the fake */
	bool strict;
	bool any_text;
	bool follow;
	enum ukp_ret ret;
	double budget;
	unsigned int opened, started, stopped, closed, symbols, interrupts;
	uint64_t handed;
};

extern struct fake fake;
void fake_reset(void);

/* The event that all records of the fake are of, and record number n. */
extern const struct ukp_event_info fake_event;
void fake_record(struct ukp_record *r, uint64_t n);

#endif
