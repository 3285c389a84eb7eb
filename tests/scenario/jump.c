/* SPDX-License-Identifier: MIT */
/* The jump form: what a handler sees and may do in it, when it comes and when it goes. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "scenario.h"

static unsigned long pre_hits, inner_hits, post_hits, ret_hits;
static struct pt_regs seen;

static int pre(struct kprobe *p, struct pt_regs *regs)
{
	pre_hits++;
	seen = *regs;
	return 0;
}

static int inner(struct kprobe *p, struct pt_regs *regs)
{
	inner_hits++;
	return 0;
}

static void post(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
	post_hits++;
}

static int reset(void **state)
{
	pre_hits = inner_hits = post_hits = ret_hits = 0;
	return 0;
}

static unsigned char byte_at(const void *addr)
{
	return *(const volatile unsigned char *)addr;
}

static void plant(struct kprobe *kp)
{
	if (kp->symbol_name)
		kp->addr = NULL;
	register_ok(register_kprobe(kp));
	wait_for_kprobe_optimizer();
}

/* Functions with instructions of known lengths. */
#define FUNCTION(name, body)                                                            \
	extern unsigned long name(unsigned long, unsigned long, unsigned long);         \
	__asm__(".text\n.type " #name ", @function\n" #name ":\n" body "\n.size " #name \
	        ", . - " #name "\n")

/* 3, 4, 1: the jump covers two. */
FUNCTION(pair, "mov %rdi, %rax\n lea 3(%rax,%rsi), %rax\n ret");
/* 1, 1, 3: three of them. */
FUNCTION(triple, "push %rbx\n pop %rbx\n mov %rdi, %rax\n lea 3(%rax,%rsi), %rax\n ret");
/* One that is long enough. */
FUNCTION(single, "movabs $0x1122334455, %rax\n add %rdi, %rax\n ret");
FUNCTION(looped, "mov %rdi, %rax\n 1: dec %rax\n cmp %rsi, %rax\n ja 1b\n ret");
/* Behind it the next function begins at once. */
FUNCTION(tiny, "mov %edi, %eax\n ret");
FUNCTION(calls_early, "push %rbx\n call *%rdx\n pop %rbx\n ret");

static void a_breakpoint_becomes_a_jump(void **state)
{
	struct kprobe kp = { .symbol_name = "pair", .pre_handler = pre };

	plant(&kp);
	has_jump(&kp);
	assert_int_equal(byte_at(pair), 0xe9);
	assert_int_equal(pair(4, 5, 0), 12);
	assert_int_equal(pre_hits, 1);
	unregister_kprobe(&kp);
	assert_int_equal(byte_at(pair), 0x48);
	assert_int_equal(pair(4, 5, 0), 12);
	assert_int_equal(pre_hits, 1);
}

unsigned long with_registers(struct pt_regs *r, void *fn);
/* Loads all registers from r, calls fn and stores them again: sp, ip and segments apart. */
__asm__(".text\n.type with_registers, @function\nwith_registers:\n"
        "push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
        "push %rdi\n push %rsi\n"
        "pushq 144(%rdi)\n popfq\n"
        "mov (%rdi), %r15\n mov 8(%rdi), %r14\n mov 16(%rdi), %r13\n mov 24(%rdi), %r12\n"
        "mov 32(%rdi), %rbp\n mov 40(%rdi), %rbx\n mov 48(%rdi), %r11\n mov 56(%rdi), %r10\n"
        "mov 64(%rdi), %r9\n mov 72(%rdi), %r8\n mov 80(%rdi), %rax\n mov 88(%rdi), %rcx\n"
        "mov 96(%rdi), %rdx\n mov 104(%rdi), %rsi\n mov 112(%rdi), %rdi\n"
        "call *(%rsp)\n"
        "push %rdi\n mov 16(%rsp), %rdi\n"
        "mov %r15, (%rdi)\n mov %r14, 8(%rdi)\n mov %r13, 16(%rdi)\n mov %r12, 24(%rdi)\n"
        "mov %rbp, 32(%rdi)\n mov %rbx, 40(%rdi)\n mov %r11, 48(%rdi)\n mov %r10, 56(%rdi)\n"
        "mov %r9, 64(%rdi)\n mov %r8, 72(%rdi)\n mov %rax, 80(%rdi)\n mov %rcx, 88(%rdi)\n"
        "mov %rdx, 96(%rdi)\n mov %rsi, 104(%rdi)\n popq 112(%rdi)\n"
        "pushfq\n popq 144(%rdi)\n cld\n"
        "pop %rsi\n pop %rdi\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n"
        "ret\n.size with_registers, . - with_registers\n");

static void fill(struct pt_regs *r)
{
	unsigned long *w = (unsigned long *)r;

	for (unsigned int i = 0; i < sizeof(*r) / 8; i++)
		w[i] = 0x0102030405060708ul * (i + 1);
	r->flags = 0x202 | 0x8d5 | 0x400; /* all status flags, and DF */
}

static int check_and_change(struct kprobe *p, struct pt_regs *regs)
{
	pre(p, regs);
	errno = 4711;
	regs->r13 = 99;
	regs->si = 1000;
	return 0;
}

static void a_handler_has_all_registers(void **state)
{
	struct kprobe kp = { .symbol_name = "triple", .pre_handler = check_and_change };
	struct pt_regs in, out;

	plant(&kp);
	has_jump(&kp);
	fill(&in);
	out = in;
	errno = 5;
	with_registers(&out, triple);
	assert_int_equal(errno, 5);
	unregister_kprobe(&kp);
	assert_int_equal(pre_hits, 1);
	assert_int_equal(seen.ip, (unsigned long)triple + 1);
	assert_int_equal(seen.flags, in.flags);
	assert_int_equal(seen.cs, 0x33);
	assert_int_equal(seen.orig_ax, -1ul);
	assert_memory_equal(&seen, &in, offsetof(struct pt_regs, orig_ax));
	/* What it wrote is there, and nothing else has changed. */
	assert_int_equal(out.r13, 99);
	assert_int_equal(out.si, 1000);
	assert_int_equal(out.ax, in.di + 1000 + 3);
	assert_int_equal(out.flags, in.flags);
	out.r13 = in.r13;
	out.si = in.si;
	out.ax = in.ax;
	assert_memory_equal(&out, &in, offsetof(struct pt_regs, orig_ax));
}

static unsigned long skip;

static int go_elsewhere(struct kprobe *p, struct pt_regs *regs)
{
	pre_hits++;
	if (skip) {
		regs->ip = (unsigned long)p->addr + skip;
		regs->ax = 70;
		return 1;
	}
	regs->ax = 4711;
	regs->ip = *(unsigned long *)regs->sp;
	regs->sp += 8;
	return 1;
}

static void a_handler_may_go_elsewhere_also_into_the_window(void **state)
{
	struct kprobe kp = { .symbol_name = "pair", .pre_handler = go_elsewhere };
	struct kprobe in = { .addr = (kprobe_opcode_t *)pair + 3, .pre_handler = inner };

	plant(&kp);
	has_jump(&kp);
	assert_int_equal(pair(4, 5, 0), 4711);
	/* Over the first instruction, to the second, whose bytes are under the jump. */
	skip = 3;
	assert_int_equal(pair(4, 5, 0), 78);
	plant(&in);
	has_jump(&in);
	assert_int_equal(pair(4, 5, 0), 78);
	assert_int_equal(inner_hits, 1);
	skip = 0;
	assert_int_equal(pre_hits, 3);
	unregister_kprobe(&kp);
	unregister_kprobe(&in);
}

static int nests(struct kprobe *p, struct pt_regs *regs)
{
	assert_int_equal(triple(1, 2, 0), 6);
	return pre(p, regs);
}

static void hits_in_handlers_are_missed_and_counted(void **state)
{
	struct kprobe in = { .symbol_name = "triple", .pre_handler = inner };
	struct kprobe kp = { .symbol_name = "pair", .pre_handler = nests };

	plant(&in);
	plant(&kp);
	has_jump(&in);
	has_jump(&kp);
	pair(1, 2, 0);
	assert_int_equal(in.nmissed, 1);
	assert_int_equal(inner_hits, 0);
	assert_int_equal(pre_hits, 1);
	triple(1, 2, 0);
	assert_int_equal(inner_hits, 1);
	unregister_kprobe(&in);
	unregister_kprobe(&kp);
}

static void a_post_handler_brings_the_breakpoint_back(void **state)
{
	struct kprobe kp = { .symbol_name = "pair", .pre_handler = pre };
	struct kprobe late = { .symbol_name = "pair", .post_handler = post };

	plant(&kp);
	has_jump(&kp);
	plant(&late);
	has_breakpoint(&kp, "post handler");
	has_breakpoint(&late, "post handler");
	assert_int_equal(byte_at(pair), 0xcc);
	assert_int_equal(pair(4, 5, 0), 12);
	assert_int_equal(post_hits, 1);
	register_ok(disable_kprobe(&late));
	wait_for_kprobe_optimizer();
	has_jump(&kp);
	pair(4, 5, 0);
	register_ok(enable_kprobe(&late));
	wait_for_kprobe_optimizer();
	has_breakpoint(&kp, "post handler");
	unregister_kprobe(&late);
	wait_for_kprobe_optimizer();
	has_jump(&kp);
	assert_int_equal(pair(4, 5, 0), 12);
	assert_int_equal(post_hits, 1);
	assert_int_equal(pre_hits, 3);
	unregister_kprobe(&kp);
}

static void disabling_takes_the_jump_out(void **state)
{
	struct kprobe kp = { .symbol_name = "pair", .pre_handler = pre };

	plant(&kp);
	register_ok(disable_kprobe(&kp));
	text_is_as_in_the_file();
	has_breakpoint(&kp, "disabled");
	pair(1, 1, 0);
	assert_int_equal(pre_hits, 0);
	register_ok(enable_kprobe(&kp));
	pair(1, 1, 0);
	assert_int_equal(pre_hits, 1);
	wait_for_kprobe_optimizer();
	has_jump(&kp);
	pair(1, 1, 0);
	assert_int_equal(pre_hits, 2);
	unregister_kprobe(&kp);
}

static void a_window_holds_several_probes(void **state)
{
	struct kprobe head = { .symbol_name = "triple", .pre_handler = pre };
	struct kprobe second = { .addr = (kprobe_opcode_t *)triple + 1, .pre_handler = inner };
	struct kprobe third = { .addr = (kprobe_opcode_t *)triple + 2, .pre_handler = inner };
	int round;

	for (round = 0; round < 3; round++) {
		pre_hits = inner_hits = 0;
		head.addr = NULL;
		plant(&third);
		has_jump(&third);
		plant(&head);
		has_jump(&head);
		has_jump(&third);
		assert_int_equal(triple(1, 2, 0), 6);
		assert_int_equal(pre_hits, 1);
		assert_int_equal(inner_hits, 1);
		plant(&second);
		has_jump(&head);
		has_jump(&second);
		has_jump(&third);
		assert_int_equal(triple(1, 2, 0), 6);
		assert_int_equal(pre_hits, 2);
		assert_int_equal(inner_hits, 3);
		assert_int_equal(seen.ip, (unsigned long)triple + 1);
		unregister_kprobe(&head);
		wait_for_kprobe_optimizer();
		has_jump(&second);
		has_jump(&third);
		assert_int_equal(byte_at(triple), 0x53);
		assert_int_equal(triple(1, 2, 0), 6);
		assert_int_equal(pre_hits, 2);
		assert_int_equal(inner_hits, 5);
		unregister_kprobe(&third);
		assert_int_equal(triple(1, 2, 0), 6);
		assert_int_equal(inner_hits, 6);
		unregister_kprobe(&second);
		text_is_as_in_the_file();
	}
	/* One that needs a breakpoint keeps the whole window from being a jump. */
	head.addr = NULL;
	plant(&head);
	second.post_handler = post;
	plant(&second);
	has_breakpoint(&head, "inside the jump's window");
	has_breakpoint(&second, "post handler");
	assert_int_equal(triple(1, 2, 0), 6);
	assert_int_equal(post_hits, 1);
	unregister_kprobe(&second);
	wait_for_kprobe_optimizer();
	has_jump(&head);
	unregister_kprobe(&head);
}

enum { MANY = 200 };

unsigned long many(void);
__asm__(".text\n.type many, @function\nmany: xor %eax, %eax\n"
        ".rept 200\n lea 1(%rax), %rax\n.endr\n ret\n.size many, . - many\n");

static void every_instruction_has_a_jump_or_is_under_one(void **state)
{
	static struct kprobe kp[MANY];
	struct kprobe *all[MANY];
	int i;

	for (i = 0; i < MANY; i++) {
		kp[i].addr = (kprobe_opcode_t *)many + 2 + 4 * i;
		kp[i].pre_handler = pre;
		all[i] = &kp[i];
	}
	register_ok(register_kprobes(all, MANY));
	wait_for_kprobe_optimizer();
	for (i = 0; i < MANY - 1; i++)
		has_jump(&kp[i]);
	assert_int_equal(many(), MANY);
	assert_int_equal(pre_hits, MANY);
	/* Every other one away: each of the rest heads a window of its own. */
	for (i = 0; i < MANY; i += 2)
		unregister_kprobe(&kp[i]);
	wait_for_kprobe_optimizer();
	for (i = 1; i < MANY - 1; i += 2)
		has_jump(&kp[i]);
	assert_int_equal(many(), MANY);
	assert_int_equal(pre_hits, MANY + MANY / 2);
	for (i = 1; i < MANY; i += 2)
		unregister_kprobe(&kp[i]);
	assert_int_equal(many(), MANY);
	assert_int_equal(pre_hits, MANY + MANY / 2);
}

static unsigned long at_entry;

static int on_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	at_entry = regs->di;
	*(unsigned long *)ri->data = regs->di;
	return 0;
}

