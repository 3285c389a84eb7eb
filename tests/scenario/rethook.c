/* SPDX-License-Identifier: MIT */
/* rethooks: errno, values, pools, several on a frame, walking stacks, calls that never return. */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>

#include <ukprobes/rethook.h>

#include "scenario.h"

struct call {
	struct rethook_node node; /* the first member */
	unsigned long arg;
};

static struct rethook *rh, *second_rh;
static int returns, nones, in_handler_hooks;
static unsigned long value, ret_addr, ret_ip, frame, arg_at_return, new_value;
static char order[32];

TARGET unsigned long target(unsigned long a)
{
	__asm__ volatile("");
	return a * 7;
}

static void note(char c)
{
	size_t n = strlen(order);

	if (n < sizeof(order) - 1)
		order[n] = c;
}

static void back(struct rethook_node *n, void *data, unsigned long addr, struct pt_regs *regs)
{
	assert_ptr_equal(data, &returns);
	assert_ptr_equal(n->rethook, rh);
	assert_int_equal(addr, n->ret_addr);
	assert_int_equal(kernel_stack_pointer(regs), n->frame + 8);
	__atomic_fetch_add(&returns, 1, __ATOMIC_RELAXED);
	value = regs_return_value(regs);
	ret_addr = addr;
	ret_ip = instruction_pointer(regs);
	frame = n->frame;
	arg_at_return = ((struct call *)n)->arg;
	if (new_value)
		regs_set_return_value(regs, new_value);
	note('r');
}

static int hooking_pre(struct kprobe *p, struct pt_regs *regs)
{
	struct rethook_node *n = rethook_try_get(rh);

	if (!n) {
		__atomic_fetch_add(&nones, 1, __ATOMIC_RELAXED);
		return 0;
	}
	((struct call *)n)->arg = regs_get_kernel_argument(regs, 0);
	assert_int_equal(rethook_hook(n, regs, true), 0);
	assert_int_equal(n->frame, kernel_stack_pointer(regs));
	return 0;
}

static struct kprobe kp;

static int reset(void **state)
{
	returns = nones = in_handler_hooks = 0;
	value = ret_addr = frame = new_value = 0;
	memset(order, 0, sizeof(order));
	return 0;
}

static void hook_at(const char *symbol, int num)
{
	rh = rethook_alloc(&returns, back, sizeof(struct call), num);
	if (IS_ERR(rh))
		fail_msg("%ld: %s", PTR_ERR(rh), ukp_kprobe_error());
	kp = (struct kprobe){ .symbol_name = symbol, .pre_handler = hooking_pre };
	register_ok(register_kprobe(&kp));
}

static void unhook(void)
{
	unregister_kprobe(&kp);
	rethook_free(rh);
}

static void errors_are_the_kernels(void **state)
{
	int size = sizeof(struct rethook_node);

	assert_int_equal(PTR_ERR(rethook_alloc(NULL, NULL, size, 1)), -EINVAL);
	assert_int_equal(PTR_ERR(rethook_alloc(NULL, back, size, 0)), -EINVAL);
	assert_int_equal(PTR_ERR(rethook_alloc(NULL, back, size, -1)), -EINVAL);
	assert_int_equal(PTR_ERR(rethook_alloc(NULL, back, size - 1, 1)), -EINVAL);
	assert_int_equal(PTR_ERR(rethook_alloc(NULL, back, size, (1 << 24) + 1)), -EINVAL);
	assert_true(IS_ERR(rethook_alloc(NULL, back, 65537, 1)));
	rh = rethook_alloc(NULL, back, size, 1);
	assert_false(IS_ERR_OR_NULL(rh));
	rethook_free(rh);
}

static void a_hooked_call_is_seen_at_its_return(void **state)
{
	hook_at("target", 3);
	assert_int_equal(target(6), 42);
	assert_int_equal(returns, 1);
	assert_int_equal(value, 42);
	assert_int_equal(arg_at_return, 6);
	assert_int_equal(ret_ip, ret_addr);
	new_value = 4711;
	assert_int_equal(target(6), 4711);
	unhook();
	assert_int_equal(target(6), 42);
	assert_int_equal(returns, 2);
}

