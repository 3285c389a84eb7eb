/* SPDX-License-Identifier: MIT */
/*
 * Events: run the fetch program, write one record.
 *
 * Strings are measured before the record is reserved, because its length must
 * be known, and copied after; one that changes in between is cut or padded to
 * the length measured.
 */
#include "engine/arch.h"
#include "engine/follow.h"
#include "engine/orphans.h"
#include "engine/rethook.h"
#include "engine/ring.h"
#include "wire/event.h"
#include "wire/record.h"

/* Instances that an entry looks through when there are maxactive. */
#define LOOK_THROUGH 32

struct fetch {
	struct ukp_hit *hit;
	const struct ukp_event *ev;
	unsigned char *payload; /* NULL: measuring */
	uint64_t *faults;
	uint32_t tail; /* where the next string goes */
};

static bool peek(struct ukp_hit *hit, void *dst, uint64_t src, size_t len)
{
	return !(hit->flags & UKP_HIT_NOREAD) && !ukp_arch_copy(dst, (void *)src, len);
}

/* First steps: a value, of one word or of two.  False: it could not be read. */
static bool produce(struct ukp_hit *hit, const struct ukp_fetch *s, uint64_t v[2])
{
	const struct pt_regs *regs = hit->regs;

	switch (s->op) {
	case UKP_FETCH_REG:
		*v = *(const unsigned long *)((const char *)regs + s->imm);
		return true;
	case UKP_FETCH_STACKP:
		*v = regs->sp;
		return true;
	case UKP_FETCH_STACK:
		return peek(hit, v, regs->sp + s->imm * 8, 8);
	case UKP_FETCH_RETVAL:
		v[0] = regs->ax;
		v[1] = regs->dx;
		return true;
	case UKP_FETCH_DURATION:
		*v = hit->tsc - hit->inst->tsc;
		return true;
	case UKP_FETCH_IMM:
		*v = s->imm;
		return true;
	case UKP_FETCH_EDATA:
		*v = hit->inst->data[s->imm % UKP_EDATA_MAX];
		return true;
	case UKP_FETCH_FPU:
		return ukp_arch_fpu((uint32_t)s->imm, hit->fpstate, v);
	default:
		*v = 0;
		return true;
	}
}

/* The low bytes of a value at any place: sizes are 1, 2, 4 and 8, mostly. */
static void put(unsigned char *dst, uint64_t v, uint32_t size)
{
	typedef uint64_t __attribute__((may_alias, aligned(1))) word8;
	typedef uint32_t __attribute__((may_alias, aligned(1))) word4;

	if (size == 8) {
		*(word8 *)dst = v;
	} else if (size == 4) {
		*(word4 *)dst = (uint32_t)v;
	} else {
		for (; size; size--, v >>= 8)
			*dst++ = (unsigned char)v;
	}
}

static void put_wide(unsigned char *dst, const uint64_t v[2], uint32_t size)
{
	put(dst, v[0], size < 8 ? size : 8);
	if (size > 8)
		put(dst + 8, v[1], size - 8);
}

/* A string's bytes, its NUL included; 0: fault. */
static uint32_t measure(struct ukp_hit *hit, uint64_t src)
{
	long n;

	if (hit->flags & UKP_HIT_NOREAD)
		return 0;
	n = ukp_arch_strnlen((const char *)src, UKP_STRING_MAX - 1);
	return n < 0 ? 0 : (uint32_t)n + 1;
}

static bool store_string(struct fetch *f, const struct ukp_fetch *s, uint64_t src, uint32_t room)
{
	uint32_t len = measure(f->hit, src), loc;

	if (!len)
		return false;
	if (len > room - f->tail)
		len = room - f->tail;
	if (!len)
		return false;
	if (ukp_arch_copy(f->payload + f->tail, (void *)src, len - 1))
		return false;
	f->payload[f->tail + len - 1] = 0;
	loc = len << 16 | f->tail;
	put(f->payload + s->field, loc, 4);
	f->tail += len;
	return true;
}

