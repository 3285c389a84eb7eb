/* SPDX-License-Identifier: MIT */
/*
 * Launching a command with probes in before it runs: the child waits, the
 * broker seizes it, lets it exec and holds it at its entry point.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>

#include "inject/inject.h"
#include "session/client.h"

static void run_child(int fd, int err_fd, char *const argv[])
{
	int e = inject_child_wait(fd);
	ssize_t n;

	if (!e) {
		execvp(argv[0], argv);
		e = -errno;
	}
	n = write(err_fd, &e, sizeof(e));
	(void)n;
	_exit(127);
}

/* What the child said before it ended, if anything. */
static int child_error(int err_fd)
{
	int e = 0;

	if (read(err_fd, &e, sizeof(e)) != sizeof(e))
		return 0;
	return e;
}

static int hold_child(struct ukp_session *s, int broker_fd, int err_fd, char *const argv[])
{
	int ret = client_connect(s, true, broker_fd), e;

	if (!ret)
		ret = client_open(s);
	if (!ret) {
		s->launched = true;
		return 0;
	}
	/* Without its broker the child waits for ever, or is dead already. */
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	e = child_error(err_fd);
	s->child = e;
	if (!e)
		return ret;
	/* As a shell has it. */
	s->reaped = true;
	s->status = (e == -ENOENT ? 127 : 126) << 8;
	return session_fail(s, e, "cannot run %s: %s", argv[0], strerror(-e));
}

int ukp_session_launch(struct ukp_session **ret_s, char *const argv[])
{
	struct ukp_session *s;
	int sv[2], err_pipe[2], ret = session_new(ret_s);

	s = *ret_s;
	if (ret)
		return ret;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
		return session_fail(s, -errno, "cannot make a socket");
	if (pipe2(err_pipe, O_CLOEXEC)) {
		ret = session_fail(s, -errno, "cannot make a pipe");
		close(sv[0]);
		close(sv[1]);
		return ret;
	}
	s->pid = fork();
	if (!s->pid) {
		close(sv[1]);
		run_child(sv[0], err_pipe[1], argv);
	}
	close(sv[0]);
	close(err_pipe[1]);
	if (s->pid < 0) {
		ret = session_fail(s, -errno, "cannot fork: %s", strerror(errno));
	} else {
		s->child = true;
		ret = hold_child(s, sv[1], err_pipe[0], argv);
	}
	close(sv[1]);
	close(err_pipe[0]);
	return ret;
}

int ukp_session_wait(struct ukp_session *s, int *status)
{
	pid_t ret;

	if (!s->child)
		return session_fail(s, -ECHILD, "process %d was not launched here", s->pid);
	if (!s->reaped) {
		do {
			ret = waitpid(s->pid, &s->status, 0);
		} while (ret < 0 && errno == EINTR);
		if (ret < 0)
			return session_fail(s, -errno, "cannot wait for process %d", s->pid);
		s->reaped = true;
	}
	*status = s->status;
	return 0;
}
