/* SPDX-License-Identifier: MIT */
/* fprobes: what the kernel's lib/test_fprobe.c asserts, and the rest of the contract. */
#include <dlfcn.h>

#include <ukprobes/fprobe.h>

#include "scenario.h"

TARGET unsigned long fsel_target(unsigned long value)
{
	__asm__ volatile("");
	return value / 3;
}

TARGET unsigned long fsel_target2(unsigned long value)
{
	__asm__ volatile("");
	return value / 5;
}

TARGET unsigned long other_target(unsigned long value)
{
	__asm__ volatile("");
	return value + 1;
}

static unsigned long (*volatile inner)(unsigned long value);

TARGET unsigned long fsel_nest(unsigned long value)
{
	unsigned long ret = inner(value);

	__asm__ volatile("");
	return ret + 2;
}

static int entries, exits, decline;
static unsigned long seen_entry, seen_ret, value, arg, exit_entry, exit_ret, give;
static void *entry_data, *exit_data;
static bool registering;

static int on_entry(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                    struct pt_regs *regs, void *data)
{
	assert_true(registering || fprobe_is_registered(fp));
	assert_null(kprobe_running());
	entries++;
	seen_entry = entry_ip;
	seen_ret = ret_ip;
	arg = regs_get_kernel_argument(regs, 0);
	entry_data = data;
	if (data)
		*(unsigned long *)data = arg * 3;
	return decline;
}

static void on_exit_(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                     struct pt_regs *regs, void *data)
{
	exits++;
	exit_entry = entry_ip;
	exit_ret = ret_ip;
	exit_data = data;
	value = regs_return_value(regs);
	assert_int_equal(instruction_pointer(regs), ret_ip);
	if (data)
		assert_int_equal(*(unsigned long *)data, arg * 3);
	if (give)
		regs_set_return_value(regs, give);
}

static int reset(void **state)
{
	entries = exits = decline = 0;
	give = value = 0;
	entry_data = exit_data = NULL;
	inner = fsel_target;
	return 0;
}

static void entry_and_exit_handlers_run_for_what_a_glob_matches(void **state)
{
	struct fprobe fp = { .entry_handler = on_entry,
		             .exit_handler = on_exit_,
		             .entry_data_size = sizeof(unsigned long) };

	register_ok(register_fprobe(&fp, "fsel_target*", NULL));
	assert_true(fprobe_is_registered(&fp));
	assert_int_equal(ukp_fprobe_functions(&fp), 2);
	assert_int_equal(fsel_target(300), 100);
	assert_int_equal(entries, 1);
	assert_int_equal(exits, 1);
	assert_int_equal(seen_entry, (unsigned long)fsel_target);
	assert_int_equal(exit_entry, (unsigned long)fsel_target);
	assert_int_equal(seen_ret, exit_ret);
	assert_int_equal(value, 100);
	assert_int_equal(arg, 300);
	assert_non_null(entry_data);
	assert_ptr_equal(entry_data, exit_data);
	give = 4711;
	assert_int_equal(fsel_target2(10), 4711);
	assert_int_equal(seen_entry, (unsigned long)fsel_target2);
	assert_int_equal(value, 2);
	assert_int_equal(unregister_fprobe(&fp), 0);
	assert_false(fprobe_is_registered(&fp));
	assert_int_equal(ukp_fprobe_functions(&fp), 0);
	assert_int_equal(fsel_target(300), 100);
	assert_int_equal(entries, 2);
	assert_int_equal(fp.nmissed, 0);
}

static void a_notfilter_leaves_out(void **state)
{
	struct fprobe fp = { .entry_handler = on_entry };

	register_ok(register_fprobe(&fp, "fsel_*", "*2"));
	assert_int_equal(ukp_fprobe_functions(&fp), 2);
	fsel_target(1);
	fsel_target2(1);
	fsel_nest(1);
	assert_int_equal(entries, 3);
	assert_int_equal(unregister_fprobe(&fp), 0);
	register_ok(register_fprobe(&fp, "fsel_[a-n]*", "fprobe:nothing"));
	fsel_target(1);
	assert_int_equal(entries, 3);
	fsel_nest(1);
	assert_int_equal(entries, 4);
	assert_int_equal(unregister_fprobe(&fp), 0);
}

