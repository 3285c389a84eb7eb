/* SPDX-License-Identifier: MIT */
/* Lines of /tmp/perf-PID.map, right and wrong ones, and whose file it may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sym/sym.h"

static bool is(const char *line, uint64_t addr, uint64_t size)
{
	uint64_t a = 0, s = 0;

	return sym_perfmap_line(line, "made", &a, &s) && a == addr && s == size;
}

static void lines_are_read_as_perf_reads_them(void **state)
{
	uint64_t a = 7, s = 7;

	assert_true(is("7f00 20 made\n", 0x7f00, 0x20));
	assert_true(is("0x7f00 0x20 made", 0x7f00, 0x20));
	assert_false(is("7f00 20 made up\n", 0x7f00, 0x20));
	assert_false(is("7f00 20 mad\n", 0x7f00, 0x20));
	assert_false(is("7f00 0 made\n", 0x7f00, 0));
	assert_false(is("ffffffffffffffff 20 made\n", 0xffffffffffffffff, 0x20));
	assert_false(is("7f00 made\n", 0x7f00, 0));
	assert_false(is("made\n", 0, 0));
	assert_false(is("\n", 0, 0));
	assert_false(is("", 0, 0));
	assert_true(sym_perfmap_line("1 2 a name of words\n", "a name of words", &a, &s));
	assert_false(sym_perfmap_line("8 8 x\n", "made", &a, &s));
	assert_int_equal(a, 1);
	assert_int_equal(s, 2);
}

static void the_last_line_of_a_plain_file_holds(void **state)
{
	struct err err = ERR_INIT;
	struct sym_proc *p;
	uint64_t a = 0, s = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	assert_int_equal(sym_open(&p, getpid(), &err), 0);
	assert_false(sym_perfmap(p, "made", &a, &s));
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "1000 10 made\n");
	for (int i = 0; i < 5000; i++)
		fputc('x', f);
	fprintf(f, "\n2000 20 made\n3000 30 unmade\n");
	fclose(f);
	assert_true(sym_perfmap(p, "made", &a, &s));
	assert_int_equal(a, 0x2000);
	assert_int_equal(s, 0x20);
	/* Another's. */
	if (!geteuid()) {
		assert_int_equal(chown(path, 1, 1), 0);
		assert_false(sym_perfmap(p, "made", &a, &s));
	}
	unlink(path);
	/* No file. */
	assert_int_equal(symlink("/dev/zero", path), 0);
	assert_false(sym_perfmap(p, "made", &a, &s));
	unlink(path);
	sym_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_read_as_perf_reads_them),
		cmocka_unit_test(the_last_line_of_a_plain_file_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
