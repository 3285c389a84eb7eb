/* SPDX-License-Identifier: MIT */
/*
 * From rings to records: the rings are merged by time, up to the moment when
 * the call began, so that a record that is being written elsewhere does not
 * come too late.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "session/client.h"

#define PATIENCE_NS 1000000000ull /* for a record that stays open */
#define IDLE_MAX_MS 100
#define PROGRAM_AGE_NS 20000000ull
#define SYM_AGE_NS 1000000000ull

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static uint64_t load(const unsigned char *p, unsigned int size)
{
	uint64_t v = 0;

	memcpy(&v, p, size > 8 ? 8 : size);
	return v;
}

static uint64_t sign_extend(uint64_t v, unsigned int size)
{
	unsigned int unused = size < 8 ? 64 - 8 * size : 0;

	return (uint64_t)((int64_t)(v << unused) >> unused);
}

static long double float_of(const unsigned char *p, unsigned int size)
{
	long double l = 0;
	double d;
	float f;

	switch (size) {
	case sizeof(f):
		memcpy(&f, p, sizeof(f));
		return f;
	case sizeof(d):
		memcpy(&d, p, sizeof(d));
		return d;
	default:
		memcpy(&l, p, size < sizeof(l) ? size : sizeof(l));
		return l;
	}
}

/* Numbers; val is cleared. */
static void take_number(struct ukp_session *s, const struct lang_field *f, const unsigned char *at,
                        struct ukp_value *val)
{
	val->num = load(at, f->size);
	if (f->size > 8)
		val->high = load(at + 8, f->size - 8u);
	if (f->type == LANG_S && f->size <= 8) {
		val->num = sign_extend(val->num, f->size);
		val->high = (int64_t)val->num < 0 ? UINT64_MAX : 0;
	} else if (f->type == LANG_F) {
		val->flt = float_of(at, f->size);
	} else if (f->type == LANG_NS) {
		val->num = clock_ticks_to_ns(&s->clock, val->num);
	}
}

static void take_string(struct ukp_session *s, const struct ukp_rec_view *v,
                        const unsigned char *at, struct ukp_value *val, size_t *used)
{
	char *buf = s->strings;
	uint32_t loc = (uint32_t)load(at, 4), len = loc >> 16, off = loc & 0xffff;

	if (!len || off > v->len || len > v->len - off) {
		val->fault = true;
		return;
	}
	len = strnlen((const char *)v->payload + off, len);
	/* Each is in the record, but the target may say of all that they are the same bytes. */
	if (len >= sizeof(s->strings) - *used) {
		val->fault = true;
		return;
	}
	memcpy(buf + *used, v->payload + off, len);
	buf[*used + len] = 0;
	val->str = buf + *used;
	val->len = len;
	*used += len + 1;
}

static void take_value(struct ukp_session *s, const struct event *e, unsigned int i,
                       const struct ukp_rec_view *v, const uint64_t *faults, const char *comm,
                       size_t *used)
{
	const struct lang_field *f = &e->places[i];
	struct ukp_value *val = &s->values[i];

	memset(val, 0, sizeof(*val));
	val->str = "";
	if (f->type == LANG_COMM) {
		val->str = comm;
		val->len = strlen(comm);
		return;
	}
	val->fault = faults[i / 64] >> i % 64 & 1;
	if (val->fault)
		return;
	if (f->offset > v->len || f->size > v->len - f->offset) {
		val->fault = true;
		return;
	}
	if (f->type == LANG_STRING) {
		take_string(s, v, v->payload + f->offset, val, used);
		return;
	}
	take_number(s, f, v->payload + f->offset, val);
}

/* False: the bytes make no such record; a hostile target may write anything. */
static bool take_record(struct ukp_session *s, const struct ukp_rec_view *v, struct ukp_record *r)
{
	uint64_t faults[UKP_EVENT_ARGS / 64] = { 0 };
	const struct event *e;
	unsigned int words, i;
	size_t used = 0, head;

	if (v->event >= s->nr_events)
		return false;
	e = s->events[v->event];
	head = e->info.ret ? 16 : 8;
	words = (e->info.nr_fields + 63) / 64;
	if (e->latency || e->counted || v->len < head + words * 8)
		return false;
	memcpy(faults, v->payload + head, words * 8);
	r->event = &e->info;
	r->time = clock_ns(&s->clock, v->tsc);
	r->cpu = v->cpu;
	r->comm = threads_name(s->threads, v->tid, &r->tid);
	r->ip = load(v->payload, 8);
	r->ret_ip = e->info.ret ? load(v->payload + 8, 8) : 0;
	r->nr_values = e->info.nr_fields;
	r->values = s->values;
	for (i = 0; i < r->nr_values; i++)
		take_value(s, e, i, v, faults, r->comm, &used);
	return true;
}

/* An open record holds its ring up; not for ever. */
static void note_blocked(struct ukp_session *s, uint32_t ring, uint64_t now)
{
	uint64_t pos;

	if (!ukp_reader_blocked(s->reader, ring, &pos))
		return;
	if (s->blocked_at[ring] != pos || !s->blocked_since[ring]) {
		s->blocked_at[ring] = pos;
		s->blocked_since[ring] = now;
	} else if (now - s->blocked_since[ring] > PATIENCE_NS) {
		ukp_reader_expire(s->reader, ring);
		s->blocked_since[ring] = 0;
	}
}