static void a_glob_may_name_its_module(void **state)
{
	unsigned long (*volatile parse)(const char *s, char **end, int base) = strtoul;
	struct fprobe fp = { .entry_handler = on_entry };

	assert_int_equal(register_fprobe(&fp, "libnone:*", NULL), -ENOENT);
	assert_int_equal(register_fprobe(&fp, "libc:fsel_*", NULL), -EINVAL);
	register_ok(register_fprobe(&fp, "libc:strtou*", NULL));
	entries = 0;
	assert_int_equal(parse("7", NULL, 10), 7);
	assert_int_equal(entries, 1);
	assert_int_equal(unregister_fprobe(&fp), 0);
}

static void symbols_are_sorted_and_addresses_taken(void **state)
{
	const char *syms[] = { "fsel_target2", "fsel_nest", "fsel_target" };
	unsigned long ips[] = { (unsigned long)fsel_target, (unsigned long)fsel_target2,
		                (unsigned long)fsel_target };
	struct fprobe fp = { .entry_handler = on_entry };

	register_ok(register_fprobe_syms(&fp, syms, 3));
	assert_string_equal(syms[0], "fsel_nest");
	assert_string_equal(syms[1], "fsel_target");
	assert_string_equal(syms[2], "fsel_target2");
	fsel_nest(1);
	fsel_target2(1);
	assert_int_equal(entries, 3);
	assert_int_equal(unregister_fprobe(&fp), 0);
	register_ok(register_fprobe_ips(&fp, ips, 3));
	assert_int_equal(ukp_fprobe_functions(&fp), 2);
	fsel_target(1);
	fsel_target2(1);
	fsel_nest(1);
	assert_int_equal(entries, 6);
	assert_int_equal(unregister_fprobe(&fp), 0);
}

static void errors_are_the_kernels(void **state)
{
	const char *unknown[] = { "fsel_target", "no_such_function" };
	const char *denied[] = { "fsel_target", "execve" };
	unsigned long inside[] = { (unsigned long)fsel_target, (unsigned long)fsel_target2 + 1 };
	unsigned long nowhere[] = { 16 };
	struct fprobe fp = { .entry_handler = on_entry }, copy;

	assert_int_equal(unregister_fprobe(&fp), -EINVAL);
	assert_int_equal(unregister_fprobe(NULL), -EINVAL);
	assert_false(fprobe_is_registered(NULL));
	assert_int_equal(register_fprobe(NULL, "*", NULL), -EINVAL);
	assert_int_equal(register_fprobe(&fp, NULL, NULL), -EINVAL);
	assert_int_equal(register_fprobe(&fp, "no_such_*", NULL), -EINVAL);
	assert_int_equal(register_fprobe_syms(&fp, NULL, 1), -EINVAL);
	assert_int_equal(register_fprobe_syms(&fp, unknown, 0), -EINVAL);
	assert_int_equal(register_fprobe_syms(&fp, unknown, -1), -EINVAL);
	assert_int_equal(register_fprobe_syms(NULL, unknown, 1), -EINVAL);
	assert_int_equal(register_fprobe_syms(&fp, unknown, 2), -ENOENT);
	assert_non_null(strstr(ukp_kprobe_error(), "no_such_function"));
	assert_int_equal(register_fprobe_syms(&fp, denied, 2), -EINVAL);
	assert_int_equal(register_fprobe_ips(&fp, inside, 0), -EINVAL);
	assert_int_equal(register_fprobe_ips(&fp, NULL, 1), -EINVAL);
	assert_int_equal(register_fprobe_ips(&fp, inside, 2), -EINVAL);
	assert_int_equal(register_fprobe_ips(&fp, nowhere, 1), -EINVAL);
	fp.nr_maxactive = -1;
	assert_int_equal(register_fprobe(&fp, "fsel_*", NULL), -EINVAL);
	fp.nr_maxactive = 0;
	fp.entry_data_size = FPROBE_MAX_DATA_SIZE + 1;
	assert_int_equal(register_fprobe(&fp, "fsel_*", NULL), -E2BIG);
	fp.entry_data_size = 0;
	text_is_as_in_the_file();
	fsel_target(1);
	assert_int_equal(entries, 0);

	register_ok(register_fprobe(&fp, "fsel_*", NULL));
	assert_int_equal(register_fprobe(&fp, "fsel_*", NULL), -EEXIST);
	assert_int_equal(register_fprobe_syms(&fp, unknown, 1), -EEXIST);
	copy = fp;
	assert_false(fprobe_is_registered(&copy));
	assert_int_equal(unregister_fprobe(&copy), -EINVAL);
	fsel_target(1);
	assert_int_equal(entries, 1);
	assert_int_equal(unregister_fprobe(&fp), 0);
	assert_int_equal(unregister_fprobe(&fp), -EINVAL);
	/* Nothing needs to be cleared in between. */
	register_ok(register_fprobe(&fp, "fsel_*", NULL));
	assert_int_equal(unregister_fprobe(&fp), 0);
}