static void nodes_run_out_and_come_back(void **state)
{
	struct rethook_node *n[3];
	int i, round;

	hook_at("target", 3);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 3; i++) {
			n[i] = rethook_try_get(rh);
			assert_non_null(n[i]);
			assert_ptr_equal(n[i]->rethook, rh);
		}
		assert_null(rethook_try_get(rh));
		assert_int_equal(target(1), 7);
		assert_int_equal(nones, round + 1);
		for (i = 0; i < 3; i++)
			rethook_recycle(n[i]);
	}
	for (i = 0; i < 100; i++)
		target(1);
	assert_int_equal(returns, 100);
	rethook_stop(rh);
	assert_null(rethook_try_get(rh));
	unhook();
}

TARGET unsigned long ends_its_own_hook(unsigned long a)
{
	unhook();
	return a + 1;
}

static void a_call_on_its_way_outlives_its_rethook(void **state)
{
	int i;

	for (i = 0; i < 100; i++) {
		hook_at("ends_its_own_hook", 2);
		assert_int_equal(ends_its_own_hook(5), 6);
	}
	assert_int_equal(returns, 0);
}

static void back2(struct rethook_node *n, void *data, unsigned long addr, struct pt_regs *regs)
{
	assert_ptr_equal(n->rethook, second_rh);
	assert_int_equal(instruction_pointer(regs), addr);
	assert_int_equal(n->ret_addr, addr);
	ret_addr = addr;
	note('2');
}

static int hook_second(struct pt_regs *regs)
{
	struct rethook_node *n = rethook_try_get(second_rh);

	assert_non_null(n);
	return rethook_hook(n, regs, true);
}

static int kret_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	return hook_second(regs);
}

static int kret_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	note('k');
	return 0;
}

/* The kretprobe's own hook was prepared before its handler hooked the same frame. */
static void several_hooks_share_a_frame(void **state)
{
	struct kretprobe rp = { .kp.symbol_name = "target",
		                .entry_handler = kret_entry,
		                .handler = kret_return };

	hook_at("target", 3);
	second_rh = rethook_alloc(NULL, back2, sizeof(struct rethook_node), 3);
	assert_false(IS_ERR(second_rh));
	register_ok(register_kretprobe(&rp));
	assert_int_equal(target(2), 14);
	/* Newest first: the kretprobe was registered last, and hooked in its handler first. */
	assert_string_equal(order, "rk2");
	assert_int_equal(target(2), 14);
	assert_string_equal(order, "rk2rk2");
	unregister_kretprobe(&rp);
	assert_int_equal(rp.nmissed, 0);
	assert_int_equal(target(2), 14);
	assert_string_equal(order, "rk2rk2r");
	unhook();
	rethook_free(second_rh);
}

/* --- walking stacks --------------------------------------------------------- */

static unsigned long (*volatile deeper)(unsigned long n);
static int trampolines;
static unsigned long recovered[16];

/* The way of an unwinder that goes by frame pointers. */
static void walk(void **fp, int depth)
{
	struct llist_node *cur = NULL;
	int i;

	for (i = 0; i < depth; i++, fp = *fp) {
		unsigned long addr = (unsigned long)fp[1];

		if (is_rethook_trampoline(addr)) {
			trampolines++;
			assert_true(is_kretprobe_trampoline(addr));
			addr = kretprobe_find_ret_addr(NULL, &fp[1], &cur);
			assert_non_null(cur);
			assert_int_equal(addr,
			                 rethook_find_ret_addr(NULL, (unsigned long)&fp[1], &cur));
		} else {
			assert_int_equal(kretprobe_find_ret_addr(NULL, &fp[1], &cur), 0);
		}
		recovered[i] = addr;
	}
}

TARGET unsigned long recursive(unsigned long n)
{
	void **fp = __builtin_frame_address(0);
	unsigned long r;

	if (!n) {
		walk(fp, 4);
		return 1;
	}
	r = deeper(n - 1);
	__asm__ volatile("" ::"r"(fp));
	return r + 1;
}

static bool is_in(unsigned long addr, const void *fn)
{
	return addr - (unsigned long)fn < 300;
}

static int walking_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct llist_node *cur = NULL;

	/* The frame itself is still to be recovered, from regs on the stack is plain. */
	assert_int_equal(kretprobe_find_ret_addr(NULL, ri->fp, &cur), instruction_pointer(regs));
	assert_true(is_in(instruction_pointer(regs), (void *)recursive) || returns == 3);
	returns++;
	return 0;
}

