/* SPDX-License-Identifier: MIT */
/*
 * A client between a broker that answers anything and a target that writes
 * anything into their channel.
 *
 * The input is a list of steps.  Before each request the answer to it lies in
 * the socket already: of bytes of the input, or a good one with bytes of the
 * input laid over it.  Records are written by the engine's own calls, with a
 * payload from the input, or bytes are laid over the channel.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <fcntl.h>
#include <unistd.h>

#include "engine/ring.h"
#include "session/client.h"

#include "input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOBODY 0x3fffffff /* a pid above the kernel's highest */
#define STEPS 24
#define NR_STATS 4
#define NR_COUNTERS 8
#define OFF_STATS 4096
#define OFF_COUNTERS 8192
#define OFF_HISTS 12288

struct play {
	struct in in;
	struct ukp_session *s;
	int broker; /* its end of the socket */
	unsigned char *chan;
	size_t chan_size;
	volatile unsigned int sink;
};

/* Some of the input at some places. */
static void overlay(struct in *in, unsigned char *mem, size_t size)
{
	unsigned int times = byte(in) % 4;

	while (times--) {
		size_t at = word(in) % size, n = byte(in);

		bytes(in, mem + at, n < size - at ? n : size - at);
	}
}

static void read_string(struct play *y, const char *s)
{
	y->sink += (unsigned int)strlen(s);
}

/* --- the channel -------------------------------------------------------------- */

static int make_channel(struct play *y, bool sealed)
{
	const uint32_t subs = 2, shift = 13;
	const size_t stride = ukp_ring_stride(subs, shift);
	const size_t hist = (sizeof(struct ukp_hist) + 4095) & ~4095ul,
		     rings = OFF_HISTS + 3 * hist;
	const struct ukp_chan c = {
		.magic = UKP_CHAN_MAGIC,
		.version = UKP_CHAN_VERSION,
		.nr_shards = 2,
		.nr_stats = NR_STATS,
		.nr_rings = 2,
		.nr_subs = subs,
		.sub_shift = shift,
		.nr_counters = NR_COUNTERS,
		.off_stats = OFF_STATS,
		.off_counters = OFF_COUNTERS,
		.off_hists = OFF_HISTS,
		.off_rings = rings,
		.ring_stride = stride,
		.size = rings + 2 * stride,
	};
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	y->chan_size = c.size;
	if (fd < 0 || ftruncate(fd, (off_t)c.size) ||
	    (sealed && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)))
		abort();
	y->chan = mmap(NULL, c.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (y->chan == MAP_FAILED)
		abort();
	memcpy(y->chan, &c, sizeof(c));
	for (uint32_t i = 0; i < c.nr_rings; i++)
		ukp_ring_init((void *)(y->chan + rings + i * stride), subs, shift);
	return fd;
}

static void write_record(struct play *y)
{
	const struct ukp_chan *c = (void *)y->chan;
	struct ukp_rec *rec;
	unsigned int len, n;
	uint64_t pos;

	if (!y->chan)
		return;
	/* The engine is not made for what may be in there by now. */
	if (c->magic != UKP_CHAN_MAGIC || c->off_rings + c->ring_stride > y->chan_size ||
	    c->sub_shift != 13 || c->nr_subs != 2)
		return;
	len = (word(&y->in) % (UKP_REC_MAX - 32) + 32) & ~7u;
	rec = ukp_ring_reserve((void *)(y->chan + c->off_rings), len, &pos);
	if (!rec)
		return;
	rec->event = byte(&y->in) % 4;
	rec->tsc = byte(&y->in) & 1 ? word(&y->in) * 0x123456789abull : 0;
	memset(rec->payload, 'x', len - sizeof(*rec));
	n = byte(&y->in);
	bytes(&y->in, rec->payload, n < len - sizeof(*rec) ? n : len - sizeof(*rec));
	ukp_ring_commit((void *)(y->chan + c->off_rings), rec, pos, len);
}

/* --- the broker --------------------------------------------------------------- */

static void take_requests(struct play *y)
{
	static struct proto_request q;

	while (recv(y->broker, &q, sizeof(q), MSG_DONTWAIT) > 0)
		;
}

static void good_event(struct play *y, struct proto_reply *r)
{
	static const struct lang_field of[] = {
		{ .type = LANG_U, .size = 8, .offset = 8 },
		{ .type = LANG_STRING, .size = 4, .offset = 16 },
		{ .type = LANG_S, .size = 4, .offset = 20 },
		{ .type = LANG_F, .size = 10, .offset = 24 },
		{ .type = LANG_COMM },
	};
	struct proto_event *e = (struct proto_event *)r->data;

	memset(e, 0, sizeof(*e));
	e->id = y->s->nr_events;
	e->nr_fields = byte(&y->in) % 9;
	e->ret = byte(&y->in) & 1;
	e->hist_off = OFF_HISTS;
	e->hist_stride = (sizeof(struct ukp_hist) + 4095) & ~4095ull;
	e->hist_shards = 3;
	for (uint32_t i = 0; i < e->nr_fields; i++)
		e->fields[i] = of[byte(&y->in) % 5];
	r->len = sizeof(*e) + e->nr_fields * sizeof(*e->fields);
}

