/* SPDX-License-Identifier: MIT */
/*
 * What is particular to exit sites: where they serve and where not, jumps over
 * returns among other probes, orphans, whole libraries.  What they owe as any
 * mechanism does is in returns.c.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>

#include <ukprobes/fprobe.h>

#include "scenario.h"

static unsigned long entries, returns, value;

static void count(unsigned long *n)
{
	__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
}

static unsigned long now(unsigned long *n)
{
	return __atomic_load_n(n, __ATOMIC_RELAXED);
}

static int on_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	count(&entries);
	return 0;
}

static int on_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	count(&returns);
	__atomic_store_n(&value, regs_return_value(regs), __ATOMIC_RELAXED);
	return 0;
}

static int reset(void **state)
{
	entries = returns = value = 0;
	return 0;
}

static struct kretprobe by(unsigned int flags, const char *symbol)
{
	return (struct kretprobe){ .kp = { .symbol_name = symbol, .flags = flags },
		                   .entry_handler = on_entry,
		                   .handler = on_return };
}

static bool is_by(const struct kretprobe *rp, int mechanism, const char *reason)
{
	char why[256] = "";
	int ret = ukp_kretprobe_mechanism(rp, why, sizeof(why));

	if (ret != mechanism || !strstr(why, reason))
		fail_msg("%#x, for: %s", ret, why);
	return true;
}

/* --- where they serve ------------------------------------------------------------- */

/* Functions with instructions that are known; nothing is between them. */
#define FUNCTION(name, body)                                                            \
	extern unsigned long name(unsigned long a);                                     \
	__asm__(".text\n.type " #name ", @function\n" #name ":\n" body "\n.size " #name \
	        ", . - " #name "\n")

FUNCTION(tail_calls, "lea 1(%rdi), %rdi\n jmp plain");
FUNCTION(plain, "push %rbx\n mov %rdi, %rbx\n lea 3(%rbx), %rax\n pop %rbx\n ret");
FUNCTION(restarts, "dec %rdi\n jns restarts\n mov %rdi, %rax\n ret");
FUNCTION(goes_anywhere, "push %rdi\n lea (%rdi), %rax\n jmp *%rax");
FUNCTION(leaves_more, "push %rdi\n jmp *8(%rsp)");
/* One instruction is its entry and its exit, too short for a jump. */
FUNCTION(nothing, "ret");
FUNCTION(next_to_it, "mov %rdi, %rax\n ret\n nop\n nop\n nop");

static void what_cannot_be_right_is_refused_with_the_reason(void **state)
{
	static const struct {
		const char *name, *why;
	} refused[] = {
		{ "tail_calls", "it leaves by a jump to another function" },
		{ "restarts", "it jumps to its own start" },
		{ "goes_anywhere", "it has an indirect jump whose targets aren't known" },
		{ "leaves_more", "it has an indirect jump whose targets aren't known" },
	};
	struct kretprobe rp;
	char why[256];
	size_t i;

	for (i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		rp = by(UKP_BY_EXIT, refused[i].name);
		assert_int_equal(register_kretprobe(&rp), -EINVAL);
		if (!strstr(ukp_kprobe_error(), refused[i].why) ||
		    !strstr(ukp_kprobe_error(), refused[i].name))
			fail_msg("%s", ukp_kprobe_error());
		/* Without a wish there is something else. */
		rp.kp.flags = 0;
		register_ok(register_kretprobe(&rp));
		assert_in_range(ukp_kretprobe_mechanism(&rp, why, sizeof(why)), UKP_BY_CALL,
		                UKP_BY_SLOT);
		unregister_kretprobe(&rp);
	}
}

static void a_function_without_room_for_a_jump_cannot_be_called_in_place(void **state)
{
	struct kretprobe rp = by(UKP_BY_CALL, "nothing");

	assert_int_equal(register_kretprobe(&rp), -EINVAL);
	assert_non_null(strstr(ukp_kprobe_error(), "too near to the end of its function"));
	rp.kp.symbol_name = "getcontext";
	assert_int_equal(register_kretprobe(&rp), -EINVAL);
	assert_non_null(strstr(ukp_kprobe_error(), "its return address must stay"));
}

static void a_return_alone_is_entry_and_exit(void **state)
{
	struct kretprobe rp = by(UKP_BY_EXIT, "nothing");

	register_ok(register_kretprobe(&rp));
	nothing(1);
	assert_int_equal(entries, 1);
	assert_int_equal(returns, 1);
	unregister_kretprobe(&rp);
	nothing(1);
	assert_int_equal(returns, 1);
}

TARGET unsigned long where_to(unsigned long a)
{
	__asm__ volatile("");
	return (unsigned long)__builtin_return_address(0);
}

static void a_function_may_look_at_its_return_address(void **state)
{
	struct kretprobe rp = by(UKP_BY_EXIT, "where_to");
	unsigned long i, seen[2];

	for (i = 0; i < 2; i++) {
		if (i)
			register_ok(register_kretprobe(&rp));
		seen[i] = where_to(1);
	}
	/* From one place in this loop, or two. */
	assert_true(seen[1] - seen[0] + 256 < 512);
	assert_false(is_kretprobe_trampoline(seen[1]));
	assert_int_equal(value, seen[1]);
	unregister_kretprobe(&rp);
	assert_int_equal(returns, 1);
}

static void functions_that_return_twice_are_served_by_themselves(void **state)
{
	struct kretprobe rp = by(0, "getcontext"), slot = by(UKP_BY_SLOT, "getcontext");
	volatile int rounds = 0;
	ucontext_t context;

	assert_int_equal(register_kretprobe(&slot), -EINVAL);
	register_ok(register_kretprobe(&rp));
	is_by(&rp, UKP_BY_EXIT, "");
	assert_int_equal(getcontext(&context), 0);
	if (rounds++ < 3)
		setcontext(&context);
	unregister_kretprobe(&rp);
	assert_int_equal(rounds, 4);
	assert_int_equal(entries, 1);
	assert_int_equal(returns, 1);
}

static void a_vfork_returns_once_as_far_as_probes_know(void **state)
{
	struct kretprobe rp = by(0, "vfork");
	int i, status;
	pid_t pid;

	register_ok(register_kretprobe(&rp));
	is_by(&rp, UKP_BY_EXIT, "");
	for (i = 0; i < 10; i++) {
		pid = vfork();
		if (!pid)
			_exit(42);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 42 << 8);
	}
	unregister_kretprobe(&rp);
	assert_int_equal(entries, 10);
	assert_int_equal(returns, 10);
	assert_int_equal(rp.nmissed, 0);
}

