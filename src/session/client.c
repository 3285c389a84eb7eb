/* SPDX-License-Identifier: MIT */
/* A session: its broker found or started, and the requests to it. */
#include "session/client.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int session_fail(struct ukp_session *s, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->error, sizeof(s->error), fmt, ap);
	va_end(ap);
	return code;
}

int session_new(struct ukp_session **ret)
{
	struct ukp_session *s = calloc(1, sizeof(*s));

	*ret = s;
	if (!s)
		return -ENOMEM;
	s->fd = s->pidfd = s->chan_fd = -1;
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->idle_ms = 1;
	clock_open(&s->clock);
	return s->wake_fd < 0 ? session_fail(s, -errno, "cannot make an eventfd") : 0;
}

static int map_channel(struct ukp_session *s, const struct proto_open *o)
{
	struct stat st;
	int ret, seals;

	if (s->chan_fd < 0 || fstat(s->chan_fd, &st) || st.st_size < (off_t)o->chan_size)
		return session_fail(s, -EPROTO, "the broker gave no channel");
	seals = fcntl(s->chan_fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return session_fail(s, -EPROTO, "the channel could shrink under its reader");
	s->size = o->chan_size;
	s->mem = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_SHARED, s->chan_fd, 0);
	if (s->mem == MAP_FAILED) {
		s->mem = NULL;
		return session_fail(s, -errno, "cannot map the channel: %s", strerror(errno));
	}
	s->reader = calloc(1, sizeof(*s->reader));
	ret = s->reader ? ukp_reader_init(s->reader, s->mem, s->size) : -ENOMEM;
	return ret ? session_fail(s, ret, "the channel cannot be read") : 0;
}

int client_open(struct ukp_session *s)
{
	struct proto_reply *r = malloc(sizeof(*r));
	struct err err = ERR_INIT;
	int ret;

	if (!r)
		return session_fail(s, -ENOMEM, "out of memory");
	ret = client_request(s, PROTO_OPEN, PROTO_VERSION, NULL, r, &s->chan_fd);
	if (ret >= 0)
		ret = map_channel(s, (struct proto_open *)r->data);
	if (!ret)
		snprintf(s->hazard, sizeof(s->hazard), "%.*s", (int)sizeof(s->hazard) - 1,
		         ((struct proto_open *)r->data)->hazard);
	free(r);
	if (ret)
		return ret;
	s->pidfd = syscall(SYS_pidfd_open, s->pid, 0);
	if (s->pidfd < 0)
		return session_fail(s, -errno, "there is no process %d", s->pid);
	ret = sym_open(&s->sym, s->pid, &err);
	if (!ret)
		ret = threads_open(&s->threads, s->pid);
	return ret ? session_fail(s, ret, "%s", err.text) : 0;
}

int ukp_session_open(struct ukp_session **ret_s, pid_t pid)
{
	struct ukp_session *s;
	int ret = session_new(ret_s);
	long end = client_now_ms() + CLIENT_CONNECT_MS;

	s = *ret_s;
	if (ret)
		return ret;
	s->pid = pid;
	/* The broker would hold us, and we wait for its answer. */
	if (pid == getpid())
		return session_fail(s, -EINVAL, "process %d is this program itself", pid);
	do {
		ret = client_connect(s, true, -1);
		if (!ret)
			ret = client_open(s);
		/* A broker that was just leaving: the next try finds none, or a new one. */
		if (ret == -EPIPE && s->fd >= 0) {
			close(s->fd);
			s->fd = -1;
		}
	} while (ret == -EPIPE && client_now_ms() < end);
	return ret;
}

const char *ukp_session_error(const struct ukp_session *s)
{
	return s->error;
}

const char *ukp_session_hazard(const struct ukp_session *s)
{
	return s->hazard;
}

pid_t ukp_session_pid(const struct ukp_session *s)
{
	return s->pid;
}

