/* SPDX-License-Identifier: MIT */
/* Arguments: what is taken, what is refused and where the caret stands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "unit/lang/fake_sym.h"
#include "unit/lang/run_line.h"

static void takes(const char *text)
{
	struct line_result r;

	run_line(&r, text);
	if (r.code)
		fail_msg("%s: %d, column %d, '%s'", text, r.code, r.err.column, r.err.text);
	line_free(&r);
}

static void refuses(const char *text, int code, int column, const char *part)
{
	struct line_result r;

	run_line(&r, text);
	if (r.code != code || r.err.column != column || !strstr(r.err.text, part))
		fail_msg("%s: %d, column %d, '%s'", text, r.code, r.err.column, r.err.text);
	line_free(&r);
}

static void duration_is_for_returns_and_is_nanoseconds(void **state)
{
	(void)state;
	takes("r vfs_read $duration");
	takes("r vfs_read d=$duration:u64");
	refuses("p vfs_read $duration", -EINVAL, 11, "$duration is not available on probe");
	refuses("r vfs_read $duration:x8", -EINVAL, 21, "nanoseconds");
	refuses("r vfs_read +0($duration)", -EINVAL, 14, "can not be dereferenced");
	refuses("r vfs_read $durations", -EINVAL, 11, "Invalid $-variable");
	refuses("r vfs_read d=$duration:string", -EINVAL, 23, "nanoseconds");
}

static void argn_stands_at_entries_and_returns_only(void **state)
{
	const char *text = "$arg* can be used only on function entry or exit";

	(void)state;
	takes("p vfs_read $arg1");
	takes("p vfs_read+4 $arg1"); /* endbr64 */
	takes("p 0x401000 $arg1");
	takes("p 0x405000 $arg1"); /* an entry by its bounds, without a name */
	takes("p prog:0x3000 $arg1");
	takes("r 0x401000 $arg1");
	refuses("p vfs_read+8 $arg1", -EINVAL, 13, text);
	refuses("p vfs_write+4 %di a=+8($arg1)", -EINVAL, 23, text);
	refuses("p 0x401010 $arg1", -EINVAL, 11, text);
	refuses("p 0x40f000 $arg1", -EINVAL, 11, text);
}

static void a_return_probe_saves_a_limited_number_of_arguments(void **state)
{
	char text[512] = "r vfs_read";

	(void)state;
	for (int i = 1; i <= 16; i++)
		sprintf(text + strlen(text), " $arg%d", i);
	takes(text);
	strcat(text, " $arg3");
	takes(text);
	strcat(text, " $arg17");
	refuses(text, -E2BIG, (int)strlen(text) - 6, "Too many different $argN");
	text[0] = 'p';
	takes(text);
}

static void numbers_follow_the_kernels_rules(void **state)
{
	(void)state;
	takes("p vfs_read \\+5 \\-5 \\0x1f \\017 \\0xffffffffffffffff");
	takes("p vfs_read +-4(%di) ++4(%di) -0x10(%sp)");
	refuses("p vfs_read \\08", -EINVAL, 12, "Invalid immediate value");
	refuses("p vfs_read \\0x", -EINVAL, 12, "Invalid immediate value");
	refuses("p vfs_read \\-9223372036854775809", -ERANGE, 12, "Invalid immediate value");
	takes("p vfs_read \\-9223372036854775808");
	refuses("p vfs_read -+4(%di)", -EINVAL, 11, "Invalid dereference offset");
	refuses("p vfs_read --4(%di)", -EINVAL, 11, "Invalid dereference offset");
	refuses("p vfs_read +0($arg1)string", -EINVAL, 20, "nothing follows the brace but :TYPE");
	refuses("p vfs_read +0(+8(%di)x):u8", -EINVAL, 21, "nothing follows the brace but :TYPE");
	refuses("p vfs_read +0()", -EINVAL, 14, "Invalid fetch argument");
	refuses("p vfs_read $stack99999999999999999999", -ERANGE, 11, "Invalid $-variable");
	/* a column as the kernel counts it, one short behind two signs */
	refuses("p vfs_read +-4(%foo)", -EINVAL, 14, "Invalid register name");
	takes("p vfs_read $stack2048");
	refuses("p vfs_read $stack2049", -EINVAL, 11, "Invalid stack number");
	refuses("p vfs_read $arg0", -EINVAL, 11, "Invalid argument number: they count from 1");
}

