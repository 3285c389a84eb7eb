/* SPDX-License-Identifier: MIT */
/*
 * What the scenarios share: programs that use the installed library as anyone
 * would.  Every test ends in text_is_as_in_the_file().
 */
#ifndef UKP_TESTS_SCENARIO_H
#define UKP_TESTS_SCENARIO_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <ukprobes/kprobes.h>

#define TARGET static __attribute__((noinline, noclone, noipa, used))
#ifdef __clang__
#undef TARGET
#define TARGET static __attribute__((noinline, used, optnone))
#endif

/* What is registered here is to be in the jump form, where it can. */
static bool in_jumps;

#define register_ok(call)                                                        \
	do {                                                                     \
		int ret_ = (call);                                               \
		if (ret_)                                                        \
			fail_msg("%s: %d: %s", #call, ret_, ukp_kprobe_error()); \
		if (in_jumps)                                                    \
			wait_for_kprobe_optimizer();                             \
	} while (0)

/* All tests with breakpoints alone, and all with jumps. */
#define run_in_both_forms(tests)                                                          \
	({                                                                                \
		int failed_ = ukp_set_kprobes_optimization(false);                        \
		failed_ += cmocka_run_group_tests_name("breakpoints", tests, NULL, NULL); \
		failed_ += ukp_set_kprobes_optimization(true);                            \
		in_jumps = true;                                                          \
		failed_ += cmocka_run_group_tests_name("jumps", tests, NULL, NULL);       \
		failed_;                                                                  \
	})

/* A probe without a post handler, registered by register_ok(), in the form of this run. */
static inline void has_form(const struct kprobe *kp)
{
	char why[256];

	if (ukp_kprobe_form(kp, why, sizeof(why)) != in_jumps)
		fail_msg("not in the form of this run: %s", why);
	assert_int_equal(!!(kp->flags & KPROBE_FLAG_OPTIMIZED), in_jumps);
	assert_int_equal(*(const volatile unsigned char *)kp->addr, in_jumps ? 0xe9 : 0xcc);
}

/* In n threads at once, until all have ended. */
static inline void run_threads(int n, void *(*fn)(void *))
{
	pthread_t t[n];
	int i;

	for (i = 0; i < n; i++)
		assert_int_equal(pthread_create(&t[i], NULL, fn, NULL), 0);
	for (i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

/* This program's text in memory against the file's. */
static inline void text_is_as_in_the_file(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	int fd = open("/proc/self/exe", O_RDONLY), compared = 0;
	unsigned long start, end, off;
	char line[512], exe[256];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	assert_true(maps && fd >= 0 && n > 0);
	exe[n] = 0;
	while (fgets(line, sizeof(line), maps)) {
		char *file;

		if (sscanf(line, "%lx-%lx r-xp %lx", &start, &end, &off) != 3 || !strstr(line, exe))
			continue;
		file = malloc(end - start);
		n = pread(fd, file, end - start, (off_t)off);
		assert_true(n > 0);
		assert_memory_equal(file, (void *)start, (size_t)n);
		free(file);
		compared++;
	}
	assert_true(compared);
	fclose(maps);
	close(fd);
}

/* For the end of each test. */
static inline int untouched(void **state)
{
	text_is_as_in_the_file();
	return 0;
}

static inline void has_jump(const struct kprobe *kp)
{
	char why[256];
	int ret = ukp_kprobe_form(kp, why, sizeof(why));

	if (ret != 1)
		fail_msg("%d: %s", ret, why);
	assert_true(kp->flags & KPROBE_FLAG_OPTIMIZED);
}

/* It keeps it for a reason that has these words. */
static inline void has_breakpoint(const struct kprobe *kp, const char *reason)
{
	char why[256];

	assert_int_equal(ukp_kprobe_form(kp, why, sizeof(why)), 0);
	if (!strstr(why, reason))
		fail_msg("'%s' is not '%s'", why, reason);
	assert_false(kp->flags & KPROBE_FLAG_OPTIMIZED);
}

#endif
