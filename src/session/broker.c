/* SPDX-License-Identifier: MIT */
/*
 * The broker of one target: a process that is there while someone has probes
 * in it.  The only one that traces and writes; sleeps in poll() otherwise.
 *
 *	ukprobe broker PID READY-FD
 *	ukprobe broker --launch PID SOCKET-FD READY-FD
 *
 * A lock file beside the socket keeps a second broker away; it goes with the
 * process, however that ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "session/budget.h"
#include "session/optimize.h"
#include "session/pending.h"
#include "session/serve.h"
#include "ukprobes/session.h"

#define MAX_CLIENTS 64
#define FIRST_CLIENT 5 /* in the list for poll() */
#define OPTIMIZE_TRIES 9
#define OPTIMIZE_MS 20 /* of quiet before jumps come */
#define LEAVE_TRIES 10
#define ATTACH_TRIES 4
#define LEAVE_REST_US 200000
#define SETTLE_MS 20

static char socket_path[108], lock_path[108];

static void say_ready(int fd, int ret, const char *text)
{
	struct proto_ready r = { .ret = ret };
	ssize_t n;

	snprintf(r.text, sizeof(r.text), "%s", text);
	n = write(fd, &r, sizeof(r));
	(void)n; /* the client that asked is gone: the others still come */
	close(fd);
}

static int take_lock(pid_t pid, struct err *err)
{
	uint64_t start = proto_start_time(pid);
	struct stat a, b;
	int fd, ret;

	if (!start)
		return err_set(err, -ESRCH, "there is no process %d", pid);
	proto_sweep();
	ret = proto_path(pid, start, "sock", socket_path, sizeof(socket_path));
	if (!ret)
		ret = proto_path(pid, start, "lock", lock_path, sizeof(lock_path));
	if (ret)
		return err_set(err, ret,
		               "cannot use /tmp/ukprobes-%u: it must be a folder of your "
		               "own, closed to others",
		               (unsigned int)geteuid());
	fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_set(err, -errno, "cannot make %s: %s", lock_path, strerror(errno));
	/* The file that we locked may be one that its owner has just removed. */
	if (flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &a) || stat(lock_path, &b) ||
	    a.st_ino != b.st_ino) {
		close(fd);
		return err_set(err, -EAGAIN, "another broker is there");
	}
	return fd;
}

static int listen_here(struct err *err)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", socket_path);
	unlink(socket_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) || listen(fd, MAX_CLIENTS)) {
		int e = -errno;

		if (fd >= 0)
			close(fd);
		return err_set(err, e, "cannot listen at %s: %s", socket_path, strerror(-e));
	}
	return fd;
}

static void add_client(struct broker *b)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	/* Who doesn't read its answers is not waited for. */
	int fd = accept4(b->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *c;

	if (fd < 0)
		return;
	c = calloc(1, sizeof(*c));
	if (!c || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) || cred.uid != geteuid()) {
		free(c);
		close(fd);
		return;
	}
	c->broker = b;
	c->fd = fd;
	c->next = b->clients;
	b->clients = c;
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

/* Jumps come when nothing has changed for a while. */
static void optimize_later(struct broker *b, unsigned int ms)
{
	optimize_kick(b->target);
	b->optimize_at = now_ms() + ms;
	b->optimize_tries = 0;
}

static void optimize_now(struct broker *b)
{
	enum optimize_left left;
	uint64_t count;

	if (read(optimize_fd(b->target), &count, sizeof(count)) > 0) {
		optimize_ready(b->target);
		b->optimize_at = now_ms();
	}
	if (!b->optimize_at || now_ms() < b->optimize_at || b->launched)
		return;
	b->optimize_at = 0;
	left = optimize_on(b->target);
	if (left == OPTIMIZE_MORE)
		b->optimize_at = now_ms() + 1;
	/* Each try is a stop: less and less often, and not for ever. */
	if (left == OPTIMIZE_LATER && b->optimize_tries < OPTIMIZE_TRIES)
		b->optimize_at = now_ms() + (OPTIMIZE_MS << ++b->optimize_tries);
}

static int drop_client(struct broker *b, struct client *c, struct err *err)
{
	struct err later = ERR_INIT;
	struct client **p;
	int ret = 0;

	for (p = &b->clients; *p != c; p = &(*p)->next)
		;
	*p = c->next;
	if (c->chan) {
		c->chan->leaving = true;
		/* It goes in any case; what went wrong first is told. */
		ret = optimize_off_for(b->target, c->chan, err);
		target_refresh(b->target, &later);
		if (ret)
			chan_close(c->chan, &later);
		else
			ret = chan_close(c->chan, err);
		pending_settle(b->target);
		/* Who only had a look has changed nothing: jumps don't wait for that. */
		optimize_later(b, OPTIMIZE_MS);
	}
	close(c->fd);
	free(c);
	/* Launched and given up: the command never ran a step, it ends here. */
	if (b->launched && !b->clients) {
		b->launched = false;
		kill(b->target->pid, SIGKILL);
		b->target->dead = true;
		target_release(b->target);
	}
	return ret;
}