static int on_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	ret_hits++;
	assert_int_equal(*(unsigned long *)ri->data, at_entry);
	regs_set_return_value(regs, regs_return_value(regs) + 100);
	return 0;
}

static void returns_are_caught_from_the_jump(void **state)
{
	struct kretprobe rp = { .kp.symbol_name = "pair",
		                .entry_handler = on_entry,
		                .handler = on_return,
		                .data_size = sizeof(unsigned long) };

	register_ok(register_kretprobe(&rp));
	wait_for_kprobe_optimizer();
	has_jump(&rp.kp);
	assert_int_equal(pair(4, 5, 0), 112);
	assert_int_equal(pair(40, 5, 0), 148);
	assert_int_equal(ret_hits, 2);
	assert_int_equal(rp.nmissed + rp.kp.nmissed, 0);
	unregister_kretprobe(&rp);
	assert_int_equal(pair(4, 5, 0), 12);
}

static void the_switch_turns_all_jumps_to_breakpoints(void **state)
{
	struct kprobe a = { .symbol_name = "pair", .pre_handler = pre };
	struct kprobe b = { .symbol_name = "single", .pre_handler = inner };

	plant(&a);
	plant(&b);
	has_jump(&a);
	has_jump(&b);
	assert_true(ukp_kprobes_optimization());
	register_ok(ukp_set_kprobes_optimization(false));
	has_breakpoint(&a, "is off");
	has_breakpoint(&b, "is off");
	assert_int_equal(byte_at(pair), 0xcc);
	assert_int_equal(byte_at(single), 0xcc);
	pair(1, 1, 0);
	single(1, 0, 0);
	register_ok(ukp_set_kprobes_optimization(true));
	wait_for_kprobe_optimizer();
	has_jump(&a);
	has_jump(&b);
	pair(1, 1, 0);
	assert_int_equal(single(1, 0, 0), 0x1122334456);
	assert_int_equal(pre_hits, 2);
	assert_int_equal(inner_hits, 2);
	unregister_kprobe(&a);
	unregister_kprobe(&b);
}