static void offsets_that_do_not_fit_are_refused_rather_than_cut(void **state)
{
	(void)state;
	takes("p vfs_read +2147483647(%di) -2147483648(%di)");
	refuses("p vfs_read +2147483648(%di)", -EOPNOTSUPP, 11, "2 GiB");
	refuses("p vfs_read +8(+2147483648(%di))", -EOPNOTSUPP, 14, "2 GiB");
}

static void dereferences_nest_as_deep_as_in_the_kernel(void **state)
{
	(void)state;
	/* the kernel has 16 places, one of them for END; @SYM takes two, its read a third */
	takes("p vfs_read +0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(@1))))))))))))");
	takes("p vfs_read +0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(@1)))))))))))))");
	refuses("p vfs_read +0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(@1))))))))))))))", -EINVAL,
	        14, "too much nested");
	refuses("p vfs_read +0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(@j)))))))))))))", -EINVAL, 14,
	        "too much nested");
	takes("p vfs_read +0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(%di))))))))))))))");
	refuses("p vfs_read +0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(%di)))))))))))))))",
	        -EINVAL, 14, "too much nested");
}

static void strings_need_memory(void **state)
{
	(void)state;
	takes("p vfs_read +0(%di):string +u8(%si):string @linux_banner:string $comm:string");
	takes("r vfs_read $retval:string"); /* as 6.12 */
	takes("p vfs_read \\0x1000:string");
	refuses("p vfs_read $arg1:string", -EINVAL, 17, "String accepts only memory argument");
	refuses("r vfs_read $arg1:string", -EINVAL, 17, "String accepts only memory argument");
}

static void errors_of_the_type_behind_a_dereference_stand_where_the_kernel_has_them(void **state)
{
	(void)state;
	refuses("p:foo vfs_read a=+u0(%si):symstr", -EINVAL, 29, "Symbol String");
	refuses("p vfs_read +0(%di):b9@0/8", -EINVAL, 22, "Invalid bitfield");
}

static void valid_but_missing_things_say_so_at_their_place(void **state)
{
	(void)state;
	refuses("p vfs_read +0(%di):u8[4]", -EOPNOTSUPP, 21, "arrays");
	refuses("p vfs_read $arg1:x32[2]", -EINVAL, 17, "and arrays are not supported yet");
	refuses("p vfs_read a=$arg1 if a == 1", -EOPNOTSUPP, 19, "Not supported yet: filters");
	refuses("p vfs_read if", -EOPNOTSUPP, 11, "Not supported yet: filters");
	refuses("p vfs_read %di:b4@0/8", -EOPNOTSUPP, 15, "bit fields");
	refuses("p vfs_read a=\\\"x\"", -EOPNOTSUPP, 13, "immediate strings");
	refuses("p vfs_read %di:symbol", -EOPNOTSUPP, 15, "symbol");
	refuses("p vfs_read $arg*", -EOPNOTSUPP, 11, "$arg1 $arg2");
	refuses("p vfs_read+4 $arg*", -EOPNOTSUPP, 13, "$arg1 $arg2");
	refuses("p vfs_read count", -EOPNOTSUPP, 11, "BTF is not available");
	refuses("p vfs_read +0(di)", -EOPNOTSUPP, 14, "%di");
}

static void a_data_symbol_is_chosen_as_the_program_sees_it(void **state)
{
	struct line_result r;

	(void)state;
	run_line(&r, "p malloc @environ"); /* copied into the executable */
	assert_int_equal(r.code, 0);
	assert_int_equal(r.ev->steps[0].imm, 0x412000);
	line_free(&r);
	run_line(&r, "p malloc @table+8"); /* that of the probed module */
	assert_int_equal(r.code, 0);
	assert_int_equal(r.ev->steps[0].imm, 0x7f0000008108);
	line_free(&r);
	refuses("p vfs_read a=@table", -EINVAL, 13, "The symbol is not unique");
	refuses("p vfs_read a=@nosuch", -ENOENT, 2,
	        "Invalid probed address or symbol: no symbol @nosuch");
}

