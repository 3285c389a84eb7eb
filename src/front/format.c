/* SPDX-License-Identifier: MIT */
/*
 * Trace lines; see format.h.  Two caches: the constant text of each event, kept
 * for ever (events live as long as the session), and the names of addresses,
 * direct-mapped, so that a program with ever new code can't make it grow.
 */
#include "front/format.h"

#include <stdlib.h>
#include <string.h>

#include "front/digits.h"

#define NR_SYMS 4096  /* power of two */
#define NR_BUCKETS 64 /* power of two */
#define COMM_MAX 64   /* the kernel's are 15; longer ones are cut */
#define COMM_WIDTH 16
#define TID_WIDTH 7

struct text {
	char *p;
	size_t len;
};

struct sym_slot {
	uint64_t addr;
	unsigned int generation; /* 0: empty */
	struct text text;
};

/* What every line of one event has in common. */
struct event_text {
	struct event_text *next;
	const struct ukp_event_info *info;
	struct text head; /* ": name: (" */
	struct text func; /* r: " <- func)", empty where the name is unknown */
	unsigned int nr_fields;
	struct text *field; /* " name=" each */
	size_t bound;       /* of all these, and of numbers for values */
};

struct format {
	struct ukp_session *session;
	unsigned int generation;
	struct sym_slot sym[NR_SYMS];
	struct event_text *bucket[NR_BUCKETS];
};

static const struct text no_text = { NULL, 0 };

static char *put(char *p, const void *from, size_t len)
{
	memcpy(p, from, len);
	return p + len;
}

static char *put_text(char *p, const struct text *t)
{
	return t->len ? put(p, t->p, t->len) : p;
}

/* Text of the target must neither break the line nor drive the terminal. */
static char *put_safe(char *p, const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c >= 0x20 && c != 0x7f) {
			*p++ = (char)c;
			continue;
		}
		*p++ = '\\';
		*p++ = 'x';
		*p++ = "0123456789abcdef"[c >> 4];
		*p++ = "0123456789abcdef"[c & 15];
	}
	return p;
}

/* --- events ------------------------------------------------------------------ */

static bool text_join(struct text *t, const char *before, const char *s, const char *after)
{
	size_t a = strlen(before), b = strlen(s), c = strlen(after);

	t->p = malloc(a + b + c + 1);
	if (!t->p)
		return false;
	t->len = a + b + c;
	memcpy(t->p, before, a);
	memcpy(t->p + a, s, b);
	memcpy(t->p + a + b, after, c + 1);
	return true;
}

static void event_free(struct event_text *e)
{
	if (!e)
		return;
	for (unsigned int i = 0; e->field && i < e->nr_fields; i++)
		free(e->field[i].p);
	free(e->field);
	free(e->head.p);
	free(e->func.p);
	free(e);
}

static struct event_text *event_new(const struct ukp_event_info *info)
{
	struct event_text *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->info = info;
	e->nr_fields = info->nr_fields;
	e->field = calloc(info->nr_fields + 1, sizeof(*e->field));
	if (!e->field || !text_join(&e->head, ": ", info->name, ": ("))
		goto fail;
	if (info->ret && info->func && *info->func && !text_join(&e->func, " <- ", info->func, ")"))
		goto fail;
	e->bound = e->head.len + e->func.len;
	for (unsigned int i = 0; i < info->nr_fields; i++) {
		if (!text_join(&e->field[i], " ", info->fields[i].name, "="))
			goto fail;
		e->bound += e->field[i].len + DIGITS_MAX;
	}
	return e;
fail:
	event_free(e);
	return NULL;
}

static unsigned int event_bucket(const struct ukp_event_info *info)
{
	return info->id & (NR_BUCKETS - 1);
}

static struct event_text *event_find(struct format *f, const struct ukp_event_info *info)
{
	struct event_text **head = &f->bucket[event_bucket(info)];
	struct event_text *e;

	for (e = *head; e; e = e->next)
		if (e->info == info)
			return e;
	e = event_new(info);
	if (e) {
		e->next = *head;
		*head = e;
	}
	return e;
}

/* --- symbols ----------------------------------------------------------------- */

/* "sym+0x12/0x80 [mod]" without the module, which the format has no place for. */
static size_t without_module(const char *s)
{
	size_t len = strlen(s);
	const char *at = len && s[len - 1] == ']' ? strstr(s, " [") : NULL;

	return at ? (size_t)(at - s) : len;
}

static const struct text *sym_find(struct format *f, uint64_t addr)
{
	struct sym_slot *slot = &f->sym[(addr * 0x9e3779b97f4a7c15ull) >> 52 & (NR_SYMS - 1)];
	const char *name;

	if (slot->addr == addr && slot->generation == f->generation)
		return &slot->text;
	name = ukp_session_symbol(f->session, addr);
	free(slot->text.p);
	slot->addr = addr;
	slot->generation = f->generation;
	slot->text.len = without_module(name);
	slot->text.p = strndup(name, slot->text.len);
	if (!slot->text.p) {
		slot->generation = 0;
		slot->text = no_text;
	}
	return &slot->text;
}

