/* SPDX-License-Identifier: MIT */
/*
 * What every mechanism that catches returns owes: one suite, run with each of
 * them, from breakpoints and from jumps.
 *
 * Accounting: entries = returns + misses, once nobody is inside any more and
 * orphans have been told of by rethook_flush_task() or by another call in
 * their frame.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

#include <ukprobes/fprobe.h>

#include "scenario.h"

static const struct mechanism {
	const char *name;
	unsigned int flag;
} mechanisms[] = {
	{ "slot overwrite", UKP_BY_SLOT },
	{ "call in place", UKP_BY_CALL },
	{ "exit sites", UKP_BY_EXIT },
};

static const struct mechanism *by;

static unsigned long entries, returns;
static char order[64];
static struct pt_regs at_entry, at_return;

static void count(unsigned long *n)
{
	__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
}

static void note(char c)
{
	size_t n = strlen(order);

	if (n < sizeof(order) - 1)
		order[n] = c;
}

static int reset(void **state)
{
	entries = returns = 0;
	memset(order, 0, sizeof(order));
	return 0;
}

/* --- functions --------------------------------------------------------------------- */

TARGET unsigned long leaf(unsigned long a)
{
	__asm__ volatile("");
	return a * 7;
}

/* Leaves in several places. */
TARGET unsigned long many_ways(unsigned long a)
{
	if (a < 10)
		return leaf(a) + 1;
	if (a < 20)
		return leaf(a) / 2;
	if (a & 1)
		return leaf(a + 1) - leaf(a);
	return a;
}

/* Through a pointer: compilers make loops of recursion. */
static unsigned long (*volatile deeper)(unsigned long n);
static unsigned long (*volatile other)(unsigned long n);

TARGET unsigned long recursive(unsigned long n)
{
	return n ? 1 + deeper(n - 1) : 0;
}

TARGET unsigned long is_even(unsigned long n)
{
	return n ? !other(n - 1) : 1;
}

TARGET unsigned long is_odd(unsigned long n)
{
	return n ? !deeper(n - 1) : 1;
}

/* Something to do while a call is on its way. */
static unsigned long (*volatile meanwhile)(unsigned long a);

TARGET unsigned long around(unsigned long a)
{
	unsigned long r = meanwhile ? meanwhile(a) : a;

	__asm__ volatile("");
	return r + 1;
}

TARGET unsigned long last_of_three(unsigned long a)
{
	__asm__ volatile("");
	return a + 100;
}

TARGET unsigned long second_of_three(unsigned long a)
{
	__asm__ volatile("");
	return last_of_three(a * 2);
}

TARGET unsigned long first_of_three(unsigned long a)
{
	__asm__ volatile("");
	return second_of_three(a + 1);
}

TARGET double wide(double a, unsigned long b)
{
	__asm__ volatile("");
	return a * 0.5 + (double)b;
}

/* --- handlers ---------------------------------------------------------------------- */

struct data {
	unsigned long arg, not_arg;
	void *fp;
};

static int on_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct data *d = (struct data *)ri->data;

	count(&entries);
	d->arg = regs_get_kernel_argument(regs, 0);
	d->not_arg = ~d->arg;
	d->fp = (void *)kernel_stack_pointer(regs);
	if (ri->fp != d->fp || *(kprobe_opcode_t **)d->fp == NULL)
		abort();
	at_entry = *regs;
	return 0;
}

/* What is always true at a return; it may be in any thread. */
static int on_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct data *d = (struct data *)ri->data;

	if (d->arg != ~d->not_arg || d->fp != ri->fp ||
	    instruction_pointer(regs) != get_kretprobe_retaddr(ri) ||
	    kernel_stack_pointer(regs) != (unsigned long)ri->fp + 8 || !get_kretprobe(ri))
		abort();
	count(&returns);
	at_return = *regs;
	return 0;
}

