/* SPDX-License-Identifier: MIT */
/* Letters, names, places, and where they are found in a process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "unit/lang/fake_sym.h"
#include "unit/lang/run_line.h"

#include "wire/hist.h"

static void shows(const char *text, const char *shown)
{
	struct line_result r;

	run_line(&r, text);
	if (r.code)
		fail_msg("%s: %d %s", text, r.code, r.err.text);
	assert_string_equal(r.shown, shown);
	line_free(&r);
}

static void refuses(const char *text, int code, int column, const char *part)
{
	struct line_result r;

	run_line(&r, text);
	if (r.code != code || r.err.code != code || r.err.column != column ||
	    !strstr(r.err.text, part))
		fail_msg("%s: %d, column %d, '%s'", text, r.code, r.err.column, r.err.text);
	line_free(&r);
}

static void lands(const char *text, uint64_t addr, const char *func)
{
	struct line_result r;

	run_line(&r, text);
	if (r.code)
		fail_msg("%s: %d %s", text, r.code, r.err.text);
	assert_int_equal(r.addr, addr);
	assert_string_equal(r.func.name, func);
	line_free(&r);
}

static void places_of_every_kind_are_shown_as_the_kernel_shows_them(void **state)
{
	(void)state;
	shows("p vfs_read+0x10", "p:ukprobes/p_vfs_read_16 vfs_read+16");
	shows("p libc.so.6:malloc", "p:ukprobes/p_libc_so_6_malloc_0 libc.so.6:malloc");
	shows("p /usr/lib/libc.so.6:malloc",
	      "p:ukprobes/p_libc_so_6_malloc_0 /usr/lib/libc.so.6:malloc");
	shows("p 0x401000", "p:ukprobes/p_0x401000 0x401000");
	shows("r7 0x401000", "r7:ukprobes/r_0x401000 0x401000");
	shows("p libfoo.so:0x300", "p:ukprobes/p_libfoo_0x300 libfoo.so:0x0000000000000300");
	shows("p /opt/a:b/libfoo.so:0x300",
	      "p:ukprobes/p_libfoo_0x300 /opt/a:b/libfoo.so:0x0000000000000300");
	shows("p:g/e libfoo.so:0x300%return", "r:g/e libfoo.so:0x0000000000000300");
	shows("p work.cold", "p:ukprobes/p_work_cold_0 work.cold");
}

static void a_place_is_found_in_the_process(void **state)
{
	(void)state;
	lands("p vfs_read+0x10", 0x401010, "vfs_read");
	lands("p libfoo.so:twice", 0x7f2000000300, "twice");
	lands("p libc.so.6:0x3000", 0x7f0000001000, "malloc");
	lands("p /opt/a:b/libfoo.so:0x300", 0x7f2000000300, "twice");
	lands("p /opt/a:b/libfoo.so:twice", 0x7f2000000300, "twice");
	lands("p 0x402008", 0x402008, "vfs_write");
	lands("p 0x405010", 0x405010, "");
	lands("r 0x405000", 0x405000, "");
}

static void the_loaders_own_copy_of_a_libc_function_does_not_make_it_ambiguous(void **state)
{
	(void)state;
	lands("p malloc", 0x7f0000001000, "malloc");
	lands("p ld-linux-x86-64.so.2:malloc", 0x7f1000001000, "malloc");
	lands("p _dl_start", 0x7f1000002000, "_dl_start");
}

static void an_ambiguous_symbol_lists_what_to_write_instead(void **state)
{
	(void)state;
	refuses("p twice", -EINVAL, 2, "The symbol is not unique: ");
	refuses("p twice", -EINVAL, 2, "prog:twice (0x404300), libfoo.so:twice (0x7f2000000300)");
	/* two in one module have no name of their own; their places in the file do */
	refuses("p:x name_show", -EINVAL, 4, "prog:0x5000 (0x404000), prog:0x5100 (0x404100)");
	lands("p prog:0x5100", 0x404100, "name_show");
	refuses("p libfoo.so:0x40010", -EINVAL, 2, "mapped 2 times");
}