/* --- jumps among other probes --------------------------------------------------------- */

/* 1 1 3 4 2 1 2 1 1 1: its return has room neither behind nor right before it. */
FUNCTION(crowded, "push %rbx\n push %rbp\n mov %rdi, %rbx\n lea 3(%rbx), %rbp\n test %ebx, %ebx\n"
                  "nop\n mov %ebp, %eax\n pop %rbp\n pop %rbx\n ret");
FUNCTION(behind_it, "mov %rdi, %rax\n add $4, %rax\n ret");

static const unsigned char offset[] = { 0, 1, 2, 5, 9, 11, 12, 14, 15, 16 };

enum { PLACES = sizeof(offset) };

static unsigned long hits[PLACES];
static struct kprobe at[PLACES];

static int on_hit(struct kprobe *p, struct pt_regs *regs)
{
	hits[p - at]++;
	return 0;
}

static void on_post(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
	hits[p - at] += 1000;
}

static unsigned int seed = 1;

static unsigned int draw(unsigned int n)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % n;
}

static void call_and_compare(bool followed)
{
	unsigned long was[PLACES], back = returns, i;

	memcpy(was, hits, sizeof(was));
	assert_int_equal(crowded(70), 73);
	for (i = 0; i < PLACES; i++)
		if (hits[i] - was[i] != (at[i].addr ? at[i].post_handler ? 1001 : 1 : 0))
			fail_msg("%lu hits at +%d", hits[i] - was[i], offset[i]);
	assert_int_equal(returns - back, followed);
	assert_int_equal(entries, returns);
}

/* At any of its instructions, in any order, with and without the return probe. */
static void returns_are_seen_among_any_other_probes(void **state)
{
	const char *many = getenv("ROUNDS");
	int i, k, rounds = many ? atoi(many) : 300;
	bool followed = false;
	struct kretprobe rp;

	memset(at, 0, sizeof(at));
	for (i = 0; i < rounds; i++) {
		k = (int)draw(PLACES + 3);
		if (k >= PLACES && followed) {
			unregister_kretprobe(&rp);
			followed = false;
		} else if (k >= PLACES) {
			rp = by(UKP_BY_EXIT, "crowded");
			register_ok(register_kretprobe(&rp));
			followed = true;
		} else if (at[k].addr) {
			unregister_kprobe(&at[k]);
			at[k].addr = NULL;
		} else {
			at[k] = (struct kprobe){ .symbol_name = "crowded",
				                 .offset = offset[k],
				                 .pre_handler = on_hit };
			if (!draw(5))
				at[k].post_handler = on_post;
			register_ok(register_kprobe(&at[k]));
		}
		if (draw(2))
			wait_for_kprobe_optimizer();
		call_and_compare(followed);
	}
	for (k = 0; k < PLACES; k++)
		if (at[k].addr)
			unregister_kprobe(&at[k]);
	if (followed)
		unregister_kretprobe(&rp);
}

