/* SPDX-License-Identifier: MIT */
/* Frames of the live display. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "front/display.h"

#define EOL "\033[K\r\n"
#define END "\033[K\033[J"

static void expect(const char *text, unsigned int rows, unsigned int columns, const char *frame)
{
	char *got = NULL;
	size_t len;
	FILE *f = open_memstream(&got, &len);

	display_frame(f, text, "foot", rows, columns);
	fclose(f);
	assert_string_equal(got, frame);
	free(got);
}

static void all_lines_are_shown_where_there_is_room(void **state)
{
	expect("one\ntwo\n", 24, 80, "\033[Hone" EOL "two" EOL "foot" END);
	expect("one\ntwo\n", 3, 80, "\033[Hone" EOL "two" EOL "foot" END);
}

static void a_narrow_window_cuts_lines(void **state)
{
	expect("123456\n12\n", 24, 4, "\033[H1234" EOL "12" EOL "foot" END);
}

static void a_low_window_says_that_there_is_more(void **state)
{
	expect("1\n2\n3\n4\n", 4, 80,
	       "\033[H1" EOL "2" EOL "... more in a higher window" EOL "foot" END);
}

static void the_smallest_windows_hold_the_foot(void **state)
{
	expect("1\n2\n", 1, 2, "\033[Hfo" END);
	expect("1\n2\n", 0, 0, "\033[H" END);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_lines_are_shown_where_there_is_room),
		cmocka_unit_test(a_narrow_window_cuts_lines),
		cmocka_unit_test(a_low_window_says_that_there_is_more),
		cmocka_unit_test(the_smallest_windows_hold_the_foot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
