/* SPDX-License-Identifier: MIT */
/*
 * /proc/PID/maps as an array.
 *
 * The kernel writes a newline in a path as \012 and nothing else in an escaped
 * form (a backslash stays one), so that is all that is undone; a file whose
 * name really has these four characters is found by its raw name (file.c).
 */
#include "sym/internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAPS_MAX (UINT64_C(256) << 20)
#define DELETED " (deleted)"

int sym_grow(void *array, size_t *room, size_t nr, size_t size)
{
	void **a = array;
	size_t want = *room ? *room * 2 : 64;
	void *p;

	if (nr < *room)
		return 0;
	p = reallocarray(*a, want, size);
	if (!p)
		return -ENOMEM;
	*a = p;
	*room = want;
	return 0;
}

static int rehash(struct sym_proc *p)
{
	size_t room = p->room_strings ? p->room_strings * 2 : 256;
	char **table = calloc(room, sizeof(*table));

	if (!table)
		return -ENOMEM;
	for (size_t i = 0; i < p->room_strings; i++) {
		char *s = p->strings[i];
		size_t at;

		if (!s)
			continue;
		at = symtab_hash(s, strlen(s)) & (room - 1);
		while (table[at])
			at = (at + 1) & (room - 1);
		table[at] = s;
	}
	free(p->strings);
	p->strings = table;
	p->room_strings = room;
	return 0;
}

/* One copy for the life of the process's handle: refreshes give the same pointers. */
const char *sym_intern(struct sym_proc *p, const char *s, size_t len)
{
	size_t at;

	len = strnlen(s, len);
	if (!len)
		return "";
	if (p->nr_strings * 2 >= p->room_strings && rehash(p))
		return NULL;
	at = symtab_hash(s, len) & (p->room_strings - 1);
	while (p->strings[at]) {
		if (!strncmp(p->strings[at], s, len) && !p->strings[at][len])
			return p->strings[at];
		at = (at + 1) & (p->room_strings - 1);
	}
	p->strings[at] = strndup(s, len);
	p->nr_strings += !!p->strings[at];
	return p->strings[at];
}

static const char *number(const char *s, const char *end, int base, uint64_t *ret)
{
	uint64_t v = 0;
	const char *at = s;

	for (; at < end; at++) {
		unsigned int c = (unsigned char)*at, digit;

		if (c >= '0' && c <= '9')
			digit = c - '0';
		else if (base == 16 && c >= 'a' && c <= 'f')
			digit = c - 'a' + 10;
		else
			break;
		if (v > (UINT64_MAX - digit) / (unsigned int)base)
			return NULL;
		v = v * (unsigned int)base + digit;
	}
	*ret = v;
	return at > s ? at : NULL;
}

/* A number and the character behind it. */
static const char *field(const char *s, const char *end, int base, char stop, uint64_t *ret)
{
	s = s ? number(s, end, base, ret) : NULL;
	return s && s < end && *s == stop ? s + 1 : NULL;
}

static int set_path(struct sym_proc *p, const char *s, const char *end)
{
	struct sym_map *m = &p->maps[p->nr_maps];
	size_t len = (size_t)(end - s), out = 0, cut = strlen(DELETED);
	char *buf = malloc(len + 1);

	if (!buf)
		return -ENOMEM;
	for (size_t i = 0; i < len; out++) {
		bool newline = len - i >= 4 && !memcmp(s + i, "\\012", 4);

		buf[out] = newline ? '\n' : s[i];
		i += newline ? 4 : 1;
	}
	if (out > cut && !memcmp(buf + out - cut, DELETED, cut)) {
		out -= cut;
		m->deleted = true;
	}
	m->path = sym_intern(p, buf, out);
	p->raw[p->nr_maps] = sym_intern(p, s, len);
	free(buf);
	return m->path && p->raw[p->nr_maps] ? 0 : -ENOMEM;
}

/* "start-end rwxp offset major:minor inode   path"; a line that isn't is left out. */
static int parse_line(struct sym_proc *p, const char *s, const char *end)
{
	struct sym_map *m = &p->maps[p->nr_maps];
	uint64_t major = 0, minor = 0;
	int r;

	memset(m, 0, sizeof(*m));
	s = field(s, end, 16, '-', &m->start);
	s = field(s, end, 16, ' ', &m->end);
	if (!s || end - s < 5 || s[4] != ' ' || m->end <= m->start)
		return 0;
	m->r = s[0] == 'r';
	m->w = s[1] == 'w';
	m->x = s[2] == 'x';
	m->shared = s[3] == 's';
	s = field(s + 5, end, 16, ' ', &m->offset);
	s = field(s, end, 16, ':', &major);
	s = field(s, end, 16, ' ', &minor);
	s = s ? number(s, end, 10, &m->inode) : NULL;
	if (!s || (s < end && *s != ' '))
		return 0;
	/* By address and apart: everything else searches by halves. */
	if (p->nr_maps && p->maps[p->nr_maps - 1].end > m->start)
		return 0;
	m->major = (uint32_t)major;
	m->minor = (uint32_t)minor;
	while (s < end && *s == ' ')
		s++;
	r = set_path(p, s, end);
	p->nr_maps += !r;
	return r;
}

int maps_parse(struct sym_proc *p, const char *text, size_t len)
{
	const char *end = text + len;

	p->nr_maps = 0;
	while (text < end) {
		const char *eol = memchr(text, '\n', (size_t)(end - text));
		size_t room = p->room_maps;

		if (!eol)
			eol = end;
		if (sym_grow(&p->raw, &room, p->nr_maps, sizeof(*p->raw)) ||
		    sym_grow(&p->maps, &p->room_maps, p->nr_maps, sizeof(*p->maps)) ||
		    parse_line(p, text, eol))
			return -ENOMEM;
		text = eol + 1;
	}
	return 0;
}

static int slurp(const char *path, char **ret, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), r = 0;
	size_t room = 0;

	*ret = NULL;
	*len = 0;
	if (fd < 0)
		return -errno;
	while (!r) {
		ssize_t n;

		r = *len > MAPS_MAX ? -EFBIG : 0;
		if (!r && room - *len < 65536) {
			char *more = realloc(*ret, room = room ? room * 2 : 262144);

			r = more ? 0 : -ENOMEM;
			*ret = more ? more : *ret;
		}
		if (r)
			break;
		n = read(fd, *ret + *len, room - *len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			r = n ? -errno : 0;
			break;
		}
		*len += (size_t)n;
	}
	close(fd);
	return r;
}

int maps_read(struct sym_proc *p, struct err *err)
{
	char path[64], *text;
	size_t len;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)p->pid);
	r = slurp(path, &text, &len);
	if (r == -ENOENT)
		r = -ESRCH;
	if (r == -EACCES)
		r = -EPERM;
	if (r)
		err_set(err, r, "cannot read %s: %s", path, strerror(-r));
	else if (len)
		r = maps_parse(p, text, len);
	free(text);
	/* The last view stays: what the dead have left behind still has names in it. */
	if (!r && (!len || !p->nr_maps))
		r = err_set(err, -ESRCH, "process %d has no memory: it is dead or a kernel thread",
		            (int)p->pid);
	return r;
}