/* One argument; returns the step after it. */
static const struct ukp_fetch *run_arg(struct fetch *f, const struct ukp_fetch *s, uint32_t room,
                                       bool *ok, uint32_t *strings)
{
	uint64_t v[UKP_VALUE_MAX / 8] = { 0 };

	*ok = produce(f->hit, s++, v);
	for (;; s++) {
		uint64_t at = v[0] + s->off;

		switch (s->op) {
		case UKP_FETCH_DEREF:
			*ok = *ok && peek(f->hit, v, at, 8);
			continue;
		case UKP_FETCH_ST_RAW:
			if (f->payload && *ok)
				put_wide(f->payload + s->field, v, s->size);
			return s + 1;
		case UKP_FETCH_ST_MEM:
			*ok = *ok && (!f->payload || peek(f->hit, v, at, s->size));
			if (f->payload && *ok)
				put_wide(f->payload + s->field, v, s->size);
			return s + 1;
		case UKP_FETCH_ST_STRING:
			if (f->payload)
				*ok = *ok && store_string(f, s, at, room);
			else if (*ok)
				*strings += measure(f->hit, at);
			return s + 1;
		default:
			return s + 1;
		}
	}
}

static uint32_t measure_strings(struct fetch *f)
{
	const struct ukp_fetch *s = f->ev->steps + f->ev->nr_entry;
	uint32_t i, strings = 0;
	bool ok;

	for (i = 0; i < f->ev->nr_args; i++)
		s = run_arg(f, s, 0, &ok, &strings);
	return strings;
}

static void fill(struct fetch *f, uint32_t room)
{
	const struct ukp_fetch *s = f->ev->steps + f->ev->nr_entry;
	uint32_t i, none = 0;
	bool ok;

	for (i = 0; i < f->ev->nr_args; i++) {
		s = run_arg(f, s, room, &ok, &none);
		if (!ok)
			f->faults[i / 64] |= 1ull << i % 64;
	}
}

static bool emit(struct ukp_hit *hit, struct ukp_event *ev, struct ukp_chan *chan)
{
	struct fetch f = { .hit = hit, .ev = ev };
	struct ukp_ring *ring;
	struct ukp_rec *rec;
	uint32_t payload = ev->fixed_len, len, i;
	uint64_t pos, *p;

	if (ev->nr_strings)
		payload += measure_strings(&f);
	len = (sizeof(*rec) + payload + 7) & ~7u;
	if (len > UKP_REC_MAX)
		len = UKP_REC_MAX;
	ring = (struct ukp_ring *)((char *)chan + chan->off_rings +
	                           ukp_shard(hit->cpu, chan->nr_rings) * chan->ring_stride);
	rec = ukp_ring_reserve(ring, len, &pos);
	if (!rec)
		return false;
	rec->event = ev->id;
	rec->cpu = hit->cpu;
	rec->tsc = hit->tsc;
	rec->tid = hit->ctl->tid_off && !(hit->flags & UKP_HIT_NOREAD)
	                   ? ukp_arch_thread_word(hit->ctl->tid_off)
	                   : 0;
	/* The place is not cleared between the fields of one record. */
	p = (uint64_t *)rec->payload;
	for (i = 0; i < (len - sizeof(*rec)) / 8; i++)
		p[i] = 0;
	if (ev->flags & UKP_EVENT_RETURN) {
		*p++ = hit->inst->func;
		*p++ = hit->inst->ret_addr;
	} else {
		*p++ = hit->site->addr;
	}
	f.payload = rec->payload;
	f.faults = p;
	f.tail = ev->fixed_len;
	fill(&f, len - sizeof(*rec));
	ukp_ring_commit(ring, rec, pos, len);
	return true;
}

static void record(struct ukp_hit *hit, struct ukp_event *ev, struct ukp_stat *stat)
{
	if (emit(hit, ev, (struct ukp_chan *)ev->chan))
		ukp_count(&stat->records);
	else
		ukp_count(&stat->miss[UKP_MISS_RING]);
}