/* Text and caret under the sentence; columns count in single-spaced text. */
static void add_caret(struct ukp_session *s, const char *text, int column)
{
	char line[LANG_LINE_MAX + 2];
	size_t n = 0, used = strlen(s->error);

	for (; *text && n < sizeof(line) - 1; text++) {
		bool space = *text == ' ' || *text == '\t' || *text == '\n';

		if (space && (!n || line[n - 1] == ' '))
			continue;
		line[n++] = space ? ' ' : *text;
	}
	while (n && line[n - 1] == ' ')
		n--;
	line[n] = 0;
	snprintf(s->error + used, sizeof(s->error) - used, "\n  %s\n  %*s^", line, column, "");
}

static struct event *new_event(struct ukp_session *s)
{
	struct event **more = realloc(s->events, (s->nr_events + 1) * sizeof(*more));

	if (!more)
		return NULL;
	s->events = more;
	more[s->nr_events] = calloc(1, sizeof(**more));
	return more[s->nr_events];
}

static void take_fields(struct event *e, const struct proto_event *p, uint32_t nr)
{
	static const enum ukp_field_type types[] = {
		[LANG_U] = UKP_FIELD_U,         [LANG_S] = UKP_FIELD_S,
		[LANG_X] = UKP_FIELD_X,         [LANG_F] = UKP_FIELD_F,
		[LANG_COMM] = UKP_FIELD_STRING, [LANG_STRING] = UKP_FIELD_STRING,
		[LANG_NS] = UKP_FIELD_U,
	};
	uint32_t i;

	for (i = 0; i < nr; i++) {
		e->places[i] = p->fields[i];
		snprintf(e->names[i], sizeof(e->names[i]), "%s", p->fields[i].name);
		e->fields[i].name = e->names[i];
		e->fields[i].type = types[p->fields[i].type];
		e->fields[i].size = e->fields[i].type == UKP_FIELD_STRING ? 0 : p->fields[i].size;
	}
	e->info.nr_fields = nr;
	e->info.fields = e->fields;
}

static bool ends(const char *s, size_t room)
{
	return strnlen(s, room) < room;
}

/* What the rest relies on. */
static bool makes_sense(const struct ukp_session *s, const struct proto_reply *r)
{
	const struct proto_event *p = (const struct proto_event *)r->data;
	uint32_t i;

	if (r->len < sizeof(*p) || p->nr_fields > UKP_EVENT_ARGS ||
	    r->len < sizeof(*p) + p->nr_fields * sizeof(*p->fields) || p->id != s->nr_events ||
	    p->counter > UKP_CHAN_COUNTERS || !ends(p->group, sizeof(p->group)) ||
	    !ends(p->name, sizeof(p->name)) || !ends(p->func, sizeof(p->func)) ||
	    !ends(p->place, sizeof(p->place)))
		return false;
	for (i = 0; i < p->nr_fields; i++) {
		const struct lang_field *f = &p->fields[i];

		if (!ends(f->name, sizeof(f->name)) || f->type >= LANG_NR_TYPES ||
		    f->size > UKP_VALUE_MAX || (!f->size && f->type != LANG_COMM))
			return false;
	}
	return true;
}

static int take_event(struct ukp_session *s, const struct proto_reply *r, const char *text,
                      uint32_t type, unsigned int *id)
{
	const struct proto_event *p = (const struct proto_event *)r->data;
	struct event *e;

	if (!makes_sense(s, r))
		return session_fail(s, -EPROTO, "the broker's answer makes no sense");
	e = new_event(s);
	if (!e)
		return session_fail(s, -ENOMEM, "out of memory");
	snprintf(e->group, sizeof(e->group), "%s", p->group);
	snprintf(e->name, sizeof(e->name), "%s", p->name);
	snprintf(e->func, sizeof(e->func), "%s", p->func);
	snprintf(e->place, sizeof(e->place), "%s", p->place);
	e->info = (struct ukp_event_info){ .id = p->id,
		                           .ret = p->ret,
		                           .group = e->group,
		                           .name = e->name,
		                           .place = e->place,
		                           .nr_places = p->nr_places ? p->nr_places : 1,
		                           .func = e->func,
		                           .addr = p->addr };
	take_fields(e, p, p->nr_fields);
	e->latency = type == PROTO_ADD_LATENCY;
	e->counted = type == PROTO_ADD_COUNT;
	e->counter = p->counter;
	e->err_kind = p->err_kind;
	e->hist_off = p->hist_off;
	e->hist_stride = p->hist_stride;
	e->hist_shards = p->hist_shards;
	snprintf(e->latency_name, sizeof(e->latency_name), "%.*s", (int)strcspn(text, "="), text);
	s->nr_events++;
	if (id)
		*id = p->id;
	return 0;
}

