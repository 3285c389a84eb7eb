/* SPDX-License-Identifier: MIT */
/*
 * Changing code under runners, on a model of memory in which a core may see, of
 * each byte, any value that it had since the last sync: whatever is seen then
 * must be all old, all new, or begin with an int3.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "patch/poke.h"

enum { SIZE = 64, BASE = 0x1000 };

struct model {
	uint8_t mem[SIZE];
	bool seen[SIZE][256]; /* since the last sync */
	const struct poke *v; /* what is checked after each step */
	size_t n;
	unsigned int syncs, writes, diverts;
	uint64_t trap_to;
	int fail_write, fail_sync; /* the how manieth from now, 0: none */
};

static void forget(struct model *m)
{
	memset(m->seen, 0, sizeof(m->seen));
	for (int i = 0; i < SIZE; i++)
		m->seen[i][m->mem[i]] = true;
}

/* Can a core see, behind a head that is no int3, a mixture? */
static void check(const struct model *m, const struct poke *p)
{
	const uint64_t at = p->addr - BASE;
	int head;

	for (head = 0; head < 256; head++) {
		bool all_old = true, all_new = true;

		if (!m->seen[at][head] || head == POKE_INT3)
			continue;
		assert_true(head == p->from[0] || head == p->to[0]);
		for (int i = 1; i < p->len; i++)
			for (int b = 0; b < 256; b++) {
				if (!m->seen[at + (uint64_t)i][b])
					continue;
				all_old = all_old && b == p->from[i];
				all_new = all_new && b == p->to[i];
			}
		/* The head decides which of the two it has to be, unless both begin alike. */
		if (p->from[0] == p->to[0])
			assert_true(all_old || all_new);
		else
			assert_true(head == p->from[0] ? all_old : all_new);
	}
}

static void check_all(const struct model *m)
{
	for (size_t i = 0; i < m->n; i++)
		check(m, &m->v[i]);
}

static int model_read(void *arg, uint64_t addr, void *buf, size_t len)
{
	struct model *m = arg;

	if (addr < BASE || addr + len > BASE + SIZE)
		return -EFAULT;
	memcpy(buf, m->mem + addr - BASE, len);
	return 0;
}

static int model_write(void *arg, uint64_t addr, const void *buf, size_t len)
{
	struct model *m = arg;
	const uint8_t *p = buf;
	bool fails = m->fail_write && !--m->fail_write;

	m->writes++;
	/* One that fails has written half of it. */
	for (size_t i = 0; i < (fails ? len / 2 : len); i++) {
		m->mem[addr - BASE + i] = p[i];
		m->seen[addr - BASE + i][p[i]] = true;
	}
	check_all(m);
	return fails ? -EIO : 0;
}

static int model_sync(void *arg)
{
	struct model *m = arg;

	if (m->fail_sync && !--m->fail_sync)
		return -EPERM;
	m->syncs++;
	forget(m);
	return 0;
}

static int model_divert(void *arg, uint64_t addr, uint64_t to)
{
	struct model *m = arg;

	assert_int_equal(m->writes, 0);
	m->diverts++;
	m->trap_to = to;
	return 0;
}

static const struct poke_ops ops = { model_read, model_write, model_sync, model_divert };

static void start(struct model *m, const struct poke *v, size_t n)
{
	memset(m, 0, sizeof(*m));
	m->v = v;
	m->n = n;
	for (size_t i = 0; i < n; i++)
		memcpy(m->mem + v[i].addr - BASE, v[i].from, v[i].len);
	forget(m);
}

static struct poke change(uint64_t off, uint8_t len, const char *from, const char *to)
{
	struct poke p = { .addr = BASE + off, .len = len };

	memcpy(p.from, from, len);
	memcpy(p.to, to, len);
	return p;
}

static void has(const struct model *m, const struct poke *p, const uint8_t *bytes)
{
	assert_memory_equal(m->mem + p->addr - BASE, bytes, p->len);
}

static void all_steps_where_head_and_tail_change(void **state)
{
	struct poke v[] = { change(3, 5, "\x55\x48\x89\xe5\x90", "\xe9\x10\x20\x30\x40"),
		            change(20, 2, "\x90\x91", "\xeb\x07"),
		            /* the head stays */
		            change(30, 5, "\xe9\x01\x02\x03\x04", "\xe9\x11\x12\x13\x14") };
	struct model m;

	start(&m, v, 3);
	assert_int_equal(poke_text(&ops, &m, v, 3), 0);
	for (int i = 0; i < 3; i++)
		has(&m, &v[i], v[i].to);
	assert_int_equal(m.syncs, 3);
	assert_int_equal(m.writes, 9);
	assert_int_equal(m.diverts, 0);
}

