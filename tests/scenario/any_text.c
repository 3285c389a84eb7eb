/* SPDX-License-Identifier: MIT */
/* Probes in code that the program makes, and makes again (UKP_ANY_TEXT). */
#include "scenario.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define PAGE 4096

typedef int (*fn)(int);

/* push %rbp; mov %rsp,%rbp; mov $5,%eax; add %edi,%eax; pop %rbp; ret */
static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0xb8, 5, 0, 0, 0, 0x01, 0xf8, 0x5d, 0xc3 };
/* lea 9(%rdi),%eax; nops; ret */
static const uint8_t anew[] = { 0x8d, 0x87, 9, 0, 0, 0, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3 };

#define MOV 4
#define OPERAND 5

static unsigned int hits, posts;

static int pre(struct kprobe *p, struct pt_regs *regs)
{
	hits++;
	return 0;
}

static void post(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
	posts++;
}

static uint8_t *page(int prot, int flags)
{
	uint8_t *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	memcpy(p, code, sizeof(code));
	mprotect(p, PAGE, prot);
	return p;
}

static void rewrite(uint8_t *p, int prot, size_t off, const void *bytes, size_t len)
{
	mprotect(p, PAGE, PROT_READ | PROT_WRITE);
	memcpy(p + off, bytes, len);
	mprotect(p, PAGE, prot);
}

static int call(const uint8_t *p, int i)
{
	return ((fn)(uintptr_t)p)(i);
}

static void it_has_to_be_asked_for(void **state)
{
	uint8_t *p = page(PROT_READ | PROT_EXEC, MAP_PRIVATE);
	uint8_t *shared = page(PROT_READ | PROT_EXEC, MAP_SHARED);
	struct kprobe kp = { .addr = p, .pre_handler = pre };
	struct kretprobe rp = { .kp = { .addr = p, .flags = UKP_ANY_TEXT } };

	assert_int_not_equal(register_kprobe(&kp), 0);
	kp.flags = UKP_ANY_TEXT;
	kp.addr = shared;
	assert_int_not_equal(register_kprobe(&kp), 0);
	assert_int_not_equal(register_kretprobe(&rp), 0);
	assert_memory_equal(p, code, sizeof(code));
	munmap(p, PAGE);
	munmap(shared, PAGE);
}

static void hits_and_post_handlers_are_as_elsewhere(void **state)
{
	const int prots[] = { PROT_READ | PROT_EXEC, PROT_READ | PROT_WRITE | PROT_EXEC };

	for (size_t i = 0; i < 2; i++) {
		uint8_t *p = page(prots[i], MAP_PRIVATE);
		struct kprobe entry = { .addr = p, .pre_handler = pre, .flags = UKP_ANY_TEXT };
		struct kprobe inner = { .addr = p,
			                .offset = MOV,
			                .pre_handler = pre,
			                .post_handler = post,
			                .flags = UKP_ANY_TEXT };
		char why[256];

		hits = posts = 0;
		register_ok(register_kprobe(&entry));
		register_ok(register_kprobe(&inner));
		assert_int_equal(ukp_kprobe_form(&entry, why, sizeof(why)), 0);
		if (in_jumps)
			assert_string_equal(why, "its program may rewrite it");
		for (int k = 0; k < 10; k++)
			assert_int_equal(call(p, k), k + 5);
		assert_int_equal(hits, 20);
		assert_int_equal(posts, 10);
		unregister_kprobe(&inner);
		unregister_kprobe(&entry);
		assert_memory_equal(p, code, sizeof(code));
		assert_int_equal(call(p, 1), 6);
		assert_int_equal(hits, 20);
		munmap(p, PAGE);
	}
}

