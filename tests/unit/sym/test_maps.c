/* SPDX-License-Identifier: MIT */
#include "help.h"

static struct sym_proc *parse(const char *text)
{
	struct sym_proc *p = calloc(1, sizeof(*p));

	assert_int_equal(maps_parse(p, text, strlen(text)), 0);
	return p;
}

static void a_line_gives_all_its_fields(void **state)
{
	struct sym_proc *p = parse("7f00-8f00 rw-s 00012000 fe:1c 4711                  /a/b.so\n");
	const struct sym_map *m = sym_map_at(p, 0);

	assert_int_equal(sym_nr_maps(p), 1);
	assert_int_equal(m->start, 0x7f00);
	assert_int_equal(m->end, 0x8f00);
	assert_true(m->r && m->w && !m->x && m->shared);
	assert_int_equal(m->offset, 0x12000);
	assert_int_equal(m->major, 0xfe);
	assert_int_equal(m->minor, 0x1c);
	assert_int_equal(m->inode, 4711);
	assert_string_equal(m->path, "/a/b.so");
	assert_false(m->deleted);
	sym_close(p);
}

static void spaces_and_newlines_of_a_path_are_kept(void **state)
{
	struct sym_proc *p = parse("1000-2000 r-xp 0 00:00 1  /my dir/two  spaces\\012line\n");

	assert_string_equal(sym_map_at(p, 0)->path, "/my dir/two  spaces\nline");
	sym_close(p);
}

static void a_backslash_that_the_kernel_did_not_write_stays(void **state)
{
	struct sym_proc *p = parse("1000-2000 r-xp 0 00:00 1  /a\\040b\\\\01\n");

	assert_string_equal(sym_map_at(p, 0)->path, "/a\\040b\\\\01");
	sym_close(p);
}

static void deleted_is_cut_off_and_told(void **state)
{
	struct sym_proc *p = parse("1000-2000 r-xp 0 00:00 1  /a b (deleted)\n"
	                           "2000-3000 r-xp 0 00:00 1  /a (deleted) b\n");

	assert_string_equal(sym_map_at(p, 0)->path, "/a b");
	assert_true(sym_map_at(p, 0)->deleted);
	assert_string_equal(sym_map_at(p, 1)->path, "/a (deleted) b");
	assert_false(sym_map_at(p, 1)->deleted);
	sym_close(p);
}

static void an_anonymous_mapping_has_an_empty_path(void **state)
{
	struct sym_proc *p = parse("1000-2000 rw-p 00000000 00:00 0 \n"
	                           "3000-4000 rw-p 00000000 00:00 0 \n"
	                           "5000-6000 r-xp 00000000 00:00 0       [vdso]\n");

	assert_string_equal(sym_map_at(p, 0)->path, "");
	assert_string_equal(sym_map_at(p, 2)->path, "[vdso]");
	assert_null(sym_map_find(p, 0x2000));
	assert_ptr_equal(sym_map_find(p, 0x3000), sym_map_at(p, 1));
	assert_ptr_equal(sym_map_find(p, 0x3fff), sym_map_at(p, 1));
	assert_null(sym_map_find(p, 0xfff));
	assert_null(sym_map_find(p, UINT64_MAX));
	sym_close(p);
}

static void a_line_that_is_none_is_left_out(void **state)
{
	static const char *const bad[] = {
		"",
		"x",
		"1000",
		"1000-",
		"1000-2000",
		"1000-2000 r-x",
		"2000-1000 r-xp 0 0:0 0 ",
		"11111111111111111-22222222222222222 r-xp 0 0:0 0",
		"1000-2000 r-xp 0 0:0 ",
		"1000-2000 r-xp zz 0:0 0",
		"1000-2000 r-xp 0 0:0 0x",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char text[256];
		struct sym_proc *p;

		snprintf(text, sizeof(text), "%s\n9000-a000 r-xp 0 0:0 0 /z", bad[i]);
		p = parse(text);
		assert_int_equal(sym_nr_maps(p), 1);
		assert_int_equal(sym_map_at(p, 0)->start, 0x9000);
		sym_close(p);
	}
}

static void our_own_mappings_are_found(void **state)
{
	struct sym_proc *p = open_proc(getpid());
	const struct sym_map *text = sym_map_find(p, (uintptr_t)&our_own_mappings_are_found);
	const struct sym_map *stack = sym_map_find(p, (uintptr_t)&text);
	struct sym_module *m = text->module;

	assert_true(text->x && !text->w);
	assert_non_null(m);
	assert_true(sym_module_is_exe(m));
	assert_string_equal(sym_module_name(m), "test_maps");
	assert_true(stack->w && !stack->module);
	assert_string_equal(stack->path, "[stack]");
	sym_close(p);
}

static void modules_and_strings_outlive_a_refresh(void **state)
{
	struct sym_proc *p = open_proc(getpid());
	struct sym_module *libc = sym_module_find(p, "libc.so.6");
	const char *path = sym_map_find(p, (uintptr_t)&getppid)->path;
	struct err err = ERR_INIT;

	assert_non_null(libc);
	assert_int_equal(sym_refresh(p, &err), 0);
	assert_ptr_equal(sym_module_find(p, "libc.so.6"), libc);
	assert_ptr_equal(sym_map_find(p, (uintptr_t)&getppid)->path, path);
	assert_ptr_equal(sym_module_of(p, (uintptr_t)&getppid), libc);
	sym_close(p);
}

static void a_process_that_is_not_there_is_an_error(void **state)
{
	struct err err = ERR_INIT;
	struct sym_proc *p = (void *)1;

	assert_int_equal(sym_open(&p, 0x7ffffff0, &err), -ESRCH);
	assert_null(p);
	assert_true(*err.text);
}

static void a_zombie_has_no_memory(void **state)
{
	struct err err = ERR_INIT;
	struct sym_proc *p;
	siginfo_t info;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(sym_open(&p, pid, &err), -ESRCH);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_gives_all_its_fields),
		cmocka_unit_test(spaces_and_newlines_of_a_path_are_kept),
		cmocka_unit_test(a_backslash_that_the_kernel_did_not_write_stays),
		cmocka_unit_test(deleted_is_cut_off_and_told),
		cmocka_unit_test(an_anonymous_mapping_has_an_empty_path),
		cmocka_unit_test(a_line_that_is_none_is_left_out),
		cmocka_unit_test(our_own_mappings_are_found),
		cmocka_unit_test(modules_and_strings_outlive_a_refresh),
		cmocka_unit_test(a_process_that_is_not_there_is_an_error),
		cmocka_unit_test(a_zombie_has_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