static struct kretprobe new_probe(const char *symbol)
{
	return (struct kretprobe){ .kp = { .symbol_name = symbol, .flags = by->flag },
		                   .entry_handler = on_entry,
		                   .handler = on_return,
		                   .data_size = sizeof(struct data) };
}

static void plant(struct kretprobe *rp, const char *symbol)
{
	char why[256];

	*rp = new_probe(symbol);
	register_ok(register_kretprobe(rp));
	has_form(&rp->kp);
	if (!in_jumps && by->flag == UKP_BY_CALL) {
		/* Until it can be called in place. */
		assert_int_equal(ukp_kretprobe_mechanism(rp, why, sizeof(why)), UKP_BY_SLOT);
		assert_string_equal(why, "optimization is off");
		return;
	}
	assert_int_equal(ukp_kretprobe_mechanism(rp, why, sizeof(why)), by->flag);
	if (!in_jumps && by->flag == UKP_BY_EXIT)
		assert_non_null(strstr(why, "by a breakpoint: optimization is off"));
	else
		assert_string_equal(why, "as asked for");
}

/* The text of the caller, to tell whether an address is in it. */
static bool is_in(unsigned long addr, const void *fn)
{
	return addr - (unsigned long)fn < 4096;
}

/* --- one call ---------------------------------------------------------------------- */

static void a_return_shows_value_place_and_stack(void **state)
{
	struct kretprobe rp;

	plant(&rp, "leaf");
	assert_int_equal(leaf(6), 42);
	unregister_kretprobe(&rp);
	assert_int_equal(entries, 1);
	assert_int_equal(returns, 1);
	assert_int_equal(rp.nmissed, 0);
	assert_int_equal(at_return.ax, 42);
	assert_int_equal(at_return.sp, at_entry.sp + 8);
	assert_true(is_in(at_return.ip, a_return_shows_value_place_and_stack));
	/* What a call keeps is as it was. */
	assert_int_equal(at_return.bx, at_entry.bx);
	assert_int_equal(at_return.bp, at_entry.bp);
	assert_int_equal(at_return.r12, at_entry.r12);
	assert_int_equal(at_return.r15, at_entry.r15);
	assert_int_equal(at_return.cs, at_entry.cs);
	assert_int_equal(at_return.ss, at_entry.ss);
	assert_int_equal(at_return.orig_ax, -1ul);
	assert_int_equal(leaf(6), 42);
	assert_int_equal(returns, 1);
}

static void each_way_out_is_a_return(void **state)
{
	struct kretprobe rp;
	unsigned long i, plain[40];

	for (i = 0; i < 40; i++)
		plain[i] = many_ways(i);
	plant(&rp, "many_ways");
	for (i = 0; i < 40; i++) {
		assert_int_equal(many_ways(i), plain[i]);
		assert_int_equal(returns, i + 1);
		assert_int_equal(at_return.ax, plain[i]);
	}
	unregister_kretprobe(&rp);
	assert_int_equal(entries, 40);
	assert_int_equal(rp.nmissed, 0);
}

static int change_all(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	on_return(ri, regs);
	regs_set_return_value(regs, 4711);
	/* Where it goes on isn't a handler's to say. */
	regs->ip = 16;
	regs->sp = 32;
	return 1;
}

static void the_caller_gets_ax_but_neither_ip_nor_sp(void **state)
{
	struct kretprobe a, b = new_probe("leaf");

	plant(&a, "leaf");
	b.handler = change_all;
	/* Its handler runs last: the older one sees what the function returned. */
	register_ok(register_kretprobe(&b));
	assert_int_equal(leaf(6), 4711);
	assert_int_equal(at_return.ax, 42);
	unregister_kretprobe(&a);
	/* Now before the other: that sees ax, but its own ip and sp. */
	plant(&a, "leaf");
	assert_int_equal(leaf(6), 4711);
	assert_int_equal(at_return.ax, 4711);
	unregister_kretprobe(&a);
	unregister_kretprobe(&b);
	assert_int_equal(leaf(6), 42);
	assert_int_equal(entries, 4);
	assert_int_equal(returns, 4);
}

