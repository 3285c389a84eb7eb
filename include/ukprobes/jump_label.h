/* SPDX-License-Identifier: MIT */
/*
 * Static keys: branches that cost nothing while they aren't taken.
 *
 *	DEFINE_STATIC_KEY_FALSE(tracing);		at file scope
 *
 *	if (static_branch_unlikely(&tracing))		a 5-byte nop, no load, no test
 *		trace();
 *	...
 *	static_branch_enable(&tracing);			now a jump, in all threads
 *
 * Follows include/linux/jump_label.h of Linux 6.12.  What differs is marked "here:".
 *
 * A test of a key is a nop or a jmp of five bytes, whichever is right for the
 * key's state; a change rewrites all tests of the key in the running process:
 * int3 first, then the tail, then the head, with all cores serialised after each
 * step.  A key may be defined in one shared object and tested in others, also in
 * such that are loaded later: each object registers its tests when it is loaded.
 *
 * Ownership: the caller owns the keys.  A key must live as long as the objects
 * that test it.
 *
 * Errors: here, what is void in the kernel gives 0 or a negative errno, and on
 * failure key and code stay as they were; ukp_kprobe_error()
 * (<ukprobes/kprobes.h>) has the sentence.
 *
 *	-EINVAL	    enabling a key that is counted above 1, disabling one that is,
 *		    decrementing one at 0 (the kernel warns); code that isn't as it
 *		    was left
 *	-EBUSY	    called from a probe handler; SIGTRAP is handled or blocked by the
 *		    program
 *	-EOPNOTSUPP	a forked child of a process with probes
 *	-ENOMEM, -ENOSPC
 *
 * Context: testing, reading and static_key_fast_inc_not_disabled(): any.
 * Changing a key may sleep, allocate and take locks; no signal handler and no
 * probe handler should do it.  A process with more than one thread has its
 * signals taken by the first change, as by the first probe.
 *
 * Probes on a test are refused.
 *
 * Here: a test of a key must name it by a constant expression, as in the kernel;
 * in C++ with -fPIC the inline functions and templates that test keys must have
 * hidden visibility, too (-fvisibility=hidden or the attribute).
 */
#ifndef UKPROBES_JUMP_LABEL_H
#define UKPROBES_JUMP_LABEL_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define JUMP_LABEL_NOP_SIZE 5

struct static_key {
	int enabled; /* how often; -1: while the first one rewrites code */
	unsigned int ukp_reserved;
};

struct static_key_false {
	struct static_key key;
};

#ifdef __cplusplus
struct static_key_true {
	struct static_key key = { 1, 0 };
};
#else
struct static_key_true {
	struct static_key key;
};
#endif

/* A test: offsets from the fields' own addresses. */
struct jump_entry {
	int code;
	int target;
	int key;   /* of a pointer to it */
	int flags; /* 1: a jmp while the key is off */
};

/* How many enable it; while the first one does, 1. */
static inline int static_key_count(struct static_key *key)
{
	int n = __atomic_load_n(&key->enabled, __ATOMIC_RELAXED);

	return n >= 0 ? n : 1;
}

/* 0 to 1, 1 to 0; nothing to do is no error. */
int static_key_enable(struct static_key *key);
int static_key_disable(struct static_key *key);
/* One more; false: too many, or the code could not be changed. */
bool static_key_slow_inc(struct static_key *key);
/* One more, if it is on: no code changes, so any context.  False: it is off. */
bool static_key_fast_inc_not_disabled(struct static_key *key);
/* One less; the last one changes the code. */
int static_key_slow_dec(struct static_key *key);

/*
 * The last one of a key that is switched often: off after timeout at the
 * earliest, unless somebody has counted it up again.  Here: timeouts are
 * milliseconds; a thread of the library's does it, which is there while something
 * is due.
 */
struct ukp_deferred {
	struct ukp_deferred *ukp_next;
	struct static_key *ukp_key;
	unsigned long long ukp_due; /* 0: nothing is */
};

struct static_key_deferred {
	struct static_key key;
	unsigned long timeout;
	struct ukp_deferred work;
};

struct static_key_true_deferred {
	struct static_key_true key;
	unsigned long timeout;
	struct ukp_deferred work;
};

struct static_key_false_deferred {
	struct static_key_false key;
	unsigned long timeout;
	struct ukp_deferred work;
};

int ukp_static_key_dec_deferred(struct static_key *key, struct ukp_deferred *work,
                                unsigned long timeout);
/* What is due is done now. */
int ukp_static_key_flush(struct ukp_deferred *work);

static inline void jump_label_rate_limit(struct static_key_deferred *key, unsigned long rl)
{
	key->timeout = rl;
}

#define static_key_slow_dec_deferred(x) \
	ukp_static_key_dec_deferred(&(x)->key, &(x)->work, (x)->timeout)