/* How: 0 of bytes alone, else a good one, even: with bytes over it. */
static void answer(struct play *y, bool event, int fd)
{
	static struct proto_reply r;
	unsigned int how = byte(&y->in);
	size_t len;

	take_requests(y);
	memset(&r, 0, PROTO_REPLY_HEAD + 1024);
	r.column = -1;
	if (how % 8 == 0) {
		len = bytes(&y->in, &r, word(&y->in) % sizeof(r));
		proto_send(y->broker, &r, len, fd);
		return;
	}
	r.ret = how & 16 ? -22 : 0;
	r.column = how & 32 ? (int32_t)word(&y->in) : -1;
	if (event)
		good_event(y, &r);
	else if (fd >= 0) {
		((struct proto_open *)r.data)->chan_size = y->chan_size;
		r.len = sizeof(struct proto_open);
	} else
		r.len = (uint32_t)bytes(&y->in, r.data, byte(&y->in));
	len = PROTO_REPLY_HEAD + r.len;
	if (!(how & 1))
		overlay(&y->in, (unsigned char *)&r, len);
	proto_send(y->broker, &r, len, fd);
}

/* --- the client --------------------------------------------------------------- */

static void open_channel(struct play *y)
{
	unsigned int how = byte(&y->in);
	int fd = how & 1 ? make_channel(y, how & 2) : -1;

	answer(y, false, fd);
	/* Fails at the process, behind the channel. */
	if (!client_open(y->s))
		abort();
	if (fd >= 0)
		close(fd);
}

static int on_record(const struct ukp_record *r, void *arg)
{
	struct play *y = arg;

	for (unsigned int i = 0; i < r->nr_values; i++) {
		const struct ukp_value *v = &r->values[i];

		if (!v->fault && strlen(v->str) != v->len)
			abort();
		/* The sanitizer doesn't see where one member of the session ends. */
		if (v->str >= y->s->strings &&
		    v->str + v->len - y->s->strings >= (long)sizeof(y->s->strings))
			abort();
		y->sink += (unsigned int)v->num;
	}
	read_string(y, r->comm);
	read_string(y, r->event->name);
	return 0;
}

static int on_place(const struct ukp_place_hits *p, void *arg)
{
	((struct play *)arg)->sink += (unsigned int)p->hits;
	return 0;
}

static void add(struct play *y, uint32_t type)
{
	unsigned int id = 0;

	answer(y, true, -1);
	if (client_add(y->s, type, "p   work  $arg1", &id)) {
		read_string(y, y->s->error);
		return;
	}
	const struct ukp_event_info *e = ukp_session_event(y->s, id);

	read_string(y, e->name);
	read_string(y, e->group);
	read_string(y, e->place);
	read_string(y, e->func);
	for (unsigned int i = 0; i < e->nr_fields; i++)
		read_string(y, e->fields[i].name);
}

static void read_latency(struct play *y, unsigned int id)
{
	struct ukp_latency_info info;

	if (ukp_session_latency(y->s, id, &info))
		return;
	read_string(y, info.name);
	ukp_latency_quantile(y->s, id, 0.99);
	ukp_latency_between(y->s, id, 10, 1000);
}

static void read_channel(struct play *y)
{
	struct ukp_counts c;

	if (!y->s->reader)
		return;
	ukp_session_read(y->s, on_record, y, 0);
	for (unsigned int i = 0; i < y->s->nr_events; i++) {
		ukp_session_counts(y->s, i, &c);
		read_latency(y, i);
	}
	ukp_session_damage(y->s);
}

static void step(struct play *y)
{
	switch (byte(&y->in) % 13) {
	case 0:
		add(y, PROTO_ADD);
		break;
	case 1:
		add(y, PROTO_ADD_LATENCY);
		break;
	case 2:
		add(y, PROTO_ADD_COUNT);
		break;
	case 3:
		answer(y, false, -1);
		ukp_session_start(y->s);
		break;
	case 4:
		answer(y, false, -1);
		ukp_session_remove(y->s, 1);
		break;
	case 5:
		answer(y, false, -1);
		read_string(y, ukp_session_refused(y->s));
		break;
	case 6:
		answer(y, false, -1);
		read_string(y, ukp_session_pending(y->s));
		break;
	case 7:
		answer(y, false, -1);
		read_string(y, ukp_session_dropped(y->s));
		break;
	case 8:
		answer(y, false, -1);
		if (y->s->reader)
			ukp_session_stat(y->s, byte(&y->in) % 4, on_place, y);
		break;
	case 9:
		read_channel(y);
		break;
	case 10:
	case 11:
		write_record(y);
		break;
	case 12:
		if (y->chan)
			overlay(&y->in, y->chan, y->chan_size);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct timeval moment = { .tv_usec = 1000 };
	struct play y = { .in = { data, data + size } };
	int sv[2];

	if (session_new(&y.s) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) ||
	    threads_open(&y.s->threads, NOBODY))
		abort();
	/* As if it had been measured for a second. */
	y.s->clock.first_ns -= 1000000000;
	y.s->clock.first_tsc -= 2000000000;
	/* For what was asked twice there is no second answer. */
	setsockopt(sv[0], SOL_SOCKET, SO_RCVTIMEO, &moment, sizeof(moment));
	y.s->pid = NOBODY;
	y.s->fd = sv[0];
	y.broker = sv[1];
	open_channel(&y);
	for (int i = 0; i < STEPS && y.in.p < y.in.end; i++)
		step(&y);
	/* It would cure the process. */
	y.s->fd = -1;
	ukp_session_close(y.s);
	close(sv[0]);
	close(sv[1]);
	if (y.chan)
		munmap(y.chan, y.chan_size);
	return 0;
}
