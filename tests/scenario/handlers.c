/* SPDX-License-Identifier: MIT */
/*
 * Handlers at function entries and returns are plain C: they allocate, print
 * and take locks, also when what they are called from is malloc() itself.
 */

#include <ukprobes/fprobe.h>

#include "scenario.h"

enum { THREADS = 6, CALLS = 250 };

static __thread bool mine; /* the test's own calls, not libc's */
static unsigned long pre_hits, entry_hits, ret_hits, fentry_hits, fexit_hits, failures;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long locked;
static FILE *out;

TARGET unsigned long target(unsigned long a)
{
	__asm__ volatile("");
	return a + 3;
}

/* Small blocks and large ones, of the thread's cache, of an arena, of mmap. */
static void allocate(void)
{
	static const size_t sizes[] = { 24, 1000, 5000, 200000 };
	char *p[4];
	int i;

	for (i = 0; i < 4; i++) {
		p[i] = malloc(sizes[i]);
		if (p[i])
			memset(p[i], i, 24);
		else
			__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
	}
	for (i = 0; i < 4; i++) {
		if (p[i] && p[i][23] != i)
			__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
		free(p[i]);
	}
}

static void print_and_lock(void)
{
	fprintf(out, "%f %s %d\n", 1.5 * (double)locked, "text", 7);
	pthread_mutex_lock(&lock);
	locked++;
	pthread_mutex_unlock(&lock);
}

/* What handlers call is not the test's own. */
static void handle(unsigned long *n)
{
	bool own = mine;

	mine = false;
	if (own)
		__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
	allocate();
	print_and_lock();
	mine = own;
}

static int pre(struct kprobe *p, struct pt_regs *regs)
{
	handle(&pre_hits);
	return 0;
}

static int on_call(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	handle(&entry_hits);
	return 0;
}

static int on_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	handle(&ret_hits);
	return 0;
}

static int on_fentry(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                     struct pt_regs *regs, void *data)
{
	handle(&fentry_hits);
	return 0;
}

static void on_fexit(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                     struct pt_regs *regs, void *data)
{
	handle(&fexit_hits);
}

static int reset(void **state)
{
	pre_hits = entry_hits = ret_hits = fentry_hits = fexit_hits = failures = locked = 0;
	rewind(out);
	return 0;
}

static struct kprobe kp;
static struct kretprobe rp;
static struct fprobe fp;

static void plant_all(const char *symbol, unsigned int flags)
{
	kp = (struct kprobe){ .symbol_name = symbol, .pre_handler = pre };
	rp = (struct kretprobe){ .kp.symbol_name = symbol,
		                 .entry_handler = on_call,
		                 .handler = on_return };
	fp = (struct fprobe){ .entry_handler = on_fentry,
		              .exit_handler = on_fexit,
		              .flags = flags };
	register_ok(register_kprobe(&kp));
	register_ok(register_kretprobe(&rp));
	register_ok(register_fprobe_syms(&fp, &symbol, 1));
}

static void remove_all(void)
{
	unregister_kprobe(&kp);
	unregister_kretprobe(&rp);
	assert_int_equal(unregister_fprobe(&fp), 0);
}

static void each_was_handled(unsigned long n)
{
	assert_int_equal(pre_hits, n);
	assert_int_equal(entry_hits, n);
	assert_int_equal(ret_hits, n);
	assert_int_equal(fentry_hits, n);
	assert_int_equal(fexit_hits, n);
	assert_int_equal(failures, 0);
}

static void *call_target(void *arg)
{
	unsigned long i;

	mine = true;
	for (i = 0; i < CALLS; i++)
		if (target(i) != i + 3)
			abort();
	mine = false;
	return NULL;
}

static void handlers_allocate_print_and_lock(void **state)
{
	plant_all("target", 0);
	run_threads(THREADS, call_target);
	remove_all();
	each_was_handled(THREADS * CALLS);
	assert_int_equal(locked, 5 * THREADS * CALLS);
	assert_int_equal(kp.nmissed + rp.kp.nmissed + fp.nmissed, 0);
	assert_int_equal(rp.nmissed, 0);
}

static void *call_malloc(void *arg)
{
	void *(*volatile get)(size_t n) = malloc;
	size_t i, k;

	for (i = 0; i < CALLS; i++) {
		size_t size = 16 + i % 70 * 40 + (i % 50 ? 0 : 300000);
		unsigned char *p;

		mine = true;
		p = get(size);
		mine = false;
		memset(p, (int)i, size);
		for (k = 0; k < size; k += 97)
			if (p[k] != (unsigned char)i)
				abort();
		free(p);
	}
	return NULL;
}

