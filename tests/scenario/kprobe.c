/* SPDX-License-Identifier: MIT */
/* kprobes: what the kernel's lib/test_kprobes.c asserts, and the rest of the contract. */
#include "scenario.h"

static unsigned int pre_hits, post_hits, inner_hits;
static unsigned long seen_ip, seen_arg, post_ip;
static char order[8];
static int nr_order;

TARGET unsigned int target(unsigned int value)
{
	__asm__ volatile("");
	return value / 3;
}

TARGET unsigned int target2(unsigned int value)
{
	__asm__ volatile("");
	return value / 5;
}

TARGET unsigned int nested_target(unsigned int value)
{
	__asm__ volatile("");
	return value + 1;
}

static int pre(struct kprobe *p, struct pt_regs *regs)
{
	assert_ptr_equal(kprobe_running(), p);
	pre_hits++;
	seen_ip = instruction_pointer(regs);
	seen_arg = regs_get_kernel_argument(regs, 0);
	return 0;
}

static void post(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
	assert_ptr_equal(kprobe_running(), p);
	assert_int_equal(flags, 0);
	post_hits++;
	post_ip = instruction_pointer(regs);
}

static int reset(void **state)
{
	pre_hits = post_hits = inner_hits = 0;
	memset(order, 0, sizeof(order));
	nr_order = 0;
	return 0;
}

static void pre_and_post_handlers_run_at_a_symbol(void **state)
{
	struct kprobe kp = { .symbol_name = "target", .pre_handler = pre, .post_handler = post };

	register_ok(register_kprobe(&kp));
	assert_ptr_equal(kp.addr, target);
	assert_true(kp.flags & KPROBE_FLAG_ON_FUNC_ENTRY);
	assert_ptr_equal(get_kprobe((void *)target), &kp);
	assert_int_equal(target(300), 100);
	unregister_kprobe(&kp);
	assert_int_equal(pre_hits, 1);
	assert_int_equal(post_hits, 1);
	/* Not target + 1: an address in the code, so to the library a place to jump to. */
	assert_int_equal(seen_ip, (unsigned long)kp.addr + 1);
	assert_int_equal(seen_arg, 300);
	assert_true(post_ip > (unsigned long)target && post_ip <= (unsigned long)target + 15);
	assert_null(kprobe_running());
	assert_null(get_kprobe((void *)target));
	assert_int_equal(target(300), 100);
	assert_int_equal(pre_hits, 1);
}

static void a_batch_is_registered_whole_or_not_at_all(void **state)
{
	struct kprobe a = { .symbol_name = "target", .pre_handler = pre };
	struct kprobe b = { .symbol_name = "target2", .pre_handler = pre, .post_handler = post };
	struct kprobe bad = { .symbol_name = "no_such_function", .pre_handler = pre };
	struct kprobe *good[] = { &a, &b }, *mixed[] = { &a, &b, &bad };

	assert_int_equal(register_kprobes(good, 0), -EINVAL);
	assert_int_equal(register_kprobes(mixed, 3), -ENOENT);
	assert_non_null(strstr(ukp_kprobe_error(), "no_such_function"));
	target(1);
	assert_int_equal(pre_hits, 0);
	a.addr = b.addr = NULL;
	register_ok(register_kprobes(good, 2));
	target(1);
	target2(1);
	unregister_kprobes(good, 2);
	assert_int_equal(pre_hits, 2);
	assert_int_equal(post_hits, 1);
}

static int nesting_pre(struct kprobe *p, struct pt_regs *regs)
{
	assert_int_equal(nested_target(1), 2);
	return pre(p, regs);
}

static void nesting_post(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
	assert_int_equal(nested_target(2), 3);
	post(p, regs, flags);
}

static int inner_pre(struct kprobe *p, struct pt_regs *regs)
{
	inner_hits++;
	return 0;
}

static void inner_post(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
	inner_hits++;
}

static void hits_in_handlers_are_missed_and_counted(void **state)
{
	struct kprobe inner = { .symbol_name = "nested_target",
		                .pre_handler = inner_pre,
		                .post_handler = inner_post };
	struct kprobe off = { .symbol_name = "nested_target", .flags = KPROBE_FLAG_DISABLED };
	struct kprobe kp = { .symbol_name = "target",
		             .pre_handler = nesting_pre,
		             .post_handler = nesting_post };

	register_ok(register_kprobe(&inner));
	register_ok(register_kprobe(&off));
	register_ok(register_kprobe(&kp));
	target(1);
	unregister_kprobe(&kp);
	nested_target(1);
	unregister_kprobe(&inner);
	unregister_kprobe(&off);
	assert_int_equal(inner.nmissed, 2);
	assert_int_equal(off.nmissed, 2);
	assert_int_equal(inner_hits, 2);
	assert_int_equal(pre_hits, 1);
	assert_int_equal(post_hits, 1);
}

