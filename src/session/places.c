/* SPDX-License-Identifier: MIT */
/* Definitions of many places, from the client's side. */
#include <stdlib.h>
#include <string.h>

#include "plan/returns.h"
#include "session/client.h"

void ukp_session_set_strict(struct ukp_session *s, bool strict)
{
	s->strict = strict;
}

void ukp_session_set_any_text(struct ukp_session *s, bool any)
{
	s->any_text = any;
}

void ukp_session_set_follow(struct ukp_session *s, bool follow)
{
	s->follow = follow;
	threads_set_family(s->threads, follow);
}

void ukp_session_set_ret(struct ukp_session *s, enum ukp_ret how)
{
	_Static_assert((int)UKP_RET_EXIT == PLAN_BY_EXIT && (int)UKP_RET_CALL == PLAN_BY_CALL &&
	                       (int)UKP_RET_SLOT == PLAN_BY_SLOT,
	               "the planner's");
	s->ret = how;
}

const char *ukp_session_refused(struct ukp_session *s)
{
	struct proto_reply *r = malloc(sizeof(*r));

	s->refused[0] = 0;
	if (r && client_request(s, PROTO_REFUSED, 0, NULL, r, NULL) >= 0 && r->len)
		snprintf(s->refused, sizeof(s->refused), "%.*s", (int)r->len, r->data);
	free(r);
	return s->refused;
}

const char *ukp_session_pending(struct ukp_session *s)
{
	struct proto_reply *r = malloc(sizeof(*r));

	s->pending[0] = 0;
	if (r && client_request(s, PROTO_PENDING, 0, NULL, r, NULL) >= 0 && r->len)
		snprintf(s->pending, sizeof(s->pending), "%.*s", (int)r->len, r->data);
	free(r);
	return s->pending;
}

int ukp_session_set_budget(struct ukp_session *s, double share)
{
	struct proto_reply *r = malloc(sizeof(*r));
	int ret;

	if (!r)
		return session_fail(s, -ENOMEM, "out of memory");
	ret = client_request(s, PROTO_BUDGET, (uint32_t)(share * 1e6), NULL, r, NULL);
	free(r);
	return ret < 0 ? ret : 0;
}

const char *ukp_session_dropped(struct ukp_session *s)
{
	struct proto_reply *r = malloc(sizeof(*r));

	s->dropped[0] = 0;
	if (r && client_request(s, PROTO_DROPPED, 0, NULL, r, NULL) >= 0 && r->len)
		snprintf(s->dropped, sizeof(s->dropped), "%.*s", (int)r->len, r->data);
	free(r);
	return s->dropped;
}

int ukp_session_add_stat(struct ukp_session *s, const char *definition, unsigned int *id)
{
	return client_add(s, PROTO_ADD_COUNT, definition, id);
}

static int ask_places(struct ukp_session *s, struct event *e)
{
	struct proto_reply *r = malloc(sizeof(*r));
	uint64_t *addr = e->info.nr_places <= UKP_CHAN_COUNTERS
	                         ? calloc(e->info.nr_places, sizeof(*addr))
	                         : NULL;
	unsigned int got = 0;
	char first[16];
	size_t n;
	int ret = r && addr ? 0 : session_fail(s, -ENOMEM, "out of memory");

	while (!ret && got < e->info.nr_places) {
		snprintf(first, sizeof(first), "%u", got);
		ret = client_request(s, PROTO_PLACES, e->info.id, first, r, NULL);
		n = ret ? 0 : r->len / sizeof(*addr);
		if (!ret && (!n || n > e->info.nr_places - got))
			ret = session_fail(s, -EPROTO, "the broker's answer makes no sense");
		if (ret)
			break;
		memcpy(addr + got, r->data, n * sizeof(*addr));
		got += n;
	}
	free(r);
	if (ret) {
		free(addr);
		return ret;
	}
	e->addr = addr;
	return 0;
}

int ukp_session_stat(struct ukp_session *s, unsigned int id, ukp_stat_fn fn, void *arg)
{
	struct ukp_place_hits p;
	struct event *e;
	unsigned int i;
	int ret = 0;

	if (id >= s->nr_events || !s->events[id]->counted)
		return session_fail(s, -EINVAL, "there is nothing counted by the number %u", id);
	e = s->events[id];
	p.ret = e->info.ret;
	if (!e->addr)
		ret = ask_places(s, e);
	for (i = 0; i < e->info.nr_places && !ret; i++) {
		p.addr = e->addr[i];
		if (!p.addr)
			continue;
		ret = ukp_counter_sum(s->reader, e->counter + i, &p.hits);
		if (ret == -EBADMSG)
			return session_damaged(s);
		if (ret)
			return session_fail(s, -EIO, "the counters cannot be read");
		ret = fn(&p, arg);
	}
	return ret;
}
