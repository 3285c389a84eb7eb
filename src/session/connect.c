/* SPDX-License-Identifier: MIT */
/* The way from a client to its target's broker: found, or started. */
#include "session/client.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_ERRNO 4095

long client_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
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
		                    "the command ukprobe, which does the work, is not at %s; "
		                    "UKPROBE in the environment may say where it is",
		                    path);
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

int client_connect(struct ukp_session *s, bool spawn_one, int launch_fd)
{
	long end = client_now_ms() + CLIENT_CONNECT_MS;
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
		if (ret && (ret != -EAGAIN || client_now_ms() > end))
			return ret;
		if (ret)
			usleep(5000);
	}
}

/* A session that is open takes out what it left (ukp_session_close()). */
static int broker_gone(struct ukp_session *s)
{
	if (s->mem)
		return session_fail(s, -EPIPE,
		                    "the broker of process %d was killed: its probes are taken out",
		                    s->pid);
	return session_fail(s, -EPIPE,
	                    "the broker of process %d is gone; 'ukprobe cure -p %d' takes out what "
	                    "it left",
	                    s->pid, s->pid);
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
		return broker_gone(s);
	if (r->ret < -MAX_ERRNO)
		return session_fail(s, -EPROTO, "the broker's answer makes no sense");
	if (r->ret < 0) {
		r->data[sizeof(r->data) - 1] = 0;
		session_fail(s, r->ret, "%s", r->len ? r->data : strerror(-r->ret));
	}
	return r->ret;
}
