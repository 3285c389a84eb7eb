/* SPDX-License-Identifier: MIT */
/*
 * A broker whose client sends anything, with a real program as the target: what
 * is added is planted, and is gone with the client.
 *
 * The input is a list of requests: of bytes of the input, or good ones whose
 * text is a definition from a list or from the input.  Every answer is one that
 * the other side takes, and afterwards the program's text is as it was, and no memory
 * of the broker's is left.  That is looked for when its threads have ended, for one that
 * works meanwhile is taken for a leak now and then: -detect_leaks=0, as run.sh has it.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sanitizer/lsan_interface.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/optimize.h"
#include "session/pending.h"
#include "session/serve.h"
#include "ukprobes/session.h"

#include "input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUESTS 12
#define RENEW 256 /* inputs until the agent is another */

static const char *const definitions[16] = {
	"p nanosleep",
	"p:a/b clock_nanosleep req=+0(%dx):u64",
	"r clock_nanosleep $retval",
	"p nanosleep+4",
	"r%return getpid",
	"p libc.so.6:getpid",
	"f libc.so.6:getp*",
	"p libc.so.6:getppid+*",
	"r libc.so.6:getp* $retval",
	"p not-there.so:f",
	"p getenv",
	"p _start",
	"getpid",
	"getpid=ptr",
	"p fork",
	"r dlsym",
};

static struct broker broker = { .listen_fd = -1, .pidfd = -1 };
/* Is always there, so that nobody is the last. */
static struct client other = { .fd = -1, .broker = &broker };
static pid_t pid;

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

/* --- the target --------------------------------------------------------------- */

static void start_target(void)
{
	int gone[2];
	char c;

	must(!pipe2(gone, O_CLOEXEC), "no pipe");
	pid = fork();
	must(pid >= 0, "no process");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/bin/sleep", "sleep", "infinity", NULL);
		_exit(1);
	}
	close(gone[1]);
	/* The program has been executed. */
	must(read(gone[0], &c, 1) == 0, "no end");
	close(gone[0]);
	broker.program = proto_program(pid);
	broker.clients = &other;
}

static void attach(void)
{
	struct err err = ERR_INIT;

	must(!target_attach(&broker.target, pid, NULL, &err), err.text);
}

static void detach(void)
{
	struct err err = ERR_INIT;
	const char *why = "";

	must(!target_detach(broker.target, &err), err.text);
	target_free(broker.target);
	must(!ukp_verify(pid, NULL, &why), why);
	must(!__lsan_do_recoverable_leak_check(), "memory is left");
}

/* --- the client --------------------------------------------------------------- */

static size_t make_text(struct in *in, char *to)
{
	unsigned int which = byte(in);
	const char *def;
	size_t n;

	if (which % 4 == 0)
		return bytes(in, to, byte(in));
	def = definitions[which >> 2 & 15];
	n = strlen(def);
	memcpy(to, def, n);
	if (which & 64)
		n += bytes(in, to + n, byte(in) % 32);
	return n;
}

static size_t make_request(struct in *in, struct proto_request *q)
{
	unsigned int how = byte(in);
	size_t len;

	memset(q, 0, PROTO_REQUEST_HEAD + 600);
	if (how % 16 == 15)
		return bytes(in, q, byte(in) << 6);
	q->type = how % 16;
	if (q->type == PROTO_OPEN)
		q->arg = how & 16 ? byte(in) : PROTO_VERSION;
	else if (how & 16)
		bytes(in, &q->arg, sizeof(q->arg));
	else
		q->arg = byte(in);
	len = how & 32 || (q->type >= PROTO_ADD && q->type <= PROTO_ADD_COUNT)
	              ? make_text(in, q->data)
	              : 0;
	q->len = (uint32_t)len;
	if (how & 128)
		bytes(in, &q->len, sizeof(q->len));
	return PROTO_REQUEST_HEAD + len;
}

static void check_answer(int fd)
{
	static struct proto_reply r;
	int got = -1;
	ssize_t n = proto_recv(fd, &r, sizeof(r), &got);

	if (got >= 0)
		close(got);
	/* Dropped: for what it sent. */
	if (n == -EPIPE || n == -EAGAIN)
		return;
	must(n >= (ssize_t)PROTO_REPLY_HEAD && r.len == n - PROTO_REPLY_HEAD, "length");
	must(r.ret >= -4095, "no such errno");
	must(r.ret >= 0 || (r.len && !r.data[r.len - 1] && *r.data), "no reason");
}

static bool is_there(const struct client *c)
{
	const struct client *i;

	for (i = broker.clients; i && i != c; i = i->next)
		;
	return i;
}

static void settle(void)
{
	for (int i = 0; i < 10 && optimize_on(broker.target) == OPTIMIZE_MORE; i++)
		;
	pending_look(broker.target);
}

static void talk(struct in *in, struct client *c, int fd)
{
	static struct proto_request q;
	bool left = false;

	for (int i = 0; i < REQUESTS && in->p < in->end && is_there(c); i++) {
		size_t len = make_request(in, &q);

		/* An empty message is the end. */
		if (!len || proto_send(fd, &q, len, byte(in) % 8 == 7 ? 2 : -1))
			break;
		broker_handle(&broker, c, &left);
		must(!left, "the last one left, which is there");
		check_answer(fd);
		if (byte(in) % 4 == 3)
			settle();
	}
	shutdown(fd, SHUT_WR);
	while (is_there(c))
		broker_handle(&broker, c, &left);
	must(!broker.target->chans, "a channel is left");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned int inputs;
	struct in in = { data, data + size };
	struct client *c;
	int sv[2];

	if (!pid)
		start_target();
	if (inputs % RENEW == 0)
		attach();
	c = calloc(1, sizeof(*c));
	must(c && !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv),
	     "no socket");
	c->broker = &broker;
	c->fd = sv[0];
	c->next = broker.clients;
	broker.clients = c;
	talk(&in, c, sv[1]);
	close(sv[1]);
	must(!kill(pid, 0) && !waitpid(pid, NULL, WNOHANG), "the target is dead");
	if (++inputs % RENEW == 0)
		detach();
	return 0;
}