/* The kernel names the function of a return without an offset. */
static char *put_func(struct format *f, char *p, uint64_t addr)
{
	const struct text *t = sym_find(f, addr);
	const char *plus = t->len ? memchr(t->p, '+', t->len) : NULL;

	p = put(p, " <- ", 4);
	p = put_safe(p, t->p, plus ? (size_t)(plus - t->p) : t->len);
	*p++ = ')';
	return p;
}

/* --- lines ------------------------------------------------------------------- */

struct format *format_new(struct ukp_session *s)
{
	struct format *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->session = s;
	f->generation = 1;
	return f;
}

void format_free(struct format *f)
{
	struct event_text *e, *next;

	if (!f)
		return;
	for (unsigned int i = 0; i < NR_BUCKETS; i++) {
		for (e = f->bucket[i]; e; e = next) {
			next = e->next;
			event_free(e);
		}
	}
	for (unsigned int i = 0; i < NR_SYMS; i++)
		free(f->sym[i].text.p);
	free(f);
}

void format_forget(struct format *f)
{
	if (!++f->generation)
		f->generation = 1;
}

static unsigned int values_of(const struct ukp_record *r)
{
	return r->nr_values < r->event->nr_fields ? r->nr_values : r->event->nr_fields;
}

size_t format_bound(struct format *f, const struct ukp_record *r)
{
	struct event_text *e = event_find(f, r->event);
	size_t n = 4 * COMM_MAX + 128; /* up to and with the time, and brackets */

	if (!e)
		return 0;
	n += e->bound + 4 * sym_find(f, r->event->ret ? r->ret_ip : r->ip)->len;
	if (r->event->ret && !e->func.len)
		n += 4 * sym_find(f, r->ip)->len;
	for (unsigned int i = 0, nr = values_of(r); i < nr; i++)
		if (r->event->fields[i].type == UKP_FIELD_STRING)
			n += 4 * r->values[i].len + 2;
	return n;
}

static char *put_task(char *p, const struct ukp_record *r)
{
	const char *comm = r->comm ? r->comm : "<...>";
	size_t len = strnlen(comm, COMM_MAX);
	char *start;

	for (size_t n = len; n < COMM_WIDTH; n++)
		*p++ = ' ';
	p = put_safe(p, comm, len);
	*p++ = '-';
	start = p;
	p = digits_u(p, (uint64_t)r->tid);
	while (p < start + TID_WIDTH)
		*p++ = ' ';
	p = put(p, " [", 2);
	if (r->cpu < 1000)
		p = digits_fixed(p, r->cpu, 3);
	else
		p = digits_u(p, r->cpu);
	return put(p, "] .....", 7);
}

/* Rounded to microseconds, as the kernel does. */
static char *put_time(char *p, uint64_t ns)
{
	uint64_t us = (ns + 500) / 1000;

	*p++ = ' ';
	p = digits_right(p, us / 1000000, 5);
	*p++ = '.';
	return digits_fixed(p, us % 1000000, 6);
}

static char *put_value(char *p, const struct ukp_field *f, const struct ukp_value *v)
{
	if (v->fault)
		return put(p, "(fault)", 7);
	switch (f->type) {
	case UKP_FIELD_U:
		return digits_u128(p, v->high, v->num);
	case UKP_FIELD_S:
		return f->size > 8 ? digits_s128(p, v->high, v->num) : digits_s(p, (int64_t)v->num);
	case UKP_FIELD_X:
		return digits_x128(p, v->high, v->num);
	case UKP_FIELD_F:
		return digits_f(p, v->flt, f->size);
	case UKP_FIELD_STRING:
		*p++ = '"';
		p = put_safe(p, v->str, v->len);
		*p++ = '"';
	}
	return p;
}

char *format_line(struct format *f, char *p, const struct ukp_record *r)
{
	const struct event_text *e = event_find(f, r->event);
	const struct ukp_event_info *info = r->event;

	p = put_task(p, r);
	p = put_time(p, r->time);
	p = put_text(p, &e->head);
	p = put_text(p, sym_find(f, info->ret ? r->ret_ip : r->ip));
	if (!info->ret)
		*p++ = ')';
	else if (e->func.len)
		p = put_text(p, &e->func);
	else
		p = put_func(f, p, r->ip);
	for (unsigned int i = 0, nr = values_of(r); i < nr; i++) {
		p = put_text(p, &e->field[i]);
		p = put_value(p, &info->fields[i], &r->values[i]);
	}
	*p++ = '\n';
	return p;
}