static int clobber_vectors(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	__asm__ volatile("pxor %%xmm0, %%xmm0; pxor %%xmm7, %%xmm7" ::: "xmm0", "xmm7");
	errno = 4711;
	return on_return(ri, regs);
}

static void floating_results_and_errno_are_kept(void **state)
{
	struct kretprobe rp = new_probe("wide");

	rp.handler = clobber_vectors;
	register_ok(register_kretprobe(&rp));
	errno = 7;
	assert_true(wide(5.0, 40) == 42.5);
	assert_int_equal(errno, 7);
	unregister_kretprobe(&rp);
	assert_int_equal(returns, 1);
}

static int decline_odd(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	on_entry(ri, regs);
	return regs_get_kernel_argument(regs, 0) & 1;
}

static void a_declined_call_is_no_miss(void **state)
{
	struct kretprobe rp = new_probe("leaf");
	unsigned long i;

	rp.entry_handler = decline_odd;
	rp.maxactive = 1;
	register_ok(register_kretprobe(&rp));
	for (i = 0; i < 100; i++)
		assert_int_equal(leaf(i), i * 7);
	unregister_kretprobe(&rp);
	assert_int_equal(entries, 100);
	assert_int_equal(returns, 50);
	assert_int_equal(rp.nmissed, 0);
}

static int check_large(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	int i;

	for (i = 24; i < KRETPROBE_MAX_DATA_SIZE; i++)
		if (ri->data[i] != (char)(((struct data *)ri->data)->arg + (unsigned long)i))
			abort();
	return on_return(ri, regs);
}

static int fill_large(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	int i;

	on_entry(ri, regs);
	for (i = 24; i < KRETPROBE_MAX_DATA_SIZE; i++)
		ri->data[i] = (char)(((struct data *)ri->data)->arg + (unsigned long)i);
	return 0;
}

static void data_is_each_calls_own_however_large(void **state)
{
	struct kretprobe rp = new_probe("recursive");

	rp.entry_handler = fill_large;
	rp.handler = check_large;
	rp.data_size = KRETPROBE_MAX_DATA_SIZE;
	register_ok(register_kretprobe(&rp));
	deeper = recursive;
	assert_int_equal(recursive(200), 200);
	unregister_kretprobe(&rp);
	assert_int_equal(returns, 201);
}

/* --- several of them ------------------------------------------------------------------ */

