/* SPDX-License-Identifier: MIT */
/*
 * Code of the target's that calls are made with while there is none of ours: a
 * syscall instruction, and what leads from behind it to the kernel's sigreturn.
 */
#include "inject/internal.h"
#include "inject/arch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE 65536
#define SCAN_MAX (16ull << 20) /* of one mapping */

struct scan {
	struct inject *t;
	struct gadgets *g;
	uint8_t *buf;
};

static bool still_there(struct inject *t, const struct arch_gadget *g)
{
	uint8_t now[ARCH_GADGET_MAX];

	return g->addr && !inject_read(t, g->addr, now, g->len) && !memcmp(now, g->code, g->len);
}

static bool complete(const struct gadgets *g)
{
	return g->call.kind == GADGET_CALL && g->back.kind == GADGET_SIGRETURN;
}

/* The first of each kind, and the better kind. */
static void look(struct scan *s, uint64_t at, size_t len)
{
	struct gadgets *g = s->g;

	if (g->call.kind != GADGET_CALL)
		arch_find_call(&g->call, s->buf, len, at);
	if (g->back.kind != GADGET_SIGRETURN)
		arch_find_back(&g->back, s->buf, len, at);
}

/* Pieces overlap, so that nothing is cut in two. */
static void scan(struct scan *s, uint64_t start, uint64_t end)
{
	uint64_t at = start, len;

	for (; at < end && at - start < SCAN_MAX && !complete(s->g); at += len) {
		len = end - at < PIECE ? end - at : PIECE;
		if (inject_read(s->t, at, s->buf, len))
			return;
		look(s, at, len);
		if (at + len < end)
			len -= ARCH_GADGET_MAX;
	}
}

/* Where to look, what is small and has it first: others may be large. */
enum { VDSO, LIBC, ANY };

static bool is_libc(const char *path)
{
	const char *base = strrchr(path, '/') + 1;

	return !strncmp(base, "libc.", 5) || !strncmp(base, "libc-", 5) || !strncmp(base, "ld-", 3);
}

/* One line of maps: is it text that can hold the instruction? */
static bool is_text(const char *line, int where, uint64_t *start, uint64_t *end)
{
	char perms[8], name[256] = "";

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %*s %255s", start, end, perms, name) <
	    3)
		return false;
	if (where == VDSO)
		return !strcmp(name, "[vdso]");
	/* Not an agent's, which may go. */
	return perms[2] == 'x' && perms[3] == 'p' && name[0] == '/' &&
	       strncmp(name, "/memfd:", 7) != 0 && (where == ANY || is_libc(name));
}

static bool any_left(FILE *f)
{
	char line[4400];

	rewind(f);
	return fgets(line, sizeof(line), f);
}

static void scan_all(struct scan *s, FILE *f)
{
	char line[4400];
	uint64_t start, end;
	int where;

	for (where = VDSO; where <= ANY && !complete(s->g); where++) {
		rewind(f);
		while (!complete(s->g) && fgets(line, sizeof(line), f))
			if (is_text(line, where, &start, &end))
				scan(s, start, end);
	}
}

int gadget_find(struct inject *t, struct err *err)
{
	struct gadgets *g = &t->gadget;
	struct scan s = { .t = t, .g = g };
	char path[64];
	bool any;
	FILE *f;

	if (still_there(t, &g->call) && (!g->back.kind || still_there(t, &g->back)))
		return 0;
	memset(g, 0, sizeof(*g));
	snprintf(path, sizeof(path), "/proc/%d/task/%d/maps", t->pid, proc_live_tid(t->pid));
	f = fopen(path, "re");
	if (!f)
		return err_set(err, -ESRCH, "process %d has ended", t->pid);
	s.buf = malloc(PIECE);
	if (s.buf)
		scan_all(&s, f);
	free(s.buf);
	/* Who was killed while we read has no memory, and then no mappings either. */
	any = g->call.kind || any_left(f);
	fclose(f);
	if (!any)
		return err_set(err, -ESRCH, "process %d has ended", t->pid);
	return g->call.kind ? 0
	                    : err_set(err, -ENOEXEC,
	                              "process %d has no syscall instruction in its text", t->pid);
}

uint64_t inject_restorer(const struct inject *t)
{
	return t->gadget.back.kind == GADGET_SIGRETURN ? t->gadget.back.addr : 0;
}