static void an_unknown_symbol_is_answered_with_near_names(void **state)
{
	(void)state;
	refuses("p vfs_raed", -EINVAL, 2,
	        "Invalid probed address or symbol: no symbol vfs_raed; near it: vfs_read or "
	        "vfs_write");
	refuses("p libc.so.6:nothing", -EINVAL, 2, "no symbol nothing in libc.so.6");
	refuses("p vfs_*", -EINVAL, 2, "no symbol vfs_*; only f, and p with +*, take patterns");
	refuses("p nolib:malloc", -ENOENT, 2, "no module 'nolib' is mapped");
	refuses("p shop::sell", -ENOENT, 2, "goes by its mangled name");
	refuses("p nolib.so:0x10", -ENOENT, 2, "'nolib.so' is not mapped");
	refuses("p prog.c:20", -ENOENT, 2, "an offset in a file, no line");
}

static void places_that_hold_no_code_are_refused(void **state)
{
	(void)state;
	refuses("p jiffies", -EINVAL, 2, "data, not a function");
	refuses("p 0x410008", -EINVAL, 2, "not executable");
	refuses("p 0x10", -EINVAL, 2, "not mapped");
	refuses("p prog:0x11000", -EINVAL, 2, "no code of prog");
	refuses("p vfs_read+0x370", -EINVAL, 2, "880 bytes long");
	refuses("p memcpy", -EOPNOTSUPP, 2, "indirect function");
	refuses("p memcpy", -EOPNOTSUPP, 2,
	        "those are __memcpy_avx_unaligned, __memcpy_sse2_unaligned; ");
	refuses("p strlen", -EOPNOTSUPP, 2, "those have no names here: probe its callers");
	refuses("p restore", -EINVAL, 2, "signal handlers");
}

static void a_return_probe_stands_at_an_entry_only(void **state)
{
	const char *text = "Retprobe address must be an function entry";

	(void)state;
	lands("r vfs_read+4", 0x401004, "vfs_read"); /* behind endbr64 */
	refuses("r vfs_write+4", -EINVAL, 2, text);
	refuses("r vfs_read+8", -EINVAL, 2, text);
	refuses("r 0x402008", -EINVAL, 2, text);
	refuses("r 0x405010", -EINVAL, 2, text);
	refuses("r 0x40f000", -EINVAL, 2, "no function is known");
	refuses("r work.cold", -EINVAL, 2, "jumped to");
	refuses("r prog:0x3008", -EINVAL, 2, text);
}

static void f_takes_all_functions_of_a_name_or_glob(void **state)
{
	(void)state;
	lands("f vfs_*", 0x401000, "vfs_read");
	lands("f twice", 0x404300, "twice");
	lands("f libfoo.so:t?ice", 0x7f2000000300, "twice");
	refuses("f vfs_reed", -EINVAL, 2, "is called 'vfs_reed'; near it: vfs_read");
	refuses("f:a libfoo.so:vfs_*", -EINVAL, 4, "matches 'vfs_*' in libfoo.so");
	refuses("f nolib:*", -ENOENT, 2, "no module 'nolib'");
	refuses("f libfoo.so:", -EINVAL, 2, "the name is missing");
	refuses("f vfs_*%foo", -EINVAL, 7, "Invalid probed address suffix");
	refuses("f5 vfs_*", -EINVAL, 1, "Maxactive is only for function exit");
	refuses("f:a vfs_* $duration", -EINVAL, 10, "$duration is not available");
}