static void data_is_there_with_an_exit_handler_and_a_size_only(void **state)
{
	struct fprobe fp = { .entry_handler = on_entry, .entry_data_size = 8 };
	size_t sizes[] = { 1, 8, 128, 129, 4096 };
	size_t i;

	register_ok(register_fprobe(&fp, "fsel_target", NULL));
	fsel_target(1);
	assert_int_equal(entries, 1);
	assert_null(entry_data);
	unregister_fprobe(&fp);
	fp.entry_data_size = 0;
	fp.exit_handler = on_exit_;
	register_ok(register_fprobe(&fp, "fsel_target", NULL));
	fsel_target(1);
	assert_null(entry_data);
	assert_null(exit_data);
	assert_int_equal(exits, 1);
	unregister_fprobe(&fp);
	for (i = 1; i < sizeof(sizes) / sizeof(*sizes); i++) {
		fp.entry_data_size = sizes[i];
		register_ok(register_fprobe(&fp, "fsel_target", NULL));
		assert_int_equal(fsel_target(9 * i), 3 * i);
		assert_non_null(exit_data);
		assert_int_equal((unsigned long)exit_data % 8, 0);
		unregister_fprobe(&fp);
	}
	assert_int_equal(exits, 5);
}

static void an_exit_alone_is_reported(void **state)
{
	struct fprobe fp = { .exit_handler = on_exit_ };

	register_ok(register_fprobe(&fp, "fsel_target", NULL));
	fsel_target(30);
	assert_int_equal(exits, 1);
	assert_int_equal(value, 10);
	assert_int_equal(exit_entry, (unsigned long)fsel_target);
	unregister_fprobe(&fp);
}

static void a_declined_call_is_no_miss(void **state)
{
	struct fprobe fp = { .entry_handler = on_entry, .exit_handler = on_exit_ };

	register_ok(register_fprobe(&fp, "fsel_target*", NULL));
	decline = 1;
	assert_int_equal(fsel_target(300), 100);
	assert_int_equal(entries, 1);
	assert_int_equal(exits, 0);
	assert_int_equal(fp.nmissed, 0);
	decline = 0;
	fsel_target(300);
	assert_int_equal(exits, 1);
	unregister_fprobe(&fp);
}

static void a_call_inside_past_nr_maxactive_is_a_miss(void **state)
{
	const char *syms[] = { "fsel_target", "fsel_nest" };
	struct fprobe fp = { .entry_handler = on_entry,
		             .exit_handler = on_exit_,
		             .nr_maxactive = 1 };

	register_ok(register_fprobe_syms(&fp, syms, 2));
	assert_int_equal(fsel_nest(300), 102);
	assert_int_equal(fp.nmissed, 1);
	/* The entry handler isn't called for what can't be followed. */
	assert_int_equal(entries, 1);
	assert_int_equal(exits, 1);
	unregister_fprobe(&fp);
	fp.nr_maxactive = 0;
	register_ok(register_fprobe_syms(&fp, syms, 2));
	assert_int_equal(fp.nmissed, 0);
	assert_int_equal(fsel_nest(300), 102);
	assert_int_equal(fp.nmissed, 0);
	assert_int_equal(exits, 3);
	unregister_fprobe(&fp);
}