/* What their handlers allocate is a miss of the same kind: four blocks a handler. */
static void handlers_of_malloc_may_call_malloc(void **state)
{
	unsigned long n = THREADS * CALLS;

	plant_all("malloc", 0);
	run_threads(THREADS, call_malloc);
	remove_all();
	each_was_handled(n);
	assert_true(kp.nmissed >= 4 * n);
	assert_true(fp.nmissed >= 4 * n);
	assert_int_equal(rp.nmissed, 0);
}

static void *call_free(void *arg)
{
	void (*volatile give)(void *p) = free;
	int i;

	for (i = 0; i < CALLS; i++) {
		void *p = malloc((size_t)(16 + i % 70 * 40));

		memset(p, i, 16);
		mine = true;
		give(p);
		mine = false;
	}
	return NULL;
}

static void handlers_of_free_may_call_free(void **state)
{
	unsigned long n = THREADS * CALLS;

	plant_all("free", 0);
	run_threads(THREADS, call_free);
	remove_all();
	each_was_handled(n);
	assert_true(kp.nmissed >= 4 * n);
	assert_int_equal(rp.nmissed, 0);
}

static void *call_lock(void *arg)
{
	static pthread_mutex_t another = PTHREAD_MUTEX_INITIALIZER;
	int i;

	for (i = 0; i < CALLS; i++) {
		mine = true;
		pthread_mutex_lock(&another);
		mine = false;
		pthread_mutex_unlock(&another);
	}
	return NULL;
}

/*
 * At its return, the lock is held; what a handler locks is another one.  That
 * other one's return must not be handled in turn: so fprobes share the kprobes'
 * recursion here.
 */
static void handlers_of_a_lock_may_lock(void **state)
{
	unsigned long n = THREADS * CALLS;

	plant_all("pthread_mutex_lock", FPROBE_FL_KPROBE_SHARED);
	run_threads(THREADS, call_lock);
	remove_all();
	each_was_handled(n);
	assert_true(kp.nmissed >= n);
	assert_int_equal(rp.nmissed, 0);
}

static unsigned long unlocks, last_unlock;

static int leave_at_last(struct kprobe *p, struct pt_regs *regs)
{
	if (__atomic_add_fetch(&unlocks, 1, __ATOMIC_SEQ_CST) == last_unlock)
		unregister_kprobe(p);
	return 0;
}

/* Also when the hit that does it is that of the library's own unlocking, while it registers. */
static void handlers_of_an_unlock_may_unregister(void **state)
{
	static struct kprobe leaving = { .pre_handler = leave_at_last };
	unsigned long n, seen;
	int i;

	for (n = 1; n <= 12; n++) {
		leaving.addr = NULL;
		leaving.flags = 0;
		leaving.symbol_name = "pthread_mutex_unlock";
		unlocks = 0;
		last_unlock = n;
		register_ok(register_kprobe(&leaving));
		for (i = 0; i < 12; i++) {
			pthread_mutex_lock(&lock);
			pthread_mutex_unlock(&lock);
		}
		seen = unlocks;
		assert_true(seen >= n);
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
		assert_int_equal(unlocks, seen);
		/* Inside a registration it could only be made still. */
		unregister_kprobe(&leaving);
	}
}

/*
 * Inside malloc() its locks may be held.  What it calls is not for others to
 * call, and refused: with debug symbols by name, without them by place.
 */
static void what_malloc_calls_is_refused(void **state)
{
	const unsigned char *code = (const unsigned char *)(void *)malloc;
	struct kprobe internal = { .symbol_name = "_int_malloc", .pre_handler = pre };
	int ret = register_kprobe(&internal), i, refused = 0;

	assert_true(ret == -ENOENT || ret == -EINVAL);
	for (i = 0; i < 200; i++) {
		struct kprobe called = { .pre_handler = pre };
		int rel;

		if (code[i] != 0xe8)
			continue;
		memcpy(&rel, code + i + 1, 4);
		called.addr = (kprobe_opcode_t *)code + i + 5 + rel;
		ret = register_kprobe(&called);
		if (!ret)
			unregister_kprobe(&called);
		else
			refused += ret == -EINVAL;
	}
	assert_true(refused > 0);
	call_malloc(NULL);
	assert_int_equal(pre_hits, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, reset, untouched)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(handlers_allocate_print_and_lock),     T(handlers_of_malloc_may_call_malloc),
		T(handlers_of_free_may_call_free),       T(handlers_of_a_lock_may_lock),
		T(handlers_of_an_unlock_may_unregister), T(what_malloc_calls_is_refused),
	};

	out = tmpfile();
	if (!out)
		return 1;
	return run_in_both_forms(tests);
}
