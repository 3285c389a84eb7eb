/* SPDX-License-Identifier: MIT */
/*
 * A session from the client's side.
 *
 *	connect.c  the broker found or started, requests
 *	client.c   open, add, start, close
 *	launch.c   a command started and held
 *	read.c     from rings to records
 *	clock.c    ticks to nanoseconds
 *	threads.c  names of threads
 *	summary.c  counters and latencies
 *	places.c   definitions of many places
 */
#ifndef UKP_SESSION_CLIENT_H
#define UKP_SESSION_CLIENT_H

#include <signal.h>

#include "session/proto.h"
#include "sym/sym.h"
#include "ukprobes/session.h"
#include "wire/check.h"

struct clock {
	uint64_t tsc, ns; /* where it was last set */
	uint64_t first_tsc, first_ns;
	double rate; /* ns a tick */
};

void clock_open(struct clock *c);
/* Measures again where that makes the rate better. */
void clock_adjust(struct clock *c);
uint64_t clock_ns(const struct clock *c, uint64_t tsc);
uint64_t clock_ticks_to_ns(const struct clock *c, uint64_t ticks);
uint64_t clock_now(void); /* ticks */

struct threads;
int threads_open(struct threads **ret, pid_t pid);
/* Names of its children's threads as well. */
void threads_set_family(struct threads *t, bool family);
void threads_close(struct threads *t);
/* By the id that the target's own namespace has; tid is set to ours (0: unknown). */
const char *threads_name(struct threads *t, uint32_t ns_tid, pid_t *tid);

struct event {
	struct ukp_event_info info;
	struct ukp_field fields[UKP_EVENT_ARGS];
	struct lang_field places[UKP_EVENT_ARGS];
	char group[LANG_NAME_MAX], name[LANG_NAME_MAX], func[256], place[384];
	char names[UKP_EVENT_ARGS][33];
	bool latency, counted;
	uint32_t counter;
	uint64_t *addr; /* of places that are counted, once asked for */
	char latency_name[256];
	uint32_t err_kind, hist_shards;
	uint64_t hist_off, hist_stride;
};

struct ukp_session {
	pid_t pid;
	int fd; /* broker; -1 */
	int pidfd;
	int chan_fd;
	int wake_fd;          /* eventfd of ukp_session_interrupt() */
	bool launched, child; /* held at its entry; ours to reap */
	bool dead, reaped;
	int status;
	void *mem;
	size_t size;
	struct ukp_reader *reader;
	uint64_t odd; /* records that are none of this session's */
	uint64_t blocked_at[UKP_READER_RINGS], blocked_since[UKP_READER_RINGS];
	struct event **events;
	unsigned int nr_events;
	struct sym_proc *sym;
	uint64_t sym_time, looked; /* when */
	uint64_t program, asked;   /* which it is, of one that is followed; when it was asked */
	struct threads *threads;
	struct clock clock;
	int idle_ms;
	char symbol[512];
	bool strict;
	bool any_text;
	bool follow;
	bool stopped;
	enum ukp_ret ret;
	char hazard[sizeof(((struct proto_open *)0)->hazard)];
	char refused[PROTO_DATA];
	char pending[PROTO_DATA];
	char dropped[PROTO_DATA];
	unsigned int waiting; /* places of the last start that have no jump yet */
	char error[2 * ERR_TEXT + LANG_LINE_MAX * 2];
	struct ukp_value values[UKP_EVENT_ARGS];
	char strings[UKP_REC_MAX + UKP_EVENT_ARGS];
	struct ukp_hist hist;
	struct ukp_latency_error by_value[UKP_HIST_ERRS];
};

/* Sets the session's error; returns code. */
int session_fail(struct ukp_session *s, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define CLIENT_CONNECT_MS 10000
long client_now_ms(void);

/* Connect to a broker; spawn: start one if there is none.  launch_fd: or -1. */
int client_connect(struct ukp_session *s, bool spawn, int launch_fd);
int client_open(struct ukp_session *s);
/* One request; r is filled.  Returns r->ret. */
int client_request(struct ukp_session *s, uint32_t type, uint32_t arg, const char *text,
                   struct proto_reply *r, int *got_fd);

/* One definition: PROTO_ADD and its kin. */
int client_add(struct ukp_session *s, uint32_t type, const char *text, unsigned int *id);

int session_new(struct ukp_session **ret);
/* Sets the error for counters that the target has overwritten: -EBADMSG. */
int session_damaged(struct ukp_session *s);

#endif