static void wide_and_floating_types_need_a_value_that_has_them(void **state)
{
	static const char *const good[] = {
		"r vfs_read $retval:f32 b=$retval:f64 c=$retval:f80",
		"r vfs_read $retval:x128 b=$retval:u128 c=$retval:s128",
		"r vfs_read a=%xmm0 b=%xmm15:f64 c=%xmm1:f32 d=%xmm7:u8 e=%xmm2:s128 f=%xmm3:x64",
		"p vfs_read+8 a=%xmm0:f64 b=%st0 c=%st7:f80",
		"p vfs_read a=+8(%di):f32 b=@0x10:f64 c=+u8(%di):f80 d=@jiffies:x128",
		"r vfs_read a=+0($retval):f80 b=+0($arg1):s128",
		"p vfs_read a=%ax:f64 b=$stack1:f32",
	};

	(void)state;
	for (size_t i = 0; i < NR(good); i++)
		takes(good[i]);
	refuses("p vfs_read $retval:f64", -EINVAL, 11, "$retval is not available on probe");
	refuses("p vfs_read a=%ax:f80", -EINVAL, 17, "$retval, %stN and memory");
	refuses("p vfs_read a=$stack1:f80", -EINVAL, 21, "$retval, %stN and memory");
	refuses("p vfs_read a=%xmm0:f80", -EINVAL, 19, "f80 is for %stN");
	refuses("r vfs_read a=%st0:f64", -EINVAL, 18, "f80 alone");
	refuses("r vfs_read a=%st0:string", -EINVAL, 18, "String accepts only memory");
	refuses("r vfs_read a=%xmm0:string", -EINVAL, 19, "String accepts only memory");
	refuses("p vfs_read a=%di:x128", -EINVAL, 17, "$retval, %xmmN and memory");
	refuses("p vfs_read a=$arg2:f64", -EINVAL, 19, "%xmm0 to %xmm7");
	refuses("r vfs_read a=$arg2:s128", -EINVAL, 19, "$retval, %xmmN and memory");
	refuses("p vfs_read a=\\1:f32", -EINVAL, 16, "constants are integers");
	refuses("p vfs_read a=$comm:f64", -EINVAL, 19, "only accepts string type");
	refuses("r vfs_read a=$duration:f64", -EINVAL, 23, "nanoseconds");
	refuses("r vfs_read a=$duration:u128", -EINVAL, 23, "nanoseconds");
	refuses("p vfs_read a=%di:f16", -EINVAL, 17, "f32, f64, f80");
	refuses("p vfs_read a=+0(%di):f64[4]", -EOPNOTSUPP, 24, "arrays");
	refuses("r vfs_read a=$retval:f64[2]", -EINVAL, 21, "memory");
	refuses("r vfs_read a=+0(%xmm0)", -EINVAL, 16, "hold no address");
	refuses("r vfs_read a=+0(%st0):f80", -EINVAL, 16, "hold no address");
	for (size_t i = 0; i < 2; i++) {
		static const char *const none[2][5] = {
			{ "%xmm", "%xmm16", "%xmm01", "%xmm1x", "%xmm100" },
			{ "%st", "%st8", "%st00", "%st(0)", "%ymm0" },
		};
		char text[64];

		for (size_t k = 0; k < 5; k++) {
			sprintf(text, "p vfs_read %s", none[i][k]);
			refuses(text, -EINVAL, 11, "xmm0-xmm15 st0-st7");
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(duration_is_for_returns_and_is_nanoseconds),
		cmocka_unit_test(argn_stands_at_entries_and_returns_only),
		cmocka_unit_test(a_return_probe_saves_a_limited_number_of_arguments),
		cmocka_unit_test(numbers_follow_the_kernels_rules),
		cmocka_unit_test(offsets_that_do_not_fit_are_refused_rather_than_cut),
		cmocka_unit_test(dereferences_nest_as_deep_as_in_the_kernel),
		cmocka_unit_test(strings_need_memory),
		cmocka_unit_test(wide_and_floating_types_need_a_value_that_has_them),
		cmocka_unit_test(
			errors_of_the_type_behind_a_dereference_stand_where_the_kernel_has_them),
		cmocka_unit_test(valid_but_missing_things_say_so_at_their_place),
		cmocka_unit_test(a_data_symbol_is_chosen_as_the_program_sees_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
