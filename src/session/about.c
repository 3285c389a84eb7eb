/* SPDX-License-Identifier: MIT */
/* What can be said of a process without planting anything in it, and the cure. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "session/client.h"
#include "patch/deny.h"
#include "session/children.h"
#include "session/target.h"

#define GOING_MS 10000
#define LEFT_TRIES 20
#define LEFT_US 50000

static __thread char why_text[ERR_TEXT];

static int because(const char **why, int code, const struct err *err)
{
	snprintf(why_text, sizeof(why_text), "%s", err->text);
	*why = why_text;
	return code;
}

/* Without a word: a session that was never open has nothing to take out. */
static void hang_up(struct ukp_session *s)
{
	if (s && s->fd >= 0) {
		close(s->fd);
		s->fd = -1;
	}
	ukp_session_close(s);
}

/* With the errors of an attach, but for what keeps nobody from looking. */
static int open_sym(struct sym_proc **p, pid_t pid, struct err *err)
{
	int ret = inject_preflight(pid, err);

	return ret && ret != -EBUSY && ret != -EOPNOTSUPP ? ret : sym_open(p, pid, err);
}

/* Whether an agent is in there that nobody of ours serves; < 0: what an attach would say. */
static int is_left(struct ukp_session *s)
{
	struct err err = ERR_INIT;
	struct sym_proc *p = NULL;
	int ret = inject_preflight(s->pid, &err);

	/* Who traces it, and what can't be attached to, tells nothing of probes. */
	if (ret == -EBUSY || ret == -EOPNOTSUPP)
		return 0;
	if (!ret)
		ret = sym_open(&p, s->pid, &err);
	if (!ret)
		ret = orphan_seen(p, s->pid);
	if (ret > 0 && orphan_is_served(p, s->pid, &err))
		ret = -EBUSY;
	sym_close(p);
	return ret < 0 ? session_fail(s, ret, "%s", err.text) : ret;
}

/* s->fd is < 0 where nobody serves it, and nothing is planted. */
static int connect_or_none(struct ukp_session *s)
{
	int ret, tries;

	for (tries = 0; tries < LEFT_TRIES; tries++) {
		ret = client_connect(s, false, -1);
		if (ret != -ENOENT && ret != -ECONNREFUSED)
			return ret;
		ret = is_left(s);
		if (ret <= 0)
			return ret;
		/* Its broker may be on its way, in or out. */
		usleep(LEFT_US);
	}
	return session_fail(s, -EOWNERDEAD,
	                    "process %d has an agent that nobody serves: its broker was killed, or "
	                    "it was forked from a probed one; 'ukprobe cure -p %d' takes it out",
	                    s->pid, s->pid);
}

int ukp_list(pid_t pid, FILE *out, const char **why)
{
	struct proto_reply *r = malloc(sizeof(*r));
	struct ukp_session *s = NULL;
	uint32_t line = 0;
	int ret = r ? session_new(&s) : -ENOMEM;

	if (!ret) {
		s->pid = pid;
		ret = connect_or_none(s);
	}
	if (!ret && s->fd >= 0) {
		while ((ret = client_request(s, PROTO_LIST, line, NULL, r, NULL)) > 0) {
			fwrite(r->data, 1, r->len, out);
			line += ret;
		}
	}
	if (ret && s) {
		snprintf(why_text, sizeof(why_text), "%.*s", (int)sizeof(why_text) - 1, s->error);
		*why = why_text;
	}
	hang_up(s);
	free(r);
	return ret;
}

static const char *const denied_where[] = {
	[DENY_TRAP] = " (but by a jump)",
	[DENY_TRAP_BODY] = " (after the entry, but by a jump)",
	[DENY_BODY] = " (after the entry)",
	[DENY_RETURN] = " (returns, but by exit sites)",
	[DENY_RETURN_ANYWHERE] = " (returns)",
};

/* What has a jump of our own in libc, while anything is probed. */
static const char *const own[] = { "sigaction", "pthread_sigmask", "sigprocmask" };

static bool is_own(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(own) / sizeof(*own) && strcmp(name, own[i]); i++)
		;
	return i < sizeof(own) / sizeof(*own);
}

static void print_names(FILE *out)
{
	const struct deny_entry *e;
	size_t i;

	for (i = 0; i < sizeof(own) / sizeof(*own); i++)
		fprintf(out,
		        "%s: ukprobes has a jump of its own at its entry, by which the program "
		        "lives\n",
		        own[i]);
	for (e = deny_list(); e->name; e++)
		if (!is_own(e->name))
			fprintf(out, "%s%s%s: %s\n", e->name, denied_where[e->kind],
			        e->musl ? " (musl's)" : "", e->why);
}

static void print_own(struct sym_proc *p, FILE *out)
{
	struct sym_symbol s[8];
	size_t i, k, n;

	for (i = 0; i < sizeof(own) / sizeof(*own); i++) {
		n = sym_lookup(p, NULL, own[i], s, 8);
		for (k = 0; k < n && k < 8; k++)
			if (deny_is_libc(p, s[k].module))
				fprintf(out, "0x%016" PRIx64 "-0x%016" PRIx64 "\t%s\n", s[k].addr,
				        s[k].addr + s[k].size, own[i]);
	}
}

