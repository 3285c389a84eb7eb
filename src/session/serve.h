/* SPDX-License-Identifier: MIT */
/* A broker, its clients, and the answering of their requests. */
#ifndef UKP_SESSION_SERVE_H
#define UKP_SESSION_SERVE_H

#include "session/proto.h"
#include "session/target.h"

struct client {
	struct client *next;
	struct broker *broker;
	struct chan *chan; /* NULL before OPEN */
	int fd;
};

struct broker {
	struct target *target;
	struct client *clients;
	bool launched;    /* the target waits at its entry point for the first START */
	uint64_t program; /* proto_program() at the attach */
	unsigned int optimize_tries;
	uint64_t optimize_at; /* ms of CLOCK_MONOTONIC; 0: nothing to do */
	bool owes;            /* threads are left that were to be let go, or reaped */
	int listen_fd;
	int pidfd;
};

/* Fills *r; *pass_fd: descriptor to send along, or -1. */
int serve_request(struct client *c, const struct proto_request *q, struct proto_reply *r,
                  int *pass_fd);

/*
 * Takes one request off a client's socket and answers it; who sends none, or does
 * not take answers, is dropped.  *left: the last has gone, and so has the agent.
 */
void broker_handle(struct broker *b, struct client *c, bool *left);

#endif
