/* SPDX-License-Identifier: MIT */
/*
 * Between a client and the broker of its target: requests and replies over a
 * SOCK_SEQPACKET Unix socket, one reply a request, both sides of one version
 * and one user.  Records do not go this way: OPEN's reply carries the
 * channel's descriptor and the client reads the ring itself.
 */
#ifndef UKP_SESSION_PROTO_H
#define UKP_SESSION_PROTO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lang/lang.h"

#define PROTO_VERSION 7
#define PROTO_DATA 16384

enum proto_type {
	PROTO_OPEN, /* arg: version.  Reply: struct proto_open, descriptor */
	PROTO_ADD,  /* data: definition.  arg: flags, mechanism.  Reply: struct proto_event */
	PROTO_ADD_LATENCY,
	PROTO_ADD_COUNT, /* of what is counted only */
	PROTO_START,     /* plant what was added */
	PROTO_REMOVE,    /* arg: id */
	PROTO_ENABLE,    /* arg: id << 1 | on */
	PROTO_STOP,      /* take all out */
	PROTO_CLOSE,     /* all out, also the agent if nobody else needs it */
	PROTO_REFUSED,   /* Reply: "N: reason" lines */
	PROTO_PLACES,    /* arg: id, data: first in digits.  Reply: addresses, 0: refused */
	PROTO_PENDING,   /* Reply: "PLACE: why" lines of what has not landed yet */
	PROTO_BUDGET,    /* arg: millionths of the program's time */
	PROTO_DROPPED,   /* Reply: "PLACE: why" lines of what took more than that, or was
	                    rewritten by the program, once */
	PROTO_LIST,      /* arg: first line.  Reply: text; ret: lines in it, 0 at the end */
};

enum {
	PROTO_STRICT = 1,    /* no place may be refused, from now on */
	PROTO_RET_SHIFT = 1, /* of returns: enum plan_mechanism, NONE for the best one */
	PROTO_ANY_TEXT = 8,  /* also text that the program may rewrite */
	PROTO_FOLLOW = 16,   /* in forked children, too; from now on */
};

struct proto_request {
	uint32_t type;
	uint32_t arg;
	uint32_t len;
	_Alignas(8) char data[PROTO_DATA];
};

struct proto_reply {
	int32_t ret;                       /* negative errno */
	int32_t column;                    /* of the error in the definition */
	uint32_t len;                      /* of data; the error's sentence on failure */
	_Alignas(8) char data[PROTO_DATA]; /* also numbers and structs */
};

#define PROTO_REQUEST_HEAD offsetof(struct proto_request, data)
#define PROTO_REPLY_HEAD offsetof(struct proto_reply, data)

struct proto_open {
	uint64_t chan_size;
	int32_t launched; /* held at its entry point until START */
	int32_t pid;
	char hazard[256]; /* "": none is known */
};

struct proto_event {
	uint32_t id;
	uint32_t ret;
	uint32_t nr_fields;
	uint32_t err_kind;  /* latency */
	uint32_t nr_places; /* 0: one */
	uint32_t counter;   /* of what is counted: of its first place */
	uint64_t addr;
	uint64_t hist_off; /* latency: in the channel */
	uint64_t hist_stride;
	uint32_t hist_shards;
	char group[LANG_NAME_MAX];
	char name[LANG_NAME_MAX];
	char func[256];
	char place[384];
	struct lang_field fields[];
};

/* The socket of a target's broker: 0 or -errno.  start_time tells a reused pid apart. */
int proto_path(pid_t pid, uint64_t start_time, const char *suffix, char *buf, size_t len);
/* Takes away what brokers of processes that are gone have left there. */
void proto_sweep(void);
/* Field 22 of /proc/PID/stat plus one, 0 when gone. */
uint64_t proto_start_time(pid_t pid);
/* A number that /proc/PID/status has behind name, in that base; 0: it has none. */
uint64_t proto_status(pid_t pid, const char *name, int base);
/*
 * Another value after an execve, by where the kernel has put things (auxv); 0:
 * gone, or none.
 */
uint64_t proto_program(pid_t pid);

/* What a broker says through its pipe once it serves, or that it can't. */
struct proto_ready {
	int32_t ret;
	char text[ERR_TEXT];
};

/* One message with an optional descriptor (-1); 0 or -errno (-EPIPE: the other side is gone). */
int proto_send(int fd, const void *msg, size_t len, int pass_fd);
ssize_t proto_recv(int fd, void *msg, size_t len, int *got_fd);

#endif