static void f_is_named_and_shown_as_the_kernel_does_it(void **state)
{
	(void)state;
	shows("f vfs_read", "f:ukprobes/vfs_read__entry vfs_read");
	shows("f vfs_read%return", "f:ukprobes/vfs_read__exit vfs_read%return");
	shows("f vfs_read $retval", "f:ukprobes/vfs_read__exit vfs_read%return arg1=$retval");
	shows("f vfs_*", "f:ukprobes/vfs____entry vfs_*");
	shows("f libfoo.so:*%return", "f:ukprobes/libfoo__exit libfoo.so:*%return");
	shows("f *", "f:ukprobes/all__entry *");
	shows("f9:g/e vfs_* $arg1 $retval", "f9:g/e vfs_*%return arg1=$arg1 arg2=$retval");
}

static void r_takes_a_glob_as_f_does(void **state)
{
	(void)state;
	shows("r vfs_*", "f:ukprobes/vfs____exit vfs_*%return");
	shows("r7:g/e vfs_r?ad $retval", "f7:g/e vfs_r?ad%return arg1=$retval");
	shows("p libfoo.so:t[wx]ice%return", "f:ukprobes/t_wx_ice__exit libfoo.so:t[wx]ice%return");
	shows("r vfs_read", "r:ukprobes/r_vfs_read_0 vfs_read");
	lands("r vfs_*", 0x401000, "vfs_read");
	lands("r libfoo.so:t?ice", 0x7f2000000300, "twice");
	lands("p vfs_*%return", 0x401000, "vfs_read");
	refuses("r libfoo.so:vfs_*", -EINVAL, 2, "matches 'vfs_*' in libfoo.so");
	refuses("r nolib:*", -ENOENT, 2, "no module 'nolib'");
	refuses("r vfs_*+8", -EINVAL, 2, "Retprobe address");
	refuses("r vfs_*+*", -EINVAL, 2, "Retprobe address");
	refuses("p vfs_*", -EINVAL, 2, "vfs_*");
}

static void every_instruction_of_a_function_is_meant_by_a_star(void **state)
{
	(void)state;
	shows("p vfs_read+*", "p:ukprobes/p_vfs_read_all vfs_read+*");
	shows("p libfoo.so:twice+* %ax",
	      "p:ukprobes/p_libfoo_so_twice_all libfoo.so:twice+* arg1=%ax");
	lands("p vfs_read+*", 0x401000, "vfs_read");
	refuses("p twice+*", -EINVAL, 2, "The symbol is not unique");
	refuses("p vfs_read+*+1", -EINVAL, 2, "is not an offset");
	refuses("r vfs_read+*", -EINVAL, 2, "Retprobe address");
	refuses("p vfs_read+*%return", -EINVAL, 2, "Retprobe address");
	refuses("p vfs_read+* $arg1", -EINVAL, 13, "$arg* can be used only");
}

static int sum_code(uint64_t start, uint64_t end, void *arg)
{
	*(uint64_t *)arg += end - start;
	return 0;
}

static uint64_t code_of(const char *text)
{
	struct err err = ERR_INIT;
	struct lang_def *def;
	uint64_t bytes = 0;

	assert_int_equal(lang_parse(&def, text, &err), 0);
	assert_int_equal(lang_resolve_code(def, NULL, sum_code, &bytes, &err), 0);
	lang_free(def);
	return bytes;
}

static void a_glob_with_a_star_means_all_code_that_matches(void **state)
{
	struct err err = ERR_INIT;
	struct lang_def *def;
	uint64_t bytes = 0;

	(void)state;
	shows("p prog:vfs_*+*", "p:ukprobes/p_prog_vfs___all prog:vfs_*+*");
	shows("p libc.so.6:*+*", "p:ukprobes/p_libc_so_6___all libc.so.6:*+*");
	lands("p prog:vfs_*+*", 0x401000, "vfs_read");
	refuses("p nosuch:*+*", -ENOENT, 2, "no module 'nosuch' is mapped");
	assert_int_equal(code_of("p vfs_read+*"), 0x370);
	assert_int_equal(code_of("p prog:vfs_*+*"), 0x770);
	assert_int_equal(code_of("p name_sho?+*"), 0x80); /* two of one name */
	assert_int_equal(code_of("p libc.so.6:*+*"), 0x2a0);
	assert_int_equal(lang_parse(&def, "p zz*+*", &err), 0);
	assert_int_equal(lang_resolve_code(def, NULL, sum_code, &bytes, &err), -EINVAL);
	lang_free(def);
}

