/* SPDX-License-Identifier: MIT */
/*
 * See inplace.h.
 *
 * libc's labels have no public names.  The system call between two of them is
 * the same sequence of moves in musl and in glibc; and the function that enables
 * cancellation, before 2.41, is the one that read() calls before its second
 * system call, as write() does.  Whatever calls it is cancellable from there on.
 */
#include "patch/inplace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "patch/deny.h"
#include "plan/plan.h"

#define CHUNK (1u << 20)
#define OVERLAP 64u /* more than the longest pattern */
#define UD1 7       /* length of the instruction that carries a signature */

static const char rseq[] = "it is part of a restartable sequence, which must run in its place";
static const char labels[] = "threads are cancelled here by their place, which a copy is not";
static const char unwound[] = "a thread that is cancelled here is unwound from its place, which a "
			      "copy is not";

/* mov %rdi,%r11; ...; mov %r11,8(%rsp); syscall */
static const uint8_t cancellable[] = { 0x49, 0x89, 0xfb, 0x48, 0x89, 0xf0, 0x48, 0x89, 0xd7,
	                               0x48, 0x89, 0xce, 0x4c, 0x89, 0xc2, 0x4d, 0x89, 0xca,
	                               0x4c, 0x8b, 0x44, 0x24, 0x08, 0x4c, 0x8b, 0x4c, 0x24,
	                               0x10, 0x4c, 0x89, 0x5c, 0x24, 0x08, 0x0f, 0x05 };

_Static_assert(sizeof(cancellable) < OVERLAP, "a pattern fits between two pieces");

struct scan {
	struct sym_proc *p;
	uint64_t enable; /* 0: there is no such function */
	inplace_fn fn;
	void *arg;
};

/* The function that name calls before its second system call; 0: it doesn't look so. */
static uint64_t enabler_of(struct sym_proc *p, struct sym_module *m, const char *name)
{
	uint64_t called = 0, seen = 0, at;
	unsigned int calls = 0;
	struct plan_insn insn;
	struct sym_symbol s;
	uint8_t code[512];
	size_t len;

	if (!sym_lookup(p, m, name, &s, 1) || !s.func)
		return 0;
	len = s.size < sizeof(code) ? s.size : sizeof(code);
	if (sym_original(p, s.addr, code, len))
		return 0;
	for (at = 0; at < len; at += insn.len) {
		plan_decode(code + at, len - at, s.addr + at, &insn);
		if (!insn.len)
			break;
		if (insn.flow == PLAN_FLOW_CALL)
			called = insn.target;
		if (insn.is_syscall && ++calls == 2)
			seen = called;
	}
	/* ... and something else behind it. */
	return called != seen ? seen : 0;
}

static uint64_t find_enabler(struct sym_proc *p, struct sym_module *m)
{
	uint64_t by_read = enabler_of(p, m, "read");

	return by_read && by_read == enabler_of(p, m, "write") ? by_read : 0;
}

/* Is this module a C library, or a program that has one in it? */
static bool has_libc(struct sym_proc *p, struct sym_module *m)
{
	size_t i;

	if (deny_is_libc(p, m))
		return true;
	for (i = 0; sym_module_is_exe(m) && i < sym_nr_modules(p); i++)
		if (deny_is_libc(p, sym_module_at(p, i)))
			return false;
	return sym_module_is_exe(m);
}

/* From behind the call to the end of the function. */
static int cancellable_function(const struct scan *s, uint64_t call)
{
	uint64_t start, end;
	bool signal;

	if (sym_bounds(s->p, call, &start, &end, &signal))
		end = call + 512;
	return s->fn(s->arg, call + 5, end, unwound);
}

/*
 * Before the moves, of n bytes, is a look whether the thread is cancelled already:
 * mov (%rdi),%eax; test %eax,%eax; jne, or testb $8,(%rdi); jne, near or short.
 */
static size_t look_before(const uint8_t *moves, size_t n)
{
	static const uint8_t len[] = { 10, 9, 6, 5 };

	for (size_t i = 0; i < sizeof(len); i++) {
		const uint8_t *p = moves - len[i];

		if (n >= len[i] && p[0] == (len[i] % 4 == 2 ? 0x8b : 0xf6) && p[1] == 0x07)
			return len[i];
	}
	return len[0];
}

/* Patterns that begin in the first n of avail bytes. */
static int scan_moves(const struct scan *s, uint64_t addr, const uint8_t *b, size_t n, size_t avail)
{
	const uint8_t *at = b;
	int ret = 0;

	while (!ret &&
	       (at = memmem(at, (size_t)(b + avail - at), cancellable, sizeof(cancellable)))) {
		size_t i = (size_t)(at - b);

		if (i >= n)
			break;
		ret = s->fn(s->arg, addr + i - look_before(at, i), addr + i + sizeof(cancellable),
		            labels);
		at++;
	}
	return ret;
}