static void a_walk_by_frame_pointers_recovers_true_addresses(void **state)
{
	struct kretprobe rp = { .kp.symbol_name = "recursive", .handler = walking_return };
	struct llist_node *cur = NULL;
	unsigned long plain[4];

	deeper = recursive;
	trampolines = 0;
	assert_int_equal(recursive(3), 4);
	assert_int_equal(trampolines, 0);
	memcpy(plain, recovered, sizeof(plain));
	register_ok(register_kretprobe(&rp));
	assert_int_equal(deeper(3), 4);
	unregister_kretprobe(&rp);
	assert_int_equal(returns, 4);
	assert_int_equal(trampolines, 4);
	/* The outermost was called from another line. */
	assert_memory_equal(recovered, plain, 3 * sizeof(*plain));
	assert_true(is_in(recovered[0], (void *)recursive));
	assert_false(is_rethook_trampoline((unsigned long)target));
	assert_int_equal(rethook_find_ret_addr(NULL, (unsigned long)&plain[0], NULL), 0);
	assert_int_equal(rethook_find_ret_addr(NULL, (unsigned long)&plain[0], &cur), 0);
}

static void *frames[8];
static int nr_frames;

TARGET unsigned long looks_back(unsigned long n)
{
	unsigned long r;

	if (!n) {
		nr_frames = backtrace(frames, 8);
		return 1;
	}
	r = deeper(n - 1);
	__asm__ volatile("");
	return r + 1;
}

static int count_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	returns++;
	return 0;
}

static void backtrace_sees_through_nested_hooks(void **state)
{
	struct kretprobe rp = { .kp.symbol_name = "looks_back", .handler = count_return };
	void *plain[8];
	int i, n;

	deeper = looks_back;
	assert_int_equal(looks_back(3), 4);
	n = nr_frames;
	memcpy(plain, frames, sizeof(plain));
	register_ok(register_kretprobe(&rp));
	assert_int_equal(deeper(3), 4);
	unregister_kretprobe(&rp);
	assert_int_equal(nr_frames, n);
	assert_true(n >= 5);
	for (i = 0; i < 4; i++)
		assert_ptr_equal(frames[i], plain[i]);
	/* Those four calls were unwound: their returns are missed, and counted. */
	assert_int_equal(rp.nmissed + returns, 4);
}

/* nongnu's libunwind, without its headers: LLVM's have the same names. */
static int (*unw_getcontext)(void *context), (*unw_init_local)(void *cursor, void *context);
static int (*unw_step)(void *cursor), (*unw_get_reg)(void *cursor, int reg, uint64_t *value);

TARGET unsigned long steps(unsigned long n)
{
	static uint64_t context[512], cursor[512], ip;
	unsigned long r;

	if (!n) {
		nr_frames = 0;
		unw_getcontext(context);
		unw_init_local(cursor, context);
		while (nr_frames < 8 && unw_step(cursor) > 0 && !unw_get_reg(cursor, 16, &ip))
			frames[nr_frames++] = (void *)ip;
		return 1;
	}
	r = deeper(n - 1);
	__asm__ volatile("");
	return r + 1;
}

static void libunwind_sees_through_hooks(void **state)
{
	struct kretprobe rp = { .kp.symbol_name = "steps", .handler = count_return };
	void *lib = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL), *plain[8];
	int n;

	if (!lib) {
		print_message("skipped: there is no libunwind.so.8\n");
		skip();
	}
	*(void **)&unw_getcontext = dlsym(lib, "_Ux86_64_getcontext");
	*(void **)&unw_init_local = dlsym(lib, "_ULx86_64_init_local");
	*(void **)&unw_step = dlsym(lib, "_ULx86_64_step");
	*(void **)&unw_get_reg = dlsym(lib, "_ULx86_64_get_reg");
	assert_true(unw_getcontext && unw_init_local && unw_step && unw_get_reg);
	returns = 0;
	deeper = steps;
	assert_int_equal(deeper(3), 4);
	n = nr_frames;
	memcpy(plain, frames, sizeof(plain));
	assert_true(n >= 4);
	register_ok(register_kretprobe(&rp));
	assert_int_equal(deeper(3), 4);
	unregister_kretprobe(&rp);
	assert_int_equal(nr_frames, n);
	assert_memory_equal(frames, plain, 3 * sizeof(*plain));
	assert_int_equal(rp.nmissed + returns, 4);
}