static int calling_entry(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                         struct pt_regs *regs, void *data)
{
	entries++;
	fsel_target(1);
	return 0;
}

static void calling_exit(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                         struct pt_regs *regs, void *data)
{
	exits++;
	fsel_target(1);
}

static void hits_in_handlers_are_missed_and_counted(void **state)
{
	struct fprobe fp = { .entry_handler = calling_entry, .exit_handler = calling_exit };
	struct fprobe other = { .entry_handler = on_entry };
	struct fprobe off = { .entry_handler = on_entry, .flags = FPROBE_FL_DISABLED };

	register_ok(register_fprobe(&fp, "fsel_target2", NULL));
	register_ok(register_fprobe(&other, "fsel_target", NULL));
	register_ok(register_fprobe(&off, "fsel_target", NULL));
	assert_int_equal(fsel_target2(50), 10);
	assert_int_equal(entries + exits, 2);
	assert_int_equal(fp.nmissed, 0);
	assert_int_equal(other.nmissed, 2);
	/* Unlike a kprobe's. */
	assert_int_equal(off.nmissed, 0);
	unregister_fprobe(&fp);
	unregister_fprobe(&other);
	unregister_fprobe(&off);
}

static void disabling_is_a_flag(void **state)
{
	struct fprobe fp = { .entry_handler = on_entry, .exit_handler = on_exit_ };

	register_ok(register_fprobe(&fp, "fsel_target", NULL));
	disable_fprobe(&fp);
	fsel_target(1);
	assert_true(fp.flags & FPROBE_FL_DISABLED);
	assert_true(fprobe_is_registered(&fp));
	enable_fprobe(&fp);
	fsel_target(1);
	assert_int_equal(entries, 1);
	assert_int_equal(exits, 1);
	unregister_fprobe(&fp);
	fp.flags = FPROBE_FL_DISABLED;
	register_ok(register_fprobe(&fp, "fsel_target", NULL));
	fsel_target(1);
	assert_int_equal(entries, 1);
	enable_fprobe(&fp);
	fsel_target(1);
	assert_int_equal(entries, 2);
	unregister_fprobe(&fp);
	disable_fprobe(NULL);
	enable_fprobe(NULL);
	assert_int_equal(fp.nmissed, 0);
}

/* --- with kprobes --------------------------------------------------------------- */

static int kprobe_hits;

static int calling_pre(struct kprobe *p, struct pt_regs *regs)
{
	kprobe_hits++;
	fsel_target(1);
	return 0;
}

static int counting_pre(struct kprobe *p, struct pt_regs *regs)
{
	kprobe_hits++;
	return 0;
}

static int other_entry(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                       struct pt_regs *regs, void *data)
{
	entries++;
	assert_ptr_equal(kprobe_running(),
	                 fp->flags & FPROBE_FL_KPROBE_SHARED ? &kprobe_busy : NULL);
	other_target(1);
	return 0;
}

static void sharing_with_kprobes_keeps_both_apart(void **state)
{
	struct kprobe kp = { .symbol_name = "other_target", .pre_handler = calling_pre };
	struct fprobe fp = { .entry_handler = on_entry };
	int shared;

	for (shared = 0; shared < 2; shared++) {
		entries = kprobe_hits = 0;
		fp.flags = shared ? FPROBE_FL_KPROBE_SHARED : 0;
		fp.entry_handler = on_entry;
		register_ok(register_fprobe(&fp, "fsel_target", NULL));
		register_ok(register_kprobe(&kp));
		/* Not in on_entry(), that expects no kprobe to run. */
		if (shared)
			other_target(1);
		assert_int_equal(entries, 0);
		assert_int_equal(fp.nmissed, shared);
		kp.pre_handler = counting_pre;
		fp.entry_handler = other_entry;
		kprobe_hits = 0;
		fsel_target(1);
		assert_int_equal(entries, 1);
		assert_int_equal(kprobe_hits, !shared);
		assert_int_equal(kp.nmissed, shared);
		unregister_kprobe(&kp);
		unregister_fprobe(&fp);
		kp.addr = NULL;
		kp.pre_handler = calling_pre;
	}
}