#define NAMED(c)                                                                  \
	static int enter_##c(struct kretprobe_instance *ri, struct pt_regs *regs) \
	{                                                                         \
		note(#c[0]);                                                      \
		return on_entry(ri, regs);                                        \
	}                                                                         \
	static int leave_##c(struct kretprobe_instance *ri, struct pt_regs *regs) \
	{                                                                         \
		note(#c[0] - 'a' + 'A');                                          \
		return on_return(ri, regs);                                       \
	}

NAMED(a)
NAMED(b)
NAMED(c)

static int on_pre(struct kprobe *p, struct pt_regs *regs)
{
	note('k');
	return 0;
}

static int on_fprobe_entry(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                           struct pt_regs *regs, void *data)
{
	note('f');
	*(struct pt_regs *)data = *regs;
	if (entry_ip + 1 != regs->ip)
		abort();
	return 0;
}

static void on_fprobe_exit(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                           struct pt_regs *regs, void *data)
{
	struct pt_regs *entry = data;

	note('F');
	if (entry_ip + 1 != entry->ip || ret_ip != regs->ip || regs->sp != entry->sp + 8)
		abort();
	at_entry = *entry;
	at_return = *regs;
}

/* As in the kernel: the newest enters first, and what was hooked last comes back first. */
static void handlers_run_in_the_kernels_order(void **state)
{
	struct kretprobe a = new_probe("leaf"), b = new_probe("leaf"), c = new_probe("leaf");

	a.entry_handler = enter_a, a.handler = leave_a;
	b.entry_handler = enter_b, b.handler = leave_b;
	c.entry_handler = enter_c, c.handler = leave_c;
	register_ok(register_kretprobe(&a));
	register_ok(register_kretprobe(&b));
	register_ok(register_kretprobe(&c));
	leaf(1);
	assert_string_equal(order, "cbaABC");
	register_ok(disable_kretprobe(&b));
	leaf(1);
	assert_string_equal(order, "cbaABCcaAC");
	register_ok(enable_kretprobe(&b));
	unregister_kretprobe(&a);
	leaf(1);
	assert_string_equal(order, "cbaABCcaACcbBC");
	unregister_kretprobe(&b);
	unregister_kretprobe(&c);
	assert_int_equal(entries, returns);
}

static void kretprobes_fprobes_and_kprobes_share_a_function(void **state)
{
	struct fprobe fp = { .entry_handler = on_fprobe_entry,
		             .exit_handler = on_fprobe_exit,
		             .entry_data_size = sizeof(struct pt_regs),
		             .flags = by->flag };
	struct kprobe kp = { .symbol_name = "many_ways", .pre_handler = on_pre };
	struct kretprobe a = new_probe("many_ways");
	unsigned long i;

	a.entry_handler = enter_a, a.handler = leave_a;
	register_ok(register_kretprobe(&a));
	register_ok(register_kprobe(&kp));
	register_ok(register_fprobe(&fp, "many_ways", NULL));
	for (i = 1; i < 40; i += 9) {
		memset(order, 0, sizeof(order));
		many_ways(i);
		assert_string_equal(order, "fkaAF");
		/* The arguments are gone, what was kept at the entry is not. */
		assert_int_equal(at_entry.di, i);
	}
	unregister_kprobe(&kp);
	unregister_kretprobe(&a);
	assert_int_equal(unregister_fprobe(&fp), 0);
	assert_int_equal(fp.nmissed, 0);
	assert_int_equal(a.nmissed, 0);
}

static unsigned long session_calls[2];

static void session(struct pt_regs *regs, bool is_return)
{
	count(&session_calls[is_return]);
	if (is_return)
		regs->ax++;
}

static int session_entry(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                         struct pt_regs *regs, void *data)
{
	session(regs, false);
	return regs->di == 3; /* not followed */
}

static void session_exit(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                         struct pt_regs *regs, void *data)
{
	session(regs, true);
}

static void one_action_may_serve_both_ends(void **state)
{
	struct fprobe fp = { .entry_handler = session_entry,
		             .exit_handler = session_exit,
		             .flags = by->flag };
	const char *names[] = { "leaf", "last_of_three" };

	memset(session_calls, 0, sizeof(session_calls));
	register_ok(register_fprobe_syms(&fp, names, 2));
	assert_int_equal(leaf(2), 15);
	assert_int_equal(leaf(3), 21);
	assert_int_equal(last_of_three(1), 102);
	assert_int_equal(unregister_fprobe(&fp), 0);
	assert_int_equal(session_calls[0], 3);
	assert_int_equal(session_calls[1], 2);
	assert_int_equal(fp.nmissed, 0);
}

/* --- calls in calls ---------------------------------------------------------------------- */

static void nested_recursive_and_mutual_calls_are_told_apart(void **state)
{
	struct kretprobe r, e, o;

	plant(&r, "recursive");
	plant(&e, "is_even");
	plant(&o, "is_odd");
	deeper = recursive;
	assert_int_equal(recursive(3000), 3000);
	assert_int_equal(entries, 3001);
	assert_int_equal(returns, 3001);
	deeper = is_even;
	other = is_odd;
	assert_int_equal(is_even(1000), is_even(0));
	assert_int_equal(entries, 3001 + 1001 + 1);
	assert_int_equal(returns, entries);
	unregister_kretprobe(&r);
	unregister_kretprobe(&e);
	unregister_kretprobe(&o);
	assert_int_equal(r.nmissed + e.nmissed + o.nmissed, 0);
}

static void maxactive_is_a_limit_where_set(void **state)
{
	struct kretprobe rp = new_probe("recursive");

	deeper = recursive;
	rp.maxactive = 3;
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

/* By whatever is right for each of them: the value that reaches the caller. */
static void chains_of_tail_calls_are_each_reported(void **state)
{
	static const char *const name[] = { "first_of_three", "second_of_three", "last_of_three" };
	struct kretprobe rp[3];
	int i;

	for (i = 0; i < 3; i++) {
		rp[i] = new_probe(name[i]);
		if (i < 2)
			rp[i].kp.flags = 0;
		register_ok(register_kretprobe(&rp[i]));
	}
	assert_int_equal(first_of_three(1), 104);
	assert_int_equal(at_return.ax, 104);
	assert_int_equal(entries, 3);
	assert_int_equal(returns, 3);
	assert_true(is_in(at_return.ip, chains_of_tail_calls_are_each_reported));
	for (i = 0; i < 3; i++) {
		assert_int_equal(rp[i].nmissed, 0);
		unregister_kretprobe(&rp[i]);
	}
}

static int nesting_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	on_return(ri, regs);
	return leaf(1) != 7;
}

static void calls_that_handlers_make_are_missed_and_counted(void **state)
{
	struct kretprobe rp = new_probe("leaf"), outside = new_probe("around");

	outside.handler = nesting_return;
	register_ok(register_kretprobe(&rp));
	register_ok(register_kretprobe(&outside));
	meanwhile = NULL;
	assert_int_equal(around(1), 2);
	assert_int_equal(returns, 1);
	assert_int_equal(leaf(1), 7);
	assert_int_equal(returns, 2);
	unregister_kretprobe(&rp);
	unregister_kretprobe(&outside);
	assert_int_equal(rp.kp.nmissed, 1);
	assert_int_equal(rp.nmissed, 0);
}

/* --- calls that don't come back -------------------------------------------------------------- */

static jmp_buf out;

static unsigned long jump_out(unsigned long a)
{
	if (a)
		return around(a - 1);
	longjmp(out, 1);
}

static void jump_over(unsigned long rounds, bool flush)
{
	volatile unsigned long i;

	for (i = 0; i < rounds; i++) {
		if (!setjmp(out))
			around(4);
		if (flush)
			rethook_flush_task(NULL);
	}
}

static void jumped_over_calls_are_found_when_there_is_no_room(void **state)
{
	const char *long_run = getenv("ORPHANS");
	const unsigned long rounds = long_run ? strtoul(long_run, NULL, 0) : 100;
	struct kretprobe rp = new_probe("around");
	unsigned long more;

	rp.maxactive = 10;
	meanwhile = jump_out;
	register_ok(register_kretprobe(&rp));
	jump_over(rounds, false);
	meanwhile = NULL;
	/* Two rounds had room.  Each call that has none looks at some others only. */
	assert_in_range(entries, 11, rounds * 5);
	assert_int_equal(returns, 0);
	for (more = 0; more < 1000 && !returns; more++)
		assert_int_equal(around(4), 5);
	assert_int_equal(returns, 1);
	unregister_kretprobe(&rp);
	/* All but the last one, and who wasn't found yet. */
	assert_in_range(rp.nmissed, rounds * 5 + more - 1 - 10, rounds * 5 + more - 1);
}

static void jumped_over_calls_are_counted_and_leave_nothing(void **state)
{
	const char *long_run = getenv("ORPHANS");
	const unsigned long rounds = long_run ? strtoul(long_run, NULL, 0) : 100;
	struct kretprobe rp = new_probe("around");

	/* What leaked would use it up. */
	rp.maxactive = 10;
	meanwhile = jump_out;
	register_ok(register_kretprobe(&rp));
	jump_over(rounds, true);
	assert_int_equal(entries, rounds * 5);
	assert_int_equal(returns, 0);
	assert_int_equal(rp.nmissed, rounds * 5);
	meanwhile = NULL;
	assert_int_equal(around(4), 5);
	assert_int_equal(returns, 1);
	unregister_kretprobe(&rp);
}

static unsigned long end_thread(unsigned long a)
{
	if (a)
		return around(a - 1);
	pthread_exit(NULL);
}

static unsigned long wait_to_be_cancelled(unsigned long a)
{
	if (a)
		return around(a - 1);
	for (;;)
		pause();
}

static void *call_around(void *arg)
{
	around(4);
	return NULL;
}

static void threads_that_end_inside_leave_nothing(void **state)
{
	struct kretprobe rp = new_probe("around");
	pthread_t t;
	int i;

	rp.maxactive = 10;
	register_ok(register_kretprobe(&rp));
	for (i = 0; i < 50; i++) {
		meanwhile = i % 2 ? end_thread : wait_to_be_cancelled;
		assert_int_equal(pthread_create(&t, NULL, call_around, NULL), 0);
		if (!(i % 2)) {
			while (__atomic_load_n(&entries, __ATOMIC_RELAXED) +
			               (unsigned int)rp.nmissed <
			       (unsigned long)(i + 1) * 5)
				sched_yield();
			pthread_cancel(t);
		}
		assert_int_equal(pthread_join(t, NULL), 0);
	}
	meanwhile = NULL;
	assert_int_equal(around(4), 5);
	assert_int_equal(returns, 1);
	unregister_kretprobe(&rp);
	/* Some may be noticed only when their frames are used again. */
	assert_in_range(entries - returns, 240, 250);
	assert_in_range(rp.nmissed, 240, 250);
}

/* --- changes meanwhile -------------------------------------------------------------------------
 */

static struct kretprobe changing;

static unsigned long change_probe(unsigned long a)
{
	switch (a) {
	case 1:
		unregister_kretprobe(&changing);
		break;
	case 2:
		disable_kretprobe(&changing);
		break;
	case 3:
		enable_kretprobe(&changing);
		break;
	default:
		break;
	}
	return a;
}

static void probes_may_go_off_and_on_while_calls_are_inside(void **state)
{
	plant(&changing, "around");
	meanwhile = change_probe;
	/* One that was followed is reported. */
	assert_int_equal(around(2), 3);
	assert_int_equal(returns, 1);
	assert_int_equal(around(0), 1);
	assert_int_equal(returns, 1);
	/* One that wasn't, isn't. */
	assert_int_equal(around(3), 4);
	assert_int_equal(entries, 1);
	assert_int_equal(returns, 1);
	assert_int_equal(around(0), 1);
	assert_int_equal(entries, 2);
	assert_int_equal(returns, 2);
	unregister_kretprobe(&changing);
	assert_int_equal(changing.nmissed, 0);
}

static void calls_inside_return_unreported_after_unregistering(void **state)
{
	int i;

	meanwhile = change_probe;
	for (i = 0; i < 20; i++) {
		plant(&changing, "around");
		changing.maxactive = 1;
		assert_int_equal(around(1), 2);
		assert_int_equal(around(0), 1);
		assert_int_equal(entries, i + 1);
	}
	assert_int_equal(returns, 0);
	/* Nor are they taken for the next one's. */
	plant(&changing, "around");
	assert_int_equal(around(0), 1);
	assert_int_equal(returns, 1);
	unregister_kretprobe(&changing);
}

static unsigned long plant_here(unsigned long a)
{
	if (a == 1)
		plant(&changing, "around");
	return a;
}

static void who_was_inside_when_a_probe_came_is_no_miss(void **state)
{
	meanwhile = plant_here;
	assert_int_equal(around(1), 2);
	assert_int_equal(around(0), 1);
	unregister_kretprobe(&changing);
	assert_int_equal(entries, 1);
	assert_int_equal(returns, 1);
	assert_int_equal(changing.nmissed, 0);
}

static unsigned long fork_here(unsigned long a)
{
	return (unsigned long)fork();
}

static void a_child_reports_nothing_and_its_parent_all(void **state)
{
	struct kretprobe rp;
	unsigned long r;
	int status;

	plant(&rp, "around");
	meanwhile = fork_here;
	r = around(1);
	if (r == 1) {
		meanwhile = NULL;
		_exit(around(1) == 2 && entries == 1 && returns == 0 ? 42 : 1);
	}
	assert_int_equal(waitpid((pid_t)(r - 1), &status, 0), r - 1);
	assert_int_equal(status, 42 << 8);
	unregister_kretprobe(&rp);
	assert_int_equal(entries, 1);
	assert_int_equal(returns, 1);
	assert_int_equal(rp.nmissed, 0);
}

/* --- signals, threads, stacks --------------------------------------------------------------------
 */

static unsigned long from_signal;

static void on_signal(int sig)
{
	int saved = errno;

	if (leaf(5) != 35)
		abort();
	count(&from_signal);
	errno = saved;
}

static unsigned long raise_here(unsigned long a)
{
	raise(SIGUSR1);
	return a;
}

static void signal_handlers_call_what_is_followed(void **state)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct itimerval every = { { 0, 300 }, { 0, 300 } }, off = { { 0, 0 }, { 0, 0 } };
	struct kretprobe a, l;
	unsigned long i;

	from_signal = 0;
	assert_int_equal(sigaction(SIGUSR1, &sa, NULL), 0);
	assert_int_equal(sigaction(SIGPROF, &sa, NULL), 0);
	plant(&a, "around");
	plant(&l, "leaf");
	meanwhile = raise_here;
	assert_int_equal(around(1), 2);
	assert_int_equal(returns, 2);
	setitimer(ITIMER_PROF, &every, NULL);
	/* As many as it takes for some to come in the middle. */
	for (i = 0; i < 2000 || __atomic_load_n(&from_signal, __ATOMIC_RELAXED) < 20; i++)
		assert_int_equal(leaf(i), i * 7);
	setitimer(ITIMER_PROF, &off, NULL);
	unregister_kretprobe(&a);
	unregister_kretprobe(&l);
	assert_int_equal(sigaction(SIGPROF, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL), 0);
	/* A signal that came in a handler was a miss. */
	assert_int_equal(entries + l.kp.nmissed, 1 + from_signal + i);
	assert_int_equal(returns, entries);
	assert_int_equal(a.nmissed + l.nmissed, 0);
}

enum { THREADS = 4, CALLS = 5000 };

static void *calls(void *arg)
{
	unsigned long i;

	for (i = 0; i < CALLS; i++)
		if (many_ways(i % 50) != (unsigned long)((unsigned long *)arg)[i % 50] ||
		    recursive(i % 5) != i % 5)
			abort();
	return NULL;
}

static void counts_are_exact_with_many_threads(void **state)
{
	struct kretprobe m, r;
	unsigned long i, plain[50], inner = 0;
	pthread_t t[THREADS];

	for (i = 0; i < 50; i++)
		plain[i] = many_ways(i);
	for (i = 0; i < CALLS; i++)
		inner += i % 5 + 1;
	deeper = recursive;
	plant(&m, "many_ways");
	plant(&r, "recursive");
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, calls, plain), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	unregister_kretprobe(&m);
	unregister_kretprobe(&r);
	assert_int_equal(entries, THREADS * (CALLS + inner));
	assert_int_equal(returns, entries);
	assert_int_equal(m.nmissed + r.nmissed, 0);
}

