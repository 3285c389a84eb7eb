/* SPDX-License-Identifier: MIT */
/* A session without a target; see fake_session.h. */
#include "fake_session.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct ukp_session {
	pid_t pid;
	bool launched;
	int go; /* write end: the launched child waits for a byte */
	char error[256];
};

#define FRESH                                                            \
	{                                                                \
		.burst = true, .latency = {.name = "f", .kind = "auto" } \
	}

struct fake fake = FRESH;

static const struct ukp_field fields[] = {
	{ "ret", UKP_FIELD_X, 8 },
	{ "ns", UKP_FIELD_U, 8 },
	{ "key", UKP_FIELD_STRING, 0 },
};

const struct ukp_event_info fake_event = {
	1, true, "ukprobes", "get", "get+0x0/0x80 [prog]", "get", 0x401000, 3, fields, 1
};

void fake_reset(void)
{
	fake = (struct fake)FRESH;
}

void fake_record(struct ukp_record *r, uint64_t n)
{
	static struct ukp_value values[3];

	values[0] = (struct ukp_value){ .num = 0x7f0000001000 + n };
	values[1] = (struct ukp_value){ .num = 1000 + n };
	values[2] = (struct ukp_value){ .str = "user:1", .len = 6 };
	*r = (struct ukp_record){ .event = &fake_event,
		                  .time = 2420544000 + n * 1000,
		                  .tid = 149,
		                  .cpu = 1,
		                  .comm = "redis-server",
		                  .ip = 0x401000,
		                  .ret_ip = 0x402000 + n % 16,
		                  .nr_values = 3,
		                  .values = values };
}

static struct ukp_session *session_new(void)
{
	struct ukp_session *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	s->go = -1;
	return s;
}

int ukp_session_open(struct ukp_session **ret, pid_t pid)
{
	struct ukp_session *s = session_new();

	*ret = s;
	s->pid = pid;
	fake.opened++;
	if (fake.open_error)
		snprintf(s->error, sizeof(s->error), "no process %d", pid);
	return fake.open_error;
}

