/* SPDX-License-Identifier: MIT */
/*
 * Calls that are followed, under a shadow stack: a trap after each instruction
 * keeps one, as a CPU with that feature would.  A return probe in the jump form
 * calls its function in place, so that each return goes where the last call came
 * from, from the program's call on and back to it; by exit sites nothing is
 * changed.  From a breakpoint the return address is overwritten, and two returns
 * don't match.
 *
 * What functions get and give is the same with and without, whatever they do with
 * their stack.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <execinfo.h>
#include <signal.h>
#include <ucontext.h>
#include <cmocka.h>

#include <Zydis/Zydis.h>

#include "engine/rethook.h"
#include "lib/hit/hit.h"
#include "ukprobes/kprobes.h"
#include "ukprobes/rethook.h"

#define TF 0x100
#define DEPTH 1024

/* --- the shadow stack ------------------------------------------------------------- */

static struct {
	ZydisDecoder dec;
	uint64_t ret[DEPTH];
	unsigned int depth;
	uint64_t ip, sp; /* before the instruction that has run */
	unsigned long steps, calls, rets, wrong;
	bool on;
	unsigned long look_from; /* at each step from this one on; 0: never */
	unsigned long looked;    /* the last one */
	bool (*look)(void);      /* true: that was enough */
} shadow;

static void stepped(int sig, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	const uint64_t ip = (uint64_t)g[REG_RIP];
	ZydisDecodedInstruction z;

	if (shadow.on && ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&shadow.dec, NULL,
	                                                            (void *)shadow.ip, 15, &z))) {
		if (z.mnemonic == ZYDIS_MNEMONIC_CALL && shadow.depth < DEPTH) {
			shadow.ret[shadow.depth++] = shadow.ip + z.length;
			shadow.calls++;
		} else if (z.mnemonic == ZYDIS_MNEMONIC_RET && shadow.depth) {
			shadow.wrong += shadow.ret[--shadow.depth] != ip;
			shadow.rets++;
		}
	}
	shadow.steps++;
	shadow.ip = ip;
	shadow.on = true;
	if (shadow.look_from && shadow.steps >= shadow.look_from) {
		shadow.looked = shadow.steps;
		if (shadow.look())
			shadow.look_from = 0;
	}
}

static inline __attribute__((always_inline)) void step_flag(bool on)
{
	uint64_t flags;

	__asm__ volatile("pushfq; pop %0" : "=r"(flags) : : "memory");
	flags = on ? flags | TF : flags & ~(uint64_t)TF;
	__asm__ volatile("push %0; popfq" : : "r"(flags) : "memory", "cc");
}

static __attribute__((noinline)) void step(void (*volatile fn)(void *), void *arg)
{
	shadow.depth = 0;
	shadow.steps = shadow.calls = shadow.rets = shadow.wrong = 0;
	shadow.on = false;
	step_flag(true);
	fn(arg);
	step_flag(false);
}

/* fn(arg) under the shadow stack: how many returns went elsewhere. */
static unsigned long unmatched(void (*fn)(void *), void *arg)
{
	step(fn, arg);
	assert_int_equal(shadow.calls, shadow.rets);
	assert_int_equal(shadow.depth, 0);
	assert_true(shadow.calls > 0);
	return shadow.wrong;
}

/* --- functions and what they are given ---------------------------------------------- */

/*
 * reads_below: what its caller left below its stack pointer, summed up from -120 to
 * -24, which is where signals leave it alone in the caller as well.  pops: two arguments on the
 * stack, which it takes along.  tail: into its_tail.
 */