static void print_ranges(struct sym_proc *p, FILE *out)
{
	const struct deny_entry *e;
	struct sym_symbol s[8];
	size_t i, n;

	for (i = 0; i < sym_nr_maps(p); i++) {
		const struct sym_map *m = sym_map_at(p, i);

		if (m->x && !strncmp(m->path, "/memfd:ukprobes", 15))
			fprintf(out, "0x%016" PRIx64 "-0x%016" PRIx64 "\tukprobes\n", m->start,
			        m->end);
	}
	print_own(p, out);
	for (e = deny_list(); e->name; e++) {
		n = is_own(e->name) ? 0 : sym_lookup(p, NULL, e->name, s, 8);
		for (i = 0; i < n && i < 8; i++)
			if (deny_check(p, s[i].addr + deny_but_entry(e), deny_is_of_returns(e),
			               NULL))
				fprintf(out, "0x%016" PRIx64 "-0x%016" PRIx64 "\t%s%s\n", s[i].addr,
				        s[i].addr + s[i].size, e->name, denied_where[e->kind]);
	}
}

int ukp_blacklist(pid_t pid, FILE *out, const char **why)
{
	struct err err = ERR_INIT;
	struct sym_proc *p;
	int ret;

	if (!pid) {
		print_names(out);
		return 0;
	}
	ret = open_sym(&p, pid, &err);
	if (ret)
		return because(why, ret, &err);
	print_ranges(p, out);
	sym_close(p);
	return 0;
}

struct funcs {
	struct sym_proc *p;
	FILE *out;
	size_t nr;
	const char *why; /* of the last one that can't be probed */
};

static int print_func(const struct sym_symbol *s, void *arg)
{
	struct funcs *f = arg;
	const char *jump_only, *why;

	why = s->ifunc ? "it only chooses an implementation when it is bound"
	               : deny_check(f->p, s->addr, false, &jump_only);

	if (why) {
		f->why = why;
		return 0;
	}
	f->nr++;
	fprintf(f->out, "%s\t0x%" PRIx64 "\t%" PRIu64 "\t%s\n", s->name, s->addr, s->size,
	        sym_module_name(s->module));
	return ferror(f->out);
}

/* [MOD:]GLOB, as in a definition: a path may have colons, so the last one counts. */
static int list_funcs(struct funcs *f, const char *text, struct err *err)
{
	const char *colon = text ? strrchr(text, ':') : NULL;
	const char *glob = colon ? colon + 1 : text;
	struct lang_place pl = { .module = colon ? strndup(text, colon - text) : NULL };
	struct sym_module *m = NULL;
	char near[512] = "";
	int ret;

	if (colon && !pl.module)
		return err_set(err, -ENOMEM, "out of memory");
	ret = lang_find_module(&pl, f->p, &m, err);
	if (ret)
		ret = err_set(err, ret, "no module '%.128s' is mapped", pl.module);
	free(pl.module);
	if (ret)
		return ret;
	sym_for_each_func(f->p, m, glob && *glob ? glob : NULL, print_func, f);
	if (f->nr)
		return 0;
	if (f->why)
		return err_set(err, -ENOENT, "nothing that matches '%.128s' can be probed: %s",
		               text ? text : "*", f->why);
	lang_near(f->p, m, glob ? glob : "", near, sizeof(near));
	return err_set(err, -ENOENT, "no match for '%.128s'%s", text ? text : "*", near);
}

int ukp_funcs(pid_t pid, const char *glob, FILE *out, const char **why)
{
	struct err err = ERR_INIT;
	struct funcs f = { .out = out };
	int ret = open_sym(&f.p, pid, &err);

	if (!ret)
		ret = list_funcs(&f, glob, &err);
	sym_close(f.p);
	return ret ? because(why, ret, &err) : 0;
}

static ssize_t read_mem(void *arg, uint64_t addr, void *buf, size_t len)
{
	ssize_t n = pread(*(int *)arg, buf, len, addr);

	return n < 0 ? -errno : n;
}

static void print_diff(const struct sym_diff *d, void *arg)
{
	FILE *out = arg;
	size_t i, n = d->len < 16 ? d->len : 16;

	if (!out)
		return;
	fprintf(out, "%s: 0x%" PRIx64 " (file offset 0x%" PRIx64 "): file", d->map->path, d->addr,
	        d->addr - d->map->start + d->map->offset);
	for (i = 0; i < n; i++)
		fprintf(out, " %02x", d->file[i]);
	fputs(", memory", out);
	for (i = 0; i < n; i++)
		fprintf(out, " %02x", d->memory[i]);
	fprintf(out, "%s\n", d->len > 16 ? " ..." : "");
}

