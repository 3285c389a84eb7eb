/* SPDX-License-Identifier: MIT */
/*
 * Each row of the errno tables of <ukprobes/kprobes.h>, the blacklist, and what
 * the header has for registers.  The other headers' errno stand in their own
 * scenarios.
 */
#include <sys/mman.h>

#include "scenario.h"

/* Code that is no program's: each row of probes has a reason of its own. */
void odd(void);
extern const unsigned char odd_int3[], odd_movss[], odd_far[], odd_iret[], odd_end[];
__asm__(".text\n.type odd, @function\n"
        "odd: nop\n"
        "odd_movss: mov %eax, %ss\n"
        "odd_far: lcall *(%rax)\n"
        "odd_iret: iretq\n"
        "odd_int3: int3\n"
        "odd_end: ret\n.size odd, . - odd\n");

int data_object[4] = { 1, 2, 3, 4 };

TARGET int target(int x)
{
	__asm__ volatile("");
	return x + 1;
}

/* Long enough to have an inside. */
TARGET int long_target(int x)
{
	__asm__ volatile("nop\n nop\n nop\n");
	return x * 3;
}

static int hits;

static int pre(struct kprobe *p, struct pt_regs *regs)
{
	hits++;
	return 0;
}

static int on_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	hits++;
	return 0;
}

static int at(const void *addr)
{
	struct kprobe kp = { .addr = (kprobe_opcode_t *)(uintptr_t)addr, .pre_handler = pre };
	int ret = register_kprobe(&kp);

	if (!ret)
		unregister_kprobe(&kp);
	else
		assert_ptr_equal(kp.addr, addr);
	return ret;
}

static int by_name(const char *name)
{
	struct kprobe kp = { .symbol_name = name, .pre_handler = pre };
	int ret = register_kprobe(&kp);

	if (!ret)
		unregister_kprobe(&kp);
	else
		assert_null(kp.addr);
	return ret;
}

static void instructions_that_cannot_be_probed(void **state)
{
	assert_int_equal(at(odd_int3), -EILSEQ);
	assert_int_equal(at(odd_movss), -EINVAL);
	assert_int_equal(at(odd_far), -EOPNOTSUPP);
	assert_int_equal(at(odd_iret), -EOPNOTSUPP);
	assert_int_equal(at(odd_movss + 1), -EILSEQ);
	assert_non_null(strstr(ukp_kprobe_error(), "boundary"));
	assert_int_equal(at(odd_end), 0);
	assert_int_equal(at((void *)odd), 0);
}

static void places_that_cannot_be_probed(void **state)
{
	struct kprobe both = { .symbol_name = "target", .addr = (kprobe_opcode_t *)target };
	struct kprobe none = { .pre_handler = pre };
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
	                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_int_equal(register_kprobe(&both), -EINVAL);
	assert_int_equal(register_kprobe(&none), -EINVAL);
	assert_int_equal(by_name("no_such_function"), -ENOENT);
	assert_int_equal(by_name("libnone:target"), -ENOENT);
	assert_int_equal(by_name("libc:target"), -ENOENT);
	assert_int_equal(by_name("data_object"), -EINVAL);
	assert_int_equal(at(data_object), -EINVAL);
	assert_int_equal(at((void *)16), -ENOENT);
	assert_int_equal(at((void *)0xffffffffff600000ul), -ENOENT);
	assert_int_equal(at((void *)0xffffffff81000000ul), -ENOENT);
	/* Code that no file has is in no known function. */
	assert_true(code != MAP_FAILED);
	memset(code, 0x90, 4096);
	assert_int_equal(at(code), -ENOENT);
	munmap(code, 4096);
	/* What runs with all signals blocked, and what runs on a hit. */
	assert_int_equal(by_name("execve"), -EINVAL);
	assert_non_null(
		strstr(ukp_kprobe_error(), "execve can't be probed: it runs with all signals"));
	assert_int_equal(by_name("pthread_sigmask"), -EINVAL);
	assert_int_equal(by_name("ukp_trap"), -EINVAL);
}

static void offsets_lead_into_the_next_symbol(void **state)
{
	struct kprobe kp = { .symbol_name = "target", .pre_handler = pre };

	kp.offset = (unsigned int)((unsigned long)long_target - (unsigned long)target);
	hits = 0;
	register_ok(register_kprobe(&kp));
	assert_ptr_equal(kp.addr, long_target);
	assert_int_equal(long_target(2), 6);
	unregister_kprobe(&kp);
	assert_int_equal(hits, 1);
}

