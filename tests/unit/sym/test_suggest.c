/* SPDX-License-Identifier: MIT */
#include "help.h"

static struct sym_proc *self;

static int open_self(void **state)
{
	self = open_proc(getpid());
	return 0;
}

static int close_self(void **state)
{
	sym_close(self);
	return 0;
}

static const char *first(const char *name)
{
	const char *out[4];
	size_t nr = sym_suggest(self, sym_module_find(self, "libc.so.6"), name, out, 4);

	return nr ? out[0] : "nothing";
}

static void a_letter_too_much_too_little_or_wrong_is_found(void **state)
{
	assert_string_equal(first("pthread_creat"), "pthread_create");
	assert_string_equal(first("pthread_createe"), "pthread_create");
	assert_string_equal(first("pthread_creaze"), "pthread_create");
}

static void swapped_letters_are_found(void **state)
{
	/* so short that one edit is all it may take */
	assert_string_equal(first("clsoe"), "close");
}

static void case_and_underscores_come_first(void **state)
{
	assert_string_equal(first("PTHREAD_CREATE"), "pthread_create");
	assert_string_equal(first("_getppid"), "getppid");
}

static void what_is_near_nothing_finds_nothing(void **state)
{
	char longest[4096];

	assert_string_equal(first("qqqqqqqqqqqqqqqqqqqqqqqqqqq"), "nothing");
	assert_string_equal(first(""), "nothing");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	assert_string_equal(first(longest), "nothing");
}

static void names_come_once_and_at_most_as_many_as_asked_for(void **state)
{
	const char *out[3] = { NULL, NULL, "untouched" };
	size_t nr = sym_suggest(self, NULL, "pthread_mutex_lok", out, 2);

	assert_int_equal(nr, 2);
	assert_string_equal(out[0], "pthread_mutex_lock");
	assert_string_not_equal(out[0], out[1]);
	assert_string_equal(out[2], "untouched");
}

static void objects_are_no_suggestion(void **state)
{
	assert_string_not_equal(first("stder"), "stderr");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_letter_too_much_too_little_or_wrong_is_found),
		cmocka_unit_test(swapped_letters_are_found),
		cmocka_unit_test(case_and_underscores_come_first),
		cmocka_unit_test(what_is_near_nothing_finds_nothing),
		cmocka_unit_test(names_come_once_and_at_most_as_many_as_asked_for),
		cmocka_unit_test(objects_are_no_suggestion),
	};

	return cmocka_run_group_tests(tests, open_self, close_self);
}
