/* SPDX-License-Identifier: MIT */
/* kretprobes: value, data, declining, limits, recursion. */
#include "scenario.h"

struct entry_data {
	unsigned long arg;
	unsigned long sum;
};

static int entries, returns, decline;
static unsigned long value, ret_ip, ret_sp, entry_sp;
static struct kretprobe *seen_rp;

TARGET unsigned long target(unsigned long a)
{
	__asm__ volatile("");
	return a * 7;
}

/* Through a pointer: compilers make loops of recursion. */
static unsigned long (*volatile deeper)(unsigned long n);

TARGET unsigned long recursive(unsigned long n)
{
	return n ? 1 + deeper(n - 1) : 0;
}

TARGET unsigned long with_stack_arguments(unsigned long a, unsigned long b, unsigned long c,
                                          unsigned long d, unsigned long e, unsigned long f,
                                          unsigned long g, unsigned long h)
{
	__asm__ volatile("");
	return a + b + c + d + e + f + g * 10 + h * 100;
}

static int on_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct entry_data *d = (struct entry_data *)ri->data;

	entries++;
	d->arg = regs_get_kernel_argument(regs, 0);
	d->sum = ~d->arg;
	entry_sp = kernel_stack_pointer(regs);
	return decline;
}

static int on_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct entry_data *d = (struct entry_data *)ri->data;

	seen_rp = get_kretprobe(ri);
	if (seen_rp->entry_handler)
		assert_int_equal(d->arg, ~d->sum);
	assert_int_equal(instruction_pointer(regs), get_kretprobe_retaddr(ri));
	returns++;
	value = regs_return_value(regs);
	ret_ip = instruction_pointer(regs);
	ret_sp = kernel_stack_pointer(regs);
	return 0;
}

static int reset(void **state)
{
	entries = returns = decline = 0;
	return 0;
}

static void the_return_value_and_place_are_seen(void **state)
{
	struct kretprobe rp = { .kp.symbol_name = "target",
		                .handler = on_return,
		                .entry_handler = on_entry,
		                .data_size = sizeof(struct entry_data) };
	unsigned long here = (unsigned long)the_return_value_and_place_are_seen;

	register_ok(register_kretprobe(&rp));
	assert_int_equal(target(6), 42);
	unregister_kretprobe(&rp);
	assert_int_equal(value, 42);
	assert_int_equal(ret_sp, entry_sp + 8);
	assert_true(ret_ip > here && ret_ip < here + 4096);
	assert_ptr_equal(seen_rp, &rp);
	assert_int_equal(entries, 1);
	assert_int_equal(returns, 1);
	assert_int_equal(target(6), 42);
	assert_int_equal(returns, 1);
}

static int change_value(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	regs_set_return_value(regs, -5ul);
	return 0;
}

static void the_caller_gets_what_a_handler_writes(void **state)
{
	struct kretprobe rp = { .kp.symbol_name = "target", .handler = change_value };

	register_ok(register_kretprobe(&rp));
	assert_int_equal(target(6), -5ul);
	unregister_kretprobe(&rp);
	assert_int_equal(target(6), 42);
}

static void declining_is_no_miss(void **state)
{
	struct kretprobe rp = { .kp.symbol_name = "target",
		                .handler = on_return,
		                .entry_handler = on_entry,
		                .maxactive = 1,
		                .data_size = sizeof(struct entry_data) };
	int i;

	register_ok(register_kretprobe(&rp));
	decline = 1;
	for (i = 0; i < 3; i++)
		assert_int_equal(target(1), 7);
	decline = 0;
	target(1);
	unregister_kretprobe(&rp);
	assert_int_equal(entries, 4);
	assert_int_equal(returns, 1);
	assert_int_equal(rp.nmissed, 0);
}