struct seen {
	uint64_t addr[8];
	size_t nr;
};

static int see(const struct sym_symbol *func, void *arg)
{
	struct seen *s = arg;

	if (s->nr < NR(s->addr))
		s->addr[s->nr++] = func->addr;
	return 0;
}

static void all_functions_are_handed_out_with_those_that_have_no_entry(void **state)
{
	struct err err = ERR_INIT;
	struct lang_def *def;
	struct seen s = { .nr = 0 };

	(void)state;
	assert_int_equal(lang_parse(&def, "f libc.so.6:*", &err), 0);
	assert_int_equal(lang_resolve_all(def, NULL, see, &s, &err), 0);
	assert_int_equal(s.nr,
	                 7); /* malloc, restore, two of memcpy and two it chooses from, strlen */
	lang_free(def);
	struct lang_def entry = { .ret = false }, exit = { .ret = true };

	assert_non_null(
		lang_no_entry(&entry, &(struct sym_symbol){ .name = "memcpy", .ifunc = true }));
	assert_non_null(lang_no_entry(&entry, &(struct sym_symbol){ .name = "work.cold" }));
	assert_null(lang_no_entry(&entry, &(struct sym_symbol){ .name = "work" }));
	assert_null(lang_no_entry(&exit, &(struct sym_symbol){ .name = "work" }));
	/* Of one without a name nobody knows whether it reads its return address. */
	assert_null(lang_no_entry(&entry, &(struct sym_symbol){ .name = "" }));
	assert_non_null(lang_no_entry(&exit, &(struct sym_symbol){ .name = "" }));
}

static void what_the_kernel_does_not_log_still_gets_a_sentence(void **state)
{
	(void)state;
	refuses("", -EINVAL, 0, "empty");
	refuses(" # comment", -EINVAL, 0, "empty");
	refuses("x vfs_read", -EINVAL, 0, "begins with p");
	refuses("p:foo", -EINVAL, 0, "the place is missing: p[:[GRP/]EVENT] PLACE [ARGS]");
	refuses("f:foo", -EINVAL, 0, "the place is missing: f[:[GRP/]EVENT] [MOD:]GLOB [ARGS]");
	refuses("p:foo vfs_read\np:bar vfs_read", -EINVAL, 0, "one line");
	refuses("t:foo sched_switch", -EOPNOTSUPP, 0, "Not supported yet");
	refuses("-:foo", -EOPNOTSUPP, 0, "Not supported yet");
	refuses("p /bin/busybox:0x1000(0x10)", -EOPNOTSUPP, 21, "reference counters");
	refuses("p /bin/busybox:0x10zz", -EINVAL, 15, "Invalid uprobe offset");
}

static void a_trailing_newline_and_a_comment_are_no_part_of_the_definition(void **state)
{
	(void)state;
	shows("\tp:foo  vfs_read\ta=%di\r\n", "p:ukprobes/foo vfs_read a=%di");
	shows("p:foo vfs_read a=%di#x\n", "p:ukprobes/foo vfs_read a=%di");
}

static void columns_count_in_the_line_with_single_spaces(void **state)
{
	struct lang_def *def;
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(lang_parse(&def, "  p:foo \t vfs_read   a=%di # c", &err), 0);
	assert_string_equal(def->text, "p:foo vfs_read a=%di");
	assert_int_equal(def->place.column, 6);
	lang_free(def);
}

static void hostile_bytes_do_not_reach_the_terminal(void **state)
{
	struct line_result r;

	(void)state;
	run_line(&r, "p sy\033[2Jm\177");
	assert_int_equal(r.code, -EINVAL);
	assert_null(strchr(r.err.text, '\033'));
	assert_null(strchr(r.err.text, '\177'));
	line_free(&r);
}

