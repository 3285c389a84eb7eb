/* SPDX-License-Identifier: MIT */
/*
 * Post handlers behind every kind of instruction: the program's registers,
 * flags, stack and memory are as without a probe, and the handler sees where
 * the program goes on.
 */
#include <signal.h>
#include <ucontext.h>

#include "scenario.h"

/* One instruction at NAME_at, in a function NAME(struct cpu *). */
#define FORM(name, insn)                                                                          \
	void name(struct cpu *c);                                                                 \
	extern char name##_at[];                                                                  \
	__asm__(".text\n.type " #name ", @function\n" #name ":\n"                                 \
	        "push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"         \
	        "push %rdi\n mov %rdi, %r15\n"                                                    \
	        "pushq 64(%r15)\n popfq\n"                                                        \
	        "mov 0(%r15), %rax\n mov 8(%r15), %rbx\n mov 16(%r15), %rcx\n"                    \
	        "mov 24(%r15), %rdx\n mov 32(%r15), %rsi\n mov 40(%r15), %rdi\n"                  \
	        "movq $0x1234, -8(%rsp)\n movq $0x5678, -120(%rsp)\n"                             \
	        "mov %rsp, %r14\n" insn "\n"                                                      \
	        "mov -8(%r14), %r12\n mov -120(%r14), %r13\n"                                     \
	        "mov %rsp, %rbp\n mov %r14, %rsp\n lea -256(%rsp), %rsp\n pushfq\n popq "         \
	        "64(%r15)\n"                                                                      \
	        "sub %r14, %rbp\n mov %rbp, 72(%r15)\n mov %r12, 80(%r15)\n mov %r13, 88(%r15)\n" \
	        "mov %rax, 0(%r15)\n mov %rbx, 8(%r15)\n mov %rcx, 16(%r15)\n"                    \
	        "mov %rdx, 24(%r15)\n mov %rsi, 32(%r15)\n mov %rdi, 40(%r15)\n"                  \
	        "mov %r14, %rsp\n pop %rdi\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n"         \
	        "pop %rbp\n pop %rbx\n cld\n ret\n.size " #name ", . - " #name "\n")

struct cpu {
	unsigned long ax, bx, cx, dx, si, di, unused[2], flags, sp_moved, near, far;
};

static unsigned long variable = 77;
unsigned long *pointer_to_variable = &variable;

#define AT(name) #name "_at: "

FORM(straight, AT(straight) "lea 3(%rax,%rbx,2), %rdx");
FORM(with_flags, AT(with_flags) "add %rbx, %rax");
FORM(from_rip, AT(from_rip) "mov pointer_to_variable(%rip), %rsi");
FORM(pushes, "push %rax\n" AT(pushes) "push %rbx");
FORM(moves_sp, AT(moves_sp) "lea -64(%rsp), %rsp");
FORM(string_move, AT(string_move) "rep movsb");
FORM(jump, AT(jump) "jmp 1f\n mov $1, %eax\n 1:");
FORM(jump_reg, "lea 1f(%rip), %rdx\n" AT(jump_reg) "jmp *%rdx\n mov $1, %eax\n 1:");
FORM(cond_equal, "cmp %rax, %rbx\n" AT(cond_equal) "je 1f\n mov $1, %eax\n 1:");
FORM(cond_less, "cmp %rax, %rbx\n" AT(cond_less) "jl 1f\n mov $1, %eax\n 1:");
FORM(counted, "mov $3, %ecx\n xor %edx, %edx\n 1: inc %edx\n" AT(counted) "loop 1b");
FORM(calls, "lea -128(%rsp), %rsp\n" AT(calls) "call 1f\n jmp 2f\n"
                                               "1: mov (%rsp), %rdx\n lea 1b(%rip), %rcx\n sub "
                                               "%rcx, %rdx\n mov $0, %ecx\n ret\n 2:");
FORM(calls_memory, "lea -128(%rsp), %rsp\n lea 1f(%rip), %rdx\n mov %rdx, 8(%rsp)\n" AT(
			   calls_memory) "call *8(%rsp)\n jmp 2f\n 1: mov $7, %edx\n ret\n 2:");
FORM(returns, "lea -128(%rsp), %rsp\n call 1f\n jmp 2f\n 1: inc %rax\n" AT(returns) "ret\n 2:");
FORM(returns_more, "lea -128(%rsp), %rsp\n push %rax\n push %rax\n call 1f\n jmp 2f\n"
                   "1: inc %rax\n" AT(returns_more) "ret $16\n 2:");

#define ENTRY(name)                    \
	{                              \
#name, name, name##_at \
	}

static const struct form {
	const char *name;
	void (*fn)(struct cpu *c);
	char *at;
} forms[] = {
	ENTRY(straight),     ENTRY(with_flags),  ENTRY(from_rip),     ENTRY(pushes),
	ENTRY(moves_sp),     ENTRY(string_move), ENTRY(jump),         ENTRY(jump_reg),
	ENTRY(cond_equal),   ENTRY(cond_less),   ENTRY(counted),      ENTRY(calls),
	ENTRY(calls_memory), ENTRY(returns),     ENTRY(returns_more),
};

static unsigned int pre_hits, post_hits;
static struct pt_regs before, after;

static int pre(struct kprobe *p, struct pt_regs *regs)
{
	pre_hits++;
	before = *regs;
	return 0;
}

static void post(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
	volatile double x = post_hits;

	x = x * 3 + 1;
	post_hits++;
	after = *regs;
}

static void prepare(struct cpu *c, unsigned int round, char *from, char *to)
{
	memset(c, 0, sizeof(*c));
	c->ax = round & 1 ? 5 : -7ul;
	c->bx = round & 2 ? 5 : 1ul << 62;
	c->cx = 24;
	c->si = (unsigned long)from;
	c->di = (unsigned long)to;
	c->flags = 0x202 | (round & 4 ? 0x8d5 : 0);
	memset(to, 0, 32);
}

static void compare(const struct form *f, unsigned int round)
{
	static char from[32] = "the bytes that a string move has", to[32], expected[32];
	struct cpu plain, probed;
	struct kprobe kp = { .addr = (kprobe_opcode_t *)f->at,
		             .pre_handler = pre,
		             .post_handler = post };

	prepare(&plain, round, from, to);
	f->fn(&plain);
	memcpy(expected, to, 32);
	pre_hits = post_hits = 0;
	register_ok(register_kprobe(&kp));
	prepare(&probed, round, from, to);
	f->fn(&probed);
	unregister_kprobe(&kp);
	if (memcmp(&plain, &probed, sizeof(plain)) || memcmp(expected, to, 32))
		fail_msg("%s differs in round %u", f->name, round);
	assert_true(pre_hits > 0);
	if (post_hits != pre_hits)
		fail_msg("%s: %u before, %u behind", f->name, pre_hits, post_hits);
	assert_int_equal(before.ip, (unsigned long)f->at + 1);
}

static void every_form_does_what_it_does_without_a_probe(void **state)
{
	unsigned int i, round;

	for (i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		for (round = 0; round < 8; round++)
			compare(&forms[i], round);
	text_is_as_in_the_file();
}

static void hit(const struct form *f)
{
	static char from[32], to[32];
	struct kprobe kp = { .addr = (kprobe_opcode_t *)f->at,
		             .pre_handler = pre,
		             .post_handler = post };
	struct cpu c;

	prepare(&c, 0, from, to);
	register_ok(register_kprobe(&kp));
	f->fn(&c);
	unregister_kprobe(&kp);
}

static void a_post_handler_sees_registers_behind_the_instruction(void **state)
{
	hit(&forms[0]);
	assert_int_equal(after.dx, before.ax + 2 * before.bx + 3);
	assert_int_equal(after.ip, (unsigned long)straight_at + 5);
	assert_int_equal(after.sp, before.sp);
	hit(&forms[3]);
	assert_int_equal(after.sp, before.sp - 8);
	hit(&forms[11]);
	assert_int_equal(after.sp, before.sp - 8);
	assert_int_equal(after.ip, (unsigned long)calls_at + 7);
	hit(&forms[13]);
	assert_int_equal(after.sp, before.sp + 8);
	text_is_as_in_the_file();
}

static void change(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
	regs->dx = 4711;
}

static void what_a_post_handler_writes_takes_effect(void **state)
{
	static char from[32], to[32];
	struct kprobe kp = { .addr = (kprobe_opcode_t *)straight_at, .post_handler = change };
	struct cpu c;

	prepare(&c, 0, from, to);
	register_ok(register_kprobe(&kp));
	straight(&c);
	unregister_kprobe(&kp);
	assert_int_equal(c.dx, 4711);
	text_is_as_in_the_file();
}

/* A call through memory that isn't there, and one that is repaired by the handler. */
FORM(calls_nowhere,
     "lea -128(%rsp), %rsp\n" AT(
	     calls_nowhere) "call *(%rdx)\n jmp 2f\n"
                            "1: ret\n .globl calls_nowhere_ret\n .set calls_nowhere_ret, 1b\n 2:");
FORM(loads_nowhere, AT(loads_nowhere) "mov (%rdx), %rsi");

static unsigned long fault_ip, good_word;
static int faults;

static void repair(int sig, siginfo_t *info, void *uc)
{
	ucontext_t *c = uc;

	faults++;
	fault_ip = (unsigned long)c->uc_mcontext.gregs[REG_RIP];
	c->uc_mcontext.gregs[REG_RDX] = (long)&good_word;
}

extern char calls_nowhere_ret[];

static void a_fault_is_at_the_programs_own_address(void **state)
{
	static const struct form faulting[] = { ENTRY(calls_nowhere), ENTRY(loads_nowhere) };
	struct sigaction sa = { .sa_sigaction = repair, .sa_flags = SA_SIGINFO }, old;
	unsigned int i;

	good_word = (unsigned long)calls_nowhere_ret;
	sigaction(SIGSEGV, &sa, &old);
	for (i = 0; i < 2; i++) {
		faults = 0;
		pre_hits = 0;
		hit(&faulting[i]);
		assert_int_equal(faults, 1);
		assert_int_equal(fault_ip, (unsigned long)faulting[i].at);
		assert_int_equal(pre_hits, 1);
	}
	sigaction(SIGSEGV, &old, NULL);
	text_is_as_in_the_file();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_does_what_it_does_without_a_probe),
		cmocka_unit_test(a_post_handler_sees_registers_behind_the_instruction),
		cmocka_unit_test(what_a_post_handler_writes_takes_effect),
		cmocka_unit_test(a_fault_is_at_the_programs_own_address),
	};

	return run_in_both_forms(tests);
}