static void a_breakpoint_is_one_end_of_the_change(void **state)
{
	struct poke in = change(0, 5, "\xcc\x48\x89\xe5\x90", "\xe9\x10\x20\x30\x40");
	struct poke out = change(0, 5, "\xe9\x10\x20\x30\x40", "\xcc\x48\x89\xe5\x90");
	struct model m;

	start(&m, &in, 1);
	assert_int_equal(poke_text(&ops, &m, &in, 1), 0);
	has(&m, &in, in.to);
	assert_int_equal(m.syncs, 2);
	start(&m, &out, 1);
	assert_int_equal(poke_text(&ops, &m, &out, 1), 0);
	has(&m, &out, out.to);
	assert_int_equal(m.syncs, 2);
}

static void a_lone_head_needs_one_step(void **state)
{
	struct poke p = change(7, 5, "\x55\x48\x89\xe5\x90", "\xcc\x48\x89\xe5\x90");
	struct model m;

	start(&m, &p, 1);
	assert_int_equal(poke_text(&ops, &m, &p, 1), 0);
	has(&m, &p, p.to);
	assert_int_equal(m.syncs, 1);
	assert_int_equal(m.writes, 1);
}

static void what_is_not_as_expected_is_left_alone(void **state)
{
	struct poke v[] = { change(0, 5, "\x55\x48\x89\xe5\x90", "\xe9\x10\x20\x30\x40"),
		            change(10, 5, "\x55\x48\x89\xe5\x90", "\xe9\x10\x20\x30\x40"),
		            change(20, 1, "\x55", "\x56") };
	struct model m;

	start(&m, v, 3);
	m.mem[12] = 0x77;
	v[2].len = 0;
	forget(&m);
	m.n = 1;
	assert_int_equal(poke_text(&ops, &m, v, 3), -EINVAL);
	has(&m, &v[0], v[0].to);
	assert_int_equal(v[0].error, 0);
	assert_int_equal(m.mem[10], 0x55);
	assert_int_equal(v[1].error, -EINVAL);
	assert_int_equal(v[2].error, -EINVAL);
}

static void traps_are_diverted_before_the_first_of_them(void **state)
{
	struct poke p = change(0, 5, "\x0f\x1f\x44\x00\x00", "\xe9\x10\x20\x30\x40");
	struct model m;

	p.trap_to = 0x4711;
	start(&m, &p, 1);
	assert_int_equal(poke_text(&ops, &m, &p, 1), 0);
	assert_int_equal(m.diverts, 1);
	assert_int_equal(m.trap_to, 0x4711);
}

/* Whichever operation fails: what was there, what was wanted, or an int3. */
static void a_failure_leaves_what_is_safe(void **state)
{
	struct model m;
	int i;

	for (i = 1; i <= 6; i++) {
		struct poke v[] = { change(0, 5, "\x55\x48\x89\xe5\x90", "\xe9\x10\x20\x30\x40"),
			            change(10, 5, "\x56\x48\x89\xe5\x90", "\xe9\x11\x20\x30\x40") };

		start(&m, v, 2);
		m.fail_write = i;
		assert_int_equal(poke_text(&ops, &m, v, 2), -EIO);
		assert_int_equal(!v[0].error + !v[1].error, 1);
		has(&m, &v[!!v[0].error], v[!!v[0].error].to);
		if (m.mem[v[!v[0].error].addr - BASE] != POKE_INT3)
			has(&m, &v[!v[0].error], v[!v[0].error].from);
	}
	for (i = 1; i <= 3; i++) {
		struct poke p = change(0, 5, "\x55\x48\x89\xe5\x90", "\xe9\x10\x20\x30\x40");

		start(&m, &p, 1);
		m.fail_sync = i;
		assert_int_equal(poke_text(&ops, &m, &p, 1), -EPERM);
		assert_int_equal(p.error, -EPERM);
		if (i == 1)
			has(&m, &p, p.from);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_steps_where_head_and_tail_change),
		cmocka_unit_test(a_breakpoint_is_one_end_of_the_change),
		cmocka_unit_test(a_lone_head_needs_one_step),
		cmocka_unit_test(what_is_not_as_expected_is_left_alone),
		cmocka_unit_test(traps_are_diverted_before_the_first_of_them),
		cmocka_unit_test(a_failure_leaves_what_is_safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