static void too_many_arguments_instances_and_bytes_are_refused(void **state)
{
	char text[8192] = "p:foo vfs_read";
	struct line_result r;

	(void)state;
	for (int i = 0; i < 128; i++)
		strcat(text, " %di");
	run_line(&r, text);
	assert_int_equal(r.code, 0);
	assert_int_equal(r.nr_fields, 128);
	line_free(&r);
	refuses("r4097 vfs_read", -EINVAL, 1, "Maxactive is too big");
	strcat(text, " %di");
	refuses(text, -E2BIG, 15, "Too many arguments");
	memset(text, 'a', 4095);
	text[4095] = '\0';
	refuses(text, -EINVAL, 0, "longer than 4094");
}

static void latency(const char *text, int code, int column, uint32_t kind, const char *event)
{
	struct lang_def *def;
	struct err err = ERR_INIT;
	uint32_t got = 99;

	assert_int_equal(lang_parse_latency(&def, &got, text, &err), code);
	if (code) {
		assert_null(def);
		assert_int_equal(err.column, column);
		assert_true(err.text[0]);
		return;
	}
	assert_int_equal(got, kind);
	assert_string_equal(def->event, event);
	assert_int_equal(def->place.column, 0);
	assert_true(def->ret);
	lang_free(def);
}

static void a_latency_function_may_say_what_an_error_is(void **state)
{
	(void)state;
	latency("vfs_read", 0, 0, UKP_ERR_AUTO, "r_vfs_read_0");
	latency(" libc.so.6:malloc=ptr ", 0, 0, UKP_ERR_PTR, "r_libc_so_6_malloc_0");
	latency("0x401000=s64", 0, 0, UKP_ERR_S64, "r_0x401000");
	latency("f=s32", 0, 0, UKP_ERR_S32, "r_f_0");
	latency("f=none", 0, 0, UKP_ERR_NONE, "r_f_0");
	latency("vfs_read=u8", -EINVAL, 9, 0, NULL);
	latency("vfs_read=", -EINVAL, 9, 0, NULL);
	latency("vfs_read+8", -EINVAL, 0, 0, NULL);
	latency("vfs_read x", -EINVAL, 9, 0, NULL);
	latency("=ptr", -EINVAL, 0, 0, NULL);
	latency("", -EINVAL, 0, 0, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_of_every_kind_are_shown_as_the_kernel_shows_them),
		cmocka_unit_test(a_place_is_found_in_the_process),
		cmocka_unit_test(
			the_loaders_own_copy_of_a_libc_function_does_not_make_it_ambiguous),
		cmocka_unit_test(an_ambiguous_symbol_lists_what_to_write_instead),
		cmocka_unit_test(an_unknown_symbol_is_answered_with_near_names),
		cmocka_unit_test(places_that_hold_no_code_are_refused),
		cmocka_unit_test(a_return_probe_stands_at_an_entry_only),
		cmocka_unit_test(f_takes_all_functions_of_a_name_or_glob),
		cmocka_unit_test(r_takes_a_glob_as_f_does),
		cmocka_unit_test(f_is_named_and_shown_as_the_kernel_does_it),
		cmocka_unit_test(every_instruction_of_a_function_is_meant_by_a_star),
		cmocka_unit_test(a_glob_with_a_star_means_all_code_that_matches),
		cmocka_unit_test(all_functions_are_handed_out_with_those_that_have_no_entry),
		cmocka_unit_test(what_the_kernel_does_not_log_still_gets_a_sentence),
		cmocka_unit_test(a_trailing_newline_and_a_comment_are_no_part_of_the_definition),
		cmocka_unit_test(columns_count_in_the_line_with_single_spaces),
		cmocka_unit_test(hostile_bytes_do_not_reach_the_terminal),
		cmocka_unit_test(too_many_arguments_instances_and_bytes_are_refused),
		cmocka_unit_test(a_latency_function_may_say_what_an_error_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