static void maxactive_is_a_limit_and_misses_are_counted(void **state)
{
	struct kretprobe rp = { .kp.symbol_name = "recursive",
		                .handler = on_return,
		                .entry_handler = on_entry,
		                .maxactive = 3,
		                .data_size = sizeof(struct entry_data) };

	register_ok(register_kretprobe(&rp));
	assert_int_equal(recursive(9), 9);
	assert_int_equal(rp.nmissed, 7);
	assert_int_equal(entries, 3);
	assert_int_equal(returns, 3);
	assert_int_equal(recursive(2), 2);
	assert_int_equal(returns, 6);
	unregister_kretprobe(&rp);
	assert_int_equal(rp.nmissed, 7);
}

static void without_maxactive_deep_recursion_is_followed(void **state)
{
	struct kretprobe rp = { .kp.symbol_name = "recursive",
		                .handler = on_return,
		                .entry_handler = on_entry,
		                .data_size = KRETPROBE_MAX_DATA_SIZE };

	register_ok(register_kretprobe(&rp));
	assert_int_equal(recursive(5000), 5000);
	unregister_kretprobe(&rp);
	assert_int_equal(returns, 5001);
	assert_int_equal(rp.nmissed, 0);
	assert_int_equal(rp.maxactive, 0);
}

static void refusals_come_in_the_kernels_order(void **state)
{
	struct kretprobe rp = { .handler = on_return };

	assert_int_equal(register_kretprobe(&rp), -EINVAL);
	rp.kp.symbol_name = "no_such_function";
	rp.data_size = 5000;
	assert_int_equal(register_kretprobe(&rp), -ENOENT);
	rp.kp.symbol_name = "target";
	assert_int_equal(register_kretprobe(&rp), -E2BIG);
	rp.kp.offset = 1;
	assert_int_equal(register_kretprobe(&rp), -EINVAL);
	rp.kp.offset = 0;
	rp.data_size = 0;
	rp.kp.symbol_name = "setjmp";
	assert_int_equal(register_kretprobe(&rp), -EINVAL);
	rp.kp.symbol_name = "target";
	register_ok(register_kretprobe(&rp));
	assert_int_equal(register_kretprobe(&rp), -EINVAL);
	unregister_kretprobe(&rp);
}

static void stack_arguments_are_read_and_left_in_place(void **state)
{
	struct kretprobe rp = { .kp.symbol_name = "with_stack_arguments", .handler = on_return };

	register_ok(register_kretprobe(&rp));
	assert_int_equal(with_stack_arguments(1, 2, 3, 4, 5, 6, 7, 8), 891);
	unregister_kretprobe(&rp);
	assert_int_equal(value, 891);
}

static void several_at_one_function_share_the_true_address(void **state)
{
	struct kretprobe a = { .kp.symbol_name = "target", .handler = on_return };
	struct kretprobe b = { .kp.symbol_name = "target", .handler = on_return };
	struct kretprobe *both[] = { &a, &b };

	register_ok(register_kretprobes(both, 2));
	register_ok(disable_kretprobe(&a));
	target(1);
	assert_int_equal(returns, 1);
	assert_ptr_equal(seen_rp, &b);
	register_ok(enable_kretprobe(&a));
	target(1);
	unregister_kretprobes(both, 2);
	assert_int_equal(returns, 3);
}

static struct kretprobe gone;

TARGET unsigned long outer(unsigned long a)
{
	unregister_kretprobe(&gone);
	return a + 1;
}

static void calls_on_their_way_at_unregistering_return_unreported(void **state)
{
	gone = (struct kretprobe){ .kp.symbol_name = "outer", .handler = on_return };
	register_ok(register_kretprobe(&gone));
	assert_int_equal(outer(1), 2);
	assert_int_equal(outer(1), 2);
	assert_int_equal(returns, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, reset, untouched)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_return_value_and_place_are_seen),
		T(the_caller_gets_what_a_handler_writes),
		T(declining_is_no_miss),
		T(maxactive_is_a_limit_and_misses_are_counted),
		T(without_maxactive_deep_recursion_is_followed),
		T(refusals_come_in_the_kernels_order),
		T(stack_arguments_are_read_and_left_in_place),
		T(several_at_one_function_share_the_true_address),
		T(calls_on_their_way_at_unregistering_return_unreported),
	};

	deeper = recursive;
	return run_in_both_forms(tests);
}