/* Calls that begin there, of what enables cancellation. */
static int scan_calls(const struct scan *s, uint64_t addr, const uint8_t *b, size_t n, size_t avail)
{
	const uint8_t *at = b;
	int ret = 0;

	while (!ret && (at = memchr(at, 0xe8, (size_t)(b + n - at))) && at + 5 <= b + avail) {
		uint64_t next = addr + (size_t)(at - b) + 5;
		int32_t rel;

		memcpy(&rel, at + 1, 4);
		if (next + (uint64_t)(int64_t)rel == s->enable)
			ret = cancellable_function(s, next - 5);
		at++;
	}
	return ret;
}

static int scan_bytes(const struct scan *s, uint64_t addr, const uint8_t *b, size_t n, size_t avail)
{
	int ret = scan_moves(s, addr, b, n, avail);

	return ret || !s->enable ? ret : scan_calls(s, addr, b, n, avail);
}

static int rseq_ranges(struct sym_module *m, inplace_fn fn, void *arg)
{
	const struct sym_rseq *cs;
	size_t n = sym_rseqs(m, &cs), i;
	int ret = 0;

	for (i = 0; i < n && !ret; i++) {
		ret = fn(arg, cs[i].start, cs[i].end, rseq);
		if (!ret && cs[i].abort)
			ret = fn(arg, cs[i].abort - UD1, cs[i].abort, rseq);
	}
	return ret;
}

static int scan_map(const struct scan *s, const struct sym_map *map, uint8_t *buf)
{
	uint64_t at = map->start;
	int ret = 0;

	while (at < map->end && !ret) {
		size_t want = map->end - at < CHUNK ? map->end - at : CHUNK, got = want;

		while (got && sym_original(s->p, at, buf, got))
			got = got > 4096 ? (got - 1) & ~4095ul : got / 2;
		if (got <= OVERLAP || got < want || at + got == map->end)
			return scan_bytes(s, at, buf, got, got);
		ret = scan_bytes(s, at, buf, got - OVERLAP, got);
		at += got - OVERLAP;
	}
	return ret;
}

int inplace_ranges(struct sym_proc *p, struct sym_module *m, inplace_fn fn, void *arg)
{
	struct scan s = { p, 0, fn, arg };
	int ret = rseq_ranges(m, fn, arg);
	uint8_t *buf;
	size_t i;

	if (ret || !has_libc(p, m))
		return ret;
	s.enable = find_enabler(p, m);
	buf = malloc(CHUNK);
	if (!buf)
		return -ENOMEM;
	for (i = 0; i < sym_nr_maps(p) && !ret; i++) {
		const struct sym_map *map = sym_map_at(p, i);

		if (map->module == m && map->x)
			ret = scan_map(&s, map, buf);
	}
	free(buf);
	return ret;
}

struct asked {
	uint64_t addr;
	const char *why;
};

static int is_in(void *arg, uint64_t start, uint64_t end, const char *why)
{
	struct asked *a = arg;

	if (a->addr - start < end - start)
		a->why = why;
	return a->why != NULL;
}

/* The code from *from, or from as near to addr as it can be read, to some bytes behind addr. */
static uint8_t *read_around(struct sym_proc *p, uint64_t *from, uint64_t addr, size_t *len)
{
	uint8_t *buf = malloc(addr - *from + OVERLAP);

	if (!buf)
		return NULL;
	if (addr - *from > OVERLAP && sym_original(p, *from, buf, addr - *from))
		*from = addr - OVERLAP;
	while (*from < addr && sym_original(p, *from, buf, addr - *from))
		++*from;
	*len = addr - *from + OVERLAP;
	while (*len > addr - *from && sym_original(p, *from, buf, *len))
		--*len;
	return buf;
}

/* Only what is near: the function of addr, and a pattern around it. */
const char *inplace_check(struct sym_proc *p, struct sym_module *m, uint64_t addr)
{
	struct asked a = { addr, NULL };
	struct scan s = { p, 0, is_in, &a };
	uint64_t start, end, from = addr - OVERLAP;
	uint8_t *buf;
	size_t len;
	bool signal;

	if (rseq_ranges(m, is_in, &a) || !has_libc(p, m))
		return a.why;
	if (!sym_bounds(p, addr, &start, &end, &signal) && start < from && addr - start < CHUNK)
		from = start;
	buf = read_around(p, &from, addr, &len);
	if (!buf)
		return "there is no memory to look at the code around it";
	s.enable = find_enabler(p, m);
	scan_bytes(&s, from, buf, len, len);
	free(buf);
	return a.why;
}