static ucontext_t main_context, coroutine;

static unsigned long switch_away(unsigned long a)
{
	swapcontext(&coroutine, &main_context);
	return a;
}

static void body(void)
{
	if (around(4) != 5)
		abort();
	swapcontext(&coroutine, &main_context);
}

static void *resume(void *arg)
{
	swapcontext(&main_context, &coroutine);
	return NULL;
}

static void a_call_may_end_in_another_thread(void **state)
{
	static char stack[64 << 10] __attribute__((aligned(16)));
	struct kretprobe rp;
	pthread_t t;

	plant(&rp, "around");
	meanwhile = switch_away;
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = sizeof(stack);
	makecontext(&coroutine, body, 0);
	assert_int_equal(pthread_create(&t, NULL, resume, NULL), 0);
	pthread_join(t, NULL);
	assert_int_equal(entries, 1);
	assert_int_equal(returns, 0);
	resume(NULL);
	assert_int_equal(returns, 1);
	unregister_kretprobe(&rp);
	assert_int_equal(rp.nmissed, 0);
}

#define STACK (64 << 10)

static void walk_the_stack(void)
{
	void *frame[16];

	if (backtrace(frame, 16) < 1)
		abort();
	swapcontext(&coroutine, &main_context);
}

static void run_on(char *stack, void (*fn)(void))
{
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = STACK;
	makecontext(&coroutine, fn, 0);
	swapcontext(&main_context, &coroutine);
}