int ukp_event_hit(struct ukp_hit *hit, uint64_t ctx)
{
	struct ukp_event *ev = (struct ukp_event *)ctx;
	struct ukp_stat *stat;

	if (!__atomic_load_n(&ev->enabled, __ATOMIC_RELAXED))
		return 0;
	ukp_hit_time(hit);
	stat = ukp_hit_stat((struct ukp_chan *)ev->chan, hit->cpu, ev->id);
	ukp_count(&stat->hits);
	record(hit, ev, stat);
	return 0;
}

/* With a fixed maxactive, at most so many calls are followed at a time. */
static bool take_active(struct ukp_event *ev)
{
	if (!ev->maxactive)
		return true;
	if (__atomic_fetch_add(&ev->active, 1, __ATOMIC_RELAXED) < ev->maxactive)
		return true;
	__atomic_fetch_sub(&ev->active, 1, __ATOMIC_RELAXED);
	return false;
}

static void give_active(struct ukp_event *ev)
{
	if (ev->maxactive)
		__atomic_fetch_sub(&ev->active, 1, __ATOMIC_RELAXED);
}

/* May one more call be followed?  If not, it is counted. */
static inline bool enter(struct ukp_hit *hit, struct ukp_event *ev, struct ukp_stat *stat)
{
	if (take_active(ev))
		return true;
	/* Are there such among them as won't come back? */
	ukp_orphans_room(hit, LOOK_THROUGH);
	if (take_active(ev))
		return true;
	ukp_count(&stat->hits);
	ukp_count(&stat->miss[UKP_MISS_MAXACTIVE]);
	return false;
}

void ukp_event_follow(struct ukp_hit *hit, struct ukp_event *ev, ukp_action_fn fn, uint64_t data)
{
	struct ukp_stat *stat = ukp_hit_stat((struct ukp_chan *)ev->chan, hit->cpu, ev->id);

	if (enter(hit, ev, stat) && !ukp_follow(hit, fn, (uint64_t)ev, data, stat))
		give_active(ev);
}

/* With more words than one, or none that is known before. */
static void follow_with_data(struct ukp_hit *hit, struct ukp_event *ev)
{
	struct ukp_stat *stat = ukp_hit_stat((struct ukp_chan *)ev->chan, hit->cpu, ev->id);
	uint64_t v[UKP_VALUE_MAX / 8];
	struct ukp_instance *inst;
	enum ukp_miss why;
	uint32_t i;

	if (!enter(hit, ev, stat))
		return;
	inst = ukp_follow_get(hit, ukp_event_return, (uint64_t)ev, &why);
	ukp_count(&stat->hits);
	if (!inst) {
		give_active(ev);
		ukp_count(&stat->miss[why]);
		return;
	}
	for (i = 0; i < ev->nr_entry && i < UKP_EDATA_MAX; i++)
		inst->data[i] = produce(hit, &ev->steps[i], v) ? v[0] : 0;
	ukp_follow_hook(hit, inst);
}

int ukp_event_entry(struct ukp_hit *hit, uint64_t ctx)
{
	struct ukp_event *ev = (struct ukp_event *)ctx;

	if (!__atomic_load_n(&ev->enabled, __ATOMIC_RELAXED))
		return 0;
	ukp_hit_time(hit);
	if (ev->nr_entry)
		follow_with_data(hit, ev);
	else
		ukp_event_follow(hit, ev, ukp_event_return, 0);
	return 0;
}

bool ukp_event_returned(struct ukp_hit *hit, struct ukp_event *ev, struct ukp_stat *stat)
{
	give_active(ev);
	if (!(hit->flags & UKP_HIT_UNWOUND))
		return true;
	ukp_count(&stat->miss[UKP_MISS_UNWOUND]);
	return false;
}

int ukp_event_return(struct ukp_hit *hit, uint64_t ctx)
{
	struct ukp_event *ev = (struct ukp_event *)ctx;
	struct ukp_stat *stat = ukp_hit_stat((struct ukp_chan *)ev->chan, hit->cpu, ev->id);

	ukp_hit_time(hit);
	if (ukp_event_returned(hit, ev, stat))
		record(hit, ev, stat);
	return 0;
}