static void registering_again_without_clearing_addr_is_refused(void **state)
{
	struct kprobe kp = { .symbol_name = "target", .pre_handler = pre };
	struct kprobe by_addr = { .addr = (kprobe_opcode_t *)target2, .pre_handler = pre };

	register_ok(register_kprobe(&kp));
	assert_int_equal(register_kprobe(&kp), -EINVAL);
	unregister_kprobe(&kp);
	assert_int_equal(register_kprobe(&kp), -EINVAL);
	kp.addr = NULL;
	register_ok(register_kprobe(&kp));
	unregister_kprobe(&kp);
	register_ok(register_kprobe(&by_addr));
	assert_int_equal(register_kprobe(&by_addr), -EINVAL);
	target2(1);
	assert_int_equal(pre_hits, 1);
	unregister_kprobe(&by_addr);
}

static void refusals_have_the_kernels_errno(void **state)
{
	static char data[16];
	struct kprobe none = { .pre_handler = pre };
	struct kprobe inside = { .addr = (kprobe_opcode_t *)target };
	struct kprobe anon = { .addr = (kprobe_opcode_t *)data };
	struct kprobe off = { .symbol_name = "target" };
	struct kprobe never = { .addr = (kprobe_opcode_t *)target };

	assert_int_equal(register_kprobe(&none), -EINVAL);
	anon.addr = (kprobe_opcode_t *)malloc(16);
	assert_int_equal(register_kprobe(&anon), -ENOENT);
	free(anon.addr);
	inside.offset = 1;
	while (!register_kprobe(&inside)) {
		unregister_kprobe(&inside);
		inside.addr = (kprobe_opcode_t *)target;
		inside.offset++;
	}
	assert_int_equal(register_kprobe(&inside), -EILSEQ);
	off.offset = 1 << 30;
	assert_int_equal(register_kprobe(&off), -ENOENT);
	assert_null(off.addr);
	assert_int_equal(enable_kprobe(&never), -EINVAL);
	assert_int_equal(disable_kprobe(&never), -EINVAL);
	unregister_kprobe(&never);
	assert_null(never.addr);
}

static int first_pre(struct kprobe *p, struct pt_regs *regs)
{
	order[nr_order++] = '1';
	return 0;
}

static int second_pre(struct kprobe *p, struct pt_regs *regs)
{
	order[nr_order++] = '2';
	return 0;
}

static int third_pre(struct kprobe *p, struct pt_regs *regs)
{
	order[nr_order++] = '3';
	return 0;
}

static void several_at_one_address_run_newest_first(void **state)
{
	struct kprobe kp[] = { { .symbol_name = "target", .pre_handler = first_pre },
		               { .symbol_name = "target", .pre_handler = second_pre },
		               { .symbol_name = "target", .pre_handler = third_pre } };
	int i;

	for (i = 0; i < 3; i++)
		register_ok(register_kprobe(&kp[i]));
	for (i = 0; i < 3; i++)
		has_form(&kp[i]);
	target(1);
	assert_string_equal(order, "321");
	unregister_kprobe(&kp[1]);
	target(1);
	assert_string_equal(order, "32131");
	unregister_kprobe(&kp[2]);
	unregister_kprobe(&kp[0]);
	target(1);
	assert_int_equal(nr_order, 5);
}

static void disabling_takes_the_breakpoint_out(void **state)
{
	struct kprobe kp = { .symbol_name = "target",
		             .pre_handler = pre,
		             .flags = KPROBE_FLAG_DISABLED };

	register_ok(register_kprobe(&kp));
	target(1);
	text_is_as_in_the_file();
	register_ok(enable_kprobe(&kp));
	register_ok(enable_kprobe(&kp));
	target(1);
	has_form(&kp);
	register_ok(disable_kprobe(&kp));
	target(1);
	text_is_as_in_the_file();
	register_ok(enable_kprobe(&kp));
	target(1);
	unregister_kprobe(&kp);
	assert_int_equal(pre_hits, 2);
}

static int skip_function(struct kprobe *p, struct pt_regs *regs)
{
	regs->ax = 4711;
	regs->ip = *(unsigned long *)regs->sp;
	regs->sp += 8;
	return 1;
}

static void a_pre_handler_that_sets_ip_skips_all_else(void **state)
{
	struct kprobe old = { .symbol_name = "target", .pre_handler = pre, .post_handler = post };
	struct kprobe kp = { .symbol_name = "target",
		             .pre_handler = skip_function,
		             .post_handler = post };

	register_ok(register_kprobe(&old));
	register_ok(register_kprobe(&kp));
	assert_int_equal(target(3), 4711);
	unregister_kprobe(&kp);
	assert_int_equal(pre_hits + post_hits, 0);
	assert_int_equal(target(3), 1);
	assert_int_equal(pre_hits, 1);
	unregister_kprobe(&old);
}