static int entry_in_kprobe(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                           struct pt_regs *regs, void *data)
{
	entries++;
	assert_non_null(kprobe_running());
	return 0;
}

static void an_fprobe_in_a_kprobes_handler_runs(void **state)
{
	struct kprobe kp = { .symbol_name = "other_target", .pre_handler = calling_pre };
	struct fprobe fp = { .entry_handler = entry_in_kprobe };

	kprobe_hits = 0;
	register_ok(register_fprobe(&fp, "fsel_target", NULL));
	register_ok(register_kprobe(&kp));
	other_target(1);
	assert_int_equal(kprobe_hits, 1);
	assert_int_equal(entries, 1);
	assert_int_equal(fp.nmissed, 0);
	unregister_kprobe(&kp);
	unregister_fprobe(&fp);
}

static void busy_threads_miss_kprobes(void **state)
{
	struct kprobe kp = { .symbol_name = "fsel_target", .pre_handler = counting_pre };
	struct fprobe fp = { .entry_handler = on_entry, .flags = FPROBE_FL_KPROBE_SHARED };

	kprobe_hits = 0;
	kprobe_busy_begin();
	assert_ptr_equal(kprobe_running(), &kprobe_busy);
	kprobe_busy_end();
	assert_null(kprobe_running());
	kprobe_busy_end();
	register_ok(register_kprobe(&kp));
	register_ok(register_fprobe(&fp, "fsel_target", NULL));
	kprobe_busy_begin();
	assert_int_equal(fsel_target(9), 3);
	assert_int_equal(fsel_target(9), 3);
	kprobe_busy_end();
	assert_int_equal(kprobe_hits + entries, 0);
	assert_int_equal(kp.nmissed, 2);
	assert_int_equal(fp.nmissed, 2);
	unregister_fprobe(&fp);
	fsel_target(9);
	assert_int_equal(kprobe_hits, 1);
	unregister_kprobe(&kp);
}

/* All three kinds at one entry, and the same true return address for all. */
static unsigned long kret_ret;

static int on_kret(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	kret_ret = get_kretprobe_retaddr(ri);
	return 0;
}

static void probes_of_all_kinds_share_an_entry(void **state)
{
	struct kprobe kp = { .symbol_name = "fsel_target", .pre_handler = counting_pre };
	struct kretprobe rp = { .kp.symbol_name = "fsel_target", .handler = on_kret };
	struct fprobe fp = { .entry_handler = on_entry, .exit_handler = on_exit_ };
	struct fprobe late = { .entry_handler = on_entry };

	kprobe_hits = 0;
	register_ok(register_kretprobe(&rp));
	register_ok(register_fprobe(&fp, "fsel_target", NULL));
	register_ok(register_kprobe(&kp));
	register_ok(register_fprobe(&late, "fsel_target", NULL));
	assert_int_equal(fsel_target(30), 10);
	assert_int_equal(kprobe_hits, 1);
	assert_int_equal(entries, 2);
	assert_int_equal(exits, 1);
	assert_int_equal(kret_ret, exit_ret);
	assert_int_equal(seen_ret, exit_ret);
	/* In another order than they came. */
	unregister_fprobe(&fp);
	unregister_kretprobe(&rp);
	assert_int_equal(fsel_target(30), 10);
	assert_int_equal(kprobe_hits, 2);
	assert_int_equal(entries, 3);
	unregister_kprobe(&kp);
	assert_int_equal(fsel_target(30), 10);
	assert_int_equal(entries, 4);
	unregister_fprobe(&late);
	assert_int_equal(fsel_target(30), 10);
	assert_int_equal(entries, 4);
}

static int writing_entry(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                         struct pt_regs *regs, void *data)
{
	regs->di = 600;
	regs->ip = 16;
	return 0;
}

static void an_entry_handler_may_change_arguments_but_not_the_way(void **state)
{
	struct fprobe fp = { .entry_handler = writing_entry };

	register_ok(register_fprobe(&fp, "fsel_target", NULL));
	assert_int_equal(fsel_target(30), 200);
	unregister_fprobe(&fp);
}