static void what_is_patched_runs_as_it_is(void **state)
{
	const int prots[] = { PROT_READ | PROT_EXEC, PROT_READ | PROT_WRITE | PROT_EXEC };

	for (size_t i = 0; i < 2; i++) {
		uint8_t *p = page(prots[i], MAP_PRIVATE), seven = 7;
		struct kprobe kp = { .addr = p + MOV, .pre_handler = pre, .flags = UKP_ANY_TEXT };
		struct kprobe next = kp;

		hits = 0;
		register_ok(register_kprobe(&kp));
		assert_int_equal(call(p, 1), 6);
		rewrite(p, prots[i], OPERAND, &seven, 1);
		assert_int_equal(call(p, 1), 8);
		assert_int_equal(hits, 1);
		/* Of the code as it is now. */
		register_ok(register_kprobe(&next));
		assert_int_equal(call(p, 1), 8);
		assert_int_equal(hits, 2);
		assert_true(kp.flags & KPROBE_FLAG_GONE);
		unregister_kprobe(&kp);
		unregister_kprobe(&next);
		assert_int_equal(p[MOV], 0xb8);
		assert_int_equal(call(p, 1), 8);
		munmap(p, PAGE);
	}
}

/* No file can be opened any more, or can be again. */
static void set_files(bool any)
{
	static struct rlimit normal;
	struct rlimit none;

	if (!any)
		assert_false(getrlimit(RLIMIT_NOFILE, &normal));
	none = (struct rlimit){ 0, normal.rlim_max };
	assert_false(setrlimit(RLIMIT_NOFILE, any ? &normal : &none));
}

/* The thread blocks what a fault would raise; the page's protection is not what it was. */
static void what_is_patched_runs_where_no_fault_may_be(void **state)
{
	const int rx = PROT_READ | PROT_EXEC, rwx = rx | PROT_WRITE;
	const int prots[][2] = { { rx, rx }, { rwx, rwx }, { rx, rwx }, { rwx, rx } };

	for (size_t i = 0; i < 8; i++) {
		uint8_t *p = page(prots[i / 2][0], MAP_PRIVATE), seven = 7;
		struct kprobe kp = { .addr = p + MOV, .pre_handler = pre, .flags = UKP_ANY_TEXT };
		sigset_t faults, old, now;

		sigemptyset(&faults);
		sigaddset(&faults, SIGSEGV);
		sigaddset(&faults, SIGBUS);
		hits = 0;
		register_ok(register_kprobe(&kp));
		rewrite(p, prots[i / 2][1], OPERAND, &seven, 1);
		if (i % 2)
			set_files(false);
		pthread_sigmask(SIG_BLOCK, &faults, &old);
		assert_int_equal(call(p, 1), 8);
		pthread_sigmask(SIG_SETMASK, &old, &now);
		if (i % 2)
			set_files(true);
		assert_true(sigismember(&now, SIGSEGV) && sigismember(&now, SIGBUS));
		assert_int_equal(hits, 0);
		assert_int_equal(p[MOV], 0xb8);
		/* As the program has made it. */
		if (prots[i / 2][1] & PROT_WRITE)
			p[OPERAND] = 9;
		assert_int_equal(call(p, 1), prots[i / 2][1] & PROT_WRITE ? 10 : 8);
		unregister_kprobe(&kp);
		munmap(p, PAGE);
	}
}

static void what_is_rewritten_or_unmapped_is_left_alone(void **state)
{
	const int prot = PROT_READ | PROT_WRITE | PROT_EXEC;
	uint8_t *p = page(prot, MAP_PRIVATE), *q = page(prot, MAP_PRIVATE);
	struct kprobe kp = { .addr = p, .pre_handler = pre, .flags = UKP_ANY_TEXT };
	struct kprobe kq = { .addr = q, .pre_handler = pre, .flags = UKP_ANY_TEXT };
	uint8_t other[64];

	hits = 0;
	register_ok(register_kprobe(&kp));
	register_ok(register_kprobe(&kq));
	rewrite(p, prot, 0, anew, sizeof(anew));
	assert_int_equal(call(p, 1), 10);
	munmap(q, PAGE);
	assert_ptr_equal(mmap(q, PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), q);
	memset(other, 0xcc, sizeof(other));
	memcpy(q, other, sizeof(other));
	unregister_kprobe(&kp);
	unregister_kprobe(&kq);
	assert_memory_equal(p, anew, sizeof(anew));
	assert_memory_equal(q, other, sizeof(other));
	assert_int_equal(hits, 0);
	munmap(p, PAGE);
	/* What isn't mapped. */
	kq.addr = q;
	memcpy(q, code, sizeof(code));
	register_ok(register_kprobe(&kq));
	assert_int_equal(call(q, 1), 6);
	munmap(q, PAGE);
	unregister_kprobe(&kq);
	text_is_as_in_the_file();
}