/*
 * Who comes next finds no broker, and starts one.  Once: a moment later the names
 * are that one's, and two brokers in one target undo each other's work.
 */
static void give_up_names(void)
{
	if (!*socket_path)
		return;
	unlink(socket_path);
	unlink(lock_path);
	*socket_path = *lock_path = 0;
}

/*
 * Nobody is left: take the agent out.  A busy target gets more time, and so does
 * a debugger that looks in for a moment.
 */
static int leave_all(struct broker *b, struct err *err)
{
	int tries, ret = 0;

	for (tries = 0; tries < LEAVE_TRIES && !b->target->dead; tries++) {
		ret = target_detach(b->target, err);
		if (ret != -EBUSY && (tries > 2 || (ret != -EAGAIN && ret != -ETIMEDOUT)))
			break;
		if (ret == -EBUSY)
			usleep(LEAVE_REST_US);
	}
	ret = b->target->dead ? 0 : ret;
	return ret ? ret : family_cure(&b->target->family, err);
}

/* The last client waits until the target is clean. */
static void close_client(struct broker *b, struct client *c, struct proto_reply *r, bool *left)
{
	struct err err = ERR_INIT;
	int fd = dup(c->fd), ret;

	ret = drop_client(b, c, &err);
	if (!b->clients) {
		ret = leave_all(b, &err);
		*left = true;
	}
	r->ret = ret;
	r->column = -1;
	snprintf(r->data, sizeof(r->data), "%s", ret ? err.text : "");
	r->len = strlen(r->data) + 1;
	/* Who has the answer may come again at once. */
	if (*left)
		give_up_names();
	if (fd >= 0) {
		proto_send(fd, r, PROTO_REPLY_HEAD + r->len, -1);
		close(fd);
	}
}

void broker_handle(struct broker *b, struct client *c, bool *left)
{
	static struct proto_request q;
	static struct proto_reply r;
	struct err err = ERR_INIT;
	int pass_fd;
	ssize_t n = proto_recv(c->fd, &q, sizeof(q), NULL);

	if (n < (ssize_t)PROTO_REQUEST_HEAD || q.len > n - PROTO_REQUEST_HEAD) {
		drop_client(b, c, &err);
		return;
	}
	if (q.type == PROTO_CLOSE) {
		close_client(b, c, &r, left);
		return;
	}
	serve_request(c, &q, &r, &pass_fd);
	if (pending_settle(b->target) ||
	    (q.type != PROTO_OPEN && q.type != PROTO_LIST && q.type != PROTO_DROPPED))
		optimize_later(b, OPTIMIZE_MS);
	if (proto_send(c->fd, &r, PROTO_REPLY_HEAD + r.len, pass_fd))
		drop_client(b, c, &err);
}

static size_t fill_poll(struct broker *b, struct pollfd *pfd, struct client **who, int sig_fd)
{
	struct client *c;
	size_t n = FIRST_CLIENT;

	pfd[0] = (struct pollfd){ .fd = sig_fd, .events = POLLIN };
	pfd[1] = (struct pollfd){ .fd = b->target->dead ? -1 : b->pidfd, .events = POLLIN };
	pfd[2] = (struct pollfd){ .fd = b->listen_fd, .events = POLLIN };
	pfd[3] = (struct pollfd){ .fd = optimize_fd(b->target), .events = POLLIN };
	pfd[4] = (struct pollfd){ .fd = pending_fd(b->target), .events = POLLIN };
	for (c = b->clients; c && n < MAX_CLIENTS + FIRST_CLIENT; c = c->next) {
		who[n] = c;
		pfd[n++] = (struct pollfd){ .fd = c->fd, .events = POLLIN };
	}
	return n;
}

/* How long to sleep: for ever, but when jumps are due, or nobody has come yet. */
static int patience(const struct broker *b, bool had)
{
	int budget = b->launched ? -1 : budget_wait(b->target), ms = had ? -1 : 10000;
	uint64_t now = now_ms();

	if (b->optimize_at && !b->launched)
		ms = b->optimize_at > now ? (int)(b->optimize_at - now) : 0;
	if (b->owes && (ms < 0 || ms > SETTLE_MS))
		ms = SETTLE_MS;
	return budget >= 0 && (ms < 0 || budget < ms) ? budget : ms;
}