__asm__(".text\n"
        ".macro function name\n"
        ".balign 64\n"
        ".type \\name, @function\n"
        "\\name:\n"
        ".endm\n"
        "function reads_below\n"
        "	lea	1(%rdi), %rcx\n"
        "	lea	-1(%rcx), %rcx\n"
        "	mov	$-120, %rdx\n"
        "	xor	%eax, %eax\n"
        "1:	add	(%rsp, %rdx), %rax\n"
        "	add	$8, %rdx\n"
        "	cmp	$-16, %rdx\n"
        "	jne	1b\n"
        "	add	%rcx, %rax\n"
        "	ret\n"
        ".size reads_below, . - reads_below\n"
        "function calls_with_data_below\n"
        "	mov	$-128, %rdx\n"
        "1:	mov	%rdx, (%rsp, %rdx)\n"
        "	add	$8, %rdx\n"
        "	jnz	1b\n"
        "	mov	$7, %edi\n"
        "	call	reads_below\n"
        "	ret\n"
        ".size calls_with_data_below, . - calls_with_data_below\n"
        "function pops\n"
        "	mov	8(%rsp), %rax\n"
        "	sub	16(%rsp), %rax\n"
        "	ret	$16\n"
        ".size pops, . - pops\n"
        "function calls_pops\n"
        "	push	%rbp\n"
        "	mov	%rsp, %rbp\n"
        "	push	$8\n"
        "	push	$50\n"
        "	call	pops\n"
        "	cmp	%rsp, %rbp\n"
        "	je	1f\n"
        "	ud2\n"
        "1:	pop	%rbp\n"
        "	ret\n"
        ".size calls_pops, . - calls_pops\n"
        "function its_tail\n"
        "	lea	1(%rdi,%rdi,2), %rax\n"
        "	mov	$5, %edx\n"
        "	ret\n"
        ".size its_tail, . - its_tail\n"
        "function tail\n"
        "	lea	1(%rdi), %rdi\n"
        "	nop\n"
        "	jmp	its_tail\n"
        ".size tail, . - tail\n"
        ".balign 64\n");

long reads_below(long), calls_with_data_below(void), pops(void), calls_pops(void);
long its_tail(long), tail(long);

#define TARGET static __attribute__((noinline, noclone, noipa, used))

TARGET unsigned __int128 two_words(unsigned long a, unsigned long b)
{
	return (unsigned __int128)a << 64 | b;
}

TARGET double a_double(double a, double b)
{
	return a * b;
}

TARGET long double an_x87(long double a, long double b)
{
	return a / b;
}

TARGET long on_the_stack(long a, long b, long c, long d, long e, long f, long g, long h)
{
	return a + b + c + d + e + f + 10 * g + 100 * h;
}

static long (*volatile deeper)(long);

TARGET long recursive(long n)
{
	return n ? n + deeper(n - 1) : 0;
}

static void call_plain(void *ret)
{
	*(unsigned __int128 *)ret = two_words(3, 4);
}

static void call_all(void *ret)
{
	bool *ok = ret;

	*ok = two_words(3, 4) == ((unsigned __int128)3 << 64 | 4) && a_double(1.5, 4) == 6 &&
	      an_x87(7, 2) == 3.5L && on_the_stack(1, 2, 3, 4, 5, 6, 7, 8) == 891 &&
	      recursive(20) == 210 && calls_pops() == 42 && tail(2) == 10 && its_tail(2) == 7 &&
	      /* -120 ... -24 as the callee sees them are 8 less to the caller */
	      calls_with_data_below() == 7 - (128 + 32) * 13 / 2;
}

/* --- probes ------------------------------------------------------------------------ */

static unsigned long entries, returns;

static int on_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	entries++;
	return 0;
}

static int on_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	const bool pop = get_kretprobe(ri)->kp.addr == (kprobe_opcode_t *)(uintptr_t)pops;

	returns += regs->ip == (unsigned long)ri->ret_addr &&
	           regs->sp == (unsigned long)ri->fp + (pop ? 24 : 8);
	return 0;
}

#define RP(fn)                                                                        \
	{                                                                             \
		.kp.addr = (kprobe_opcode_t *)(uintptr_t)(fn), .kp.flags = UKP_NOVEC, \
		.entry_handler = on_entry, .handler = on_return,                      \
	}

static struct kretprobe rp[] = {
	RP(two_words),   RP(a_double), RP(an_x87),   RP(on_the_stack), RP(recursive),
	RP(reads_below), RP(pops),     RP(its_tail), RP(tail),         RP(two_words),
};

#define NR (int)(sizeof(rp) / sizeof(rp[0]))
#define HITS (2 + 1 + 1 + 1 + 21 + 1 + 1 + 2 + 1) /* of call_all() */

/* The same but tail, whose exit is a jump to another function. */
static struct kretprobe by_exit[] = {
	RP(two_words),   RP(a_double), RP(an_x87),   RP(on_the_stack), RP(recursive),
	RP(reads_below), RP(pops),     RP(its_tail), RP(two_words),
};

