/* SPDX-License-Identifier: MIT */
/* A session: its broker found or started, and the requests to it. */
#include "session/client.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_MS 10000

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

/* The command whose "broker" we start: this one, or the one we were installed with. */
static int broker_command(char *path, size_t len)
{
	const char *env = getenv("UKPROBE");
	Dl_info info;
	ssize_t n;
	char *slash;

	if (env) {
		snprintf(path, len, "%s", env);
		return access(path, X_OK) ? -errno : 0;
	}
	n = readlink("/proc/self/exe", path, len - 1);
	if (n > 0) {
		path[n] = 0;
		slash = strrchr(path, '/');
		if (slash && !strcmp(slash, "/ukprobe"))
			return 0;
	}
	if (dladdr((void *)broker_command, &info) && info.dli_fname) {
		snprintf(path, len, "%s", info.dli_fname);
		slash = strrchr(path, '/');
		if (slash) {
			snprintf(slash, len - (slash - path), "/ukprobe");
			if (!access(path, X_OK))
				return 0;
			snprintf(slash, len - (slash - path), "/../bin/ukprobe");
			if (!access(path, X_OK))
				return 0;
		}
	}
	snprintf(path, len, "%s/bin/ukprobe", UKP_PREFIX);
	return access(path, X_OK) ? -errno : 0;
}

static int spawn(struct ukp_session *s, char *const argv[], int keep, int ready_fd)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	sigset_t none;
	pid_t pid;
	int ret;

	posix_spawn_file_actions_init(&fa);
	/* dup2 onto itself clears close-on-exec in the child alone. */
	posix_spawn_file_actions_adddup2(&fa, ready_fd, ready_fd);
	if (keep >= 0)
		posix_spawn_file_actions_adddup2(&fa, keep, keep);
	posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_init(&at);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&at, &none);
	posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
	ret = posix_spawn(&pid, argv[0], &fa, &at, argv, environ);
	posix_spawnattr_destroy(&at);
	posix_spawn_file_actions_destroy(&fa);
	return ret ? session_fail(s, -ret, "cannot start %s: %s", argv[0], strerror(ret))
	           : (int)pid;
}

/*
 * The broker is nobody's child: what is started here forks it and ends, so
 * that a program that uses the library never has a child it doesn't know.
 */
static int start_broker(struct ukp_session *s, int launch_fd)
{
	char path[PATH_MAX], pid[16], fd[16], ready[16];
	struct proto_ready r;
	int pipe_fd[2], child, ret;
	ssize_t n;

	ret = broker_command(path, sizeof(path));
	if (ret)
		return session_fail(s, ret,
		                    "the command ukprobe, which does the work, is not at %s", path);
	if (pipe2(pipe_fd, O_CLOEXEC))
		return session_fail(s, -errno, "cannot make a pipe");
	snprintf(pid, sizeof(pid), "%d", s->pid);
	snprintf(fd, sizeof(fd), "%d", launch_fd);
	snprintf(ready, sizeof(ready), "%d", pipe_fd[1]);
	if (launch_fd >= 0)
		child = spawn(s, (char *[]){ path, "broker", "--launch", pid, fd, ready, NULL },
		              launch_fd, pipe_fd[1]);
	else
		child = spawn(s, (char *[]){ path, "broker", pid, ready, NULL }, -1, pipe_fd[1]);
	close(pipe_fd[1]);
	if (child < 0) {
		close(pipe_fd[0]);
		return child;
	}
	waitpid(child, NULL, 0);
	do {
		n = read(pipe_fd[0], &r, sizeof(r));
	} while (n < 0 && errno == EINTR);
	close(pipe_fd[0]);
	if (n != sizeof(r))
		return session_fail(s, -EIO, "the broker of process %d died while starting",
		                    s->pid);
	r.text[sizeof(r.text) - 1] = 0;
	return r.ret ? session_fail(s, r.ret, "%s", r.text) : 0;
}

static int connect_once(struct ukp_session *s)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	uint64_t start = proto_start_time(s->pid);
	int ret, fd;

	if (!start)
		return session_fail(s, -ESRCH, "there is no process %d", s->pid);
	ret = proto_path(s->pid, start, "sock", sa.sun_path, sizeof(sa.sun_path));
	if (ret)
		return session_fail(s, ret,
		                    "cannot use /tmp/ukprobes-%u: it must be a folder of your own, "
		                    "closed to others",
		                    (unsigned int)geteuid());
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return session_fail(s, -errno, "cannot make a socket");
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		ret = -errno;
		close(fd);
		return session_fail(s, ret, "no broker serves process %d", s->pid);
	}
	s->fd = fd;
	return 0;
}

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int client_connect(struct ukp_session *s, bool spawn_one, int launch_fd)
{
	long end = now_ms() + CONNECT_MS;
	int ret;

	for (;;) {
		ret = launch_fd >= 0 ? -ENOENT : connect_once(s);
		if (ret != -ENOENT && ret != -ECONNREFUSED)
			return ret;
		if (!spawn_one)
			return ret;
		ret = start_broker(s, launch_fd);
		if (!ret && launch_fd >= 0)
			return connect_once(s);
		/* -EAGAIN: one is starting, or leaving. */
		if (ret && (ret != -EAGAIN || now_ms() > end))
			return ret;
		if (ret)
			usleep(5000);
	}
}

