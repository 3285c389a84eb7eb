/* SPDX-License-Identifier: MIT */
/*
 * How much of real programs gets the jump form: shares of function entries and
 * of all instructions, by reason, for what is installed here; and that tables
 * and the slow decoder agree on all of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <time.h>

#include "plan/window.h"
#include "plan/x86/brief.h"
#include "unit/plan/module_facts.h"

#define LIB "/usr/lib/x86_64-linux-gnu/"

static const char *const files[] = {
	LIB "libc.so.6",      LIB "libstdc++.so.6",    "/usr/bin/python3.11",
	LIB "libcrypto.so.3", "/usr/bin/redis-server", LIB "libsqlite3.so.0",
};

struct shares {
	size_t all, by[PLAN_WINDOW_REASONS];
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void look(const struct plan_targets *t, struct facts *f, uint64_t addr, struct shares *s)
{
	uint8_t code[PLAN_WINDOW_MAX];
	struct plan_window_request req = { .targets = t, .code = code, .addr = addr };
	struct plan_window w;

	req.avail = facts_read(f, addr, code, sizeof(code));
	plan_window(&req, &w);
	s->all++;
	s->by[w.why]++;
}

static double percent(const struct shares *s)
{
	return s->all ? 100.0 * (double)s->by[PLAN_WINDOW_OK] / (double)s->all : 0;
}

static void print_shares(const char *what, const struct shares *s)
{
	printf("  %-12s %8zu, %.2f %%", what, s->all, percent(s));
	for (int i = 1; i < PLAN_WINDOW_REASONS; i++)
		if (s->by[i])
			printf("; %s: %zu", plan_window_reason((enum plan_window_why)i), s->by[i]);
	printf("\n");
}

static void all_instructions(const struct plan_targets *t, struct facts *f, struct shares *insns)
{
	uint64_t done = 0;

	for (size_t i = 0; i < f->m.nr_funcs; i++) {
		const struct plan_region *r = plan_targets_region(t, f->func[i].start);

		if (!r || r->start < done)
			continue;
		for (uint64_t a = r->start; a < r->end; a++)
			if (plan_targets_boundary(t, a))
				look(t, f, a, insns);
		done = r->end;
	}
}

static void most_entries_and_instructions_of_real_programs_get_the_jump_form(void **state)
{
	unsigned int seen = 0;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct shares entries = { 0 }, insns = { 0 };
		struct plan_targets *t;
		struct facts f;
		double start;

		if (!facts_load(&f, files[i])) {
			printf("skipped %s: not installed\n", files[i]);
			continue;
		}
		start = seconds();
		assert_int_equal(plan_targets_new(&t, &f.m), 0);
		printf("%s: %zu functions, targets in %.3f s, %zu KiB\n", files[i], f.m.nr_funcs,
		       seconds() - start, plan_targets_bytes(t) >> 10);
		for (size_t k = 0; k < f.m.nr_funcs; k++)
			if (!f.func[k].part)
				look(t, &f, f.func[k].start, &entries);
		all_instructions(t, &f, &insns);
		print_shares("entries", &entries);
		print_shares("instructions", &insns);
		assert_true(percent(&entries) >= 97);
		assert_true(percent(&insns) >= 90);
		plan_targets_free(t);
		facts_free(&f);
		seen++;
	}
	assert_true(seen > 0);
}

static bool same(const struct brief *a, const struct brief *b)
{
	return a->len == b->len && a->map == b->map && a->op == b->op &&
	       (a->rex & 15) == (b->rex & 15) && a->has_modrm == b->has_modrm &&
	       a->modrm == b->modrm && a->disp == b->disp && a->imm == b->imm &&
	       a->imm_size == b->imm_size && a->relative == b->relative &&
	       (!brief_has_sib(a) || a->sib == b->sib);
}

static uint64_t rng = 0x627269656621UL;

static void some_bytes(uint8_t code[16], const struct facts *f)
{
	size_t avail = 0;
	const struct plan_code *c;

	for (int i = 0; i < 16; i++) {
		rng = rng * 6364136223846793005UL + 1442695040888963407UL;
		code[i] = (uint8_t)(rng >> 56);
	}
	switch (rng >> 40 & 7) {
	case 0: /* a two-byte opcode */
		code[0] = 0x0f;
		return;
	case 1:
		code[0] = 0x66;
		return;
	case 2:
		code[0] = (uint8_t)(0x40 | (code[0] & 15));
		code[1] = 0x0f;
		return;
	case 3:
		code[0] = code[0] & 1 ? 0xf2 : 0xf3;
		return;
	case 4: /* anything: plain noise */
		return;
	}
	if (!f->m.nr_code)
		return;
	c = &f->code[f->m.nr_code > 1 ? rng >> 32 & 1 : 0];
	for (size_t k = 1; k < f->m.nr_code; k++)
		if (f->code[k].size > c->size)
			c = &f->code[k];
	avail = (size_t)((rng >> 8) % c->size);
	memcpy(code, c->bytes + avail, c->size - avail < 16 ? c->size - avail : 16);
}

static void tables_decode_as_zydis_does(void **state)
{
	struct brief a, b;
	struct facts f;

	if (!facts_load(&f, files[0]))
		memset(&f, 0, sizeof(f));
	for (int i = 0; i < 2000000; i++) {
		size_t avail = (size_t)(i % 9 ? 16 : i / 9 % 16);
		uint8_t code[16];
		bool fast, slow;

		some_bytes(code, &f);
		fast = brief_decode(code, avail, 0x1000, &a);
		slow = brief_decode_slow(code, avail, 0x1000, &b);
		if (fast != slow || (fast && !same(&a, &b))) {
			for (int k = 0; k < 16; k++)
				printf(" %02x", code[k]);
			fail_msg("of %zu bytes: length %d, not %d", avail, a.len, b.len);
		}
	}
	if (f.file)
		facts_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(most_entries_and_instructions_of_real_programs_get_the_jump_form),
		cmocka_unit_test(tables_decode_as_zydis_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
