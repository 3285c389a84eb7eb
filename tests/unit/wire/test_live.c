/* SPDX-License-Identifier: MIT */
/*
 * Whose breakpoint it is, by the bytes around it: what programs do to their code, and
 * what comes to the same place later.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "wire/live.h"

/* push; mov; mov $5,%eax; add; pop; ret; nop; nop */
static const uint8_t text[UKP_LIVE_MAX] = { 0x55, 0x48, 0x89, 0xe5, 0xb8, 5,    0,    0,
	                                    0,    0x01, 0xf8, 0x5d, 0xc3, 0x90, 0x90, 0x90 };

static struct ukp_site site_at(unsigned int off, uint8_t len)
{
	struct ukp_site s = { .addr = 0x1000 + off, .len = len };

	memset(s.orig, 0x90, sizeof(s.orig));
	memcpy(s.orig, text + off, sizeof(text) - off);
	return s;
}

static enum ukp_live now(const struct ukp_site *s, uint8_t now[UKP_LIVE_MAX])
{
	memcpy(now, s->orig, UKP_LIVE_MAX);
	now[0] = 0xcc;
	return ukp_live_judge(s, now, UKP_LIVE_MAX);
}

static void what_stands_is_ours(void **state)
{
	struct ukp_site s = site_at(0, 1), m = site_at(4, 5);
	uint8_t b[UKP_LIVE_MAX];

	assert_int_equal(now(&s, b), UKP_LIVE_OURS);
	assert_int_equal(now(&m, b), UKP_LIVE_OURS);
	assert_int_equal(ukp_live_judge(&s, b, 0), UKP_LIVE_GONE);
	assert_int_equal(ukp_live_judge(&s, b, UKP_LIVE_MAX + 1), UKP_LIVE_GONE);
}

static void patched_operands_are_told(void **state)
{
	struct ukp_site s = site_at(0, 1), m = site_at(4, 5);
	uint8_t b[UKP_LIVE_MAX];

	/* Its own. */
	now(&m, b);
	memset(b + 1, 0x77, 4);
	assert_int_equal(ukp_live_judge(&m, b, UKP_LIVE_MAX), UKP_LIVE_PATCHED);
	/* That of an instruction behind it. */
	now(&s, b);
	memset(b + 5, 0x77, 4);
	assert_int_equal(ukp_live_judge(&s, b, UKP_LIVE_MAX), UKP_LIVE_OURS);
	/* As large as operands become, and another one behind. */
	now(&s, b);
	memset(b + 1, 0x77, 8);
	assert_int_equal(ukp_live_judge(&s, b, UKP_LIVE_MAX), UKP_LIVE_OURS);
}

static void what_came_later_is_another_s(void **state)
{
	struct ukp_site s = site_at(0, 1), m = site_at(4, 5);
	uint8_t b[UKP_LIVE_MAX];

	/* Our byte is gone. */
	now(&s, b);
	b[0] = 0x55;
	assert_int_equal(ukp_live_judge(&s, b, UKP_LIVE_MAX), UKP_LIVE_GONE);
	/* Padding, and a breakpoint of the program's own in other code. */
	memset(b, 0xcc, sizeof(b));
	assert_int_equal(ukp_live_judge(&s, b, UKP_LIVE_MAX), UKP_LIVE_GONE);
	assert_int_equal(ukp_live_judge(&m, b, UKP_LIVE_MAX), UKP_LIVE_GONE);
	memset(b + 1, 0, sizeof(b) - 1);
	assert_int_equal(ukp_live_judge(&s, b, UKP_LIVE_MAX), UKP_LIVE_GONE);
}

static void the_next_page_is_not_looked_at(void **state)
{
	assert_int_equal(ukp_live_bytes(0x1000, 3), UKP_LIVE_MAX);
	assert_int_equal(ukp_live_bytes(0x1ff0, 3), 16);
	assert_int_equal(ukp_live_bytes(0x1ffc, 3), 4);
	assert_int_equal(ukp_live_bytes(0x1fff, 1), 1);
	/* But for the instruction itself. */
	assert_int_equal(ukp_live_bytes(0x1ffe, 7), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_stands_is_ours),
		cmocka_unit_test(patched_operands_are_told),
		cmocka_unit_test(what_came_later_is_another_s),
		cmocka_unit_test(the_next_page_is_not_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