int client_request(struct ukp_session *s, uint32_t type, uint32_t arg, const char *text,
                   struct proto_reply *r, int *got_fd)
{
	static __thread struct proto_request q;
	size_t len = text ? strlen(text) : 0;
	ssize_t n;
	int ret;

	if (s->fd < 0)
		return session_fail(s, -EPIPE, "the session is closed");
	if (len >= sizeof(q.data))
		return session_fail(s, -E2BIG, "the definition is too long");
	q.type = type;
	q.arg = arg;
	q.len = len;
	memcpy(q.data, text ? text : "", len);
	ret = proto_send(s->fd, &q, PROTO_REQUEST_HEAD + len, -1);
	n = ret ? ret : proto_recv(s->fd, r, sizeof(*r), got_fd);
	if (n < (ssize_t)PROTO_REPLY_HEAD || r->len > n - PROTO_REPLY_HEAD)
		return session_fail(s, -EPIPE,
		                    "the broker of process %d is gone; 'ukprobe cure -p %d' takes "
		                    "out what it left",
		                    s->pid, s->pid);
	if (r->ret < 0) {
		r->data[sizeof(r->data) - 1] = 0;
		session_fail(s, r->ret, "%s", r->len ? r->data : strerror(-r->ret));
	}
	return r->ret;
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
	long end = now_ms() + CONNECT_MS;

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
	} while (ret == -EPIPE && now_ms() < end);
	return ret;
}

const char *ukp_session_error(const struct ukp_session *s)
{
	return s->error;
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
		[LANG_X] = UKP_FIELD_X,         [LANG_STRING] = UKP_FIELD_STRING,
		[LANG_COMM] = UKP_FIELD_STRING, [LANG_NS] = UKP_FIELD_U,
	};
	uint32_t i;

	for (i = 0; i < nr; i++) {
		e->places[i] = p->fields[i];
		snprintf(e->names[i], sizeof(e->names[i]), "%s", p->fields[i].name);
		e->fields[i].name = e->names[i];
		e->fields[i].type = types[p->fields[i].type % (LANG_NS + 1)];
		e->fields[i].size = e->fields[i].type == UKP_FIELD_STRING ? 0 : p->fields[i].size;
	}
	e->info.nr_fields = nr;
	e->info.fields = e->fields;
}

static int take_event(struct ukp_session *s, const struct proto_reply *r, const char *text,
                      bool latency, unsigned int *id)
{
	const struct proto_event *p = (const struct proto_event *)r->data;
	struct event *e;

	if (r->len < sizeof(*p) || p->nr_fields > UKP_EVENT_ARGS ||
	    r->len < sizeof(*p) + p->nr_fields * sizeof(*p->fields) || p->id != s->nr_events)
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
		                           .func = e->func,
		                           .addr = p->addr };
	take_fields(e, p, p->nr_fields);
	e->latency = latency;
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

static int add(struct ukp_session *s, const char *text, bool latency, unsigned int *id)
{
	struct proto_reply *r = malloc(sizeof(*r));
	int ret;

	if (!r)
		return session_fail(s, -ENOMEM, "out of memory");
	ret = client_request(s, latency ? PROTO_ADD_LATENCY : PROTO_ADD, 0, text, r, NULL);
	if (ret < 0 && ret != -EPIPE && r->column >= 0 && r->column < LANG_LINE_MAX)
		add_caret(s, text, r->column);
	if (ret >= 0)
		ret = take_event(s, r, text, latency, id);
	free(r);
	return ret;
}

int ukp_session_add(struct ukp_session *s, const char *definition, unsigned int *id)
{
	return add(s, definition, false, id);
}

int ukp_session_add_latency(struct ukp_session *s, const char *func, unsigned int *id)
{
	return add(s, func, true, id);
}

static int simple(struct ukp_session *s, uint32_t type, uint32_t arg)
{
	struct proto_reply *r = malloc(sizeof(*r));
	int ret;

	if (!r)
		return session_fail(s, -ENOMEM, "out of memory");
	ret = client_request(s, type, arg, NULL, r, NULL);
	free(r);
	return ret < 0 ? ret : 0;
}

int ukp_session_start(struct ukp_session *s)
{
	return simple(s, PROTO_START, 0);
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
	return simple(s, PROTO_STOP, 0);
}

const struct ukp_event_info *ukp_session_event(struct ukp_session *s, unsigned int id)
{
	return id < s->nr_events ? &s->events[id]->info : NULL;
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
	for (i = 0; i < s->nr_events; i++)
		free(s->events[i]);
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