#define static_branch_slow_dec_deferred(x) \
	ukp_static_key_dec_deferred(&(x)->key.key, &(x)->work, (x)->timeout)
#define static_key_deferred_flush(x) ukp_static_key_flush(&(x)->work)
#define static_branch_deferred_inc(x) static_branch_inc(&(x)->key)

/* Whether a test has a byte in [start, end], end included: 1, or 0. */
int jump_label_text_reserved(void *start, void *end);

/* What objects call when they are loaded and unloaded, by the code below. */
void ukp_jump_label_add(struct jump_entry *start, struct jump_entry *stop);
void ukp_jump_label_remove(struct jump_entry *start);

#pragma GCC visibility pop

/* --- keys ----------------------------------------------------------------------- */

#define STATIC_KEY_INIT_TRUE \
	{                    \
		1, 0         \
	}
#define STATIC_KEY_INIT_FALSE \
	{                     \
		0, 0          \
	}
#define STATIC_KEY_INIT STATIC_KEY_INIT_FALSE

#define DECLARE_STATIC_KEY_TRUE(name) extern struct static_key_true name
#define DECLARE_STATIC_KEY_FALSE(name) extern struct static_key_false name
#define DEFINE_STATIC_KEY_FALSE(name) struct static_key_false name = { { 0, 0 } }
#define DEFINE_STATIC_KEY_ARRAY_FALSE(name, count) \
	struct static_key_false name[count] = { { { 0, 0 } } }
#ifdef __cplusplus
#define DEFINE_STATIC_KEY_TRUE(name) struct static_key_true name
#define DEFINE_STATIC_KEY_ARRAY_TRUE(name, count) struct static_key_true name[count]
#else
#define DEFINE_STATIC_KEY_TRUE(name) struct static_key_true name = { { 1, 0 } }
#define DEFINE_STATIC_KEY_ARRAY_TRUE(name, count) \
	struct static_key_true name[count] = { [0 ...(count) - 1] = { { 1, 0 } } }
#endif
#ifdef __cplusplus
#define DEFINE_STATIC_KEY_DEFERRED_TRUE(name, rl) \
	struct static_key_true_deferred name = { {}, (rl), { NULL, NULL, 0 } }
#else
#define DEFINE_STATIC_KEY_DEFERRED_TRUE(name, rl) \
	struct static_key_true_deferred name = { { { 1, 0 } }, (rl), { NULL, NULL, 0 } }
#endif
#define DEFINE_STATIC_KEY_DEFERRED_FALSE(name, rl) \
	struct static_key_false_deferred name = { { { 0, 0 } }, (rl), { NULL, NULL, 0 } }
/* Here: no memory becomes read-only. */
#define DEFINE_STATIC_KEY_TRUE_RO(name) DEFINE_STATIC_KEY_TRUE(name)
#define DEFINE_STATIC_KEY_FALSE_RO(name) DEFINE_STATIC_KEY_FALSE(name)

/* Whether a macro is defined as 1. */
#ifndef IS_ENABLED
#define UKP_PLACE_1 0,
#define UKP_SECOND(ignored, value, ...) value
#define UKP_IS_ONE(placed) UKP_SECOND(placed 1, 0, 0)
#define UKP_IS_SET(value) UKP_IS_ONE(UKP_PLACE_##value)
#define IS_ENABLED(option) UKP_IS_SET(option)
#endif
#define UKP_PASTE(a, b) UKP_PASTE_(a, b)
#define UKP_PASTE_(a, b) a##b

#define UKP_DEFINE_KEY_1(name) DEFINE_STATIC_KEY_TRUE(name)
#define UKP_DEFINE_KEY_0(name) DEFINE_STATIC_KEY_FALSE(name)
#define UKP_DECLARE_KEY_1(name) DECLARE_STATIC_KEY_TRUE(name)
#define UKP_DECLARE_KEY_0(name) DECLARE_STATIC_KEY_FALSE(name)
#define DEFINE_STATIC_KEY_MAYBE(cfg, name) UKP_PASTE(UKP_DEFINE_KEY_, IS_ENABLED(cfg))(name)
#define DEFINE_STATIC_KEY_MAYBE_RO(cfg, name) DEFINE_STATIC_KEY_MAYBE(cfg, name)
#define DECLARE_STATIC_KEY_MAYBE(cfg, name) UKP_PASTE(UKP_DECLARE_KEY_, IS_ENABLED(cfg))(name)

/* --- tests ------------------------------------------------------------------------ */

/* clang-format off */
/*
 * branch: the key's state for which the test is a nop; jmp: whether it starts as
 * a jmp.  The pointer lets the entry refer to a key of another object.
 */