/* The oldest record that all rings have to offer; -1: none before the limit. */
static int oldest(struct ukp_session *s, uint64_t limit, uint64_t now)
{
	const struct ukp_rec_view *v;
	uint64_t best = limit;
	uint32_t i;
	int ring = -1;

	for (i = 0; i < s->reader->geo.nr_rings; i++) {
		enum ukp_read got = ukp_reader_peek(s->reader, i, &v);

		if (got == UKP_READ_BLOCKED)
			note_blocked(s, i, now);
		if (got != UKP_READ_RECORD || v->tsc > best)
			continue;
		best = v->tsc;
		ring = (int)i;
	}
	return ring;
}

static long drain(struct ukp_session *s, ukp_record_fn fn, void *arg, bool *stop)
{
	uint64_t limit = s->dead ? UINT64_MAX : clock_now(), now = now_ns();
	const struct ukp_rec_view *v;
	struct ukp_record r;
	long n = 0;
	int ring;

	*stop = false;
	while (!*stop && (ring = oldest(s, limit, now)) >= 0) {
		if (ukp_reader_next(s->reader, ring, &v) != UKP_READ_RECORD)
			break;
		if (!take_record(s, v, &r)) {
			s->odd++;
			continue;
		}
		n++;
		*stop = fn(&r, arg);
	}
	return n;
}

bool ukp_session_alive(struct ukp_session *s)
{
	struct pollfd pfd = { .fd = s->pidfd, .events = POLLIN };

	return !s->dead && s->pidfd >= 0 && poll(&pfd, 1, 0) == 0;
}

/* Sleeps until something may have come; 0: go on, else what the call returns. */
static int rest(struct ukp_session *s, int ms)
{
	struct pollfd pfd[3] = { { .fd = s->wake_fd, .events = POLLIN },
		                 { .fd = s->pidfd, .events = POLLIN },
		                 { .fd = s->fd, .events = 0 } };
	uint64_t count;

	if (poll(pfd, 3, ms) <= 0)
		return 0;
	if (pfd[0].revents && read(s->wake_fd, &count, sizeof(count)) > 0)
		return -EINTR;
	if (pfd[1].revents) {
		s->dead = true;
		s->error[0] = 0; /* it has just ended: what failed earlier is not why */
		ukp_reader_set_dead(s->reader);
	} else if (pfd[2].revents & (POLLHUP | POLLERR)) {
		return session_fail(s, -EPIPE, "the broker of process %d died", s->pid);
	}
	return 0;
}

/* Nothing of ours is mapped there any more: the program is another one. */
static bool executed(struct ukp_session *s, uint64_t now)
{
	size_t i;

	/* Who follows it wants to be soon: that is cheap to ask. */
	if (s->program && !s->dead && now - s->asked >= PROGRAM_AGE_NS) {
		const uint64_t program = proto_program(s->pid);

		s->asked = now;
		if (program && program != s->program)
			s->looked = 0;
	}
	if (now - s->looked < SYM_AGE_NS)
		return false;
	s->looked = now;
	if (s->dead || sym_refresh(s->sym, NULL))
		return false;
	for (i = 0; i < sym_nr_maps(s->sym); i++)
		if (!strcmp(sym_map_at(s->sym, i)->path, "/memfd:ukprobes-chan"))
			return false;
	session_fail(s, -ESRCH, "process %d has executed another program", s->pid);
	return true;
}

long ukp_session_read(struct ukp_session *s, ukp_record_fn fn, void *arg, int timeout_ms)
{
	uint64_t end = now_ns() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * 1000000;
	bool stop;
	long n;
	int ret;

	clock_adjust(&s->clock);
	for (;;) {
		bool dead = s->dead;

		n = drain(s, fn, arg, &stop);
		if (n || stop) {
			s->idle_ms = 1;
			return n;
		}
		if (dead)
			return -ESRCH;
		if (timeout_ms >= 0 && now_ns() >= end)
			return 0;
		ret = rest(s, s->idle_ms);
		if (ret)
			return ret == -EINTR ? 0 : ret;
		if (executed(s, now_ns())) {
			s->dead = true;
			ukp_reader_set_dead(s->reader);
		}
		if (s->idle_ms < IDLE_MAX_MS)
			s->idle_ms *= 2;
		if (s->idle_ms > IDLE_MAX_MS)
			s->idle_ms = IDLE_MAX_MS;
	}
}

void ukp_session_interrupt(struct ukp_session *s)
{
	uint64_t one = 1;
	int saved = errno;
	ssize_t n = write(s->wake_fd, &one, sizeof(one));

	(void)n; /* full: it is awake already */
	errno = saved;
}

const char *ukp_session_symbol(struct ukp_session *s, uint64_t addr)
{
	uint64_t now = now_ns();

	/* Libraries come and go; after the process's end the last view stays. */
	if (!s->dead && now - s->sym_time > SYM_AGE_NS) {
		sym_refresh(s->sym, NULL);
		s->sym_time = now;
	}
	sym_format(s->sym, addr, s->symbol, sizeof(s->symbol));
	return s->symbol;
}