int ukp_session_launch(struct ukp_session **ret, char *const argv[])
{
	struct ukp_session *s = session_new();
	int fds[2];
	char c;

	*ret = s;
	s->launched = true;
	if (pipe(fds))
		abort();
	s->pid = fork();
	if (!s->pid) {
		close(fds[1]);
		if (read(fds[0], &c, 1) != 1)
			_exit(99);
		close(fds[0]);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(fds[0]);
	s->go = fds[1];
	return 0;
}

void ukp_session_close(struct ukp_session *s)
{
	fake.closed++;
	if (s->go >= 0)
		close(s->go);
	free(s);
}

const char *ukp_session_error(const struct ukp_session *s)
{
	return s->error;
}

pid_t ukp_session_pid(const struct ukp_session *s)
{
	return s->pid;
}

static int add(struct ukp_session *s, const char *text, unsigned int *id)
{
	if (strstr(text, "bad")) {
		snprintf(s->error, sizeof(s->error), "Invalid register name\n  %s\n  %*s^", text,
		         (int)(strstr(text, "bad") - text), "");
		return -EINVAL;
	}
	if (id)
		*id = 1;
	return 0;
}

int ukp_session_add(struct ukp_session *s, const char *definition, unsigned int *id)
{
	return add(s, definition, id);
}

int ukp_session_add_latency(struct ukp_session *s, const char *func, unsigned int *id)
{
	return add(s, func, id);
}

int ukp_session_add_stat(struct ukp_session *s, const char *definition, unsigned int *id)
{
	return add(s, definition, id);
}

int ukp_session_stat(struct ukp_session *s, unsigned int id, ukp_stat_fn fn, void *arg)
{
	int ret = 0;

	for (unsigned int i = 0; i < fake.nr_places && !ret; i++)
		ret = fn(&fake.place[i], arg);
	return ret;
}

void ukp_session_set_strict(struct ukp_session *s, bool strict)
{
	fake.strict = strict;
}

void ukp_session_set_any_text(struct ukp_session *s, bool any)
{
	fake.any_text = any;
}

void ukp_session_set_follow(struct ukp_session *s, bool follow)
{
	fake.follow = follow;
}

void ukp_session_set_ret(struct ukp_session *s, enum ukp_ret how)
{
	fake.ret = how;
}

unsigned int ukp_session_waiting(const struct ukp_session *s)
{
	return fake.waiting;
}

const char *ukp_session_refused(struct ukp_session *s)
{
	return fake.refused ? fake.refused : "";
}

const char *ukp_session_pending(struct ukp_session *s)
{
	return fake.pending ? fake.pending : "";
}

int ukp_session_set_budget(struct ukp_session *s, double share)
{
	fake.budget = share;
	return 0;
}

const char *ukp_session_dropped(struct ukp_session *s)
{
	return fake.dropped ? fake.dropped : "";
}

int ukp_session_start(struct ukp_session *s)
{
	fake.started++;
	if (s->go >= 0 && write(s->go, "", 1) != 1)
		abort();
	return 0;
}

int ukp_session_remove(struct ukp_session *s, unsigned int id)
{
	return 0;
}

int ukp_session_enable(struct ukp_session *s, unsigned int id, bool on)
{
	return 0;
}

int ukp_session_stop(struct ukp_session *s)
{
	fake.stopped++;
	if (fake.stop_error)
		snprintf(s->error, sizeof(s->error), "one slot is still in use");
	return fake.stop_error;
}

const struct ukp_event_info *ukp_session_event(struct ukp_session *s, unsigned int id)
{
	return &fake_event;
}

static bool child_gone(struct ukp_session *s)
{
	siginfo_t si = { .si_pid = 0 };

	return !waitid(P_PID, (id_t)s->pid, &si, WEXITED | WNOHANG | WNOWAIT) && si.si_pid;
}

long ukp_session_read(struct ukp_session *s, ukp_record_fn fn, void *arg, int timeout_ms)
{
	struct ukp_record r;
	long n = 0;

	if (fake.on_read)
		fake.on_read();
	while (fake.handed < fake.records) {
		fake_record(&r, fake.handed++);
		n++;
		if (fn(&r, arg) || !fake.burst)
			return n;
	}
	if (n)
		return n;
	if (s->launched ? child_gone(s) : fake.gone)
		return -ESRCH;
	poll(NULL, 0, timeout_ms < 10 ? timeout_ms : 10);
	return 0;
}

void ukp_session_interrupt(struct ukp_session *s)
{
	fake.interrupts++;
}

bool ukp_session_alive(struct ukp_session *s)
{
	return s->launched ? !child_gone(s) : !fake.gone;
}

int ukp_session_wait(struct ukp_session *s, int *status)
{
	return waitpid(s->pid, status, 0) < 0 ? -errno : 0;
}

int ukp_session_counts(struct ukp_session *s, unsigned int id, struct ukp_counts *c)
{
	*c = fake.counts;
	return 0;
}

const char *ukp_session_hazard(const struct ukp_session *s)
{
	return fake.hazard ? fake.hazard : "";
}

const char *ukp_session_damage(struct ukp_session *s)
{
	return fake.damage;
}

const char *ukp_miss_name(unsigned int reason)
{
	static const char *const name[UKP_NR_MISSES] = { "maxactive", "arena",      "ring full",
		                                         "recursion", "unreturned", "unwound",
		                                         "frame" };

	return name[reason];
}

int ukp_session_latency(struct ukp_session *s, unsigned int id, struct ukp_latency_info *info)
{
	*info = fake.latency;
	return 0;
}

uint64_t ukp_latency_quantile(struct ukp_session *s, unsigned int id, double q)
{
	uint64_t at = (uint64_t)(q * (double)fake.nr_samples);

	return fake.sample[at < fake.nr_samples ? at : fake.nr_samples - 1];
}

uint64_t ukp_latency_between(struct ukp_session *s, unsigned int id, uint64_t lo, uint64_t hi)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < fake.nr_samples; i++)
		n += fake.sample[i] >= lo && fake.sample[i] < hi;
	return n;
}

const char *ukp_session_symbol(struct ukp_session *s, uint64_t addr)
{
	static char text[64];

	fake.symbols++;
	if (addr >= 0x500000)
		snprintf(text, sizeof(text), "0x%" PRIx64, addr);
	else if (addr >= 0x402000)
		snprintf(text, sizeof(text), "caller+0x%" PRIx64 "/0xf0 [prog]", addr - 0x402000);
	else
		snprintf(text, sizeof(text), "get+0x%" PRIx64 "/0x80 [prog]", addr - 0x401000);
	return text;
}

static int about(pid_t pid, const char *what, FILE *out, const char **why)
{
	fprintf(out, "%s %d\n", what, pid);
	*why = fake.about_why;
	return fake.about_error;
}

int ukp_list(pid_t pid, FILE *out, const char **why)
{
	return about(pid, "list", out, why);
}

int ukp_blacklist(pid_t pid, FILE *out, const char **why)
{
	return about(pid, "blacklist", out, why);
}

int ukp_funcs(pid_t pid, const char *glob, FILE *out, const char **why)
{
	return about(pid, glob ? glob : "all", out, why);
}

int ukp_verify(pid_t pid, FILE *out, const char **why)
{
	return about(pid, "verify", out, why);
}

int ukp_cure(pid_t pid, FILE *out, const char **why)
{
	return about(pid, "cure", out, why);
}

int ukp_doctor(pid_t pid, FILE *out, const char **why)
{
	return about(pid, "doctor", out, why);
}

int ukp_broker_main(int argc, char **argv)
{
	return 40 + argc;
}