static void jumps_over_returns_begin_before_them(void **state)
{
	struct kprobe in = { .symbol_name = "crowded", .offset = 14, .pre_handler = on_hit };
	struct kprobe post = { .symbol_name = "crowded",
		               .offset = 15,
		               .pre_handler = on_hit,
		               .post_handler = on_post };
	struct kretprobe rp = by(UKP_BY_EXIT, "crowded");
	const unsigned char *ret = (const unsigned char *)crowded + 16;
	char why[256];

	register_ok(register_kretprobe(&rp));
	wait_for_kprobe_optimizer();
	is_by(&rp, UKP_BY_EXIT, "as asked for");
	assert_int_equal(*(const volatile unsigned char *)(ret - 4), 0xe9);
	assert_int_equal(crowded(1), 4);
	assert_int_equal(returns, 1);
	/* A probe inside gets an entry of its own. */
	at[0] = in;
	register_ok(register_kprobe(&at[0]));
	wait_for_kprobe_optimizer();
	assert_int_equal(*(const volatile unsigned char *)(ret - 4), 0xe9);
	has_jump(&at[0]);
	/* One with a post handler has it give way, and says so. */
	at[1] = post;
	register_ok(register_kprobe(&at[1]));
	wait_for_kprobe_optimizer();
	ukp_kretprobe_mechanism(&rp, why, sizeof(why));
	assert_non_null(strstr(why, "1 of 1 exits by a breakpoint: "));
	assert_int_equal(crowded(1), 4);
	assert_int_equal(returns, 2);
	unregister_kprobe(&at[1]);
	wait_for_kprobe_optimizer();
	is_by(&rp, UKP_BY_EXIT, "as asked for");
	assert_int_equal(crowded(1), 4);
	assert_int_equal(returns, 3);
	unregister_kprobe(&at[0]);
	unregister_kretprobe(&rp);
	memset(at, 0, sizeof(at));
}

static void a_return_without_room_keeps_its_breakpoint(void **state)
{
	struct kretprobe rp = by(UKP_BY_EXIT, "nothing");

	register_ok(register_kretprobe(&rp));
	wait_for_kprobe_optimizer();
	is_by(&rp, UKP_BY_EXIT, "1 of 1 exits by a breakpoint: ");
	nothing(1);
	assert_int_equal(returns, 1);
	unregister_kretprobe(&rp);
}

/* --- under fire ------------------------------------------------------------------------ */

static int stop;
static unsigned long calls_made;

static void *call_on(void *arg)
{
	unsigned long i;

	for (i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
		if (crowded(i % 100) != i % 100 + 3 || plain(i) != i + 3)
			abort();
		count(&calls_made);
	}
	return NULL;
}

static void probes_come_and_go_while_threads_return(void **state)
{
	const char *toggles = getenv("TOGGLES");
	int i, n = toggles ? atoi(toggles) : 100;
	unsigned long missed = 0, made;
	pthread_t t[3];

	stop = 0;
	calls_made = 0;
	for (i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&t[i], NULL, call_on, NULL), 0);
	for (i = 0; i < n; i++) {
		struct kretprobe c = by(UKP_BY_EXIT, "crowded"), p = by(UKP_BY_EXIT, "plain");

		register_ok(register_kretprobe(&c));
		register_ok(register_kretprobe(&p));
		if (i % 2)
			wait_for_kprobe_optimizer();
		made = now(&calls_made);
		while (now(&calls_made) < made + 10)
			sched_yield();
		unregister_kretprobe(&c);
		unregister_kretprobe(&p);
		missed += (unsigned long)(c.nmissed + p.nmissed);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	/* Of each only what was on its way when it went isn't told of. */
	assert_true(returns > (unsigned long)n * 8);
	assert_in_range(entries, returns, returns + (unsigned long)n * 6);
	assert_int_equal(missed, 0);
}

/* --- orphans ---------------------------------------------------------------------------- */

static jmp_buf out;

static unsigned long (*volatile meanwhile)(unsigned long a);

TARGET unsigned long around(unsigned long a)
{
	unsigned long r = meanwhile ? meanwhile(a) : a;

	__asm__ volatile("");
	return r + 1;
}

static unsigned long jump_out(unsigned long a)
{
	if (a)
		return around(a - 1);
	longjmp(out, 1);
}