static void a_later_probe_brings_post_handlers_to_a_planted_site(void **state)
{
	struct kprobe kp = { .symbol_name = "target", .pre_handler = pre };
	struct kprobe late = { .symbol_name = "target", .post_handler = post };

	register_ok(register_kprobe(&kp));
	target(1);
	register_ok(register_kprobe(&late));
	assert_int_equal(target(9), 3);
	unregister_kprobe(&late);
	assert_int_equal(target(9), 3);
	unregister_kprobe(&kp);
	assert_int_equal(pre_hits, 3);
	assert_int_equal(post_hits, 1);
}

enum { MANY = 200 };

unsigned long many(void);
__asm__(".text\n.type many, @function\nmany: xor %eax, %eax\n"
        ".rept 200\n lea 1(%rax), %rax\n.endr\n ret\n.size many, . - many\n");

/* The tables grow several times, and each site gets a second slot. */
static void every_instruction_of_a_function_can_be_probed_at_once(void **state)
{
	static struct kprobe plain[MANY], late[MANY];
	struct kprobe *all[2 * MANY];
	int i;

	for (i = 0; i < MANY; i++) {
		plain[i].addr = late[i].addr = (kprobe_opcode_t *)many + 2 + 4 * i;
		plain[i].pre_handler = pre;
		late[i].post_handler = post;
		all[i] = &plain[i];
		all[MANY + i] = &late[i];
	}
	register_ok(register_kprobes(all, MANY));
	assert_int_equal(many(), MANY);
	assert_int_equal(pre_hits, MANY);
	register_ok(register_kprobes(all + MANY, MANY));
	assert_int_equal(many(), MANY);
	assert_int_equal(pre_hits, 2 * MANY);
	assert_int_equal(post_hits, MANY);
	unregister_kprobes(all, 2 * MANY);
	assert_int_equal(many(), MANY);
	assert_int_equal(pre_hits, 2 * MANY);
}

TARGET int kept_off(int x)
{
	__asm__ volatile("");
	return x;
}
NOKPROBE_SYMBOL(kept_off);

static void what_is_on_the_blacklist_is_refused(void **state)
{
	struct kprobe kp = { .symbol_name = "kept_off", .pre_handler = pre };
	struct kprobe libc = { .symbol_name = "execve", .pre_handler = pre };
	kprobe_opcode_t *volatile at = (kprobe_opcode_t *)target;

	assert_true(within_kprobe_blacklist((unsigned long)kept_off));
	assert_true(within_kprobe_blacklist((unsigned long)kept_off + 1));
	assert_false(within_kprobe_blacklist((unsigned long)target));
	assert_int_equal(register_kprobe(&kp), -EINVAL);
	assert_int_equal(register_kprobe(&libc), -EINVAL);
	assert_int_equal(kprobe_on_func_entry(NULL, "target", 0), 0);
	assert_int_equal(kprobe_on_func_entry(at + 1, NULL, 0), -EINVAL);
	assert_int_equal(kprobe_on_func_entry(NULL, "nowhere", 0), -ENOENT);
}

static struct kprobe self = { .symbol_name = "target2" };

static int unregister_self(struct kprobe *p, struct pt_regs *regs)
{
	struct kprobe other = { .symbol_name = "target", .pre_handler = pre };

	pre_hits++;
	assert_int_equal(register_kprobe(&other), -EBUSY);
	unregister_kprobe(p);
	return 0;
}

static void a_handler_may_unregister_its_probe(void **state)
{
	self.pre_handler = unregister_self;
	self.addr = NULL;
	register_ok(register_kprobe(&self));
	assert_int_equal(target2(10), 2);
	assert_int_equal(target2(10), 2);
	assert_int_equal(pre_hits, 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, reset, untouched)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(pre_and_post_handlers_run_at_a_symbol),
		T(a_batch_is_registered_whole_or_not_at_all),
		T(hits_in_handlers_are_missed_and_counted),
		T(registering_again_without_clearing_addr_is_refused),
		T(refusals_have_the_kernels_errno),
		T(several_at_one_address_run_newest_first),
		T(disabling_takes_the_breakpoint_out),
		T(a_pre_handler_that_sets_ip_skips_all_else),
		T(a_later_probe_brings_post_handlers_to_a_planted_site),
		T(every_instruction_of_a_function_can_be_probed_at_once),
		T(what_is_on_the_blacklist_is_refused),
		T(a_handler_may_unregister_its_probe),
	};

	return run_in_both_forms(tests);
}