static void other_code_that_begins_alike_is_other_code(void **state)
{
	const int prot = PROT_READ | PROT_WRITE | PROT_EXEC;
	/* push %rbp; lea 9(%rdi),%eax; pop %rbp; ret */
	static const uint8_t alike[] = { 0x55, 0x8d, 0x87, 9,    0,    0,   0,
		                         0x5d, 0xc3, 0x90, 0x90, 0x90, 0x90 };
	uint8_t *p = page(prot, MAP_PRIVATE);
	struct kprobe kp = { .addr = p, .pre_handler = pre, .flags = UKP_ANY_TEXT };

	hits = 0;
	register_ok(register_kprobe(&kp));
	assert_int_equal(call(p, 1), 6);
	unregister_kprobe(&kp);
	rewrite(p, prot, 0, alike, sizeof(alike));
	register_ok(register_kprobe(&kp));
	assert_int_equal(call(p, 1), 10);
	assert_int_equal(hits, 2);
	unregister_kprobe(&kp);
	assert_memory_equal(p, alike, sizeof(alike));
	munmap(p, PAGE);
}

static uint8_t *churned;
static bool churning;

/* Writes one and the other, for ever; each must be what it has written when it calls it. */
static void *churn(void *arg)
{
	long wrong = 0;

	for (int i = 0; __atomic_load_n(&churning, __ATOMIC_RELAXED); i++) {
		memcpy(churned, i % 2 ? anew : code, sizeof(code));
		for (int k = 0; k < 20; k++)
			wrong += call(churned, i) != i + (i % 2 ? 9 : 5);
	}
	return (void *)wrong;
}

static void what_is_being_rewritten_is_not_hit_by_a_change_of_ours(void **state)
{
	unsigned int planted = 0;
	pthread_t t;
	void *wrong;

	hits = 0;
	churned = page(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE);
	churning = true;
	assert_int_equal(pthread_create(&t, NULL, churn, NULL), 0);
	/* Where there is one CPU to be had the writer may see no probe for a while. */
	for (int i = 0; i < 200 || (i < 100000 && !(planted && hits)); i++) {
		struct kprobe kp = { .addr = churned, .pre_handler = pre, .flags = UKP_ANY_TEXT };

		if (register_kprobe(&kp))
			continue;
		planted++;
		unregister_kprobe(&kp);
	}
	__atomic_store_n(&churning, false, __ATOMIC_RELAXED);
	pthread_join(t, &wrong);
	assert_null(wrong);
	assert_true(planted);
	assert_int_not_equal(hits, 0);
	munmap(churned, PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_has_to_be_asked_for),
		cmocka_unit_test(hits_and_post_handlers_are_as_elsewhere),
		cmocka_unit_test(what_is_patched_runs_as_it_is),
		cmocka_unit_test(what_is_patched_runs_where_no_fault_may_be),
		cmocka_unit_test(what_is_rewritten_or_unmapped_is_left_alone),
		cmocka_unit_test(other_code_that_begins_alike_is_other_code),
		cmocka_unit_test(what_is_being_rewritten_is_not_hit_by_a_change_of_ours),
	};

	return run_in_both_forms(tests);
}