static void a_frame_that_is_used_again_frees_its_orphan(void **state)
{
	const char *orphans = getenv("ORPHANS");
	volatile unsigned long i;
	const unsigned long rounds = orphans ? strtoul(orphans, NULL, 0) : 2000;
	struct kretprobe rp = by(UKP_BY_EXIT, "around");

	register_ok(register_kretprobe(&rp));
	meanwhile = jump_out;
	for (i = 0; i < rounds; i++)
		if (!setjmp(out))
			around(4);
	assert_int_equal(entries, rounds * 5);
	assert_int_equal(returns, 0);
	/* The last ones may still be there. */
	assert_in_range(rp.nmissed, (rounds - 1) * 5, rounds * 5);
	rethook_flush_task(NULL);
	assert_int_equal(rp.nmissed, rounds * 5);
	unregister_kretprobe(&rp);
}

static unsigned long end_here(unsigned long a)
{
	pthread_exit(NULL);
}

static void *call_around(void *arg)
{
	around(0);
	return NULL;
}

/* maxactive is full of calls on stacks that are gone. */
static void orphans_of_threads_make_room(void **state)
{
	struct kretprobe rp = by(UKP_BY_EXIT, "around");
	const size_t size = 256 << 10;
	void *stack[4];
	pthread_attr_t attr;
	pthread_t t;
	int i;

	rp.maxactive = 4;
	register_ok(register_kretprobe(&rp));
	meanwhile = end_here;
	for (i = 0; i < 4; i++) {
		stack[i] = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		                0);
		assert_int_equal(pthread_attr_init(&attr), 0);
		assert_int_equal(pthread_attr_setstack(&attr, stack[i], size), 0);
		assert_int_equal(pthread_create(&t, &attr, call_around, NULL), 0);
		assert_int_equal(pthread_join(t, NULL), 0);
		pthread_attr_destroy(&attr);
	}
	assert_int_equal(entries, 4);
	for (i = 0; i < 4; i++)
		munmap(stack[i], size);
	meanwhile = NULL;
	/* Each that finds no room looks further. */
	for (i = 0; i < 1000 && !returns; i++)
		assert_int_equal(around(0), 1);
	assert_int_equal(returns, 1);
	for (i = 0; i < 1000; i++)
		around(0);
	assert_int_equal(returns, 1001);
	unregister_kretprobe(&rp);
	/* Those four, and who came before there was room again. */
	assert_true(rp.nmissed >= 1);
	assert_int_equal(entries, returns + 4);
}

/* --- whole libraries ---------------------------------------------------------------------- */

static int all_entry(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                     struct pt_regs *regs, void *data)
{
	*(unsigned long *)data = entry_ip ^ ret_ip;
	count(&entries);
	return 0;
}

static void all_exit(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                     struct pt_regs *regs, void *data)
{
	if (*(unsigned long *)data != (entry_ip ^ ret_ip) ||
	    (fp->flags & UKP_BY_EXIT && ((unsigned long *)regs->sp)[-1] != ret_ip))
		abort();
	count(&returns);
}

static void a_library_works_with_all_its_exits_probed(void **state)
{
	static unsigned char text[100000], packed[120000], again[100000];
	int (*compress2)(void *, unsigned long *, const void *, unsigned long, int);
	int (*uncompress)(void *, unsigned long *, const void *, unsigned long);
	void *z = dlopen("libz.so.1", RTLD_NOW);
	struct fprobe fp = { .entry_handler = all_entry,
		             .exit_handler = all_exit,
		             .entry_data_size = 8,
		             .flags = UKP_BY_EXIT };
	unsigned long n = sizeof(packed), m = sizeof(again), i, plain_size;

	if (!z)
		skip();
	*(void **)&compress2 = dlsym(z, "compress2");
	*(void **)&uncompress = dlsym(z, "uncompress");
	for (i = 0; i < sizeof(text); i++)
		text[i] = (unsigned char)(draw(100) ? i / 50 : draw(256));
	assert_int_equal(compress2(packed, &n, text, sizeof(text), 6), 0);
	plain_size = n;
	register_ok(register_fprobe(&fp, "libz:*", NULL));
	assert_true(ukp_fprobe_functions(&fp) > 50);
	for (i = 0; i < 2; i++) {
		n = sizeof(packed);
		assert_int_equal(compress2(packed, &n, text, sizeof(text), 6), 0);
		assert_int_equal(n, plain_size);
		assert_int_equal(uncompress(again, &m, packed, n), 0);
		assert_memory_equal(again, text, sizeof(text));
		wait_for_kprobe_optimizer();
	}
	assert_int_equal(unregister_fprobe(&fp), 0);
	assert_true(entries > 20);
	assert_int_equal(returns, entries);
	assert_int_equal(fp.nmissed, 0);
	dlclose(z);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static unsigned long libc_sum;

static void *work_libc(void *arg)
{
	unsigned long sum = 0;
	char *v[100], text[64];
	FILE *f;
	int i;

	for (i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "%x-%d-%g", i * 7919 % 1009, i, i * 0.37);
		v[i] = strdup(text);
	}
	qsort(v, 100, sizeof(*v), by_text);
	for (i = 0; i < 100; i++) {
		sum = sum * 31 + strtoul(v[i], NULL, 16) + strlen(v[i]);
		free(v[i]);
	}
	f = fmemopen(text, sizeof(text), "w+");
	fprintf(f, "%lu", sum);
	rewind(f);
	if (fscanf(f, "%lu", &sum) != 1)
		sum = 0;
	fclose(f);
	__atomic_fetch_add(&libc_sum, sum, __ATOMIC_RELAXED);
	return NULL;
}