#define UKP_STATIC_BRANCH(keyp, branch, jmp)                                          \
	__extension__({                                                               \
		__label__ ukp_taken, ukp_end;                                         \
		static struct static_key *const ukp_key = (keyp);                     \
		bool ukp_result;                                                      \
		__asm__ goto("1:\n\t"                                                 \
		             ".if %c2\n\t"                                            \
		             ".byte 0xe9\n\t"                                         \
		             ".long %l[ukp_taken] - 1b - 5\n\t"                       \
		             ".else\n\t"                                              \
		             ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\t"                 \
		             ".endif\n\t"                                             \
		             ".pushsection ukp_jump_table, \"aw?\", @progbits\n\t"    \
		             ".p2align 2\n\t"                                         \
		             ".long 1b - .\n\t"                                       \
		             ".long %l[ukp_taken] - .\n\t"                            \
		             ".long %c0 - .\n\t"                                      \
		             ".long %c1\n\t"                                          \
		             ".popsection"                                            \
		             :                                                        \
		             : "i"(&ukp_key), "i"(branch), "i"(jmp)                   \
		             :                                                        \
		             : ukp_taken);                                            \
		ukp_result = false;                                                   \
		goto ukp_end;                                                         \
	ukp_taken:                                                                    \
		ukp_result = true;                                                    \
	ukp_end:                                                                      \
		ukp_result;                                                           \
	})
/* clang-format on */

#ifdef __cplusplus
} /* extern "C" */
template <class T> struct ukp_static_key_starts;
template <> struct ukp_static_key_starts<struct static_key_true *> {
	static constexpr int on = 1;
};
template <> struct ukp_static_key_starts<struct static_key_false *> {
	static constexpr int on = 0;
};
extern "C" {
#define UKP_STARTS_ON(x) ukp_static_key_starts<decltype(x)>::on
#define UKP_AS_KEY(x) (&(x)->key)
#else
/* Anything but the two kinds of keys is an error. */
#define UKP_STARTS_ON(x) _Generic((x), struct static_key_true * : 1, struct static_key_false * : 0)
#define UKP_AS_KEY(x) (&(x)->key)
#endif

#define static_branch_likely(x) \
	__builtin_expect(!UKP_STATIC_BRANCH(UKP_AS_KEY(x), 1, !UKP_STARTS_ON(x)), 1)
#define static_branch_unlikely(x) \
	__builtin_expect(UKP_STATIC_BRANCH(UKP_AS_KEY(x), 0, UKP_STARTS_ON(x)), 0)
/* By the macro of the configuration that the key was defined with. */
#define static_branch_maybe(config, x) \
	(IS_ENABLED(config) ? static_branch_likely(x) : static_branch_unlikely(x))

#define static_branch_enable(x) static_key_enable(UKP_AS_KEY(x))
#define static_branch_disable(x) static_key_disable(UKP_AS_KEY(x))
#define static_branch_inc(x) static_key_slow_inc(UKP_AS_KEY(x))
#define static_branch_dec(x) static_key_slow_dec(UKP_AS_KEY(x))

/* The older kind: a bare struct static_key, which starts off (true: or on). */
#define static_key_false(keyp) __builtin_expect(UKP_STATIC_BRANCH((keyp), 0, 0), 0)
#define static_key_true(keyp) __builtin_expect(!UKP_STATIC_BRANCH((keyp), 1, 0), 1)

/* Of any of the three. */
#ifdef __cplusplus
} /* extern "C" */
static inline bool static_key_enabled(struct static_key *key)
{
	return static_key_count(key) > 0;
}
static inline bool static_key_enabled(struct static_key_true *key)
{
	return static_key_count(&key->key) > 0;
}
static inline bool static_key_enabled(struct static_key_false *key)
{
	return static_key_count(&key->key) > 0;
}
extern "C" {
#else
#define static_key_enabled(x)                                               \
	(static_key_count(_Generic((x), struct static_key *                 \
	                           : (x), struct static_key_true *          \
	                           : (void *)(x), struct static_key_false * \
	                           : (void *)(x))) > 0)
#endif

/* --- this object's tests ------------------------------------------------------------ */

extern struct jump_entry __start_ukp_jump_table __attribute__((weak, visibility("hidden")));
extern struct jump_entry __stop_ukp_jump_table __attribute__((weak, visibility("hidden")));

/* Counts once for an object, however many files of it include this. */
static void __attribute__((constructor(101), used)) ukp_jump_label_load(void)
{
	ukp_jump_label_add(&__start_ukp_jump_table, &__stop_ukp_jump_table);
}

static void __attribute__((destructor(101), used)) ukp_jump_label_unload(void)
{
	ukp_jump_label_remove(&__start_ukp_jump_table);
}

#ifdef __cplusplus
}
#endif

#endif