#define NR_BY_EXIT (int)(sizeof(by_exit) / sizeof(by_exit[0]))

static void plant(struct kretprobe *v, int n, bool jumps)
{
	char why[256];

	assert_int_equal(ukp_set_kprobes_optimization(jumps), 0);
	for (int i = 0; i < n; i++)
		if (register_kretprobe(&v[i]))
			fail_msg("%s", ukp_kprobe_error());
	wait_for_kprobe_optimizer();
	for (int i = 0; i < n; i++)
		if (ukp_kprobe_form(&v[i].kp, why, sizeof(why)) != jumps)
			fail_msg("probe %d: %s", i, why);
	entries = returns = 0;
}

static void take_out(struct kretprobe *v, int n)
{
	for (int i = 0; i < n; i++) {
		unregister_kretprobe(&v[i]);
		assert_int_equal(v[i].nmissed, 0);
	}
}

static void a_function_that_is_called_in_place_returns_to_where_it_was_called_from(void **state)
{
	unsigned __int128 ret = 0;

	plant(rp, 1, true);
	assert_int_equal(unmatched(call_plain, &ret), 0);
	assert_int_equal((unsigned long)ret, 4);
	assert_int_equal((unsigned long)(ret >> 64), 3);
	assert_int_equal(entries, 1);
	assert_int_equal(returns, 1);
	take_out(rp, 1);
}

static int look_on(struct kprobe *p, struct pt_regs *regs)
{
	return 0;
}

/* What a kprobe alone has needs no way to call. */
static void a_jump_that_was_made_for_a_kprobe_gives_way_to_one_that_calls(void **state)
{
	struct kprobe kp = { .addr = (kprobe_opcode_t *)(uintptr_t)two_words,
		             .pre_handler = look_on,
		             .flags = UKP_NOVEC };
	unsigned __int128 ret = 0;

	assert_int_equal(ukp_set_kprobes_optimization(true), 0);
	assert_int_equal(register_kprobe(&kp), 0);
	wait_for_kprobe_optimizer();
	assert_true(kp.flags & KPROBE_FLAG_OPTIMIZED);
	plant(rp, 1, true);
	assert_int_equal(unmatched(call_plain, &ret), 0);
	assert_int_equal((unsigned long)ret, 4);
	assert_int_equal(returns, 1);
	take_out(rp, 1);
	unregister_kprobe(&kp);
}

static void a_function_whose_return_address_is_overwritten_does_not(void **state)
{
	unsigned __int128 ret = 0;

	plant(rp, 1, false);
	/* It returns to the stub, and the stub to its caller. */
	assert_int_equal(unmatched(call_plain, &ret), 2);
	assert_int_equal((unsigned long)ret, 4);
	assert_int_equal(entries, 1);
	assert_int_equal(returns, 1);
	take_out(rp, 1);
}

static void whatever_functions_do_with_their_stack_calls_and_returns_match(void **state)
{
	bool ok = false;

	assert_int_equal(unmatched(call_all, &ok), 0);
	assert_true(ok);
	plant(rp, NR, true);
	ok = false;
	assert_int_equal(unmatched(call_all, &ok), 0);
	assert_true(ok);
	assert_int_equal(entries, HITS);
	assert_int_equal(returns, HITS);
	take_out(rp, NR);
}

static void by_exit_sites_they_match_as_well(void **state)
{
	bool ok = false;
	char why[256];

	for (int i = 0; i < NR_BY_EXIT; i++)
		by_exit[i].kp.flags = UKP_NOVEC | UKP_BY_EXIT;
	plant(by_exit, NR_BY_EXIT, true);
	for (int i = 0; i < NR_BY_EXIT; i++) {
		assert_int_equal(ukp_kretprobe_mechanism(&by_exit[i], why, sizeof(why)),
		                 UKP_BY_EXIT);
		assert_string_equal(why, "as asked for");
	}
	assert_int_equal(unmatched(call_all, &ok), 0);
	assert_true(ok);
	assert_int_equal(entries, HITS - 1);
	assert_int_equal(returns, HITS - 1);
	take_out(by_exit, NR_BY_EXIT);
}