static unsigned long libc_in_threads(void)
{
	pthread_t t[3];
	int i;

	libc_sum = 0;
	for (i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&t[i], NULL, work_libc, NULL), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
	return libc_sum;
}

/* Its functions are called all the time, by the library, too. */
static void libc_works_with_all_its_exits_probed(void **state)
{
	struct fprobe fp = { .entry_handler = all_entry,
		             .exit_handler = all_exit,
		             .entry_data_size = 8,
		             .flags = UKP_BY_EXIT };
	unsigned long plain_sum = libc_in_threads();
	int i;

	register_ok(register_fprobe(&fp, "libc:*", NULL));
	assert_true(ukp_fprobe_functions(&fp) > 1000);
	for (i = 0; i < 3; i++) {
		assert_int_equal(libc_in_threads(), plain_sum);
		wait_for_kprobe_optimizer();
	}
	assert_int_equal(unregister_fprobe(&fp), 0);
	assert_true(returns > 10000);
	/* Who was inside at the end isn't told of. */
	assert_in_range(entries, returns + fp.nmissed, returns + fp.nmissed + 10);
}

static void one_fprobe_may_have_several_mechanisms(void **state)
{
	struct fprobe fp = { .exit_handler = all_exit,
		             .entry_handler = all_entry,
		             .entry_data_size = 8 };
	const char *names[] = { "getcontext", "plain" };
	char why[256];
	ucontext_t c;

	register_ok(register_fprobe_syms(&fp, names, 2));
	assert_int_equal(ukp_fprobe_mechanism(&fp, (unsigned long)plain, why, sizeof(why)),
	                 in_jumps ? UKP_BY_CALL : UKP_BY_SLOT);
	assert_int_equal(ukp_fprobe_mechanism(&fp, (unsigned long)dlsym(RTLD_DEFAULT, "getcontext"),
	                                      why, sizeof(why)),
	                 UKP_BY_EXIT);
	assert_int_equal(ukp_fprobe_mechanism(&fp, (unsigned long)crowded, why, sizeof(why)),
	                 -EINVAL);
	assert_int_equal(plain(1), 4);
	assert_int_equal(getcontext(&c), 0);
	assert_int_equal(unregister_fprobe(&fp), 0);
	assert_int_equal(entries, 2);
	assert_int_equal(returns, 2);
	assert_int_equal(fp.nmissed, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, reset, untouched)

int main(void)
{
	const struct CMUnitTest both[] = {
		T(what_cannot_be_right_is_refused_with_the_reason),
		T(a_function_without_room_for_a_jump_cannot_be_called_in_place),
		T(a_return_alone_is_entry_and_exit),
		T(a_function_may_look_at_its_return_address),
		T(functions_that_return_twice_are_served_by_themselves),
		T(a_vfork_returns_once_as_far_as_probes_know),
		T(a_frame_that_is_used_again_frees_its_orphan),
		T(orphans_of_threads_make_room),
		T(one_fprobe_may_have_several_mechanisms),
	};
	const struct CMUnitTest mixed[] = {
		T(jumps_over_returns_begin_before_them),
		T(a_return_without_room_keeps_its_breakpoint),
		T(returns_are_seen_among_any_other_probes),
		T(probes_come_and_go_while_threads_return),
		T(a_library_works_with_all_its_exits_probed),
		T(libc_works_with_all_its_exits_probed),
	};
	int failed = run_in_both_forms(both);

	in_jumps = false;
	return failed + cmocka_run_group_tests_name("some of both", mixed, NULL, NULL);
}