static int serve_all(struct broker *b, int sig_fd)
{
	struct pollfd pfd[MAX_CLIENTS + FIRST_CLIENT];
	struct client *who[MAX_CLIENTS + FIRST_CLIENT];
	struct err err = ERR_INIT;
	bool left = false, had = false;
	size_t n, i;
	int ready;

	while (!left) {
		if (had && !b->clients)
			return leave_all(b, &err);
		/*
		 * One that was long in ending, as with a core to be written, is ours to
		 * reap: before that its parent waits for it in vain.
		 */
		b->owes = inject_settle(b->target->inject);
		n = fill_poll(b, pfd, who, sig_fd);
		/* A broker that nobody calls does not stay. */
		ready = poll(pfd, n, patience(b, had));
		if (ready < 0)
			continue;
		if (!ready && !had && !b->owes)
			return leave_all(b, &err);
		if (!b->launched && budget_look(b->target))
			optimize_later(b, OPTIMIZE_MS);
		/* First: a thread may be waiting for it. */
		if (pfd[4].revents && pending_look(b->target))
			optimize_later(b, OPTIMIZE_MS);
		optimize_now(b);
		if (!ready)
			continue;
		if (pfd[0].revents)
			break;
		if (pfd[1].revents)
			b->target->dead = true;
		if (pfd[2].revents)
			add_client(b);
		had = had || b->clients;
		for (i = FIRST_CLIENT; i < n && !left; i++)
			if (pfd[i].revents)
				broker_handle(b, who[i], &left);
	}
	while (b->clients)
		drop_client(b, b->clients, &err);
	return left ? 0 : leave_all(b, &err);
}

static int block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* Files in memory count as files: what is too large is an error. */
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
	sigdelset(&set, SIGINT);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* A program that executes another one just now is met again after that. */
static int attach(struct broker *b, pid_t pid, struct inject *held, struct err *err)
{
	uint64_t before, after = proto_program(pid);
	int tries, ret;

	for (tries = 0; tries < ATTACH_TRIES; tries++) {
		before = after;
		b->program = before;
		ret = target_attach(&b->target, pid, held, err);
		if (!ret || held)
			return ret;
		after = proto_program(pid);
		if (!after || after == before)
			return ret;
	}
	return err_set(err, -ESRCH, "process %d keeps executing other programs", pid);
}

static int start(struct broker *b, pid_t pid, int launch_fd, struct err *err)
{
	struct inject *held = NULL;
	int ret;

	b->pidfd = syscall(SYS_pidfd_open, pid, 0);
	if (launch_fd >= 0) {
		ret = inject_exec(&held, pid, launch_fd, err);
		if (ret)
			return ret;
		b->launched = true;
	}
	ret = attach(b, pid, held, err);
	if (ret)
		return ret;
	b->listen_fd = listen_here(err);
	if (b->listen_fd >= 0)
		return 0;
	target_detach(b->target, NULL);
	return b->listen_fd;
}

/* Nothing of the caller's stays open: a pipe of his would never end. */
static void close_others(int keep_a, int keep_b)
{
	int lo = keep_a < keep_b ? keep_a : keep_b, hi = keep_a < keep_b ? keep_b : keep_a;

	if (lo > 3)
		close_range(3, lo - 1, 0);
	if (lo >= 3 && hi > lo + 1)
		close_range(lo + 1, hi - 1, 0);
	close_range((hi > 2 ? hi : 2) + 1, ~0u, 0);
}

int ukp_broker_main(int argc, char **argv)
{
	struct broker b = { .listen_fd = -1, .pidfd = -1 };
	struct err err = ERR_INIT;
	int launch_fd = -1, ready_fd, lock_fd, sig_fd, ret;
	bool launch = argc == 5 && !strcmp(argv[1], "--launch");
	pid_t pid;

	if (!launch && argc != 3)
		return 1;
	pid = atoi(argv[launch ? 2 : 1]);
	ready_fd = atoi(argv[argc - 1]);
	fcntl(ready_fd, F_SETFD, FD_CLOEXEC);
	if (launch)
		launch_fd = atoi(argv[3]);
	close_others(launch ? launch_fd : ready_fd, ready_fd);
	if (fork())
		_exit(0);
	setsid();
	if (chdir("/"))
		return 1;
	sig_fd = block_signals();
	lock_fd = take_lock(pid, &err);
	ret = lock_fd < 0 ? lock_fd : start(&b, pid, launch_fd, &err);
	if (ret && lock_fd >= 0)
		unlink(lock_path);
	say_ready(ready_fd, ret, err.text);
	if (ret)
		return 1;
	ret = serve_all(&b, sig_fd);
	give_up_names();
	target_free(b.target);
	return ret ? 1 : 0;
}