int client_add(struct ukp_session *s, uint32_t type, const char *text, unsigned int *id)
{
	struct proto_reply *r = malloc(sizeof(*r));
	uint32_t flags;
	int ret;

	if (!r)
		return session_fail(s, -ENOMEM, "out of memory");
	flags = (s->strict ? PROTO_STRICT : 0) | (s->any_text ? PROTO_ANY_TEXT : 0) |
	        (s->follow ? PROTO_FOLLOW : 0) | (uint32_t)s->ret << PROTO_RET_SHIFT;
	ret = client_request(s, type, flags, text, r, NULL);
	if (ret < 0 && ret != -EPIPE && r->column >= 0 && r->column < LANG_LINE_MAX)
		add_caret(s, text, r->column);
	if (ret >= 0)
		ret = take_event(s, r, text, type, id);
	free(r);
	return ret;
}

int ukp_session_add(struct ukp_session *s, const char *definition, unsigned int *id)
{
	return client_add(s, PROTO_ADD, definition, id);
}

int ukp_session_add_latency(struct ukp_session *s, const char *func, unsigned int *id)
{
	return client_add(s, PROTO_ADD_LATENCY, func, id);
}

/* What the broker says, mostly 0. */
static int simple(struct ukp_session *s, uint32_t type, uint32_t arg)
{
	struct proto_reply *r = malloc(sizeof(*r));
	int ret;

	if (!r)
		return session_fail(s, -ENOMEM, "out of memory");
	ret = client_request(s, type, arg, NULL, r, NULL);
	free(r);
	return ret;
}

int ukp_session_start(struct ukp_session *s)
{
	int ret = simple(s, PROTO_START, 0);

	if (s->follow && ret >= 0)
		s->program = proto_program(s->pid);
	s->waiting = ret > 0 ? (unsigned int)ret : 0;
	return ret < 0 ? ret : 0;
}

unsigned int ukp_session_waiting(const struct ukp_session *s)
{
	return s->waiting;
}

int ukp_session_remove(struct ukp_session *s, unsigned int id)
{
	return simple(s, PROTO_REMOVE, id);
}

int ukp_session_enable(struct ukp_session *s, unsigned int id, bool on)
{
	return simple(s, PROTO_ENABLE, id << 1 | on);
}

int ukp_session_stop(struct ukp_session *s)
{
	int ret = simple(s, PROTO_STOP, 0);
	size_t used = strlen(s->error);

	s->stopped = true;
	/* Closing tries again, but has nobody to tell. */
	if (ret && ret != -EPIPE && ret != -ESRCH)
		snprintf(s->error + used, sizeof(s->error) - used,
		         "; if 'ukprobe verify -p %d' finds anything afterwards, 'ukprobe cure -p "
		         "%d' takes it out",
		         s->pid, s->pid);
	return ret;
}

/* A broker that died leaves its target to us. */
static void leave(struct ukp_session *s)
{
	const char *why;

	if (s->fd < 0 || simple(s, PROTO_CLOSE, 0) != -EPIPE)
		return;
	if (proto_start_time(s->pid))
		ukp_cure(s->pid, NULL, &why);
}

void ukp_session_close(struct ukp_session *s)
{
	unsigned int i;

	if (!s)
		return;
	leave(s);
	for (i = 0; i < s->nr_events; i++) {
		free(s->events[i]->addr);
		free(s->events[i]);
	}
	free(s->events);
	if (s->mem)
		munmap(s->mem, s->size);
	free(s->reader);
	sym_close(s->sym);
	threads_close(s->threads);
	if (s->fd >= 0)
		close(s->fd);
	if (s->pidfd >= 0)
		close(s->pidfd);
	if (s->chan_fd >= 0)
		close(s->chan_fd);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	free(s);
}