static void the_environment_switches_it_off(void **state)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		setenv("UKPROBES_OPTIMIZATION", "0", 1);
		execl("/proc/self/exe", "jump", "off", NULL);
		_exit(9);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int run_switched_off(void)
{
	struct kprobe kp = { .symbol_name = "pair", .pre_handler = pre };
	char why[256];

	if (register_kprobe(&kp))
		return 1;
	wait_for_kprobe_optimizer();
	if (ukp_kprobe_form(&kp, why, sizeof(why)) || !strstr(why, "is off"))
		return 2;
	return pair(4, 5, 0) != 12 || pre_hits != 1 || byte_at(pair) != 0xcc;
}

static unsigned long answer(void)
{
	return 77;
}

static void what_cannot_be_a_jump_says_why(void **state)
{
	struct kprobe looping = { .symbol_name = "looped", .pre_handler = pre };
	struct kprobe last = { .addr = (kprobe_opcode_t *)tiny, .pre_handler = pre };
	struct kprobe call = { .symbol_name = "calls_early", .pre_handler = pre };
	struct kprobe none = { .addr = (kprobe_opcode_t *)pair };
	char why[8];

	plant(&looping);
	plant(&last);
	plant(&call);
	has_breakpoint(&looping, "a branch leads into the jump");
	has_breakpoint(&last, "too near to the end");
	has_breakpoint(&call, "a call would return into the jump");
	assert_int_equal(looped(9, 3, 0), 3);
	assert_int_equal(tiny(7, 0, 0), 7);
	assert_int_equal(calls_early(0, 0, (unsigned long)answer), 77);
	assert_int_equal(pre_hits, 3);
	assert_int_equal(ukp_kprobe_form(&looping, why, sizeof(why)), 0);
	assert_string_equal(why, "a branc");
	unregister_kprobe(&looping);
	unregister_kprobe(&last);
	unregister_kprobe(&call);
	assert_int_equal(ukp_kprobe_form(&none, why, sizeof(why)), -EINVAL);
}

