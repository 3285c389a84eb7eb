/* SPDX-License-Identifier: MIT */
/*
 * Static branches as their files have them: this program's own.  No probe stands
 * on one, and where it leads to counts as entered.
 */
#include "ukprobes/jump_label.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "patch/place.h"
#include "patch/survey.h"
#include "plan/targets.h"
#include "sym/facts.h"
#include "sym/sym.h"

static DEFINE_STATIC_KEY_FALSE(key);
static struct sym_proc *sym;
static struct sym_module *self;

static __attribute__((noinline, used)) int tests_a_key(int x)
{
	if (static_branch_unlikely(&key))
		return x * 3;
	return x + 1;
}

static int open_sym(void **state)
{
	struct err err = ERR_INIT;

	if (sym_open(&sym, getpid(), &err))
		return -1;
	self = sym_module_of(sym, (uint64_t)tests_a_key);
	return self ? 0 : -1;
}

static int close_sym(void **state)
{
	sym_close(sym);
	return 0;
}

static const struct jump_entry *entry(void)
{
	assert_ptr_equal(&__start_ukp_jump_table + 1, &__stop_ukp_jump_table);
	return &__start_ukp_jump_table;
}

static uint64_t at(const int *field)
{
	return (uint64_t)field + (uint64_t)(int64_t)*field;
}

static void its_five_bytes_are_known(void **state)
{
	uint64_t code = at(&entry()->code), i;

	assert_in_range(code, (uint64_t)tests_a_key, (uint64_t)tests_a_key + 64);
	assert_false(sym_label(self, code - 1));
	for (i = 0; i < 5; i++)
		assert_true(sym_label(self, code + i));
	assert_false(sym_label(self, code + 5));
	assert_false(sym_label(sym_module_of(sym, (uint64_t)strlen), (uint64_t)strlen));
}

static void a_probe_on_it_is_refused(void **state)
{
	uint64_t code = at(&entry()->code);
	struct err err = ERR_INIT;
	struct survey *s;

	assert_int_equal(place_check(sym, code, false, NULL, -1, &err), -EINVAL);
	assert_non_null(strstr(err.text, place_label));
	assert_int_equal(place_check(sym, code + 5, false, NULL, -1, &err), 0);
	assert_int_equal(survey_open(&s, sym, false), 0);
	assert_ptr_equal(survey_check(s, code, NULL), place_label);
	assert_null(survey_check(s, code + 5, NULL));
	survey_close(s);
}

static bool is_extra(const struct sym_facts *f, uint64_t addr)
{
	size_t i;

	for (i = 0; i < f->nr_extra; i++)
		if (f->extra[i] == addr - sym_module_bias(self))
			return true;
	return false;
}

static void where_it_stands_and_leads_may_be_entered(void **state)
{
	struct err err = ERR_INIT;
	struct sym_facts *f;

	assert_int_equal(sym_facts(self, &f, &err), 0);
	assert_true(is_extra(f, at(&entry()->code)));
	assert_true(is_extra(f, at(&entry()->target)));
	assert_false(is_extra(f, at(&entry()->code) + 1));
	sym_facts_free(f);
}

static ssize_t read_own(void *arg, uint64_t addr, void *buf, size_t len)
{
	memcpy(buf, (void *)addr, len);
	return (ssize_t)len;
}

static void note(const struct sym_diff *d, void *arg)
{
	if (d->map->module == self)
		++*(int *)arg;
}

static void a_change_of_it_is_no_difference(void **state)
{
	struct err err = ERR_INIT;
	int differs = 0;

	assert_int_equal(static_branch_enable(&key), 0);
	assert_int_equal(tests_a_key(5), 15);
	sym_verify(sym, read_own, NULL, note, &differs, &err);
	assert_int_equal(static_branch_disable(&key), 0);
	assert_int_equal(tests_a_key(5), 6);
	assert_int_equal(differs, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_five_bytes_are_known),
		cmocka_unit_test(a_probe_on_it_is_refused),
		cmocka_unit_test(where_it_stands_and_leads_may_be_entered),
		cmocka_unit_test(a_change_of_it_is_no_difference),
	};

	return cmocka_run_group_tests(tests, open_sym, close_sym);
}