static void registering_twice(void **state)
{
	struct kprobe kp = { .symbol_name = "target", .pre_handler = pre, .nmissed = 77 };
	struct kprobe another = { .symbol_name = "target", .pre_handler = pre };
	struct kprobe *batch[] = { &kp, &another };

	register_ok(register_kprobe(&kp));
	assert_int_equal(kp.nmissed, 0);
	kp.symbol_name = NULL;
	/* The same struct, by its address: never -EEXIST. */
	assert_int_equal(register_kprobe(&kp), -EINVAL);
	register_ok(register_kprobe(&another));
	hits = 0;
	target(1);
	assert_int_equal(hits, 2);
	/* A batch with one that is registered leaves nothing of the rest. */
	unregister_kprobe(&another);
	another.addr = NULL;
	batch[0] = &another;
	batch[1] = &kp;
	assert_int_equal(register_kprobes(batch, 2), -EINVAL);
	hits = 0;
	target(1);
	assert_int_equal(hits, 1);
	unregister_kprobe(&kp);
	unregister_kprobe(&kp);
	assert_null(kp.addr);
	assert_int_equal(register_kprobes(batch, -1), -EINVAL);
	assert_int_equal(register_kprobes(batch, 0), -EINVAL);
	unregister_kprobes(batch, 0);
	unregister_kprobes(batch, -1);
}

enum { MANY = 40, LINES = 64 };

unsigned long lines(void);
__asm__(".text\n.type lines, @function\nlines: xor %eax, %eax\n"
        ".rept 64\n lea 1(%rax), %rax\n.endr\n ret\n.size lines, . - lines\n");

/* Many at once are checked in another way than one; what comes out is the same. */
static void a_large_batch_fails_like_a_single_one(void **state)
{
	static const struct {
		const char *name;
		const void *addr;
		int ret;
	} bad[] = {
		{ "no_such_function", NULL, -ENOENT }, { NULL, (void *)16, -ENOENT },
		{ NULL, data_object, -EINVAL },        { NULL, odd_int3, -EILSEQ },
		{ NULL, odd_movss, -EINVAL },          { NULL, odd_far, -EOPNOTSUPP },
		{ NULL, odd_movss + 1, -EILSEQ },      { "execve", NULL, -EINVAL },
		{ "target", odd_end, -EINVAL },
	};
	static struct kprobe kp[MANY];
	struct kprobe *batch[MANY];
	size_t b;
	int i;

	for (b = 0; b <= sizeof(bad) / sizeof(*bad); b++) {
		for (i = 0; i < MANY; i++) {
			/* In no order. */
			kp[i] = (struct kprobe){ .pre_handler = pre };
			kp[i].addr = (kprobe_opcode_t *)lines + 2 + 4 * (i * 13 % LINES);
			batch[i] = &kp[i];
		}
		hits = 0;
		if (b == sizeof(bad) / sizeof(*bad)) {
			register_ok(register_kprobes(batch, MANY));
			assert_int_equal(lines(), LINES);
			assert_int_equal(hits, MANY);
			unregister_kprobes(batch, MANY);
			assert_int_equal(lines(), LINES);
			assert_int_equal(hits, MANY);
			continue;
		}
		kp[17].symbol_name = bad[b].name;
		kp[17].addr = (kprobe_opcode_t *)(uintptr_t)bad[b].addr;
		assert_int_equal(register_kprobes(batch, MANY), bad[b].ret);
		assert_true(ukp_kprobe_error()[0]);
		assert_ptr_equal(kp[17].addr, bad[b].addr);
		assert_int_equal(lines(), LINES);
		assert_int_equal(hits, 0);
		text_is_as_in_the_file();
	}
}

static void flags_of_a_caller_are_kept_and_others_cleared(void **state)
{
	struct kprobe kp = { .symbol_name = "target",
		             .pre_handler = pre,
		             .flags = KPROBE_FLAG_GONE | KPROBE_FLAG_OPTIMIZED |
		                      KPROBE_FLAG_DISABLED };

	hits = 0;
	register_ok(register_kprobe(&kp));
	assert_int_equal(kp.flags & (KPROBE_FLAG_GONE | KPROBE_FLAG_OPTIMIZED), 0);
	assert_true(kp.flags & KPROBE_FLAG_DISABLED);
	assert_true(kp.flags & KPROBE_FLAG_ON_FUNC_ENTRY);
	target(1);
	assert_int_equal(hits, 0);
	assert_int_equal(enable_kprobe(&kp), 0);
	assert_int_equal(enable_kprobe(&kp), 0);
	target(1);
	assert_int_equal(hits, 1);
	assert_int_equal(disable_kprobe(&kp), 0);
	assert_int_equal(disable_kprobe(&kp), 0);
	unregister_kprobe(&kp);
	assert_int_equal(enable_kprobe(&kp), -EINVAL);
	assert_int_equal(disable_kprobe(&kp), -EINVAL);
}