/* As coroutines are that nobody goes on with. */
static void a_stack_may_go_with_calls_on_it(void **state)
{
	char *stack =
		mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kretprobe rp;

	assert_true(stack != MAP_FAILED);
	plant(&rp, "around");
	meanwhile = switch_away;
	run_on(stack + STACK, body);
	assert_int_equal(entries, 1);
	munmap(stack + STACK, STACK);
	/* Below it, so that it would be a caller's if it were there. */
	run_on(stack, walk_the_stack);
	assert_int_equal(returns, 0);
	unregister_kretprobe(&rp);
	munmap(stack, STACK);
}

#define T(name) cmocka_unit_test_setup_teardown(name, reset, untouched)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_return_shows_value_place_and_stack),
		T(each_way_out_is_a_return),
		T(the_caller_gets_ax_but_neither_ip_nor_sp),
		T(floating_results_and_errno_are_kept),
		T(a_declined_call_is_no_miss),
		T(data_is_each_calls_own_however_large),
		T(handlers_run_in_the_kernels_order),
		T(kretprobes_fprobes_and_kprobes_share_a_function),
		T(one_action_may_serve_both_ends),
		T(nested_recursive_and_mutual_calls_are_told_apart),
		T(maxactive_is_a_limit_where_set),
		T(chains_of_tail_calls_are_each_reported),
		T(calls_that_handlers_make_are_missed_and_counted),
		T(jumped_over_calls_are_found_when_there_is_no_room),
		T(jumped_over_calls_are_counted_and_leave_nothing),
		T(threads_that_end_inside_leave_nothing),
		T(probes_may_go_off_and_on_while_calls_are_inside),
		T(calls_inside_return_unreported_after_unregistering),
		T(who_was_inside_when_a_probe_came_is_no_miss),
		T(a_child_reports_nothing_and_its_parent_all),
		T(signal_handlers_call_what_is_followed),
		T(counts_are_exact_with_many_threads),
		T(a_call_may_end_in_another_thread),
		T(a_stack_may_go_with_calls_on_it),
	};
	int failed = 0;

	/* The unwinder, which pthread_exit() would bring only after probes are in. */
	assert_non_null(dlopen("libgcc_s.so.1", RTLD_NOW));
	for (by = mechanisms; by < mechanisms + sizeof(mechanisms) / sizeof(*mechanisms); by++) {
		print_message("--- %s\n", by->name);
		in_jumps = false;
		failed += run_in_both_forms(tests);
	}
	return failed;
}