/* --- calls that never return -------------------------------------------------- */

static jmp_buf out;

TARGET unsigned long leaves(unsigned long n)
{
	if (n)
		return deeper(n - 1) + 1;
	longjmp(out, 1);
}

static void flushing_frees_calls_that_were_jumped_over(void **state)
{
	volatile int i;

	deeper = leaves;
	hook_at("leaves", 4);
	for (i = 0; i < 50; i++) {
		if (!setjmp(out))
			leaves(3);
		rethook_flush_task(NULL);
	}
	assert_int_equal(nones, 0);
	for (i = 0; i < 2; i++)
		if (!setjmp(out))
			leaves(3);
	assert_int_equal(nones, 4);
	assert_int_equal(returns, 0);
	rethook_flush_task(NULL);
	unhook();
}

TARGET unsigned long flushes(unsigned long n)
{
	if (!n) {
		rethook_flush_task(NULL);
		return 1;
	}
	return deeper(n - 1) + 1;
}

static void *flush_in_thread(void *arg)
{
	return (void *)flushes(3);
}

static void flushed_calls_return_unreported(void **state)
{
	pthread_t t;
	void *ret;

	deeper = flushes;
	hook_at("flushes", 4);
	assert_int_equal(flushes(3), 4);
	assert_int_equal(pthread_create(&t, NULL, flush_in_thread, NULL), 0);
	pthread_join(t, &ret);
	assert_ptr_equal(ret, (void *)4);
	assert_int_equal(returns + nones, 0);
	assert_non_null(rethook_try_get(rh));
	unhook();
}

/* --- nesting, threads ------------------------------------------------------- */

static void calling_back(struct rethook_node *n, void *data, unsigned long addr,
                         struct pt_regs *regs)
{
	char text[64];

	/* Three levels, then the pool is empty. */
	returns++;
	value = target((unsigned long)returns);
	snprintf(text, sizeof(text), "%f", (double)value);
	errno = EXDEV;
}

static void a_handler_may_call_what_is_hooked(void **state)
{
	rh = rethook_alloc(NULL, calling_back, sizeof(struct call), 3);
	assert_false(IS_ERR(rh));
	kp = (struct kprobe){ .symbol_name = "target", .pre_handler = hooking_pre };
	register_ok(register_kprobe(&kp));
	errno = 0;
	assert_int_equal(target(6), 42);
	assert_int_equal(errno, 0);
	unhook();
	assert_int_equal(returns, 3);
	assert_int_equal(nones, 1);
}

enum { THREADS = 8, CALLS = 5000 };

static void *calls(void *arg)
{
	unsigned long i;

	for (i = 0; i < CALLS; i++)
		if (target(i) != i * 7)
			abort();
	return NULL;
}

static void threads_lose_no_return(void **state)
{
	pthread_t t[THREADS];
	int i;

	/* Handlers of one call at a time: a node a thread is enough. */
	hook_at("target", THREADS);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, calls, NULL), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(returns + nones, THREADS * CALLS);
	assert_true(returns > THREADS * CALLS / 2);
	for (i = 0; i < THREADS; i++)
		assert_non_null(rethook_try_get(rh));
	assert_null(rethook_try_get(rh));
	unhook();
}

#define T(name) cmocka_unit_test_setup_teardown(name, reset, untouched)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(errors_are_the_kernels),
		T(a_hooked_call_is_seen_at_its_return),
		T(nodes_run_out_and_come_back),
		T(a_call_on_its_way_outlives_its_rethook),
		T(several_hooks_share_a_frame),
		T(a_walk_by_frame_pointers_recovers_true_addresses),
		T(backtrace_sees_through_nested_hooks),
		T(libunwind_sees_through_hooks),
		T(flushing_frees_calls_that_were_jumped_over),
		T(flushed_calls_return_unreported),
		T(a_handler_may_call_what_is_hooked),
		T(threads_lose_no_return),
	};

	return run_in_both_forms(tests);
}