static int kret(struct kretprobe *rp)
{
	int ret;

	rp->handler = on_return;
	rp->kp.addr = rp->kp.symbol_name ? NULL : rp->kp.addr;
	ret = register_kretprobe(rp);
	if (!ret)
		unregister_kretprobe(rp);
	return ret;
}

static void kretprobes(void **state)
{
	struct kretprobe inside = { .kp.symbol_name = "long_target", .kp.offset = 1 };
	struct kretprobe unknown = { .kp.symbol_name = "no_such_function" };
	struct kretprobe nowhere = { .kp.addr = (kprobe_opcode_t *)16 };
	/* Which exit sites would serve, or not. */
	struct kretprobe twice = { .kp.symbol_name = "getcontext", .kp.flags = UKP_BY_SLOT };
	struct kretprobe reads = { .kp.symbol_name = "dlsym", .kp.flags = UKP_BY_SLOT };
	struct kretprobe several = { .kp.symbol_name = "target",
		                     .kp.flags = UKP_BY_SLOT | UKP_BY_EXIT };
	struct kretprobe denied = { .kp.symbol_name = "execve" };
	struct kretprobe large = { .kp.symbol_name = "target", .data_size = 4097 };
	struct kretprobe largest = { .kp.symbol_name = "target", .data_size = 4096 };
	struct kretprobe none = { .kp.symbol_name = NULL };
	/* The entry is looked at before the size, the blacklist, too. */
	struct kretprobe order = { .kp.symbol_name = "long_target",
		                   .kp.offset = 1,
		                   .data_size = 4097 };
	struct kretprobe order2 = { .kp = twice.kp, .data_size = 4097 };
	struct kretprobe rp = { .kp.symbol_name = "target", .handler = on_return };
	struct kretprobe *batch[] = { &rp, &unknown };

	assert_int_equal(kret(&inside), -EINVAL);
	assert_int_equal(kret(&unknown), -ENOENT);
	assert_int_equal(kret(&nowhere), -ENOENT);
	assert_int_equal(kret(&twice), -EINVAL);
	assert_int_equal(kret(&reads), -EINVAL);
	assert_int_equal(kret(&several), -EINVAL);
	assert_int_equal(kret(&denied), -EINVAL);
	assert_int_equal(kret(&large), -E2BIG);
	assert_int_equal(kret(&largest), 0);
	assert_int_equal(kret(&none), -EINVAL);
	assert_int_equal(kret(&order), -EINVAL);
	assert_int_equal(kret(&order2), -EINVAL);
	unknown.kp.addr = NULL;
	assert_int_equal(register_kretprobes(batch, 2), -ENOENT);
	assert_int_equal(register_kretprobes(batch, 0), -EINVAL);
	rp.kp.addr = NULL;
	register_ok(register_kretprobes(batch, 1));
	assert_int_equal(register_kretprobe(&rp), -EINVAL);
	hits = 0;
	target(1);
	assert_int_equal(disable_kretprobe(&rp), 0);
	target(1);
	assert_int_equal(enable_kretprobe(&rp), 0);
	target(1);
	assert_int_equal(hits, 2);
	unregister_kretprobes(batch, 1);
	assert_int_equal(enable_kretprobe(&rp), -EINVAL);
	assert_int_equal(disable_kretprobe(&rp), -EINVAL);
}

static void a_large_batch_of_kretprobes_fails_like_a_single_one(void **state)
{
	static struct kretprobe rp[MANY];
	struct kretprobe *batch[MANY];
	int i, k;

	for (k = 0; k < 4; k++) {
		for (i = 0; i < MANY; i++) {
			rp[i] = (struct kretprobe){ .kp.symbol_name =
				                            i % 2 ? "target" : "long_target",
				                    .handler = on_return };
			batch[i] = &rp[i];
		}
		hits = 0;
		switch (k) {
		case 0:
			rp[20].kp.offset = 1;
			break;
		case 1:
			rp[20].kp.symbol_name = "getcontext";
			rp[20].kp.flags = UKP_BY_SLOT;
			break;
		case 2:
			rp[20].data_size = 4097;
			break;
		default:
			register_ok(register_kretprobes(batch, MANY));
			assert_int_equal(target(1), 2);
			assert_int_equal(long_target(1), 3);
			assert_int_equal(hits, MANY);
			unregister_kretprobes(batch, MANY);
			assert_int_equal(target(1), 2);
			assert_int_equal(hits, MANY);
			continue;
		}
		assert_int_equal(register_kretprobes(batch, MANY), k == 2 ? -E2BIG : -EINVAL);
		assert_true(ukp_kprobe_error()[0]);
		assert_int_equal(target(1), 2);
		assert_int_equal(hits, 0);
		text_is_as_in_the_file();
	}
}