static void a_forked_child_runs_through_jumps_unreported(void **state)
{
	struct kprobe kp = { .symbol_name = "pair", .pre_handler = pre };
	int status;
	pid_t pid;

	plant(&kp);
	has_jump(&kp);
	pid = fork();
	if (!pid) {
		wait_for_kprobe_optimizer();
		_exit(pair(4, 5, 0) != 12 || pre_hits ||
		      ukp_set_kprobes_optimization(false) != -EOPNOTSUPP || pair(1, 1, 0) != 5);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	pair(4, 5, 0);
	assert_int_equal(pre_hits, 1);
	unregister_kprobe(&kp);
}

/* 1, 2: the second one is under the jump and may fault. */
FUNCTION(faults, "nop\n mov (%rdi), %eax\n lea 1(%rax), %rax\n ret");

static volatile sig_atomic_t nr_faults;
static unsigned long fault_ip;
static unsigned long good = 41;

static void repair(int sig, siginfo_t *info, void *uc)
{
	ucontext_t *c = uc;

	nr_faults++;
	fault_ip = (unsigned long)c->uc_mcontext.gregs[REG_RIP];
	c->uc_mcontext.gregs[REG_RDI] = (long)&good;
}

static void a_fault_in_the_copy_is_at_the_programs_address(void **state)
{
	struct sigaction sa = { .sa_sigaction = repair, .sa_flags = SA_SIGINFO }, old;
	struct kprobe kp = { .symbol_name = "faults", .pre_handler = pre };

	plant(&kp);
	has_jump(&kp);
	assert_int_equal(sigaction(SIGSEGV, &sa, &old), 0);
	assert_int_equal(faults(8, 0, 0), 42);
	assert_int_equal(sigaction(SIGSEGV, &old, NULL), 0);
	assert_int_equal(nr_faults, 1);
	assert_int_equal(fault_ip, (unsigned long)faults + 1);
	assert_int_equal(pre_hits, 1);
	unregister_kprobe(&kp);
}

static bool is_mapped(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	bool found = false;

	while (fgets(line, sizeof(line), maps))
		found = found || strstr(line, name);
	fclose(maps);
	return found;
}

/* Most often it comes to where it was, with its own bytes. */
static void a_library_may_go_and_come_under_a_jump(void **state)
{
	struct kprobe kp = { .pre_handler = pre };
	unsigned long (*bound)(unsigned long);
	unsigned long round;
	void *lib;

	for (round = 1; round <= 3; round++) {
		lib = dlopen("libz.so.1", RTLD_NOW);
		if (!lib) {
			print_message("skip: there is no libz.so.1\n");
			skip();
		}
		bound = (unsigned long (*)(unsigned long))dlsym(lib, "compressBound");
		assert_non_null(bound);
		kp.addr = (kprobe_opcode_t *)bound;
		plant(&kp);
		has_jump(&kp);
		assert_int_equal(bound(100), 113);
		assert_int_equal(pre_hits, round);
		dlclose(lib);
		assert_false(is_mapped("/libz.so"));
		if (round < 3)
			unregister_kprobe(&kp);
	}
	/* Here it comes again before the probe is gone. */
	lib = dlopen("libz.so.1", RTLD_NOW);
	bound = (unsigned long (*)(unsigned long))dlsym(lib, "compressBound");
	assert_int_equal(bound(100), 113);
	assert_int_equal(pre_hits, 3);
	unregister_kprobe(&kp);
	kp.addr = (kprobe_opcode_t *)bound;
	plant(&kp);
	has_jump(&kp);
	assert_int_equal(bound(100), 113);
	assert_int_equal(pre_hits, 4);
	unregister_kprobe(&kp);
	assert_int_equal(bound(100), 113);
	assert_int_equal(pre_hits, 4);
	dlclose(lib);
}

#define T(name) cmocka_unit_test_setup_teardown(name, reset, untouched)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(a_breakpoint_becomes_a_jump),
		T(a_handler_has_all_registers),
		T(a_handler_may_go_elsewhere_also_into_the_window),
		T(hits_in_handlers_are_missed_and_counted),
		T(a_post_handler_brings_the_breakpoint_back),
		T(disabling_takes_the_jump_out),
		T(a_window_holds_several_probes),
		T(every_instruction_has_a_jump_or_is_under_one),
		T(returns_are_caught_from_the_jump),
		T(the_switch_turns_all_jumps_to_breakpoints),
		T(the_environment_switches_it_off),
		T(what_cannot_be_a_jump_says_why),
		T(a_forked_child_runs_through_jumps_unreported),
		T(a_fault_in_the_copy_is_at_the_programs_address),
		T(a_library_may_go_and_come_under_a_jump),
	};

	if (argc > 1)
		return run_switched_off();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