/* --- ends ------------------------------------------------------------------------- */

static struct fprobe self;

static int unregister_self(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                           struct pt_regs *regs, void *data)
{
	struct fprobe another = { .entry_handler = on_entry };

	entries++;
	assert_int_equal(register_fprobe(&another, "fsel_target", NULL), -EBUSY);
	assert_int_equal(unregister_fprobe(fp), 0);
	return 0;
}

static void a_handler_may_unregister_its_probe(void **state)
{
	self = (struct fprobe){ .entry_handler = unregister_self, .exit_handler = on_exit_ };
	register_ok(register_fprobe(&self, "fsel_target*", NULL));
	assert_int_equal(fsel_target(30), 10);
	assert_int_equal(fsel_target2(30), 6);
	assert_int_equal(entries, 1);
	assert_int_equal(exits, 0);
	assert_false(fprobe_is_registered(&self));
}

TARGET unsigned long ends_it(unsigned long value)
{
	assert_int_equal(unregister_fprobe(&self), 0);
	return value + 3;
}

static void calls_on_their_way_at_unregistering_return_unreported(void **state)
{
	int i;

	for (i = 0; i < 50; i++) {
		self = (struct fprobe){ .exit_handler = on_exit_, .entry_data_size = 4000 };
		register_ok(register_fprobe(&self, "ends_it", NULL));
		assert_int_equal(ends_it(4), 7);
	}
	assert_int_equal(exits, 0);
}

/* Its places went with it; when it comes again, they are made anew. */
static void a_library_may_go_with_its_places(void **state)
{
	struct fprobe fp = { .entry_handler = on_entry, .exit_handler = on_exit_ };
	struct fprobe late = { .exit_handler = on_exit_ };
	unsigned long (*crc)(unsigned long crc, const unsigned char *buf, unsigned int len);
	int round;

	for (round = 0; round < 3; round++) {
		void *lib = dlopen("libz.so.1", RTLD_NOW);

		if (!lib) {
			print_message("skipped: no libz.so.1 (package zlib1g)\n");
			skip();
		}
		*(void **)&crc = dlsym(lib, "crc32");
		entries = exits = 0;
		register_ok(register_fprobe(&fp, "libz:crc32*", NULL));
		assert_int_equal(crc(0, (const unsigned char *)"123456789", 9), 0xcbf43926);
		assert_true(entries > 0);
		assert_int_equal(exits, entries);
		dlclose(lib);
		/* A later one finds the places as they are, wherever the library is now. */
		lib = dlopen("libz.so.1", RTLD_NOW);
		assert_non_null(lib);
		*(void **)&crc = dlsym(lib, "crc32");
		register_ok(register_fprobe(&late, "libz:crc32*", NULL));
		exits = 0;
		assert_int_equal(crc(0, (const unsigned char *)"123456789", 9), 0xcbf43926);
		assert_true(exits > 0);
		assert_int_equal(unregister_fprobe(&fp), 0);
		dlclose(lib);
		assert_int_equal(unregister_fprobe(&late), 0);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, reset, untouched)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(entry_and_exit_handlers_run_for_what_a_glob_matches),
		T(a_notfilter_leaves_out),
		T(a_glob_may_name_its_module),
		T(symbols_are_sorted_and_addresses_taken),
		T(errors_are_the_kernels),
		T(data_is_there_with_an_exit_handler_and_a_size_only),
		T(an_exit_alone_is_reported),
		T(a_declined_call_is_no_miss),
		T(a_call_inside_past_nr_maxactive_is_a_miss),
		T(hits_in_handlers_are_missed_and_counted),
		T(disabling_is_a_flag),
		T(sharing_with_kprobes_keeps_both_apart),
		T(an_fprobe_in_a_kprobes_handler_runs),
		T(busy_threads_miss_kprobes),
		T(probes_of_all_kinds_share_an_entry),
		T(an_entry_handler_may_change_arguments_but_not_the_way),
		T(a_handler_may_unregister_its_probe),
		T(a_library_may_go_with_its_places),
		T(calls_on_their_way_at_unregistering_return_unreported),
	};

	return run_in_both_forms(tests);
}