static void entries_of_functions(void **state)
{
	kprobe_opcode_t *addr = (kprobe_opcode_t *)target;

	assert_int_equal(kprobe_on_func_entry(addr, NULL, 0), 0);
	assert_int_equal(kprobe_on_func_entry(NULL, "target", 0), 0);
	assert_int_equal(kprobe_on_func_entry(NULL, "target", 1), -EINVAL);
	assert_int_equal(kprobe_on_func_entry(addr + 1, NULL, 0), -EINVAL);
	assert_int_equal(kprobe_on_func_entry(NULL, "no_such_function", 0), -ENOENT);
	assert_int_equal(kprobe_on_func_entry((kprobe_opcode_t *)16, NULL, 0), -ENOENT);
	assert_int_equal(kprobe_on_func_entry(addr, "target", 0), -EINVAL);
	assert_int_equal(kprobe_on_func_entry(NULL, NULL, 0), -EINVAL);
}

/* --- the blacklist ---------------------------------------------------------------- */

static __kprobes __attribute__((noinline, used)) int in_section(int x)
{
	__asm__ volatile("nop");
	return x;
}

TARGET int by_mark(int x)
{
	__asm__ volatile("nop");
	return x;
}
NOKPROBE_SYMBOL(by_mark);

/* As the compiler splits functions. */
void split_part(void);
__asm__(".text\n.type by_mark.cold, @function\nsplit_part:\n"
        "by_mark.cold: nop\n ret\n.size by_mark.cold, . - by_mark.cold\n");

TARGET int listed(int x)
{
	__asm__ volatile("nop");
	return x;
}

TARGET int in_area(int x)
{
	__asm__ volatile("nop");
	return x;
}

static void what_keeps_probes_off(void **state)
{
	unsigned long area = (unsigned long)in_area;
	int size;

	/* What is listed once stays so for the second round. */
	assert_int_equal(at((void *)listed), in_jumps ? -EINVAL : 0);
	assert_int_equal(at((void *)in_area), in_jumps ? -EINVAL : 0);
	size = kprobe_add_ksym_blacklist((unsigned long)listed);
	assert_in_range(size, 2, 200);
	assert_int_equal(kprobe_add_ksym_blacklist(16), -EINVAL);
	assert_int_equal(kprobe_add_ksym_blacklist((unsigned long)data_object), -EINVAL);
	assert_int_equal(kprobe_add_area_blacklist(area, area + 2), 0);
	assert_int_equal(kprobe_add_area_blacklist(area, area), -EINVAL);
	assert_int_equal(kprobe_add_area_blacklist(16, 32), -EINVAL);

	assert_true(within_kprobe_blacklist((unsigned long)in_section));
	assert_true(within_kprobe_blacklist((unsigned long)by_mark));
	assert_true(within_kprobe_blacklist((unsigned long)split_part));
	assert_true(within_kprobe_blacklist((unsigned long)split_part + 1));
	assert_true(within_kprobe_blacklist((unsigned long)listed));
	assert_true(within_kprobe_blacklist((unsigned long)listed + (unsigned long)size - 1));
	assert_true(within_kprobe_blacklist(area + 1));
	assert_false(within_kprobe_blacklist(area + 2));
	assert_false(within_kprobe_blacklist((unsigned long)target));
	assert_int_equal(at((void *)in_section), -EINVAL);
	assert_non_null(strstr(ukp_kprobe_error(), "can't be probed: it is defined as __kprobes"));
	assert_int_equal(at((void *)by_mark), -EINVAL);
	assert_non_null(strstr(ukp_kprobe_error(), "NOKPROBE_SYMBOL"));
	assert_int_equal(at((void *)split_part), -EINVAL);
	assert_int_equal(at((void *)listed), -EINVAL);
	assert_int_equal(at((void *)in_area), -EINVAL);
	assert_int_equal(in_section(3) + by_mark(3) + listed(3) + in_area(3), 12);
}

/* --- registers ---------------------------------------------------------------------- */

static struct pt_regs seen;
static unsigned long words[3];