static void who_asks_for_slot_overwrite_gets_it_from_jumps_as_well(void **state)
{
	unsigned __int128 ret = 0;
	struct kretprobe slot = RP(two_words);

	slot.kp.flags |= UKP_BY_SLOT;
	plant(&slot, 1, true);
	assert_int_equal(unmatched(call_plain, &ret), 2);
	assert_int_equal(entries, 1);
	assert_int_equal(returns, 1);
	take_out(&slot, 1);
}

static void the_same_holds_unstepped_and_again_and_again(void **state)
{
	bool ok = true;

	plant(rp, NR, true);
	for (int i = 0; i < 10000 && ok; i++)
		call_all(&ok);
	assert_true(ok);
	assert_int_equal(entries, 10000 * HITS);
	assert_int_equal(returns, 10000 * HITS);
	take_out(rp, NR);
}

static unsigned long missed(const struct kretprobe *v)
{
	return __atomic_load_n(&v->nmissed, __ATOMIC_RELAXED);
}

static uint32_t instances_in_use(void)
{
	const struct ukp_priv *priv = (const struct ukp_priv *)ukp_lib_ctl->priv;
	const struct ukp_instance *all =
		(const struct ukp_instance *)((const char *)priv + priv->off_instances);
	uint32_t n = 0;

	for (uint32_t i = 0; i < 1000; i++)
		n += all[i].state != UKP_INST_FREE;
	return n;
}

static void (*walk)(void);

static bool look(void)
{
	const unsigned long before = missed(&rp[0]);

	walk();
	return missed(&rp[0]) != before;
}

/*
 * What unwinders do to the calls of a thread, in a handler at each instruction of
 * one: where it ends the call, a run ends with that and the next goes on behind it.
 */
static void look_everywhere(void (*how)(void))
{
	unsigned __int128 ret;
	unsigned long n = 0, from = 1;

	plant(rp, 1, true);
	walk = how;
	shadow.look = look;
	do {
		ret = 0;
		shadow.look_from = from;
		shadow.looked = 0;
		step(call_plain, &ret);
		from = shadow.looked + 1;
		assert_int_equal((unsigned long)ret, 4);
		assert_int_equal((unsigned long)(ret >> 64), 3);
		assert_int_equal(entries, ++n);
		assert_int_equal(returns + missed(&rp[0]), n);
		assert_int_equal(instances_in_use(), 0);
	} while (!shadow.look_from);
	shadow.look_from = 0;
	assert_true(shadow.looked > 300 && n > 5);
	assert_int_equal(returns, 1);
	unregister_kretprobe(&rp[0]);
}

static void walk_the_stack(void)
{
	void *frame[16];

	backtrace(frame, 16);
}

static void give_up_the_dead(void)
{
	rethook_flush_task(NULL);
}

static void a_handler_that_walks_the_stack_ends_calls_or_leaves_them(void **state)
{
	walk_the_stack(); /* loads the unwinder */
	look_everywhere(walk_the_stack);
}

static void a_handler_that_gives_up_dead_calls_ends_none_that_is_about_to_begin(void **state)
{
	look_everywhere(give_up_the_dead);
}

static int setup(void **state)
{
	struct sigaction sa = { .sa_sigaction = stepped, .sa_flags = SA_SIGINFO };

	deeper = recursive;
	ZydisDecoderInit(&shadow.dec, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	/* SIGTRAP must be free when the engine starts; from then on it keeps our handler. */
	plant(rp, 1, false);
	take_out(rp, 1);
	return sigaction(SIGTRAP, &sa, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_function_that_is_called_in_place_returns_to_where_it_was_called_from),
		cmocka_unit_test(a_jump_that_was_made_for_a_kprobe_gives_way_to_one_that_calls),
		cmocka_unit_test(a_function_whose_return_address_is_overwritten_does_not),
		cmocka_unit_test(whatever_functions_do_with_their_stack_calls_and_returns_match),
		cmocka_unit_test(by_exit_sites_they_match_as_well),
		cmocka_unit_test(who_asks_for_slot_overwrite_gets_it_from_jumps_as_well),
		cmocka_unit_test(the_same_holds_unstepped_and_again_and_again),
		cmocka_unit_test(a_handler_that_walks_the_stack_ends_calls_or_leaves_them),
		cmocka_unit_test(
			a_handler_that_gives_up_dead_calls_ends_none_that_is_about_to_begin),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