static unsigned int print_agent(struct sym_proc *p, pid_t pid, FILE *out)
{
	unsigned int found = orphan_files(p, pid);
	size_t i;

	if (found && out)
		fprintf(out, "ukprobes has left descriptors open\n");

	for (i = 0; i < sym_nr_maps(p); i++) {
		const struct sym_map *m = sym_map_at(p, i);

		if (strncmp(m->path, "/memfd:ukprobes", 15))
			continue;
		found++;
		if (out && orphan_is_area(m))
			fprintf(out,
			        "an agent of ukprobes is present (control area at 0x%" PRIx64 ")\n",
			        m->start);
	}
	return found;
}

static int verify_once(pid_t pid, FILE *out, struct err *err)
{
	struct sym_proc *p;
	char path[64];
	unsigned int agent;
	long diffs;
	int fd, ret = open_sym(&p, pid, err);

	if (ret)
		return ret;
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		ret = err_set(err, -errno, "cannot read the memory of process %d: %s", pid,
		              strerror(errno));
		sym_close(p);
		return ret;
	}
	diffs = sym_verify(p, read_mem, &fd, print_diff, out, err);
	agent = print_agent(p, pid, out);
	close(fd);
	sym_close(p);
	if (diffs < 0)
		return (int)diffs;
	if (!diffs && !agent) {
		if (out)
			fprintf(out, "process %d is untouched\n", pid);
		return 0;
	}
	return err_set(err, -EEXIST, "process %d is not untouched: %ld bytes of code differ, %s",
	               pid, diffs, agent ? "an agent is present" : "no agent is present");
}

#define VERIFY_TRIES 4

/* What was found of two programs that followed each other is true of neither. */
int ukp_verify(pid_t pid, FILE *out, const char **why)
{
	uint64_t before, after = proto_program(pid);
	struct err err = ERR_INIT;
	int ret = 0, tries = 0;
	char *text = NULL;
	size_t len = 0;
	FILE *f;

	do {
		free(text);
		f = open_memstream(&text, &len);
		if (!f)
			return -ENOMEM;
		before = after;
		ret = verify_once(pid, out ? f : NULL, &err);
		fclose(f);
		after = proto_program(pid);
	} while (ret && after && after != before && ++tries < VERIFY_TRIES);
	if (tries == VERIFY_TRIES)
		ret = err_set(&err, -ESRCH, "process %d keeps executing other programs", pid);
	else if (out)
		fwrite(text, 1, len, out);
	free(text);
	return ret ? because(why, ret, &err) : 0;
}

static int cure_seized(struct inject *t, struct sym_proc *p, pid_t pid, FILE *out, struct err *err)
{
	bool any = orphan_seen(p, pid) || inject_owes(t);
	int ret = any ? orphan_leave(t, p, true, err) : 0;

	if (!ret && out)
		fprintf(out, any ? "process %d is cured\n" : "process %d has no agent\n", pid);
	return ret;
}

/*
 * Whether a broker lives.  The socket of one that was killed still takes
 * connections while the kernel is at its memory: who gets no answer from it
 * asks again.
 */
static bool served(struct ukp_session *s)
{
	struct proto_reply *r = malloc(sizeof(*r));
	long end = client_now_ms() + GOING_MS;
	struct timeval patience = { .tv_sec = 1 };
	bool answered = false, there;

	if (!r)
		return true;
	do {
		there = !client_connect(s, false, -1);
		if (!there)
			break;
		setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		answered = client_request(s, PROTO_LIST, 0, NULL, r, NULL) != -EPIPE;
		close(s->fd);
		s->fd = -1;
		if (!answered)
			usleep(5000);
	} while (!answered && client_now_ms() < end);
	free(r);
	return there;
}

int ukp_cure(pid_t pid, FILE *out, const char **why)
{
	struct err err = ERR_INIT;
	struct ukp_session *s;
	struct sym_proc *p = NULL;
	struct inject *t = NULL;
	struct family family = { .start = 0 };
	int ret = session_new(&s);
	bool busy;

	if (ret)
		return ret;
	s->pid = pid;
	/* A broker that lives takes its own things out. */
	busy = served(s);
	hang_up(s);
	if (busy)
		return because(why,
		               err_set(&err, -EBUSY,
		                       "the probes of process %d are in use; they go with "
		                       "their users",
		                       pid),
		               &err);
	/* The killed one may still be ending, and trace it until it has. */
	ret = inject_preflight(pid, &err);
	if (!ret)
		ret = inject_open(&t, pid, &err);
	if (!ret)
		ret = sym_open(&p, pid, &err);
	if (!ret)
		ret = orphan_is_served(p, pid, &err);
	if (!ret)
		ret = inject_seize(t, &err);
	if (!ret) {
		family_find(&family, p, 0);
		ret = cure_seized(t, p, pid, out, &err);
	}
	if (t)
		inject_close(t);
	if (!ret)
		ret = family_cure(&family, &err);
	sym_close(p);
	return ret ? because(why, ret, &err) : 0;
}