static int looking_pre(struct kprobe *p, struct pt_regs *regs)
{
	unsigned long *second = regs_get_kernel_stack_nth_addr(regs, 1);

	seen = *regs;
	words[0] = regs_get_kernel_stack_nth(regs, 0);
	words[1] = second ? *second : 0;
	words[2] = regs_get_kernel_argument(regs, 6);
	return 0;
}

TARGET unsigned long seven(unsigned long a, unsigned long b, unsigned long c, unsigned long d,
                           unsigned long e, unsigned long f, unsigned long g)
{
	__asm__ volatile("");
	return (unsigned long)__builtin_return_address(0) + a + b + c + d + e + f + g;
}

static void registers_by_name_and_place(void **state)
{
	static const char *const names[] = { "ax", "bx",  "cx",  "dx",  "si",  "di",    "bp",
		                             "sp", "r8",  "r9",  "r10", "r11", "r12",   "r13",
		                             "ip", "r14", "r15", "cs",  "ss",  "flags", "orig_ax" };
	struct kprobe kp = { .symbol_name = "seven", .pre_handler = looking_pre };
	unsigned long ret;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		int off = regs_query_register_offset(names[i]);

		assert_in_range(off, 0, MAX_REG_OFFSET);
		assert_string_equal(regs_query_register_name((unsigned int)off), names[i]);
	}
	assert_int_equal(regs_query_register_offset("rax"), -EINVAL);
	assert_null(regs_query_register_name(1));
	assert_null(regs_query_register_name(sizeof(struct pt_regs)));

	register_ok(register_kprobe(&kp));
	ret = seven(1, 2, 3, 4, 5, 6, 700) - 721;
	unregister_kprobe(&kp);
	assert_int_equal(words[0], ret);
	assert_int_equal(words[1], 700);
	assert_int_equal(words[2], 700);
	for (i = 0; i < 7; i++)
		assert_int_equal(i < 6 ? regs_get_kernel_argument(&seen, (unsigned int)i) : 7,
		                 i + 1);
	assert_int_equal(regs_get_register(&seen, offsetof(struct pt_regs, si)), 2);
	assert_int_equal(regs_get_register(&seen, sizeof(struct pt_regs)), 0);
	assert_int_equal(profile_pc(&seen), instruction_pointer(&seen));
	assert_int_equal(user_stack_pointer(&seen), kernel_stack_pointer(&seen));
	assert_int_equal(frame_pointer(&seen), seen.bp);
	assert_true(user_mode(&seen));
	assert_true(regs_within_kernel_stack(&seen, seen.sp));
	assert_true(regs_within_kernel_stack(&seen, seen.sp - 128));
	assert_false(regs_within_kernel_stack(&seen, seen.sp - 129));
	assert_false(regs_within_kernel_stack(&seen, seen.sp + UKP_STACK_REACH));
	assert_null(regs_get_kernel_stack_nth_addr(&seen, UKP_STACK_REACH / 8));
	assert_int_equal(regs_get_kernel_stack_nth(&seen, UKP_STACK_REACH / 8), 0);
	instruction_pointer_set(&seen, 4711);
	frame_pointer_set(&seen, 4712);
	regs_set_return_value(&seen, 4713);
	assert_int_equal(seen.ip + seen.bp + seen.ax, 3 * 4712);
	assert_int_equal(regs_return_value(&seen), 4713);
}

static void a_probe_is_dumped_by_name_and_place(void **state)
{
	struct kprobe kp = { .symbol_name = "target", .pre_handler = pre };
	char text[512] = "";
	FILE *f = tmpfile();
	int err = dup(2);

	register_ok(register_kprobe(&kp));
	fflush(stderr);
	dup2(fileno(f), 2);
	dump_kprobe(&kp);
	dup2(err, 2);
	close(err);
	unregister_kprobe(&kp);
	rewind(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 20);
	fclose(f);
	assert_non_null(
		strstr(text, "Dump kprobe:\n.symbol_name = target, .offset = 0, .addr = target"));
	assert_non_null(strstr(text, ".nmissed = 0"));
}

#define T(name) cmocka_unit_test_teardown(name, untouched)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(instructions_that_cannot_be_probed),
		T(places_that_cannot_be_probed),
		T(offsets_lead_into_the_next_symbol),
		T(registering_twice),
		T(a_large_batch_fails_like_a_single_one),
		T(flags_of_a_caller_are_kept_and_others_cleared),
		T(kretprobes),
		T(a_large_batch_of_kretprobes_fails_like_a_single_one),
		T(entries_of_functions),
		T(what_keeps_probes_off),
		T(registers_by_name_and_place),
		T(a_probe_is_dumped_by_name_and_place),
	};

	return run_in_both_forms(tests);
}
